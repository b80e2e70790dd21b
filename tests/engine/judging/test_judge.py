"""A judge version: four parts in their order, everything the expert saw, a name made of its content."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.errors import Refused
from engine.judging.criterion import Criterion
from engine.judging.judge import (
    Example,
    Judge,
    changed_parts,
    check_examples,
    criterion_text,
    output_text,
    prompt_parts,
    render,
)
from engine.judging.trace import Trace, group_key

FAIL = Example("T-1", 1, "FAIL", "39 EUR stands nowhere", "REQUEST\nprice?")
PASS = Example("T-2", 2, "PASS", "the date is that of the tool", "REQUEST\nwhen?")
CRITERION = Criterion(
    "c",
    "?",
    "You check one thing.",
    "all is so",
    "one is not",
    ("Nothing found, and said so: PASS, because it is true.",),
)
JUDGE = Judge(
    "c",
    1,
    "You check one thing.",
    criterion_text(CRITERION),
    (FAIL, PASS),
    output_text(quote_required=False),
    False,
    "model",
)
TRACE = Trace(
    "T-9", 1, 0, "Where is H-1?", ({"kind": "tool", "name": "track", "arguments": {"order": "H-1"}, "result": {"error": "no match"}},
    {"kind": "passage", "id": "kb-3", "title": "Tracking", "text": "after 30 minutes"}), {"plan": "Plus"}, "Not there yet [kb-3].", {"language": "en"},
)  # fmt: skip


def test_the_four_parts_stand_in_their_order_before_the_case() -> None:
    assert [name for name, _ in prompt_parts(JUDGE)] == ["task", "criterion", "examples", "output"]
    system, user = render(JUDGE, TRACE)
    places = [
        system["content"].index(text)
        for text in ("You check one thing.", "PASS when all is so", "39 EUR stands nowhere", "Answer with JSON only")
    ]
    assert places == sorted(places)
    assert "Edge case: Nothing found" in system["content"]
    assert (system["role"], user["role"]) == ("system", "user")


def test_the_judge_sees_all_that_the_expert_saw() -> None:
    text = render(JUDGE, TRACE)[1]["content"]
    for part in (
        "Where is H-1?",
        "plan: Plus",
        "track(order=H-1)",
        "no match",
        "[kb-3] Tracking: after 30 minutes",
        "Not there yet",
    ):
        assert part in text


def test_cases_share_the_prompt_up_to_the_case() -> None:
    other = replace(TRACE, trace_id="T-8", request="Something else")
    assert render(JUDGE, TRACE)[0] == render(JUDGE, other)[0]


def test_the_name_follows_the_content_and_not_the_history() -> None:
    assert JUDGE.judge_id == replace(JUDGE, number=7, parent_id="x", change="y").judge_id
    for changed in (
        replace(JUDGE, task="Another."), replace(JUDGE, model_id="m2"), replace(JUDGE, sampling={"temperature": 1}),
        replace(JUDGE, examples=(PASS, FAIL)), replace(JUDGE, reason_chars=99), replace(JUDGE, quote_required=True),
    ):  # fmt: skip
        assert changed.judge_id != JUDGE.judge_id


def test_changes_against_the_parent_are_named_by_part() -> None:
    assert changed_parts(JUDGE, JUDGE) == []
    assert changed_parts(replace(JUDGE, task="x", model_id="m2"), JUDGE) == ["task", "model"]


@pytest.mark.parametrize("examples", [(FAIL,), (PASS, PASS), (FAIL, FAIL, FAIL), (FAIL, PASS, FAIL, PASS), ()])
def test_two_or_three_examples_with_both_verdicts_or_none_at_all(examples: tuple[Example, ...]) -> None:
    with pytest.raises(Refused):
        check_examples(examples)


def test_requests_that_differ_in_case_and_signs_only_form_one_group() -> None:
    assert group_key("Where is H-1 ?!") == group_key("where is   h 1")
    assert group_key("Where is H-1?") != group_key("Where is H-2?")
