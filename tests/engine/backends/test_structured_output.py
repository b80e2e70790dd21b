"""Forms of asking for JSON, and finding it in what came back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backends.schema_check import follows, json_inside
from engine.backends.structured_output import Form, asking, bare, forms
from engine.judging.verdict import reply_schema

SCHEMA = reply_schema(quote_required=True, reason_chars=100)
GOOD = {"reason": "The customer asked for a refund.", "quote": "refund", "verdict": "PASS"}
MESSAGES = [{"role": "system", "content": "You judge."}, {"role": "user", "content": "Case 1"}]


def test_the_firmest_form_comes_first_and_the_prompt_last() -> None:
    assert forms(SCHEMA) == list(Form)
    assert forms({"type": "object", "properties": {"a": {"type": "string"}}}) == [Form.SCHEMA, Form.TOOL, Form.PLAIN]


def test_a_bare_schema_has_no_limits_and_a_type_everywhere() -> None:
    assert bare(SCHEMA)["properties"] == {
        "reason": {"type": "string"},
        "quote": {"type": "string"},
        "verdict": {"enum": ["PASS", "FAIL"], "type": "string"},
    }
    named_like_a_limit = {"type": "object", "properties": {"format": {"type": "string", "maxLength": 3}}}
    assert bare(named_like_a_limit)["properties"] == {"format": {"type": "string"}}


def test_in_the_prompt_the_schema_stands_in_the_common_beginning_and_the_messages_are_left_as_they_were() -> None:
    before = json.dumps(MESSAGES)
    system, user = asking(MESSAGES, SCHEMA, Form.PLAIN)["messages"]
    assert json.dumps(SCHEMA) in system["content"] and user == MESSAGES[1]
    assert json.dumps(MESSAGES) == before


@pytest.mark.parametrize(
    "reply",
    ["{}", "Sure! Here it is: {} Anything else?", "```json\n{}\n```", "Well:\n```\n{}\n```\nDone.", "  {}  "],
)
def test_json_is_found_among_other_words(reply: str) -> None:
    inside = json_inside(reply.replace("{}", json.dumps(GOOD)), SCHEMA)
    assert inside is not None and json.loads(inside) == GOOD


@pytest.mark.parametrize(
    "value",
    [
        {**GOOD, "verdict": "MAYBE"},
        {**GOOD, "more": 1},
        {name: GOOD[name] for name in ("reason", "verdict")},
        {**GOOD, "reason": "short"},
        {**GOOD, "reason": 7},
        [GOOD],
    ],
)
def test_what_does_not_follow_is_not_called_right(value: Any) -> None:
    assert not follows(value, SCHEMA)
    assert json_inside(json.dumps(value), SCHEMA) is None or isinstance(value, list)


@pytest.mark.parametrize(
    ("value", "schema", "right"),
    [
        (3, {"type": "integer", "maximum": 9}, True),
        (True, {"type": "integer"}, False),
        (3.0, {"type": "integer"}, True),
        (10, {"type": "integer", "maximum": 9}, False),
        ([1, 2], {"type": "array", "items": {"type": "number"}, "minItems": 2}, True),
        ([1, "2"], {"type": "array", "items": {"type": "number"}}, False),
        (None, {"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        ("b", {"const": "a"}, False),
        ("x", {"type": ["string", "null"]}, True),
    ],
)
def test_keywords(value: Any, schema: Any, right: bool) -> None:
    assert follows(value, schema) is right


@given(st.text(max_size=300))
def test_any_text_is_survived(text: str) -> None:
    inside = json_inside(text, SCHEMA)
    assert inside is None or follows(json.loads(inside), SCHEMA)
    json_inside("[" * 100_000, SCHEMA)
