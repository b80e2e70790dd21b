"""Reading what an OpenAI-compatible server sends: chat completions, lists of models, errors. All of it is untrusted."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MOST_TOKENS = 2**40


class NotAReply(Exception):
    """The body is not what a server of this kind sends; the text says what is wrong, without quoting the body."""


@dataclass(frozen=True)
class ChatReply:
    """One chat completion as read. ``finish`` is ``stop``, ``length`` or ``content_filter``."""

    text: str
    finish: str
    served: str
    """What the server calls the model that answered; "" when it does not say."""
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    listed: tuple[tuple[str, float], ...] = ()
    """The likeliest first tokens with their log-probabilities, where they were asked for and given."""


@dataclass(frozen=True)
class ServerError:
    """What a server says went wrong; ``code`` is its own word for it, "" when it has none."""

    message: str
    code: str = ""


def read_chat(body: bytes) -> ChatReply | ServerError:
    """The completion in the body, or the error that some servers send with status 200; raises NotAReply."""
    value = _object(body)
    if value.get("error"):
        return read_error(body)
    choices = value.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise NotAReply("the server's reply holds no completion")
    usage = _inner(value, "usage")
    details = _inner(usage, "prompt_tokens_details")
    finish = choice.get("finish_reason")
    served = value.get("model")
    return ChatReply(
        _text(message),
        finish if finish in ("length", "content_filter") else "stop",
        served if isinstance(served, str) else "",
        _count(usage.get("prompt_tokens")),
        _count(details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens")),
        _count(usage.get("completion_tokens")),
        _listed(choice),
    )


def read_models(body: bytes) -> dict[str, int]:
    """The models that a server lists, each with the context length it states or 0; raises NotAReply."""
    listed = _object(body).get("data")
    if not isinstance(listed, list):
        raise NotAReply("the server's list of models is none")
    found: dict[str, int] = {}
    for entry in listed:
        if isinstance(entry, dict) and isinstance(entry.get("id"), str):
            told = (entry.get("max_model_len"), entry.get("context_length"), _inner(entry, "meta").get("n_ctx"))
            found[entry["id"]] = next((count for count in map(_count, told) if count), 0)
    return found


def read_error(body: bytes) -> ServerError:
    """The error in a body of any form: OpenAI's, FastAPI's, or plain text."""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ServerError(body.decode("utf-8", "replace"))
    error = value.get("error", value.get("detail", value)) if isinstance(value, dict) else value
    if isinstance(error, str):
        return ServerError(error)
    if not isinstance(error, dict):
        return ServerError(json.dumps(error))
    message, code = error.get("message"), error.get("code") or error.get("type") or ""
    return ServerError(message if isinstance(message, str) else json.dumps(error), str(code))


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NotAReply("the server's reply is not JSON") from error
    if not isinstance(value, dict):
        raise NotAReply("the server's reply is not a JSON object")
    return value


def _inner(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _text(message: Mapping[str, Any]) -> str:
    calls = message.get("tool_calls")
    call = calls[0] if isinstance(calls, list) and calls else None
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if isinstance(arguments, str):
        return arguments
    if isinstance(arguments, dict):
        return json.dumps(arguments, ensure_ascii=False)
    content = message.get("content") or message.get("refusal") or ""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text")
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _listed(choice: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    content = _inner(choice, "logprobs").get("content")
    first = content[0] if isinstance(content, list) and content else None
    tokens = first.get("top_logprobs") if isinstance(first, dict) else None
    pairs = ((token.get("token"), token.get("logprob")) for token in tokens or () if isinstance(token, dict))
    return tuple(
        (text, float(logprob))
        for text, logprob in pairs
        if isinstance(text, str) and isinstance(logprob, int | float) and math.isfinite(logprob)
    )


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value < _MOST_TOKENS else 0
