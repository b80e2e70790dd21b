"""Cases: a trace beside what is said of it under one criterion, as the expert's desk shows them."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.judging.trace import Trace
from engine.store import codes, labels, piles, traces
from engine.store.drafts import Draft
from engine.store.labels import Label, Mark
from engine.store.transaction import Transaction

_LOOKED_AT = 20_000
"""Positions that are looked through at once for an open case: the next one is nearly always near."""


@dataclass(frozen=True)
class CaseRow:
    """One line of the list of cases. ``mark`` is the newest label's mark or "", ``draft`` says that something unsaved is kept."""

    trace_id: str
    position: int
    request: str
    mark: str
    draft: bool
    pile: str
    metadata: Mapping[str, Any]

    @property
    def is_open(self) -> bool:
        """Still to be decided: never labelled, taken back, or deferred."""
        return self.mark in ("", Mark.WITHDRAWN, Mark.DEFERRED)


@dataclass(frozen=True)
class Case:
    """One case in full."""

    trace: Trace
    label: Label | None
    draft: Draft | None
    pile: str
    was_drawn: bool = False
    """Whether it lies in the sealed pile by a random draw."""
    codes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Progress:
    """Counts over the cases of a criterion."""

    total: int
    passes: int
    failures: int
    deferred: int
    not_applicable: int
    defects: int
    drafts: int
    written: int = 0
    """Of ``total``, those that were written for the coverage grid: no real use."""

    @property
    def labelled(self) -> int:
        return self.passes + self.failures


def page(tx: Transaction, criterion_id: str, positions: Sequence[int]) -> list[CaseRow]:
    """The cases at these positions (ascending, no more than a screen or two), in order; positions without a trace are left out."""
    if not positions:
        return []
    first, last = positions[0], positions[-1]
    some = "" if last - first == len(positions) - 1 else "AND position IN (SELECT unnest($4::BIGINT[]))"
    found = tx.rows(
        "WITH page AS (SELECT trace_id, position, left(request, 160) AS request, metadata "
        f"FROM {traces.CURRENT} WHERE position BETWEEN $2 AND $3 {some}) "
        "SELECT page.trace_id, page.position, page.request, coalesce(l.mark, ''), d.trace_id IS NOT NULL, coalesce(p.pile, 'none'), "
        "page.metadata FROM page "
        "LEFT JOIN (SELECT trace_id, arg_max(mark, seq) AS mark FROM label WHERE criterion_id = $1 "
        "AND trace_id IN (SELECT trace_id FROM page) GROUP BY trace_id) l USING (trace_id) "
        "LEFT JOIN (SELECT DISTINCT trace_id FROM draft WHERE criterion_id = $1) d USING (trace_id) "
        "LEFT JOIN (SELECT trace_id, arg_max(pile, seq) AS pile FROM pile WHERE criterion_id = $1 "
        "AND trace_id IN (SELECT trace_id FROM page) GROUP BY trace_id) p USING (trace_id) ORDER BY page.position",
        criterion_id, first, last, *([list(positions)] if some else []),
    )  # fmt: skip
    return [CaseRow(row[0], row[1], row[2], row[3], row[4], row[5], json.loads(row[6])) for row in found]


def get(tx: Transaction, trace_id: str, criterion_id: str) -> Case | None:
    """One case, or None when there is no such trace."""
    trace = traces.get(tx, trace_id)
    return _case(tx, trace, criterion_id) if trace is not None else None


def at(tx: Transaction, position: int, criterion_id: str) -> Case | None:
    """The case at this position, or None when there is none."""
    trace = traces.at(tx, position)
    return _case(tx, trace, criterion_id) if trace is not None else None


def _case(tx: Transaction, trace: Trace, criterion_id: str) -> Case:
    trace_id = trace.trace_id
    draft = tx.row(
        "SELECT trace_id, criterion_id, verdict, critique FROM draft WHERE trace_id = ? AND criterion_id = ?",
        trace_id,
        criterion_id,
    )
    pile = piles.of_case(tx, criterion_id, trace_id)
    drawn = piles.was_drawn(tx, criterion_id, trace_id)
    given = codes.of_case(tx, criterion_id, trace_id)
    return Case(trace, labels.current(tx, trace_id, criterion_id), Draft(*draft) if draft else None, pile, drawn, given)


def progress(tx: Transaction, criterion_id: str) -> Progress:
    """The counts of a criterion."""
    counts = dict(
        tx.rows(f"SELECT mark, count(*) FROM {labels.CURRENT} WHERE criterion_id = ? GROUP BY mark", criterion_id)
    )
    return Progress(
        total=traces.count(tx),
        passes=counts.get(Mark.PASS, 0),
        failures=counts.get(Mark.FAIL, 0),
        deferred=counts.get(Mark.DEFERRED, 0),
        not_applicable=counts.get(Mark.NOT_APPLICABLE, 0),
        defects=counts.get(Mark.DEFECT, 0),
        drafts=int(tx.value("SELECT count(DISTINCT trace_id) FROM draft WHERE criterion_id = ?", criterion_id)),
        written=traces.count_written(tx),
    )


def next_open(tx: Transaction, criterion_id: str, after: int, among: Sequence[int]) -> int | None:
    """The first position of ``among`` behind ``after``, and then before it, whose case is still to be decided; None for none."""
    here = bisect_right(among, after)
    for part in (among[here:], among[:here]):
        for start in range(0, len(part), _LOOKED_AT):
            chunk = part[start : start + _LOOKED_AT]
            position = tx.value(
                f"SELECT min(position) FROM trace WHERE position BETWEEN ? AND ? "
                f"{'' if chunk[-1] - chunk[0] == len(chunk) - 1 else 'AND position IN (SELECT unnest(?::BIGINT[])) '}"
                f"AND trace_id NOT IN (SELECT trace_id FROM {labels.CURRENT} WHERE criterion_id = ? AND mark NOT IN ('WITHDRAWN', 'DEFERRED'))",
                chunk[0], chunk[-1], *([] if chunk[-1] - chunk[0] == len(chunk) - 1 else [list(chunk)]), criterion_id,
            )  # fmt: skip
            if position is not None:
                return int(position)
    return None
