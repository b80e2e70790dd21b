"""Cases: a trace beside what is said of it under one criterion, as the expert's desk shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.judging.trace import Trace
from engine.store import labels, piles, traces
from engine.store.drafts import Draft
from engine.store.labels import Label, Mark
from engine.store.transaction import Transaction


@dataclass(frozen=True)
class CaseRow:
    """One line of the list of cases. ``mark`` is the newest label's mark or "", ``draft`` says that something unsaved is kept."""

    trace_id: str
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

    @property
    def labelled(self) -> int:
        return self.passes + self.failures


def rows(tx: Transaction, criterion_id: str) -> list[CaseRow]:
    """All cases in order of arrival."""
    found = tx.rows(
        "SELECT t.trace_id, left(t.request, 160), coalesce(l.mark, ''), d.trace_id IS NOT NULL, coalesce(p.pile, 'none'), t.metadata "
        f"FROM {traces.CURRENT} t "
        f"LEFT JOIN (SELECT * FROM {labels.CURRENT} WHERE criterion_id = $1) l ON l.trace_id = t.trace_id "
        "LEFT JOIN (SELECT * FROM draft WHERE criterion_id = $1) d ON d.trace_id = t.trace_id "
        f"LEFT JOIN (SELECT * FROM {piles.CURRENT} WHERE criterion_id = $1) p ON p.trace_id = t.trace_id "
        "ORDER BY t.position",
        criterion_id,
    )
    return [CaseRow(row[0], row[1], row[2], row[3], row[4], json.loads(row[5])) for row in found]


def get(tx: Transaction, trace_id: str, criterion_id: str) -> Case | None:
    """One case, or None when there is no such trace."""
    trace = traces.get(tx, trace_id)
    if trace is None:
        return None
    draft = tx.row(
        "SELECT trace_id, criterion_id, verdict, critique FROM draft WHERE trace_id = ? AND criterion_id = ?",
        trace_id,
        criterion_id,
    )
    pile = piles.of_case(tx, criterion_id, trace_id)
    drawn = piles.was_drawn(tx, criterion_id, trace_id)
    return Case(trace, labels.current(tx, trace_id, criterion_id), Draft(*draft) if draft else None, pile, drawn)


def progress(case_rows: list[CaseRow]) -> Progress:
    """What a list of cases comes to."""
    marks = [row.mark for row in case_rows]
    return Progress(
        total=len(case_rows),
        passes=marks.count(Mark.PASS),
        failures=marks.count(Mark.FAIL),
        deferred=marks.count(Mark.DEFERRED),
        not_applicable=marks.count(Mark.NOT_APPLICABLE),
        defects=marks.count(Mark.DEFECT),
        drafts=sum(row.draft for row in case_rows),
    )


def search(tx: Transaction, words: str) -> set[str]:
    """Trace ids in whose id, request, context or response the words stand, in any case."""
    pattern = words.casefold()
    found = tx.rows(
        f"SELECT trace_id FROM {traces.CURRENT} WHERE contains(lower(trace_id || ' ' || request || ' ' || response || ' ' || context), ?)",
        pattern,
    )
    return {row[0] for row in found}
