"""Confusion tables and figures of measured rounds, kept as tables that equal what the screen shows."""

from __future__ import annotations

from engine.auditing.figures import FigureRow
from engine.store import labels
from engine.store.transaction import Transaction, now
from stats.confusion import Confusion


def count(tx: Transaction, run_id: str) -> tuple[Confusion, int]:
    """The confusion table of a run against the labels that count now, and how many cases are still pending."""
    row = tx.row(
        "SELECT count(*) FILTER (l.mark = 'FAIL' AND j.verdict = 'FAIL'), count(*) FILTER (l.mark = 'FAIL' AND j.verdict = 'PASS'), "
        "count(*) FILTER (l.mark = 'PASS' AND j.verdict = 'FAIL'), count(*) FILTER (l.mark = 'PASS' AND j.verdict = 'PASS'), "
        "count(*) FILTER (l.mark = 'FAIL' AND j.verdict = 'NO_VERDICT'), count(*) FILTER (l.mark = 'PASS' AND j.verdict = 'NO_VERDICT'), "
        "count(*) FILTER (l.mark IS NULL AND j.seq IS NOT NULL), count(*) FILTER (j.seq IS NULL) "
        "FROM run_case c JOIN run USING (run_id) "
        "LEFT JOIN judgement j ON j.run_id = c.run_id AND j.trace_id = c.trace_id "
        f"LEFT JOIN {labels.COUNTING} l ON l.trace_id = c.trace_id AND l.criterion_id = run.criterion_id WHERE c.run_id = ?",
        run_id,
    )
    assert row is not None
    return Confusion(*row[:7]), row[7]


def behind(tx: Transaction) -> list[str]:
    """The ended runs of judges whose table lacks judgements that are there."""
    rows = tx.rows(
        "SELECT run_id FROM run WHERE kind = 'judge' AND finished_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM confusion c "
        "WHERE c.run_id = run.run_id AND c.pending = (SELECT count(*) FROM run_case k WHERE k.run_id = run.run_id) "
        "- (SELECT count(*) FROM judgement j WHERE j.run_id = run.run_id))"
    )
    return [row[0] for row in rows]


def keep(tx: Transaction, run_id: str, confusion: Confusion, pending: int, rows: list[FigureRow]) -> None:
    """Write the tables of one run anew, where a count has changed."""
    counts = (
        confusion.tp, confusion.fn, confusion.fp, confusion.tn, confusion.no_verdict_fail, confusion.no_verdict_pass, pending,
    )  # fmt: skip
    before = tx.row(
        "SELECT tp, fn, fp, tn, no_verdict_fail, no_verdict_pass, pending FROM confusion WHERE run_id = ?", run_id
    )
    if before == counts:
        return
    moment = now()
    tx.execute("DELETE FROM confusion WHERE run_id = ?", run_id)
    tx.execute("DELETE FROM figure WHERE run_id = ?", run_id)
    tx.insert(
        "confusion", run_id=run_id, tp=confusion.tp, fn=confusion.fn, fp=confusion.fp, tn=confusion.tn,
        no_verdict_fail=confusion.no_verdict_fail, no_verdict_pass=confusion.no_verdict_pass, pending=pending, updated_at=moment,
    )  # fmt: skip
    tx.append(
        "figure",
        ("run_id", "name", "k", "n", "value", "low", "high", "updated_at"),
        [(run_id, r.name, r.k, r.n, r.value, r.low, r.high, moment) for r in rows],
    )
