"""Rows as JSON: one object a line, an array of objects, or an object that holds such an array."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from io import TextIOBase
from pathlib import Path
from typing import Any, Final, Literal

from engine.errors import EvaldeskError
from engine.importing.encoding import Encoding, open_text
from engine.importing.records import Refusal
from engine.importing.rows import (
    MAX_ROW_CHARS,
    UNDECODABLE,
    Row,
    clean,
    unreadable_text,
)

ARRAY_KEYS: Final = (
    "data", "rows", "traces", "examples", "items", "records", "cases", "testCases", "test_cases", "samples",
    "instances", "entries", "labels", "results",
)  # fmt: skip
"""Names under which an object may hold its rows, looked for in this order."""

MAX_DOCUMENT_BYTES: Final = 1 << 30
"""Largest file that is parsed as one JSON document."""

_LOOK_AHEAD = 50


@dataclass(frozen=True)
class Shape:
    """Which of the JSON formats a file is in; of a document the elements are kept (parsed once), and their key."""

    format: Literal["json", "jsonl"]
    elements: tuple[Any, ...] = ()
    key: str = ""
    undecodable: bool = False
    """Whether the file holds bytes that are not text; the elements that hold them are refused."""


def looks_like_lines(path: Path, encoding: Encoding) -> bool:
    """Whether at least half of the first lines are JSON objects, whatever the file begins with."""
    objects = total = 0
    for _, line in zip(range(20), _filled_lines(path, encoding), strict=False):
        total += 1
        objects += isinstance(_parsed(line), dict)
    return objects > 0 and 2 * objects >= total


def shape(path: Path, encoding: Encoding) -> Shape:
    """The shape of a file that begins with { or [; EvaldeskError where it is neither lines nor a list of rows."""
    ahead = [line for _, line in zip(range(_LOOK_AHEAD), _filled_lines(path, encoding), strict=False)]
    first = _parsed(ahead[0])
    if isinstance(first, dict) and (len(ahead) > 1 or _rows_in(first) is None):
        return Shape("jsonl")
    if isinstance(first, list) and len(ahead) > 1:
        return Shape("jsonl")
    try:
        document, undecodable = _document(path, encoding)
    except ValueError as error:
        if any(isinstance(_parsed(line), dict) for line in ahead):
            return Shape("jsonl")
        raise EvaldeskError(
            f"begins like JSON but cannot be read as such: {error}",
            where=path.name,
            kept="Nothing was read.",
            remedy="Write the file again completely, as an array of objects or with one object on each line.",
        ) from None
    if isinstance(document, list):
        return Shape("json", tuple(document), "", undecodable)
    found = _rows_in(document)
    if found is None:
        raise _no_rows(path, document)
    return Shape("json", tuple(document[found]), found, undecodable)


def read_lines(path: Path, encoding: Encoding) -> Iterator[Row | Refusal]:
    """Each filled line as a row, or as a refusal that names what is wrong in it; numbers count all lines."""
    for number, line in _lines(path, encoding):
        if line is None:
            yield Refusal(number, "", f"is longer than {MAX_ROW_CHARS // 2**20} MB")
        elif line.strip():
            reason = unreadable_text(line)
            if reason and UNDECODABLE in line:
                reason = f"holds bytes that are not {encoding.codec}; save the file as UTF-8"
            yield Refusal(number, "", reason) if reason else _row(number, line)


def read_elements(shape: Shape) -> Iterator[Row | Refusal]:
    """Each element of a document as a row, or as a refusal."""
    for number, element in enumerate(shape.elements, start=1):
        if shape.undecodable and UNDECODABLE in json.dumps(element, ensure_ascii=False):
            yield Refusal(number, "", "holds bytes that are not text in the file's encoding; save the file as UTF-8")
        else:
            yield _as_row(number, element)


def _row(number: int, line: str) -> Row | Refusal:
    try:
        value = _loads(line)
    except json.JSONDecodeError as error:
        return Refusal(number, "", f"is not JSON: {error.msg} at character {error.pos + 1}")
    except RecursionError:
        return Refusal(number, "", "is nested too deeply")
    return _as_row(number, value)


def _as_row(number: int, value: Any) -> Row | Refusal:
    if not isinstance(value, dict):
        kinds = {
            list: "an array",
            str: "a text",
            type(None): "null",
            bool: "true or false",
        }
        return Refusal(
            number,
            "",
            f"is {kinds.get(type(value), 'a number')}, not an object with named fields",
        )
    try:
        fields: dict[str, Any] = clean(value)
    except ValueError as error:
        return Refusal(number, "", f"is {error}")
    raw = next((name for name in fields if unreadable_text(name)), None)
    return Row(number, fields) if raw is None else Refusal(number, "", "holds a field name with a NUL character")


def _lines(path: Path, encoding: Encoding) -> Iterator[tuple[int, str | None]]:
    with open_text(path, encoding, newline="\n") as file:
        number = 0
        while line := file.readline(MAX_ROW_CHARS + 1):
            number += 1
            if len(line) > MAX_ROW_CHARS:
                _skip_line(file, line)
                yield number, None
            else:
                yield number, line


def _filled_lines(path: Path, encoding: Encoding) -> Iterator[str]:
    for _, line in _lines(path, encoding):
        if line is None or line.strip():
            yield line or ""


def _skip_line(file: TextIOBase, line: str) -> None:
    while line and not line.endswith("\n"):
        line = file.readline(MAX_ROW_CHARS)


def _loads(text: str) -> Any:
    """As json.loads; an integer of more digits than Python converts stays a text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(text, parse_int=_integer)


def _integer(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:
        return digits


def _parsed(line: str) -> Any:
    try:
        return _loads(line)
    except (ValueError, RecursionError):
        return None


def _document(path: Path, encoding: Encoding) -> tuple[Any, bool]:
    if path.stat().st_size > MAX_DOCUMENT_BYTES:
        raise EvaldeskError(
            f"one JSON document of more than {MAX_DOCUMENT_BYTES >> 20} MB is too large to be read at once",
            where=path.name,
            kept="Nothing was read.",
            remedy="Write it as JSONL: one object on each line.",
        )
    with open_text(path, encoding, newline="\n") as file:
        text = file.read()
    try:
        return _loads(text), UNDECODABLE in text
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} in line {error.lineno}, character {error.colno}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _rows_in(document: dict[str, Any]) -> str | None:
    if isinstance(document.get("eval"), dict):
        return None
    for key in ARRAY_KEYS:
        value = document.get(key)
        if isinstance(value, list) and any(isinstance(element, dict) for element in value):
            return key
    return None


def _no_rows(path: Path, document: dict[str, Any]) -> EvaldeskError:
    if isinstance(document.get("eval"), dict):
        return EvaldeskError(
            "is an Inspect log, which cannot be read yet",
            where=path.name,
            kept="Nothing was read.",
            remedy="Write its samples as JSONL with the fields id, request and response.",
        )
    names = ", ".join(clean(list(document)[:12])) or "none"
    return EvaldeskError(
        f"is one JSON object without a list of rows in it (its fields: {names})",
        where=path.name,
        kept="Nothing was read.",
        remedy=f"Put the rows into an array, alone or under one of {', '.join(ARRAY_KEYS[:4])}.",
    )
