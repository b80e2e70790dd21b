"""Reading a judge's reply: PASS, FAIL, or no verdict; never a guess."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from engine.importing.rows import clean_text

MIN_REASON_CHARS = 20
"""A reason is at least a few words; a small model left free writes the verdict there instead."""


class Verdict(StrEnum):
    """What a judge said about one case."""

    PASS = "PASS"
    FAIL = "FAIL"
    NO_VERDICT = "NO_VERDICT"


@dataclass(frozen=True)
class Reply:
    """A judge's reply as read. ``problem`` says why there is no verdict, or what is wrong with the quote."""

    verdict: Verdict
    reason: str = ""
    quote: str = ""
    problem: str = ""


def read_reply(text: str, *, finish: str = "stop", context: Sequence[Mapping[str, Any]] | None = None) -> Reply:
    """Read one reply strictly.

    The reply is one JSON object with ``reason`` (text) before ``verdict`` ("PASS" or "FAIL", exactly).
    Anything else is no verdict, with the problem named. With ``context`` given, ``quote`` has to stand
    in it word for word (blanks may differ); a false quote is flagged, the verdict stays.
    """
    try:
        data = json.loads(text, object_pairs_hook=_once)
    except _Twice as twice:
        return _none(f"the reply says {twice} twice")
    except ValueError:
        return _none("the reply was cut off" if finish == "length" else "the reply is not JSON")
    except RecursionError:
        return _none("the reply is nested too deep")
    if not isinstance(data, dict):
        return _none("the reply is not a JSON object")
    reason, verdict = data.get("reason"), data.get("verdict")
    if not isinstance(reason, str) or not reason.strip():
        return _none("the reply gives no reason")
    reason = clean_text(reason)
    if verdict not in ("PASS", "FAIL"):
        return Reply(Verdict.NO_VERDICT, reason, problem="the verdict is neither PASS nor FAIL")
    names = list(data)
    if names.index("verdict") < names.index("reason"):
        return Reply(Verdict.NO_VERDICT, reason, problem="the verdict came before the reason")
    if context is None:
        return Reply(Verdict(verdict), reason)
    quote = data.get("quote")
    if not isinstance(quote, str) or not quote.strip():
        return Reply(Verdict(verdict), reason, problem="the quote is missing")
    quote = clean_text(quote)
    problem = "" if _stands_in(quote, context) else "the quote does not stand in the context"
    return Reply(Verdict(verdict), reason, quote, problem)


class _Twice(Exception):
    """A field stands twice in one object, so that it is not said which one is meant."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise _Twice(repr(clean_text(name)[:40]))
    return dict(pairs)


def failed(error: str) -> Reply:
    """The reply of a request that ended with an error."""
    return _none(f"the request failed: {error}")


def reply_schema(*, quote_required: bool, reason_chars: int) -> dict[str, Any]:
    """The JSON schema that constrains a reply: reason before verdict, always."""
    properties: dict[str, Any] = {
        "reason": {"type": "string", "minLength": MIN_REASON_CHARS, "maxLength": reason_chars}
    }
    if quote_required:
        properties["quote"] = {"type": "string", "minLength": 1, "maxLength": 200}
    properties["verdict"] = {"enum": ["PASS", "FAIL"]}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _none(problem: str) -> Reply:
    return Reply(Verdict.NO_VERDICT, problem=problem)


def _stands_in(quote: str, context: Sequence[Mapping[str, Any]]) -> bool:
    wanted = " ".join(quote.split())
    return any(wanted in " ".join(text.split()) for text in _texts(list(context)))


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in _texts(item)] + [json.dumps(value, ensure_ascii=False)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    return [json.dumps(value)]
