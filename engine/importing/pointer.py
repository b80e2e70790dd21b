"""Where a field sits in a row: JSON Pointer ("/judges/a/verdict") or dotted path ("meta.id")."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final


class Missing(Enum):
    """The type of `MISSING`."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING
"""What `get` answers where a path leads nowhere; unlike None, which is a value."""

MAX_DEPTH: Final = 8
"""How deep `leaves` looks; deeper parts are listed as one leaf."""


def get(fields: Mapping[str, Any], path: str) -> Any:
    """The value at ``path`` in a row, or `MISSING`.

    A column whose whole name is ``path`` comes first, so flat names may hold dots and slashes. Otherwise a path
    that starts with "/" is a JSON Pointer (RFC 6901) and any other is split at its dots, where the longest
    existing name wins at each step. A step into a text that holds a JSON object or array goes into that.
    """
    if path in fields:
        return fields[path]
    if path.startswith("/"):
        value: Any = fields
        for part in path[1:].split("/"):
            value = _step(value, part.replace("~1", "/").replace("~0", "~"))
            if value is MISSING:
                return MISSING
        return value
    return _dotted(fields, path.split("."))


def decoded(value: Any) -> Any:
    """``value``, or what it holds if it is a text of a JSON object or array (also when encoded twice)."""
    inner = value
    for _ in range(3):
        if not isinstance(inner, str):
            return inner
        text = inner.strip()
        if not text or text[0] + text[-1] not in ("{}", "[]", '""'):
            return value
        try:
            inner = json.loads(text)
        except (ValueError, RecursionError):
            return value
    return value if isinstance(inner, str) else inner


def leaves(fields: Mapping[str, Any], *, depth: int = MAX_DEPTH) -> Iterator[tuple[str, Any]]:
    """(path, value) of every scalar and every list in a row, in its order; objects are gone into, texts are not.

    A path is a plain or dotted name where that leads back to the value, else a JSON Pointer.
    """
    for steps, value in _walk(fields, (), depth):
        yield join(fields, steps), value


def paths(fields: Mapping[str, Any]) -> list[str]:
    """The paths that a mapping can name in this row, in its order: leaves, and inside texts that hold an object."""
    found: list[str] = []
    for path, value in leaves(fields):
        found.append(path)
        inner = decoded(value) if isinstance(value, str) else value
        if isinstance(value, str) and isinstance(inner, dict):
            found += [f"{pointer(fields, path)}{pointer_of(steps)}" for steps, _ in _walk(inner, (), 4)]
    return found


def pointer_of(steps: tuple[str, ...]) -> str:
    """The JSON Pointer of a sequence of names."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


def pointer(fields: Mapping[str, Any], path: str) -> str:
    """``path`` as a JSON Pointer."""
    if path in fields:
        return pointer_of((path,))
    return path if path.startswith("/") else pointer_of(tuple(path.split(".")))


def join(fields: Mapping[str, Any], steps: tuple[str, ...]) -> str:
    """The shortest way to write a path that `get` follows to the same place.

    A column whose name is itself a JSON Pointer hides the nested field that the pointer leads to.
    """
    if len(steps) == 1 and steps[0]:
        return steps[0]
    dotted, exact = ".".join(steps), pointer_of(steps)
    if not all(step and "." not in step and "/" not in step for step in steps) or dotted in fields:
        return exact
    found = get(fields, dotted)
    return dotted if found is MISSING or found == get(fields, exact) else exact


def _walk(value: Any, steps: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping) and value and depth > 0:
        for name, inner in value.items():
            yield from _walk(inner, (*steps, str(name)), depth - 1)
    elif steps:
        yield steps, value


def _step(value: Any, name: str) -> Any:
    value = decoded(value)
    if isinstance(value, Mapping):
        return value.get(name, MISSING)
    if isinstance(value, (list, tuple)) and name.isascii() and name.isdigit() and len(name) < 10:
        index = int(name)
        return value[index] if index < len(value) else MISSING
    return MISSING


def _dotted(value: Any, parts: list[str]) -> Any:
    if not parts:
        return value
    for taken in range(len(parts), 0, -1):
        inner = _step(value, ".".join(parts[:taken]))
        if inner is not MISSING:
            deeper = _dotted(inner, parts[taken:])
            if deeper is not MISSING:
                return deeper
    return MISSING
