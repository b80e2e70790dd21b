"""Criteria and their versions."""

from __future__ import annotations

import json
from typing import Any

from engine.errors import EvaldeskError
from engine.judging.criterion import Criterion, HelpCritique
from engine.store.transaction import Transaction, now

_FIELDS = "criterion_id, version, question, task, pass_when, fail_when, edge_cases, quote_required, facts, help_critiques, author"

HOW_TO_MAKE_ONE = "Write one: evaldesk criterion add, or c on the Home screen."


def add(tx: Transaction, criterion: Criterion) -> Criterion:
    """Store the criterion as a new version of its id; unchanged content adds nothing. Returns what is stored."""
    newest = find(tx, criterion.criterion_id)
    if newest is not None and _content(newest) == _content(criterion):
        return newest
    version = newest.version + 1 if newest else 1
    tx.insert(
        "criterion",
        criterion_id=criterion.criterion_id,
        version=version,
        question=criterion.question,
        task=criterion.task,
        pass_when=criterion.pass_when,
        fail_when=criterion.fail_when,
        edge_cases=json.dumps(list(criterion.edge_cases)),
        quote_required=criterion.quote_required,
        facts=json.dumps(list(criterion.facts)),
        help_critiques=json.dumps([[h.verdict, h.critique] for h in criterion.help_critiques]),
        author=criterion.author,
        created_at=now(),
    )
    stored = find(tx, criterion.criterion_id)
    assert stored is not None
    return stored


def find(tx: Transaction, criterion_id: str) -> Criterion | None:
    """The newest version of a criterion, or None."""
    row = tx.row(f"SELECT {_FIELDS} FROM criterion WHERE criterion_id = ? ORDER BY version DESC LIMIT 1", criterion_id)
    return _from_row(row) if row else None


def get(tx: Transaction, criterion_id: str) -> Criterion:
    """The newest version of a criterion; raises EvaldeskError that lists those that exist."""
    found = find(tx, criterion_id)
    if found is None:
        names = ", ".join(c.criterion_id for c in everyone(tx))
        raise EvaldeskError(
            f"there is no criterion {criterion_id!r}",
            remedy=f"Criteria in this workspace: {names}." if names else HOW_TO_MAKE_ONE,
        )
    return found


def everyone(tx: Transaction) -> list[Criterion]:
    """The newest version of each criterion, in the order in which they were made."""
    rows = tx.rows(
        f"SELECT {_FIELDS} FROM criterion QUALIFY version = max(version) OVER (PARTITION BY criterion_id) "
        "ORDER BY min(created_at) OVER (PARTITION BY criterion_id), criterion_id"
    )
    return [_from_row(row) for row in rows]


def _content(criterion: Criterion) -> tuple[Any, ...]:
    return (
        criterion.question, criterion.task, criterion.pass_when, criterion.fail_when, criterion.edge_cases,
        criterion.quote_required, criterion.facts, criterion.help_critiques,
    )  # fmt: skip


def _from_row(row: tuple[Any, ...]) -> Criterion:
    return Criterion(
        criterion_id=row[0], version=row[1], question=row[2], task=row[3], pass_when=row[4], fail_when=row[5],
        edge_cases=tuple(json.loads(row[6])), quote_required=row[7], facts=tuple(json.loads(row[8])),
        help_critiques=tuple(HelpCritique(v, c) for v, c in json.loads(row[9])), author=row[10],
    )  # fmt: skip
