"""Two files joined by the id of a case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from engine.errors import EvaldeskError
from engine.importing.pointer import MISSING

_LISTED: Final = 5


@dataclass(frozen=True)
class Cell:
    """One value of a verdict field: its row's number, the id of its case ("" when there is none), the value."""

    row: int
    case: str
    value: Any


@dataclass(frozen=True)
class JoinCounts:
    """How two files fit: cases in both, and rows of each side without a partner (rows without an id included)."""

    matched: int
    human_only: int
    judge_only: int


@dataclass(frozen=True)
class Joined:
    """Pairs of human and judge cells, and the cells left over on either side."""

    pairs: tuple[tuple[Cell, Cell], ...]
    human_only: tuple[Cell, ...]
    judge_only: tuple[Cell, ...]

    @property
    def counts(self) -> JoinCounts:
        """The lengths of the three."""
        return JoinCounts(len(self.pairs), len(self.human_only), len(self.judge_only))


def case_id(value: Any) -> str:
    """An id as the text it is compared by: outer space off, 7.0 as "7"; "" for none."""
    if value is None or value is MISSING:
        return ""
    if isinstance(value, (float, Decimal)) and math.isfinite(value) and value == int(value):
        return str(int(value))
    return str(value).strip()


def join(human: Sequence[Cell], judge: Sequence[Cell], human_file: str, judge_file: str) -> Joined:
    """Pair the cells of the same case.

    Raises EvaldeskError when an id stands twice in one file (a pair would be arbitrary) or no id stands in both.
    """
    by_human, by_judge = _by_case(human, human_file), _by_case(judge, judge_file)
    pairs = tuple((cell, by_judge[case]) for case, cell in by_human.items() if case in by_judge)
    if not pairs:
        raise EvaldeskError(
            f"no id stands in both {human_file} ({_examples(by_human)}) and {judge_file} ({_examples(by_judge)})",
            where="--on",
            kept="Nothing was measured.",
            remedy="Name the field that holds the same ids in both files.",
        )
    return Joined(
        pairs,
        tuple(cell for cell in human if cell.case not in by_judge),
        tuple(cell for cell in judge if cell.case not in by_human),
    )


def _by_case(cells: Sequence[Cell], file: str) -> Mapping[str, Cell]:
    found: dict[str, Cell] = {}
    twice: list[str] = []
    for cell in cells:
        if not cell.case:
            continue
        first = found.setdefault(cell.case, cell)
        if first is not cell:
            twice.append(f"{cell.case!r} in rows {first.row:,} and {cell.row:,}")
    if twice:
        more = f" and {len(twice) - _LISTED:,} more" if len(twice) > _LISTED else ""
        raise EvaldeskError(
            f"ids stand more than once: {'; '.join(twice[:_LISTED])}{more}",
            where=file,
            kept="Nothing was measured.",
            remedy="Keep one row a case, or choose another field with --on.",
        )
    return found


def _examples(cells: Mapping[str, Cell]) -> str:
    shown = [repr(case) for case in list(cells)[:2]]
    return f"such as {' and '.join(shown)}" if shown else "no ids at all"
