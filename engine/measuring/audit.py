"""The audit of a run: what the judge's verdicts come to against the expert's labels, kept as tables."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from engine.auditing.figures import figure_rows, figures_json
from engine.auditing.sentence import plain_sentence
from engine.judging.judge import Judge
from engine.store import criteria, figures, judgements, judges, labels, piles, runs, triage
from engine.store.runs import Run
from engine.store.transaction import Transaction
from stats.confusion import Confusion, Rates, rates
from stats.gates import GateResult, default_gate


@dataclass(frozen=True)
class Disagreement:
    """A case on which judge and expert differ, or on which the judge gave no verdict."""

    trace_id: str
    request: str
    expert: str
    critique: str
    judge: str
    reason: str
    problem: str
    drawer: str


@dataclass(frozen=True)
class Audit:
    """Everything that the Audit screen shows about one run. Positive = the judge reports a failure."""

    run: Run
    judge: Judge
    confusion: Confusion
    pending: int
    rates: Rates
    gate: GateResult
    sentence: str
    disagreements: tuple[Disagreement, ...]
    rounds_on_pile: int
    criterion_version: int

    @property
    def total(self) -> int:
        return self.confusion.labelled + self.confusion.unlabelled + self.pending

    @property
    def stale(self) -> str:
        """Why the measured alignment no longer holds, or ""."""
        if self.criterion_version != self.judge.criterion_version:
            return f"the criterion is at version {self.criterion_version}, the judge was built from version {self.judge.criterion_version}"
        return ""


def audit(tx: Transaction, run_id: str) -> Audit:
    """Count the run against the labels that count now, write the confusion and figure tables, and return what they say."""
    run = runs.get(tx, run_id)
    judge = judges.get(tx, run.judge_id)
    confusion, pending = figures.count(tx, run.run_id)
    figures.keep(tx, run.run_id, confusion, pending, figure_rows(confusion))
    return Audit(
        run=run, judge=judge, confusion=confusion, pending=pending, rates=rates(confusion), gate=default_gate(confusion),
        sentence=plain_sentence(confusion), disagreements=_disagreements(tx, run),
        rounds_on_pile=piles.rounds_measured(tx, run.criterion_id), criterion_version=criteria.get(tx, run.criterion_id).version,
    )  # fmt: skip


def audit_json(result: Audit) -> dict[str, Any]:
    """The audit as ``evaldesk judge --json`` prints it: the figures of ``evaldesk audit --json`` and the run."""
    return {
        "run": result.run.run_id, "status": result.run.status, "complete": result.pending == 0, "criterion": result.run.criterion_id,
        "judge": {"id": result.judge.judge_id, "number": result.judge.number, "model": result.judge.model_id},
        "needed": result.run.needed, "cached": result.run.cached, "awaited": result.run.awaited, "pending": result.pending,
        "stale": result.stale, **figures_json(result.confusion),
        "disagreements": [asdict(d) for d in result.disagreements],
    }  # fmt: skip


def measured_runs(tx: Transaction, criterion_id: str) -> list[Run]:
    """The runs that measured a judge of this criterion, newest first."""
    return [run for run in runs.everyone(tx) if run.criterion_id == criterion_id and run.kind == "judge"]


def _disagreements(tx: Transaction, run: Run) -> tuple[Disagreement, ...]:
    drawers = triage.of_run(tx, run.run_id)
    given = labels.current_of(tx, run.criterion_id)
    requests = runs.requests_of(tx, run.run_id)
    found = []
    for trace_id, judgement in judgements.of_run(tx, run.run_id).items():
        label = given.get(trace_id)
        if label is None or not label.mark.is_verdict or str(judgement.verdict) == str(label.mark):
            continue
        found.append(
            Disagreement(
                trace_id=trace_id,
                request=requests.get(trace_id, ""),
                expert=str(label.mark),
                critique=label.critique,
                judge=str(judgement.verdict),
                reason=judgement.reason,
                problem=judgement.problem,
                drawer=drawers.get(trace_id, ""),
            )
        )
    # Missed failures first: they are what a judge is for.
    order = {("FAIL", "PASS"): 0, ("FAIL", "NO_VERDICT"): 1, ("PASS", "FAIL"): 2, ("PASS", "NO_VERDICT"): 3}
    return tuple(sorted(found, key=lambda d: (order[(d.expert, d.judge)], d.trace_id)))
