"""Rounds: one judge version measured once on the sealed pile."""

from __future__ import annotations

from engine.backends.protocol import Request
from engine.errors import Refused
from engine.judging.judge import Judge, render
from engine.judging.trace import Trace
from engine.runs import planning
from engine.runs.keys import request_key
from engine.runs.planning import Plan
from engine.store import judges, models, piles, runs, traces
from engine.store.models import Model
from engine.store.runs import Run, RunCase
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace


def plan(tx: Transaction, judge_id: str) -> Plan:
    """What measuring this judge would have to generate: needed, cached, awaited."""
    return planning.preview(tx, [request for _, request in _cases(tx, judges.get(tx, judge_id))])


def start(tx: Transaction, workspace: Workspace, judge_id: str) -> Run:
    """Start measuring a judge on the sealed pile; the round is entered in the seal log.

    Raises Refused when the sealed pile has no labelled case.
    """
    judge = judges.get(tx, judge_id)
    cases = _cases(tx, judge)
    if not cases:
        raise Refused(
            "the sealed pile has no labelled case to measure on",
            where=judge.criterion_id,
            remedy="Draw sealed cases and label them with a critique first.",
        )
    run = planning.start(
        tx, workspace, kind="judge", title=f"{judge.criterion_id} judge v{judge.number}, sealed pile",
        criterion_id=judge.criterion_id, judge_id=judge_id, model=_model(tx, judge.model_id), cases=cases,
    )  # fmt: skip
    piles.record(
        tx, judge.criterion_id, "measured", run_id=run.run_id, detail=f"judge v{judge.number} on {len(cases)} cases"
    )
    return run


def adopt_orphans(tx: Transaction, workspace: Workspace) -> list[str]:
    """Plan again what unfinished runs wait for and no run will bring any more; returns the runs that gained requests."""
    adopted = []
    for run in runs.unfinished(tx):
        if run.status not in ("waiting", "queued") or not runs.missing_keys(tx, run.run_id):
            continue
        judge = judges.get(tx, run.judge_id)
        wanted = {case.trace_id: case for case in runs.cases(tx, run.run_id)}
        found = [traces.get(tx, trace_id) for trace_id in wanted]
        requests = [request_for(judge, trace) for trace in found if trace is not None]
        if planning.adopt_missing(tx, workspace, run, _model(tx, judge.model_id), requests):
            adopted.append(run.run_id)
    return adopted


def request_for(judge: Judge, trace: Trace) -> Request:
    """The fully rendered request that asks this judge about one case."""
    messages = render(judge, trace)
    key = request_key(judge.model_id, messages, judge.sampling, judge.schema)
    return Request(key, messages, dict(judge.sampling), judge.schema)


def _cases(tx: Transaction, judge: Judge) -> list[tuple[RunCase, Request]]:
    cases = []
    for case in piles.measuring_cases(tx, judge.criterion_id):
        request = request_for(judge, case.trace)
        cases.append((RunCase(case.trace.trace_id, case.trace.version, request.key), request))
    return cases


def _model(tx: Transaction, model_id: str) -> Model:
    model = models.find(tx, model_id)
    if model is None:
        raise Refused("the judge's model is not known in this workspace", where=model_id)
    return model
