"""The tables of figures of runs that have ended: written whether a screen looks at them or not."""

from __future__ import annotations

from engine.measuring import audit
from engine.store import figures, rankings
from engine.store.transaction import Transaction
from engine.sweeping import results


def refresh(tx: Transaction) -> list[str]:
    """Write the tables that are behind what came in; returns the runs they belong to.

    While a run goes, its tables are as old as the last look at it.
    """
    sweeps, judges = rankings.behind(tx), figures.behind(tx)
    for run_id in sweeps:
        results.measure(tx, run_id)
    for run_id in judges:
        audit.audit(tx, run_id)
    return [*sweeps, *judges]
