"""Runs that wait for others: which ones bring what they need, and how much has come so far."""

from __future__ import annotations

from engine.store import runs
from engine.store.transaction import Transaction


def settled(tx: Transaction) -> dict[str, int]:
    """How many requests of each run that is not done have a judgement or an outcome, whichever run generated them."""
    open_runs = "SELECT run_id FROM run WHERE status <> 'done'"
    rows = tx.rows(
        f"SELECT run_id, count(DISTINCT request_key) FROM outcome WHERE run_id IN ({open_runs}) GROUP BY run_id "
        f"UNION ALL SELECT run_id, count(DISTINCT request_key) FROM judgement WHERE run_id IN ({open_runs}) GROUP BY run_id"
    )
    return dict(rows)


def brought_by(tx: Transaction, run_id: str) -> list[str]:
    """The other active runs that are going to generate something which this one needs, oldest first."""
    rows = tx.rows(
        "SELECT DISTINCT run.run_id, run.created_at FROM run_request r JOIN run USING (run_id) LEFT JOIN completion c "
        "ON c.request_key = r.request_key AND c.run_id = r.run_id "
        f"WHERE run.status IN {runs.ACTIVE} AND c.request_key IS NULL AND run.run_id <> ? AND r.request_key IN "
        "(SELECT request_key FROM run_case WHERE run_id = ? UNION ALL SELECT request_key FROM run_cell WHERE run_id = ?) "
        "ORDER BY run.created_at, run.run_id",
        run_id,
        run_id,
        run_id,
    )
    return [row[0] for row in rows]


def has_own(tx: Transaction, run_id: str) -> bool:
    """Whether anything stands in the run's own plan."""
    return bool(tx.value("SELECT count(*) FROM run_request WHERE run_id = ?", run_id))
