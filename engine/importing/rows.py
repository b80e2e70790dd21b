"""One row of a table as a reader gives it, before anything is known about what its fields mean."""

from __future__ import annotations

import codecs
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

MAX_ROW_CHARS: Final = 64 * 1024 * 1024
"""Longest row that is read, in characters of the file (a text of 20 MB fits in, whatever its escapes)."""

MAX_DEPTH: Final = 100
"""Deepest nesting of objects and arrays that is read."""

UNDECODABLE: Final = "\udcff"
"""Stands in a decoded text for bytes that the encoding does not know; such a row is refused."""

CODEC_ERRORS: Final = "evaldesk-undecodable"
"""Name of the codec error handler that puts `UNDECODABLE` in the place of each bad byte sequence."""


def _mark(error: UnicodeError) -> tuple[str, int]:
    if isinstance(error, UnicodeDecodeError):
        return UNDECODABLE, error.end
    raise error


codecs.register_error(CODEC_ERRORS, _mark)


@dataclass(frozen=True)
class Row:
    """One readable row. ``number`` is 1-based: data row of a table, line of a JSONL file, index + 1 in an array."""

    number: int
    fields: Mapping[str, Any]


def clean_text(text: str) -> str:
    """``text`` with lone surrogates, which no file or database can hold, replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean(value: Any, depth: int = 0) -> Any:
    """A value out of a JSON parser made storable: see `clean_text`; non-finite numbers become their names.

    Raises ValueError when it is nested deeper than `MAX_DEPTH`.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (dict, list)):
        if depth >= MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, dict):
            return {clean_text(str(name)): clean(inner, depth + 1) for name, inner in value.items()}
        return [clean(inner, depth + 1) for inner in value]
    return value


def unreadable_text(text: str) -> str:
    """Why a raw text cannot be taken as it is, or "" when it can."""
    if UNDECODABLE in text:
        return "holds bytes that are not text in the file's encoding"
    if "\0" in text:
        return "holds a NUL character"
    return ""
