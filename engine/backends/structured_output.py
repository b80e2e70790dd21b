"""The ways in which a server can be asked for JSON of a schema, the firmest first, and how each one's reply is read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

_NAME = "reply"
# What servers that promise to follow a schema often refuse inside it; it is checked afterwards instead.
_FINE = frozenset(("minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "pattern", "format"))


class Form(StrEnum):
    """How the schema is put to the server."""

    SCHEMA = "json_schema"
    BARE_SCHEMA = "json_schema without limits"
    TOOL = "tool call"
    PLAIN = "in the prompt"


def forms(schema: Mapping[str, Any]) -> list[Form]:
    """The forms to try for this schema, firmest first; the last one is taken by every server."""
    return [form for form in Form if form is not Form.BARE_SCHEMA or bare(schema) != schema]


def asking(messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any], form: Form) -> dict[str, Any]:
    """The fields of the request body that ask for the schema, ``messages`` among them."""
    if form is Form.PLAIN:
        return {"messages": _stated(messages, schema)}
    if form is Form.TOOL:
        function = {"name": _NAME, "description": "Give the reply.", "parameters": bare(schema)}
        choice = {"type": "function", "function": {"name": _NAME}}
        return {"messages": messages, "tools": [{"type": "function", "function": function}], "tool_choice": choice}
    sent = schema if form is Form.SCHEMA else bare(schema)
    described = {"name": _NAME, "strict": True, "schema": sent}
    return {"messages": messages, "response_format": {"type": "json_schema", "json_schema": described}}


def bare(schema: Any) -> Any:
    """The schema without limits on lengths and numbers, and with a type beside each enum of texts."""
    if isinstance(schema, list):
        return [bare(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    # Inside "properties" the names are the user's own, whatever they are called.
    kept: dict[str, Any] = {}
    for name, value in schema.items():
        if name == "properties" and isinstance(value, Mapping):
            kept[name] = {inner: bare(rule) for inner, rule in value.items()}
        elif name in ("enum", "const", "required"):
            kept[name] = value
        elif name not in _FINE:
            kept[name] = bare(value)
    values = kept.get("enum")
    if "type" not in kept and isinstance(values, list) and all(isinstance(value, str) for value in values):
        kept["type"] = "string"
    return kept


def _stated(messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any]) -> list[dict[str, str]]:
    rule = f"Reply with one JSON object and nothing else, its fields in the order of this JSON schema: {json.dumps(schema)}"
    copied = [dict(message) for message in messages]
    # Into the first message where that is the system's: the common beginning of the requests stays common.
    place = 0 if copied and copied[0].get("role") == "system" else len(copied) - 1
    if not copied:
        return [{"role": "user", "content": rule}]
    copied[place]["content"] = f"{copied[place].get('content', '')}\n\n{rule}"
    return copied
