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
        criterion_id=judge.criterion_id, judge_id=judge_id, model=models.get(tx, judge.model_id),
        planned=[request for _, request in cases],
        add_content=lambda run_id: runs.add_cases(tx, run_id, [case for case, _ in cases]),
    )  # fmt: skip
    piles.record(
        tx, judge.criterion_id, "measured", run_id=run.run_id, detail=f"judge v{judge.number} on {len(cases)} cases"
    )
    return run


def requests_of(tx: Transaction, run: Run) -> list[Request]:
    """The requests of a round again, as they were planned."""
    judge = judges.get(tx, run.judge_id)
    found = [traces.get(tx, trace_id) for trace_id in {case.trace_id: case for case in runs.cases(tx, run.run_id)}]
    return [request_for(judge, trace) for trace in found if trace is not None]


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
