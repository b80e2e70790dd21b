"""The compact grammar: whatever a model writes under it is one JSON object of the schema, without a wasted token."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backends.json_grammar import MAX_CHARACTERS, compact_grammar
from engine.judging.verdict import reply_schema
from tests.engine.backends.gbnf_sentences import sentence

_texts = st.builds(
    lambda low, more: {"type": "string", "minLength": low, "maxLength": low + more},
    st.integers(0, 4),
    st.integers(0, 6),
)
_enums = st.lists(st.one_of(st.text(max_size=5), st.integers(), st.booleans(), st.none()), min_size=1, max_size=4).map(
    lambda values: {"enum": values}
)
_schemas = st.dictionaries(st.text(max_size=6), st.one_of(_texts, _enums), min_size=1, max_size=4).map(
    lambda properties: {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }
)


@given(_schemas, st.data())
def test_every_sentence_is_a_compact_object_of_the_schema_in_its_order(
    schema: dict[str, Any], data: st.DataObject
) -> None:
    grammar = compact_grammar(schema)
    assert grammar is not None
    text = sentence(grammar, data.draw)
    assert not any(ord(character) < 0x20 or ord(character) == 0x7F for character in text)
    pairs = json.loads(text, object_pairs_hook=list)
    assert [name for name, _ in pairs] == list(schema["properties"])
    for name, value in pairs:
        rule = schema["properties"][name]
        if "enum" in rule:
            assert value in rule["enum"]
        else:
            assert rule["minLength"] <= len(value) <= rule["maxLength"]
            value.encode("utf-8")


def test_the_replies_of_a_judge_have_a_compact_grammar() -> None:
    grammar = compact_grammar(reply_schema(quote_required=True, reason_chars=300))
    assert grammar is not None
    assert grammar.index("reason") < grammar.index("quote") < grammar.index("verdict")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": []},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": True},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "minProperties": 1},
        {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"enum": [["x"]]}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"enum": ["x", 1], "type": "string"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "string", "maxLength": MAX_CHARACTERS + 1}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 3, "maxLength": 2}}, "required": ["a"]},
    ],
)
def test_any_other_schema_is_left_to_the_library(schema: dict[str, Any]) -> None:
    assert compact_grammar(schema) is None
