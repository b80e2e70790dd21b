"""What a run would take, in time and money, from how the same model answered in an earlier run of this workspace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.backends.server_options import server_options
from engine.models.settings import SERVER_BACKEND
from engine.runs.planning import settings_of
from engine.runs.protocol import RunDir
from engine.runs.spool import newest_results
from engine.store import runs
from engine.store.models import Model
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace

LOOK_BACK = 200
"""Requests that are looked at: the newest of one run."""
LOOK_AT_RUNS = 3
"""Runs that are tried, for the folder of a run may be gone."""


@dataclass(frozen=True)
class Pace:
    """How a model answered ``requests`` requests of run ``run_id``: requests a second while it worked, mean tokens of a request."""

    run_id: str
    requests: int
    per_s: float
    prompt_tokens: float
    completion_tokens: float


@dataclass(frozen=True)
class Estimate:
    """Seconds, and the cost in the currency of the prices (None without prices), as ``requests`` requests of run ``run_id`` suggest."""

    seconds: float
    cost: float | None
    run_id: str
    requests: int


def estimate(tx: Transaction, workspace: Workspace, model: Model, kind: str, to_run: int) -> Estimate | None:
    """What so many requests would take, from a run of the same kind where there was one; None before there was any.

    The rate limits that are set now bound the speed. Raises EvaldeskError for a server that is not registered any more.
    """
    settings = settings_of(model)
    pace = pace_of(tx, workspace, model.model_id, kind)
    if pace is None:
        return None
    seconds, cost = to_run / pace.per_s, None
    if model.backend == SERVER_BACKEND:
        options = server_options(settings.spec_options, model.name)
        if options.requests_per_minute:
            seconds = max(seconds, 60 * to_run / options.requests_per_minute)
        if options.tokens_per_minute:
            tokens = to_run * (pace.prompt_tokens + pace.completion_tokens)
            seconds = max(seconds, 60 * tokens / options.tokens_per_minute)
        if options.price_in or options.price_out:
            a_request = pace.prompt_tokens * options.price_in + pace.completion_tokens * options.price_out
            cost = to_run * a_request / 1e6
    return Estimate(seconds, cost, pace.run_id, pace.requests)


def estimate_json(tx: Transaction, workspace: Workspace, model: Model, kind: str, to_run: int) -> dict[str, Any]:
    """The estimate as an answer to a request holds it: seconds, cost, estimated_from; all None where there is nothing to go by."""
    found = estimate(tx, workspace, model, kind, to_run) if to_run else None
    if found is None:
        return dict.fromkeys(("seconds", "cost", "estimated_from"))
    source = {"run": found.run_id, "requests": found.requests}
    return {"seconds": round(found.seconds, 1), "cost": found.cost, "estimated_from": source}


def pace_of(tx: Transaction, workspace: Workspace, model_id: str, kind: str) -> Pace | None:
    """The pace of the newest run of the model, of one of this kind where there was one; None before any request was answered."""
    for run_id in runs.newest_of_model(tx, model_id, kind, LOOK_AT_RUNS):
        lines = [line for line in newest_results(RunDir(workspace.runs / run_id).results) if not line["error"]]
        lines = lines[-LOOK_BACK:]
        if (busy := busy_seconds(lines)) > 0:
            prompt, completion = (sum(line[name] for line in lines) for name in ("prompt_tokens", "completion_tokens"))
            return Pace(run_id, len(lines), len(lines) / busy, prompt / len(lines), completion / len(lines))
    return None


def busy_seconds(lines: Iterable[Mapping[str, Any]]) -> float:
    """Seconds in which at least one of these requests was worked on: pauses are not in it, and what went side by side counts once.

    >>> busy_seconds([{"at": 4.0, "seconds": 2.0}, {"at": 5.0, "seconds": 2.0}, {"at": 100.0, "seconds": 1.0}])
    4.0
    """
    busy, until = 0.0, float("-inf")
    for begin, end in sorted((line["at"] - max(line["seconds"], 0.0), line["at"]) for line in lines):
        busy += max(0.0, end - max(begin, until))
        until = max(until, end)
    return busy
