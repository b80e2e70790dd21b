"""Where each sweep stands: who leads, and in how many conditions."""

from __future__ import annotations

from dataclasses import dataclass

from engine.store import rankings, runs, sweeps
from engine.store.runs import Run
from engine.store.transaction import Transaction
from engine.sweeping import results

SHOWN = 3


@dataclass(frozen=True)
class SweepStanding:
    """The newest run of one sweep. ``leaders`` are tied when several; ``crowned`` of ``conditions`` have one of them on top."""

    run: Run
    name: str
    leaders: tuple[str, ...]
    crowned: int
    conditions: int


def sweep_standings(tx: Transaction) -> list[SweepStanding]:
    """The newest run of each of the newest sweeps, as the tables hold it (see engine.sweeping.results)."""
    newest: dict[str, Run] = {}
    for run in runs.everyone(tx):
        if run.kind == "sweep" and sweeps.get(tx, run.sweep_id).prompts:
            newest.setdefault(run.sweep_id, run)
    shown = list(newest.values())[:SHOWN]
    for run in shown:
        if run.is_active or not rankings.is_kept(tx, run.run_id):
            results.measure(tx, run.run_id)
    return [
        SweepStanding(
            run,
            sweeps.get(tx, run.sweep_id).name,
            tuple(rankings.leaders(tx, run.run_id)),
            *rankings.crowned(tx, run.run_id),
        )
        for run in shown
    ]
