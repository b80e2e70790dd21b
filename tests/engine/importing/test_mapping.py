"""Usual names are recognised, what is stated is taken as stated, and nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EvaldeskError
from engine.importing.mapping import REST, Mapping, guess_mapping, parse_map_options
from engine.importing.pointer import MISSING, get


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        ({"id": 1, "request": "a", "response": "b"}, ("id", "request", "response")),
        ({"example_id": 1, "Question": "a", "Answer": "b"}, ("example_id", "Question", "Answer")),
        ({"uuid": 1, "prompt": "a", "completion": "b"}, ("uuid", "prompt", "completion")),
        ({"user_input": "a", "response": "b"}, (None, "user_input", "response")),
        ({"input": {"question": "a"}, "output": {"answer": "b"}}, (None, "input.question", "output.answer")),
        ({"input": '{"query": "a"}', "output": "b"}, (None, "input.query", "output")),
        ({"instruction": "a", "input": "", "output": "b"}, (None, "instruction", "output")),
    ],
)
def test_usual_names(row: dict[str, Any], wanted: tuple[str | None, ...]) -> None:
    mapping = guess_mapping([row])
    assert (mapping.trace_id, mapping.request, mapping.response) == wanted
    assert get(row, mapping.request or "") in ("a",)


def test_context_label_and_critique() -> None:
    row = {"q": 1, "contexts": ["x"], "tool_calls": [], "human_passed": "1", "notes": "n", "judge_passed": "0"}
    mapping = guess_mapping([row])
    assert mapping.context == ("contexts", "tool_calls")
    assert (mapping.label, mapping.critique) == ("human_passed", "notes")
    assert guess_mapping([{"v4 human verdict": "pass", "judge_label": "fail"}]).label == "v4 human verdict"


def test_a_label_column_has_verdicts_in_it() -> None:
    assert guess_mapping([{"label": "INSULT"}]).label is None
    assert guess_mapping([{"label": "INSULT", "answer": "accept"}, {"answer": "ignore"}]).label == "answer"
    assert guess_mapping([{"question": "a?", "answer": "accept no less"}]).label is None
    assert guess_mapping([{"label": ""}]).label == "label"
    assert guess_mapping([{"label": "maybe"}, {"label": "pass"}]).label == "label"
    assert guess_mapping([{"label": "Positive"}], values="positive=PASS").label == "label"
    assert guess_mapping([{"human_error": 1}]).label == "human_error"
    assert guess_mapping([{"notes": "n"}]).critique is None


def test_a_name_that_repeats_is_no_id() -> None:
    assert guess_mapping([{"thread_id": 1}, {"thread_id": 2}]).trace_id == "thread_id"
    assert guess_mapping([{"thread_id": 1}, {"thread_id": 1}]).trace_id is None


def test_messages() -> None:
    chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert guess_mapping([{"messages": chat}]).messages == "messages"
    assert guess_mapping([{"input": {"messages": chat}}]).messages == "input.messages"
    both = guess_mapping([{"prompt": chat[:1], "completion": "b"}])
    assert (both.messages, both.request, both.response) == ("prompt", None, "completion")
    beside = guess_mapping([{"messages": chat, "question": "a", "answer": "b"}])
    assert (beside.messages, beside.request, beside.context) == (None, "question", ("messages",))


def test_what_is_stated_stands_and_is_used_once() -> None:
    row = {"question": "a", "answer": "b", "text": "c", "id": 1}
    mapping = guess_mapping([row], stated=Mapping(request="answer", trace_id=""))
    assert (mapping.request, mapping.response, mapping.trace_id) == ("answer", None, "")
    assert mapping.metadata == (REST,)
    assert guess_mapping([row], stated=mapping) == mapping


@given(st.lists(st.dictionaries(st.text(max_size=8) | st.sampled_from(["id", "input", "label", "meta"]), st.text())))
def test_a_guess_names_only_what_is_there_and_is_stable(rows: list[dict[str, str]]) -> None:
    mapping = guess_mapping(rows)
    for path in mapping.used():
        assert any(get(row, path) is not MISSING for row in rows)
    assert guess_mapping(rows, stated=mapping) == mapping


def test_map_options() -> None:
    mapping = parse_map_options(["request=/a/b=c", "id = meta.id", "context=x", "context=y", "critique="])
    assert mapping == Mapping(request="/a/b=c", trace_id="meta.id", context=("x", "y"), critique="")
    assert parse_map_options([]) == Mapping()


@pytest.mark.parametrize("option", ["request", "question=/a", "=x", ""])
def test_map_options_that_are_not_understood(option: str) -> None:
    with pytest.raises(EvaldeskError) as caught:
        parse_map_options([option])
    assert "request" in caught.value.remedy


def test_a_field_is_mapped_once() -> None:
    with pytest.raises(EvaldeskError, match="twice"):
        parse_map_options(["request=a", "request=b"])
