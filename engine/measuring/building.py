"""Building a judge version from the criterion, the expert's critiques and a model."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import EvaldeskError, Refused
from engine.judging.case_text import case_text
from engine.judging.judge import DEFAULT_REASON_CHARS, Example, Judge, criterion_text, output_text
from engine.store import criteria, judges, models, piles
from engine.store.models import Model
from engine.store.piles import LabelledCase
from engine.store.transaction import Transaction


def propose_examples(tx: Transaction, criterion_id: str, wanted: int = 2) -> list[LabelledCase]:
    """Two or three cases of the build pile to start from: both verdicts, short, so that a prompt stays cheap."""
    cases = sorted(piles.build_cases(tx, criterion_id), key=lambda c: len(case_text(c.trace)) + len(c.label.critique))
    failures = [case for case in cases if case.label.mark == "FAIL"]
    passes = [case for case in cases if case.label.mark == "PASS"]
    picked = [*failures[:1], *passes[:1]]
    rest = [case for case in cases if case not in picked]
    return [*picked, *rest[: max(wanted - len(picked), 0)]]


def build(
    tx: Transaction,
    criterion_id: str,
    model: Model,
    example_ids: Sequence[str] | None = None,
    *,
    task: str | None = None,
    change: str = "",
    parent_id: str = "",
    reason_chars: int = DEFAULT_REASON_CHARS,
) -> Judge:
    """Make and store a judge version; equal content gives the version that exists.

    ``example_ids`` are cases of the build pile, in their order in the prompt; None proposes two.
    Raises Refused when the build pile has no PASS or no FAIL with a critique.
    """
    criterion = criteria.get(tx, criterion_id)
    available = {case.trace.trace_id: case for case in piles.build_cases(tx, criterion_id)}
    if example_ids is None:
        chosen = propose_examples(tx, criterion_id)
    else:
        unknown = [trace_id for trace_id in example_ids if trace_id not in available]
        if unknown:
            raise Refused("only labelled cases of the build pile may be examples", where=", ".join(unknown))
        chosen = [available[trace_id] for trace_id in example_ids]
    if {str(case.label.mark) for case in chosen} != {"PASS", "FAIL"}:
        raise Refused(
            "the build pile lacks a PASS or a FAIL with a critique", where=criterion_id,
            remedy="Label cases and put them into the build pile with x on the Label screen.",
        )  # fmt: skip
    models.remember(tx, model)
    judge = Judge(
        criterion_id=criterion_id,
        criterion_version=criterion.version,
        task=task if task is not None else criterion.task,
        criterion_text=criterion_text(criterion),
        examples=tuple(
            Example(c.trace.trace_id, c.label.seq, str(c.label.mark), c.label.critique, case_text(c.trace)) for c in chosen
        ),
        output=output_text(quote_required=criterion.quote_required),
        quote_required=criterion.quote_required,
        model_id=model.model_id,
        change=change,
        parent_id=parent_id,
        reason_chars=reason_chars,
    )  # fmt: skip
    return judges.add(tx, judge)


def has_versions(tx: Transaction, criterion_id: str) -> bool:
    """Whether the criterion has a judge yet."""
    return bool(judges.versions(tx, criterion_id))


def by_number(tx: Transaction, criterion_id: str, number: int | None) -> Judge:
    """Version ``number`` of a criterion's judge, the newest for None; raises EvaldeskError when there is none."""
    versions = judges.versions(tx, criterion_id)
    for judge in reversed(versions):
        if number is None or judge.number == number:
            return judge
    have = ", ".join(f"v{judge.number}" for judge in versions) or "none yet"
    raise EvaldeskError(
        f"there is no judge {'version' if number is None else f'v{number}'} for {criterion_id}",
        remedy=f"Versions: {have}.",
    )
