"""Requests that an unfinished run waits for and nobody will bring any more: the other run was cancelled, or failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.backends.protocol import Request
from engine.measuring import rounds
from engine.runs import planning
from engine.store import models, runs
from engine.store.runs import Run
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace
from engine.sweeping import starting

_REQUESTS: Mapping[str, Callable[[Transaction, Run], list[Request]]] = {
    "judge": rounds.requests_of,
    "sweep": starting.requests_of,
}


def adopt(tx: Transaction, workspace: Workspace) -> list[str]:
    """Plan such requests anew in the run that waits; returns the runs that gained some."""
    adopted = []
    for run in runs.unfinished(tx):
        if run.status not in ("waiting", "queued") or not runs.missing_keys(tx, run.run_id):
            continue
        if planning.adopt_missing(tx, workspace, run, models.get(tx, run.model_id), _REQUESTS[run.kind](tx, run)):
            adopted.append(run.run_id)
    return adopted
