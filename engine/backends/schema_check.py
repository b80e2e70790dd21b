"""Whether a value follows a JSON schema, as far as the schemas that evaldesk sends go, and the JSON inside a chatty reply."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
    "null": (type(None),),
}  # fmt: skip
_LENGTHS = (("minLength", str, 1), ("maxLength", str, -1), ("minItems", list, 1), ("maxItems", list, -1))


def follows(value: Any, schema: Any) -> bool:
    """Whether ``value`` follows ``schema``; keywords that are not known here refuse nothing."""
    if not isinstance(schema, Mapping):
        return schema is not False
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "const" in schema and value != schema["const"]:
        return False
    if "anyOf" in schema and not any(follows(value, branch) for branch in schema["anyOf"]):
        return False
    if any(
        isinstance(value, kind) and name in schema and sign * (len(value) - schema[name]) < 0
        for name, kind, sign in _LENGTHS
    ):
        return False
    if isinstance(value, int | float) and not isinstance(value, bool):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    if isinstance(value, list):
        return all(follows(item, schema.get("items", True)) for item in value)
    return _object_follows(value, schema) if isinstance(value, dict) else True


def json_inside(text: str, schema: Mapping[str, Any]) -> str | None:
    """The part of a reply that is JSON and follows ``schema``: all of it, or what stands in a fence or between other words.

    None when no part does; the reply is then left as it is for whoever reads it.
    """
    for part in _candidates(text):
        try:
            value = json.loads(part)
        except (ValueError, RecursionError):
            continue
        if follows(value, schema):
            return part
    return None


def _candidates(text: str) -> Iterator[str]:
    yield text
    for fence in text.split("```")[1::2]:
        yield fence.removeprefix("json").strip()
    begin, end = text.find("{"), text.rfind("}")
    if 0 <= begin < end:
        yield text[begin : end + 1]


def _object_follows(value: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    properties = schema.get("properties", {})
    if any(name not in value for name in schema.get("required", ())):
        return False
    others = schema.get("additionalProperties", True)
    return all(follows(item, properties.get(name, others)) for name, item in value.items())


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(kind, (object,)))
