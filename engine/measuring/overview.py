"""Where each criterion stands in the seven steps, and what comes next."""

from __future__ import annotations

from dataclasses import dataclass

from engine.judging.criterion import Criterion
from engine.measuring import audit
from engine.store import blind_repeats, cases, criteria, judges, piles
from engine.store.cases import Progress
from engine.store.piles import PileCounts
from engine.store.runs import Run
from engine.store.transaction import Transaction
from stats.confusion import Confusion
from stats.gates import GateResult, default_gate

BUILD_TARGET = 30
FAILURES_TARGET = 25
TRACES_TARGET = 100


@dataclass(frozen=True)
class Standing:
    """One criterion's place in the seven steps."""

    criterion: Criterion
    progress: Progress
    build: PileCounts
    sealed: PileCounts
    judge_versions: int
    rounds: int
    newest_run: Run | None
    newest_confusion: Confusion | None
    newest_pending: int
    """Cases of the newest round that have no verdict yet: its figures are no final ones."""
    gate: GateResult | None
    next_thing: str
    next_screen: str
    repeated: int = 0
    """Cases decided both times when the expert read them again blind; ``flipped`` of them otherwise than before."""
    flipped: int = 0


def standings(tx: Transaction) -> list[Standing]:
    """The standing of every criterion, in the order in which they were made."""
    return [_standing(tx, criterion) for criterion in criteria.everyone(tx)]


def _standing(tx: Transaction, criterion: Criterion) -> Standing:
    criterion_id = criterion.criterion_id
    progress = cases.progress(tx, criterion_id)
    counts = piles.counts(tx, criterion_id)
    build, sealed = counts[piles.BUILD], counts[piles.SEALED]
    versions = judges.versions(tx, criterion_id)
    runs = audit.measured_runs(tx, criterion_id)
    newest = runs[0] if runs else None
    found = audit.audit(tx, newest.run_id) if newest else None
    confusion, pending = (found.confusion, found.pending) if found else (None, 0)
    gate = default_gate(confusion) if confusion else None
    next_thing, screen = _next(progress, build, sealed, len(versions), newest, pending, gate)
    return Standing(
        criterion, progress, build, sealed, len(versions), len(runs), newest, confusion, pending, gate, next_thing,
        screen, *_repeated(tx, criterion_id),
    )  # fmt: skip


def _repeated(tx: Transaction, criterion_id: str) -> tuple[int, int]:
    decided = [repeat for repeat in blind_repeats.repeats(tx, criterion_id) if repeat.verdict != "UNDECIDED"]
    return len(decided), sum(repeat.flipped for repeat in decided)


def _next(
    progress: Progress,
    build: PileCounts,
    sealed: PileCounts,
    versions: int,
    run: Run | None,
    pending: int,
    gate: GateResult | None,
) -> tuple[str, str]:
    if progress.total == 0:
        return "Import traces", "import"
    if sealed.passes + sealed.failures + sealed.unlabelled == 0:
        return "Draw the sealed cases at random, before anything is labelled", "seal"
    if sealed.unlabelled:
        return f"Label the {sealed.unlabelled} sealed cases that are left", "label"
    if build.passes < 1 or build.failures < 1:
        return "Label cases and put a PASS and a FAIL into the build pile (x)", "label"
    if versions == 0:
        return "Build a first judge from two or three critiques", "judge"
    if run is None:
        return "Measure the judge on the sealed pile", "judge"
    if run.is_active:
        return "Watch the measurement come in", "audit"
    if pending:
        return f"Go on with the measurement (R): {pending} cases are pending", "runs"
    if gate is not None and not gate.decided:
        return f"Seal and label more cases: {gate.failures_needed} more failures", "label"
    if gate is not None and not gate.reached:
        return "Read the disagreements, sort them into drawers, change one thing", "audit"
    return "The gate is reached: look at the audit", "audit"
