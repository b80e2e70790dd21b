"""Drafts: what was typed and not saved. Kept, shown as unfinished, counted nowhere."""

from __future__ import annotations

from dataclasses import dataclass

from engine.store.transaction import Transaction, now


@dataclass(frozen=True)
class Draft:
    """An unfinished label: ``verdict`` is PASS, FAIL or "" (not decided yet)."""

    trace_id: str
    criterion_id: str
    verdict: str
    critique: str


def save(tx: Transaction, draft: Draft) -> None:
    """Keep the draft, in place of an earlier one of the same case; an empty one is dropped."""
    drop(tx, draft.trace_id, draft.criterion_id)
    if draft.verdict or draft.critique:
        tx.insert(
            "draft",
            trace_id=draft.trace_id,
            criterion_id=draft.criterion_id,
            verdict=draft.verdict,
            critique=draft.critique,
            updated_at=now(),
        )


def drop(tx: Transaction, trace_id: str, criterion_id: str) -> None:
    """Forget the draft of one case."""
    tx.execute("DELETE FROM draft WHERE trace_id = ? AND criterion_id = ?", trace_id, criterion_id)


def all_of(tx: Transaction, criterion_id: str) -> dict[str, Draft]:
    """The drafts of a criterion by trace id."""
    rows = tx.rows("SELECT trace_id, criterion_id, verdict, critique FROM draft WHERE criterion_id = ?", criterion_id)
    return {row[0]: Draft(*row) for row in rows}
