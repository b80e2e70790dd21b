"""Bodies of servers, right and odd, and the name of the model in them."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backends.chat_reply import ChatReply, NotAReply, ServerError, read_chat, read_error, read_models
from engine.backends.served_model import is_same_model
from tests.engine.backends.odd_server import completion

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["choices", "usage", "model", "error", "data", "message", "detail", "finish_reason", "content"]
)


def test_a_completion_is_read_with_its_usage() -> None:
    assert read_chat(json.dumps(completion("hm")).encode()) == ChatReply("hm", "stop", "odd-model", 10, 4, 2)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": None}, ""),
        ({"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]}, "ab"),
        ({"content": None, "refusal": "no"}, "no"),
        ({"content": "", "tool_calls": [{"function": {"name": "reply", "arguments": '{"a":1}'}}]}, '{"a":1}'),
        ({"tool_calls": [{"function": {"arguments": {"a": 1}}}]}, '{"a": 1}'),
        ({"content": 7}, ""),
    ],
)
def test_a_reply_in_any_of_the_usual_forms(message: dict[str, Any], text: str) -> None:
    read = read_chat(json.dumps({"choices": [{"message": message}]}).encode())
    assert isinstance(read, ChatReply) and (read.text, read.finish, read.prompt_tokens) == (text, "stop", 0)


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"{}", b'{"choices":[]}', b'{"choices":[{"text":"a"}]}', b"\xff", b"[" * 10**5]
)
def test_what_is_no_reply_is_said_to_be_none(body: bytes) -> None:
    with pytest.raises(NotAReply):
        read_chat(body)


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        (b'{"error":{"message":"m","code":"c"}}', "m", "c"),
        (b'{"error":{"message":"m","type":"t"}}', "m", "t"),
        (b'{"error":"m"}', "m", ""),
        (b'{"detail":"m"}', "m", ""),
        (b'{"object":"error","message":"m","code":404}', "m", "404"),
        (b"plain", "plain", ""),
    ],
)
def test_errors_of_several_families(body: bytes, message: str, code: str) -> None:
    assert read_error(body) == ServerError(message, code)


@given(JSON | st.dictionaries(FIELDS, JSON, max_size=4))
def test_any_json_is_survived(value: Any) -> None:
    body = json.dumps(value).encode()
    read_error(body)
    for read in (read_chat, read_models):
        with suppress(NotAReply):
            read(body)


def test_models_with_their_context_lengths() -> None:
    listed = {"data": [{"id": "a", "max_model_len": 8}, {"id": "b", "meta": {"n_ctx": 9}}, {"id": 3}, "x", {"id": "c"}]}
    assert read_models(json.dumps(listed).encode()) == {"a": 8, "b": 9, "c": 0}


@pytest.mark.parametrize(
    ("asked", "served"),
    [
        ("gpt-x", "gpt-x"),
        ("gpt-x", "GPT-X"),
        ("gpt-x", ""),
        ("gpt-x", "gpt-x-2025-01-01"),
        ("gpt-x", "gpt-x-0613"),
        ("claude-y-latest", "claude-y-20241022"),
        ("gemini-z", "models/gemini-z-002"),
        ("org/gpt-x", "gpt-x-2025-01-01"),
        ("gpt-x", "org/gpt-x:free"),
        ("Qwen3-8B", "/models/Qwen3-8B.gguf"),
    ],
)
def test_the_same_model_under_another_spelling(asked: str, served: str) -> None:
    assert is_same_model(asked, served)


@pytest.mark.parametrize(
    ("asked", "served"),
    [
        ("gpt-4", "gpt-4o"),
        ("gpt-4", "gpt-4-turbo"),
        ("gpt-4o", "gpt-4o-mini-2024-07-18"),
        ("gpt-x-2025-01-01", "gpt-x-2025-06-01"),
        ("llama-3-8b", "llama-3-70b"),
        ("a", "b"),
    ],
)
def test_another_model(asked: str, served: str) -> None:
    assert not is_same_model(asked, served)


def test_a_pinned_snapshot_is_the_only_right_name() -> None:
    assert is_same_model("alias", "other-2025", "other-2025")
    assert not is_same_model("gpt-x", "gpt-x", "gpt-x-2025-01-01") and not is_same_model(
        "gpt-x", "", "gpt-x-2025-01-01"
    )
