"""A compact GBNF grammar for flat JSON objects: no blanks between tokens, properties in their order.

A general JSON grammar allows any white space, on which small models spend their tokens.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MAX_CHARACTERS = 1500
"""Longest string that becomes a counted repetition; llama.cpp refuses rules that unfold much further."""

_OBJECT_KEYWORDS = {"type", "properties", "required", "additionalProperties", "title", "description"}
_STRING_KEYWORDS = {"type", "minLength", "maxLength", "title", "description"}
_ENUM_KEYWORDS = {"type", "enum", "title", "description"}

# No \u escapes: every character can stand for itself, and a lone surrogate could not be written down.
_CHARACTER = r'character ::= [^"\\\x00-\x1f\x7f] | "\\" ["\\nt]'


def compact_grammar(schema: Mapping[str, Any]) -> str | None:
    """GBNF text whose sentences are the compact JSON objects of ``schema``, or None where the schema is not flat.

    Taken are objects whose properties are all required and each a string (minLength, maxLength, counted in
    characters) or an enum of strings, numbers, booleans and null. Every sentence parses as JSON, holds the
    properties in the order of ``properties``, and has no raw control character and no white space outside strings.
    """
    if schema.get("type") != "object" or set(schema) - _OBJECT_KEYWORDS:
        return None
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties or set(schema.get("required", ())) != set(properties):
        return None
    if schema.get("additionalProperties", False) is not False:
        return None
    parts: list[str] = []
    for number, (name, rule) in enumerate(properties.items()):
        value = _value(rule)
        if value is None:
            return None
        lead = ("{" if number == 0 else ",") + json.dumps(name) + ":"
        parts.append(f"{_literal(lead)} {value}")
    return "\n".join([f"root ::= {' '.join(parts)} {_literal('}')}", _CHARACTER, ""])


def _value(rule: Any) -> str | None:
    if not isinstance(rule, Mapping):
        return None
    if "enum" in rule:
        values = rule["enum"]
        if set(rule) - _ENUM_KEYWORDS or not isinstance(values, list) or not values:
            return None
        if not all(value is None or isinstance(value, str | int | float) for value in values):
            return None
        if rule.get("type", "string") != "string" or (rule.get("type") and not all(isinstance(v, str) for v in values)):
            return None
        return f"({' | '.join(_literal(json.dumps(value)) for value in values)})"
    if rule.get("type") != "string" or set(rule) - _STRING_KEYWORDS:
        return None
    low, high = rule.get("minLength", 0), rule.get("maxLength")
    if not _is_count(low) or (high is not None and not (_is_count(high) and low <= high <= MAX_CHARACTERS)):
        return None
    if low > MAX_CHARACTERS:
        return None
    times = f"{{{low},}}" if high is None else f"{{{low},{high}}}"
    return f'"\\"" character{times} "\\""'


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _literal(text: str) -> str:
    """``text`` (ASCII) as a GBNF literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
