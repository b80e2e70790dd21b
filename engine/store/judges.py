"""Judge versions: a tree per criterion, each version named by its content."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from engine.errors import EvaldeskError, Refused
from engine.judging.judge import Example, Judge, check_examples
from engine.store import piles
from engine.store.transaction import Transaction, now

_FIELDS = (
    "criterion_id, criterion_version, task, criterion_text, examples, output, quote_required, model_id, sampling, reason_chars, "
    "number, parent_id, change"
)


def add(tx: Transaction, judge: Judge) -> Judge:
    """Store a judge version and return it with its number; one with equal content is returned as it is.

    Raises Refused unless every example is a labelled case of the build pile, taken over verbatim.
    """
    known = find(tx, judge.judge_id)
    if known is not None:
        return known
    check_examples(judge.examples)
    allowed = {case.trace.trace_id: case.label for case in piles.build_cases(tx, judge.criterion_id)}
    for example in judge.examples:
        label = allowed.get(example.trace_id)
        if label is None:
            raise Refused("only cases of the build pile may be examples", where=example.trace_id)
        if (example.critique, example.verdict) != (label.critique, str(label.mark)):
            raise Refused(
                "an example takes over the expert's verdict and critique word for word", where=example.trace_id
            )
    number = 1 + int(tx.value("SELECT coalesce(max(number), 0) FROM judge WHERE criterion_id = ?", judge.criterion_id))
    stored = replace(judge, number=number)
    tx.insert(
        "judge", judge_id=stored.judge_id, criterion_id=stored.criterion_id, criterion_version=stored.criterion_version,
        number=number, parent_id=stored.parent_id, change=stored.change, task=stored.task,
        criterion_text=stored.criterion_text, examples=json.dumps([asdict(e) for e in stored.examples], ensure_ascii=False),
        output=stored.output, quote_required=stored.quote_required, model_id=stored.model_id,
        sampling=json.dumps(dict(stored.sampling)), reason_chars=stored.reason_chars, created_at=now(),
    )  # fmt: skip
    return stored


def find(tx: Transaction, judge_id: str) -> Judge | None:
    """The judge version with this id, or None."""
    row = tx.row(f"SELECT {_FIELDS} FROM judge WHERE judge_id = ?", judge_id)
    return _from_row(row) if row else None


def get(tx: Transaction, judge_id: str) -> Judge:
    """The judge version with this id; raises EvaldeskError when there is none."""
    judge = find(tx, judge_id)
    if judge is None:
        raise EvaldeskError(f"there is no judge {judge_id!r}", remedy="The Judge screen lists the versions.")
    return judge


def versions(tx: Transaction, criterion_id: str) -> list[Judge]:
    """All versions of a criterion's judge, oldest first."""
    return [
        _from_row(row)
        for row in tx.rows(f"SELECT {_FIELDS} FROM judge WHERE criterion_id = ? ORDER BY number", criterion_id)
    ]


def _from_row(row: tuple[Any, ...]) -> Judge:
    return Judge(
        criterion_id=row[0], criterion_version=row[1], task=row[2], criterion_text=row[3],
        examples=tuple(Example(**e) for e in json.loads(row[4])), output=row[5], quote_required=row[6], model_id=row[7],
        sampling=json.loads(row[8]), reason_chars=row[9], number=row[10], parent_id=row[11], change=row[12],
    )  # fmt: skip
