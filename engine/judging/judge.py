"""A judge version: task, criterion, examples, output, model and sampling, named by their content."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.errors import Refused
from engine.hashing import content_hash
from engine.judging.case_text import case_text
from engine.judging.criterion import Criterion
from engine.judging.trace import Trace
from engine.judging.verdict import reply_schema

MAX_EXAMPLES = 3
DEFAULT_REASON_CHARS = 320
"""Room for two to four sentences; a small model fills whatever room it gets."""
DEFAULT_SAMPLING: Mapping[str, Any] = {"temperature": 0, "max_tokens": 240, "seed": 0}


@dataclass(frozen=True)
class Example:
    """A critique of the expert, verbatim, with its verdict and the case that it is about."""

    trace_id: str
    label_seq: int
    verdict: str
    critique: str
    case: str


@dataclass(frozen=True)
class Judge:
    """One judge version. ``judge_id`` hashes all that decides what it says; parent and change are its history."""

    criterion_id: str
    criterion_version: int
    task: str
    criterion_text: str
    examples: tuple[Example, ...]
    output: str
    quote_required: bool
    model_id: str
    sampling: Mapping[str, Any] = field(default_factory=lambda: DEFAULT_SAMPLING)
    reason_chars: int = DEFAULT_REASON_CHARS
    number: int = 0
    parent_id: str = ""
    change: str = ""

    @property
    def judge_id(self) -> str:
        return content_hash(
            [
                self.criterion_id, self.task, self.criterion_text, [[e.verdict, e.critique, e.case] for e in self.examples],
                self.output, self.quote_required, self.model_id, dict(self.sampling), self.reason_chars,
            ]
        )[:16]  # fmt: skip

    @property
    def schema(self) -> dict[str, Any]:
        """The schema of the reply."""
        return reply_schema(quote_required=self.quote_required, reason_chars=self.reason_chars)


def criterion_text(criterion: Criterion) -> str:
    """The second part of the prompt: PASS when, FAIL when, and the edge cases that the expert resolved."""
    lines = [f"PASS when {criterion.pass_when}", f"FAIL when {criterion.fail_when}"]
    lines += [f"Edge case: {case}" for case in criterion.edge_cases]
    return "\n".join(lines)


def output_text(*, quote_required: bool) -> str:
    """The fourth part of the prompt: the form of the reply, reason before verdict."""
    quote = ' "quote": "<a passage of the context, word for word>",' if quote_required else ""
    return (
        'Answer with JSON only: {"reason": "<two to four sentences that name what was checked>",'
        + quote
        + ' "verdict": "PASS" or "FAIL"}'
    )


def prompt_parts(judge: Judge) -> list[tuple[str, str]]:
    """(name, text) of the four parts, in their fixed order."""
    examples = "\n\n".join(
        f"Example {number}\n{example.case}\n\nANSWER\n{_answer(example)}"
        for number, example in enumerate(judge.examples, 1)
    )
    return [("task", judge.task), ("criterion", judge.criterion_text), ("examples", examples), ("output", judge.output)]


def _answer(example: Example) -> str:
    # In the form of the reply itself: a small model repeats the form that it sees.
    return json.dumps({"reason": example.critique, "verdict": example.verdict}, ensure_ascii=False)


def render(judge: Judge, trace: Trace) -> list[dict[str, str]]:
    """The chat messages for one case: the four parts first, the same for every case, then the case itself."""
    system = "\n\n".join(text for _, text in prompt_parts(judge) if text)
    return [{"role": "system", "content": system}, {"role": "user", "content": case_text(trace)}]


def check_examples(examples: Sequence[Example]) -> None:
    """Raises Refused unless there are two or three examples with at least one PASS and one FAIL."""
    verdicts = {example.verdict for example in examples}
    if not 2 <= len(examples) <= MAX_EXAMPLES:
        raise Refused(
            f"a judge takes two or three examples, not {len(examples)}", remedy="Pick them from the build pile."
        )
    if verdicts != {"PASS", "FAIL"}:
        missing = ({"PASS", "FAIL"} - verdicts).pop()
        raise Refused(f"the examples have no {missing}", remedy="A judge needs at least one PASS and one FAIL.")


def changed_parts(judge: Judge, parent: Judge) -> list[str]:
    """Names of the parts in which a judge differs from its parent."""
    pairs: list[tuple[str, Any, Any]] = [
        ("task", judge.task, parent.task),
        ("criterion", judge.criterion_text, parent.criterion_text),
        ("examples", judge.examples, parent.examples),
        (
            "output",
            (judge.output, judge.quote_required, judge.reason_chars),
            (parent.output, parent.quote_required, parent.reason_chars),
        ),
        ("model", judge.model_id, parent.model_id),
        ("sampling", dict(judge.sampling), dict(parent.sampling)),
    ]
    return [name for name, mine, theirs in pairs if mine != theirs]
