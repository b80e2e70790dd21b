"""A path leads to the same field that the list of paths names."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.importing.pointer import MISSING, decoded, get, leaves, paths

ROW = {
    "id": 7,
    "meta": {"id": "a", "deep": {"x.y": 1, "p/q": 2, "~": 3}},
    "meta.id": "flat",
    "judges": {"ragas-judge": {"verdict": "pass"}},
    "input": '"{\\"question\\": \\"why?\\", \\"n\\": [1, {\\"k\\": 2}]}"',
    "parts": [{"text": "one"}, {"text": "two"}],
    "none": None,
}


def test_pointer_and_dotted_path() -> None:
    assert get(ROW, "/judges/ragas-judge/verdict") == "pass"
    assert get(ROW, "judges.ragas-judge.verdict") == "pass"
    assert get(ROW, "/parts/1/text") == get(ROW, "parts.1.text") == "two"
    assert get(ROW, "none") is None


def test_a_flat_name_with_dots_wins_over_nesting() -> None:
    assert get(ROW, "meta.id") == "flat"
    assert get(ROW, "/meta/id") == "a"
    assert get(ROW, "meta.deep.x.y") == 1


def test_escapes_of_rfc_6901() -> None:
    assert get(ROW, "/meta/deep/p~1q") == 2
    assert get(ROW, "/meta/deep/~0") == 3


def test_into_json_texts_encoded_once_or_twice() -> None:
    assert get(ROW, "input.question") == "why?"
    assert get(ROW, "/input/n/1/k") == 2
    assert get({"a": '{"b": 1}'}, "a.b") == 1


def test_nothing_there() -> None:
    for path in ("nope", "/nope", "/parts/9", "/parts/-1", "/parts/x", "meta.deep.nope", "id.x", "", "/", "."):
        assert get(ROW, path) is MISSING


def test_only_objects_and_arrays_are_decoded() -> None:
    for text in ("", "12", "plain", '"quoted"', "{broken", "[1, 2", "null", "{not json}"):
        assert decoded(text) == text


def test_paths_name_leaves_and_the_inside_of_json_texts() -> None:
    found = paths(ROW)
    assert found[:2] == ["id", "/meta/id"]
    assert {"meta.id", "judges.ragas-judge.verdict", "/meta/deep/p~1q", "/input/question", "parts"} <= set(found)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab./~") | st.text(), inner, max_size=3)
    ),
    max_leaves=12,
)


NAMES = st.text(max_size=4).filter(lambda name: not name.startswith("/")) | st.sampled_from(["a", "b", "a.b", "b.a"])
ROWS = st.dictionaries(NAMES, VALUES | st.dictionaries(NAMES, VALUES, max_size=3), max_size=4)


@given(ROWS)
def test_every_leaf_is_found_again_by_its_path(row: dict[str, Any]) -> None:
    for path, value in leaves(row):
        found = get(row, path)
        assert json.dumps(found) == json.dumps(value)


@given(ROWS, st.text(max_size=8))
def test_any_path_is_answered(row: dict[str, Any], path: str) -> None:
    get(row, path)
    get(row, "/" + path)
