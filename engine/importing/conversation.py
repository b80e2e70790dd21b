"""A list of chat messages as one trace: what was asked, what was answered, and what stood in between."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.importing.pointer import decoded

_ROLES = {
    "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "ai": "assistant",
    "bot": "assistant", "model": "assistant", "chatgpt": "assistant", "system": "system", "developer": "system",
    "tool": "tool", "function": "tool",
}  # fmt: skip
_TEXT_KEYS = ("text", "content", "value", "output_text", "input_text")


@dataclass(frozen=True)
class Conversation:
    """``later`` are the messages that came after the response and were not there when it was written."""

    request: str
    response: str
    context: tuple[Mapping[str, Any], ...] = ()
    later: tuple[Mapping[str, Any], ...] = ()


def is_chat(value: Any) -> bool:
    """Whether a value is a list of messages: objects with a known role ("role" or "from") and a content."""
    value = decoded(value)
    return (
        isinstance(value, list)
        and len(value) > 0
        and all(isinstance(message, dict) and _role(message) != "" for message in value)
    )


def read_chat(value: Any, *, with_response: bool = True) -> Conversation:
    """The last assistant text is the response and the last user text before it the request; the rest is context.

    Where the response stands elsewhere (``with_response`` false) all messages came before it.

    Context items: {"kind": "message", "role", "content"} and {"kind": "tool", "name", "arguments", "result"} for
    each tool call, with the result that a later message gives for it. Either text is "" where there is none.
    """
    messages: list[dict[str, Any]] = decoded(value)
    texts = [(_role(message), text_of(_content(message))) for message in messages]
    answered = _last(texts, "assistant", len(texts)) if with_response else None
    end = len(texts) if answered is None else answered
    asked = _last(texts, "user", end)
    waiting: dict[str, dict[str, Any]] = {}
    context: list[Mapping[str, Any]] = []
    later: list[Mapping[str, Any]] = []
    for index, (message, (role, text)) in enumerate(zip(messages, texts, strict=True)):
        target = later if index > end else context
        answers = str(message.get("tool_call_id", ""))
        if role == "tool" and answers in waiting:
            waiting.pop(answers)["result"] = text
        elif role == "tool":
            name = str(message.get("name") or answers)
            target.append({"kind": "tool", "name": name, "arguments": "", "result": text})
        elif text and index not in (answered, asked):
            target.append({"kind": "message", "role": role, "content": text})
        for call in _calls(message):
            item = tool_call(call)
            target.append(item)
            waiting[str(call.get("id", ""))] = item
    return Conversation(
        request="" if asked is None else texts[asked][1],
        response="" if answered is None else texts[answered][1],
        context=tuple(context),
        later=tuple(later),
    )


def text_of(value: Any) -> str:
    """The text of a request, response or message content: a text, a list of parts, or an object as JSON; None is ""."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(text for part in value if (text := _part(part)))
    if isinstance(value, Mapping):
        return _part(value)
    return json.dumps(value, ensure_ascii=False)


def tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """A tool call in any of its usual forms as {"kind": "tool", "name", "arguments", "result"}; other keys stay."""
    inner = call.get("function")
    source = {**call, **inner} if isinstance(inner, Mapping) else dict(call)
    name, arguments, result = _first(source, *_NAME), _first(source, *_ARGUMENTS), _first(source, *_RESULT)
    known = {"function", "kind", "type", "id", *_NAME, *_ARGUMENTS, *_RESULT}
    return {
        "kind": "tool",
        "name": "" if name is None else text_of(name),
        "arguments": "" if arguments is None else decoded(arguments),
        "result": "" if result is None else result,
        **{key: value for key, value in call.items() if key not in known},
    }


_NAME = ("name", "tool_name", "tool", "function_name")
_ARGUMENTS = ("arguments", "args", "parameters", "input", "tool_input")
_RESULT = ("result", "output", "response", "content", "tool_output")


def is_tool_call(value: Mapping[str, Any]) -> bool:
    """Whether an object describes a tool call."""
    if isinstance(value.get("function"), Mapping):
        return True
    return any(key in value for key in _NAME) and any(key in value for key in (*_ARGUMENTS, "result"))


def _role(message: Mapping[str, Any]) -> str:
    role = message.get("role", message.get("from"))
    return _ROLES.get(role.casefold(), "") if isinstance(role, str) else ""


def _content(message: Mapping[str, Any]) -> Any:
    return _first(message, "content", "value", "parts", "text")


def _calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    if not calls and isinstance(message.get("function_call"), Mapping):
        calls = [message["function_call"]]
    return [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []


def _part(part: Any) -> str:
    if not isinstance(part, Mapping):
        return text_of(part)
    for key in _TEXT_KEYS:
        inner = part.get(key)
        if isinstance(inner, str):
            return inner
        if isinstance(inner, (list, Mapping)) and key in ("text", "content", "value") and len(part) <= 3:
            return text_of(inner)
    return json.dumps(part, ensure_ascii=False)


def _first(source: Mapping[str, Any], *names: str) -> Any:
    return next((source[name] for name in names if source.get(name) is not None), None)


def _last(texts: Sequence[tuple[str, str]], role: str, end: int) -> int | None:
    return next((i for i in range(end - 1, -1, -1) if texts[i][0] == role and texts[i][1].strip()), None)
