"""A conversation becomes what was asked, what was answered, and all that the system had before it."""

from __future__ import annotations

import json

from engine.importing.conversation import is_chat, read_chat, text_of

CALL = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"id": 7}'}}


def test_last_question_last_answer_rest_context() -> None:
    chat = read_chat(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hi"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Where is my order?"}, {"type": "text", "text": "7"}],
            },
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "sent on Monday"},
            {"role": "assistant", "content": "It left on Monday."},
        ]
    )
    assert (chat.request, chat.response) == ("Where is my order?\n7", "It left on Monday.")
    assert list(chat.context) == [
        {"kind": "message", "role": "system", "content": "Be brief."},
        {"kind": "message", "role": "user", "content": "Hello"},
        {"kind": "message", "role": "assistant", "content": "Hi"},
        {"kind": "tool", "name": "get_order", "arguments": {"id": 7}, "result": "sent on Monday"},
    ]
    assert chat.later == ()


def test_what_follows_the_answer_is_no_context() -> None:
    chat = read_chat(
        [{"from": "human", "value": "a?"}, {"from": "gpt", "value": "b"}, {"from": "human", "value": "ok"}]
    )
    assert (chat.request, chat.response, chat.context) == ("a?", "b", ())
    assert list(chat.later) == [{"kind": "message", "role": "user", "content": "ok"}]


def test_missing_sides_stay_empty() -> None:
    assert read_chat([{"role": "user", "content": "a?"}]).response == ""
    assert read_chat([{"role": "assistant", "content": "b"}]).request == ""


def test_messages_as_a_json_text_and_without_the_response() -> None:
    messages = json.dumps([{"role": "assistant", "content": "x"}, {"role": "user", "content": "a?"}])
    assert is_chat(messages)
    chat = read_chat(messages, with_response=False)
    assert (chat.request, chat.response, len(chat.context)) == ("a?", "", 1)
    assert not is_chat([])
    assert not is_chat([{"role": "nobody"}])
    assert not is_chat("[1]")


def test_text_of_contents() -> None:
    assert text_of(None) == ""
    assert text_of([{"type": "text", "text": "a"}, "b", None]) == "a\nb"
    assert text_of({"content": {"text": "deep"}}) == "deep"
    assert text_of({"x": "é"}) == '{"x": "é"}'
    assert text_of(5) == "5"
