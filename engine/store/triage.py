"""Triage: the drawer into which a disagreement was sorted."""

from __future__ import annotations

from engine.store.transaction import Transaction, now

DRAWERS = {
    "label": "the label was wrong",
    "prompt": "criterion or examples are unclear",
    "model": "the model cannot do it",
}


def sort_into(tx: Transaction, run_id: str, trace_id: str, drawer: str) -> None:
    """Put a disagreement into a drawer ("none" takes it out again); the newest row counts."""
    tx.insert("triage", seq=tx.next_seq(), run_id=run_id, trace_id=trace_id, drawer=drawer, created_at=now())


def of_run(tx: Transaction, run_id: str) -> dict[str, str]:
    """Drawer by trace id of the sorted disagreements of a run."""
    rows = tx.rows("SELECT trace_id, arg_max(drawer, seq) FROM triage WHERE run_id = ? GROUP BY trace_id", run_id)
    return {trace_id: drawer for trace_id, drawer in rows if drawer != "none"}
