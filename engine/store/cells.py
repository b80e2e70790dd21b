"""Counts of traces for each combination of dimensions, by one statement over a piece of the workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.judging.dimension import Dimension
from engine.store import dimensions, labels, traces
from engine.store.transaction import Transaction


@dataclass(frozen=True)
class CellRow:
    """The traces of one combination; a value is (its form that letter case does not change, its spelling), None for no value.

    ``real`` and ``written`` count traces; ``labelled`` and ``failures`` the real ones with a verdict that counts, and those that
    fail; the last two the same of the written ones.
    """

    values: tuple[tuple[str, str] | None, ...]
    real: int
    written: int
    labelled: int
    failures: int
    written_labelled: int
    written_failures: int


def count(tx: Transaction, criterion_id: str, by: Sequence[Dimension], within: range) -> list[CellRow]:
    """The combinations that traces at these positions have, each trace counted in exactly one of them."""
    if not within:
        return []
    parameters: list[object] = [criterion_id, within[0], within[-1]]

    def given(value: object) -> str:
        parameters.append(value)
        return f"${len(parameters)}"

    joins = " ".join(dimensions.join_sql(dimension, number, given) for number, dimension in enumerate(by))
    values = [f"{dimensions.value_sql(dimension, number, given)} AS v{number}" for number, dimension in enumerate(by)]
    shown = ", ".join(f"v{number}, lower(v{number})" for number in range(len(by)))
    rows = tx.rows(
        f"SELECT count(*) FILTER (origin = 'real'), count(*) FILTER (origin <> 'real'), "
        "count(mark) FILTER (origin = 'real'), count(*) FILTER (origin = 'real' AND mark = 'FAIL'), "
        "count(mark) FILTER (origin <> 'real'), count(*) FILTER (origin <> 'real' AND mark = 'FAIL')"
        f"{', ' if by else ''}{shown} FROM (SELECT {', '.join(['t.origin', 'l.mark', *values])} FROM {traces.CURRENT} t {joins} "
        f"LEFT JOIN (SELECT trace_id, mark FROM {labels.COUNTING} WHERE criterion_id = $1) l ON l.trace_id = t.trace_id "
        f"WHERE t.position BETWEEN $2 AND $3) GROUP BY {', '.join(f'v{number}' for number in range(len(by))) or '()'}",
        *parameters,
    )
    return [
        CellRow(
            tuple((row[7 + 2 * n], row[6 + 2 * n]) if row[6 + 2 * n] is not None else None for n in range(len(by))),
            *row[:6],
        )
        for row in rows
    ]
