"""One row and a mapping, made into a trace or a label; what stands in the way is named with its field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from collections.abc import Mapping as Fields
from functools import lru_cache
from typing import Any

from engine.hashing import content_hash
from engine.importing.conversation import (
    is_chat,
    is_tool_call,
    read_chat,
    text_of,
    tool_call,
)
from engine.importing.mapping import ORIGINS, REST, Mapping
from engine.importing.pointer import MISSING, decoded, get, pointer, pointer_of
from engine.importing.records import LabelRecord, TraceRecord
from engine.importing.rows import Row
from engine.importing.verdicts import ValueReading

KINDS = ("tool", "passage", "message", "text")
LATER = "messages after the response"
"""Metadata name of the messages of a conversation that followed the response, as JSON."""


class RowFault(Exception):
    """Why a row cannot be taken, and the field at fault as the file names it."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        self.reason = reason
        super().__init__(f"{field}: {reason}")


def trace(row: Row, mapping: Mapping) -> TraceRecord:
    """The trace of a row; one without an id is named by its content ("r" and 12 hex digits). Raises RowFault."""
    fields = row.fields
    request, response = _text(fields, mapping.request), _text(fields, mapping.response)
    context: list[Fields[str, Any]] = []
    for path in mapping.context or ():
        context += context_items(get(fields, path))
    metadata = _metadata(fields, mapping)
    if mapping.messages:
        chat = get(fields, mapping.messages)
        if is_chat(chat):
            conversation = read_chat(chat, with_response=not mapping.response)
            request = request if mapping.request else conversation.request
            response = response if mapping.response else conversation.response
            context += conversation.context
            if conversation.later:
                metadata[LATER] = json.dumps(conversation.later, ensure_ascii=False)
        elif not request.strip() and not _blank(chat):
            raise RowFault(mapping.messages, "is not a list of chat messages with a role and a content")
    if not request.strip():
        neither = "neither request nor response" if not response.strip() else "no request"
        raise RowFault(mapping.request or mapping.messages or "request", neither)
    if not response.strip():
        reason = "no response; answering requests comes later"
        raise RowFault(mapping.response or mapping.messages or "response", reason)
    return TraceRecord(
        trace_id=identity(fields, mapping) or "r" + content_hash([request, context, response])[:12],
        request=request,
        response=response,
        context=tuple(context),
        facts=_facts(fields, mapping),
        metadata=metadata,
        row=row.number,
        origin=_origin(fields, mapping),
    )


def label(row: Row, mapping: Mapping, reading: ValueReading, trace_id: str = "") -> LabelRecord:
    """The label of a row, of the trace that is named here or in the row. Raises RowFault."""
    name = mapping.label or "label"
    value = get(row.fields, name)
    try:
        verdict = None if value is MISSING else reading.read(value)
    except ValueError as error:
        raise RowFault(name, str(error)) from None
    trace_id = trace_id or identity(row.fields, mapping)
    if not trace_id:
        raise RowFault(mapping.trace_id or "trace_id", "no id of a trace")
    return LabelRecord(
        trace_id=trace_id,
        verdict=verdict or "",
        critique=_text(row.fields, mapping.critique),
        expert=_text(row.fields, mapping.expert).strip(),
        row=row.number,
    )


def identity(fields: Fields[str, Any], mapping: Mapping) -> str:
    """The id that a row states, "" if none. Raises RowFault when it is a list or an object."""
    value = get(fields, mapping.trace_id) if mapping.trace_id else None
    if _blank(value):
        return ""
    if isinstance(value, (list, Fields)):
        raise RowFault(mapping.trace_id or "trace_id", "is a list or an object, not an id")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value.strip() if isinstance(value, str) else str(value)


def context_items(value: Any) -> Iterator[dict[str, Any]]:
    """What a context field holds as items {"kind": "tool" | "passage" | "message" | "text", ...}.

    Items that have such a kind come as they are. A list of texts is one of passages, numbered from 1.
    """
    value = decoded(value)
    if _blank(value):
        return
    if is_chat(value):
        yield from map(dict, read_chat(value, with_response=False).context)
        last = read_chat(value, with_response=False).request
        if last:
            yield {"kind": "message", "role": "user", "content": last}
    elif isinstance(value, list):
        for number, item in enumerate(value, start=1):
            if not _blank(item):
                yield _item(item, number)
    else:
        yield _item(value, 0)


def _item(item: Any, number: int) -> dict[str, Any]:
    if not isinstance(item, dict):
        if number:
            return {"kind": "passage", "id": str(number), "title": "", "text": text_of(item)}
        return {"kind": "text", "text": text_of(item)}
    if item.get("kind") in KINDS:
        return item
    if is_tool_call(item):
        return tool_call(item)
    key = next((key for key in ("text", "page_content", "content", "passage", "body") if _is_text(item.get(key))), None)
    if key is None:
        return {"kind": "text", "text": json.dumps(item, ensure_ascii=False)}
    source = {"id": str(number) if number else "", "title": "", **item}
    rest = {name: inner for name, inner in source.items() if name not in (key, "kind", "text")}
    return {"kind": "passage", **rest, "text": item[key]}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _text(fields: Fields[str, Any], path: str | None) -> str:
    value = get(fields, path) if path else None
    return "" if value is MISSING else text_of(value)


def _origin(fields: Fields[str, Any], mapping: Mapping) -> str:
    said = _text(fields, mapping.origin).strip().casefold()
    if said and said not in ORIGINS:
        raise RowFault(mapping.origin or "origin", f"{said[:40]!r} is none of {', '.join(ORIGINS)}")
    return said


def _facts(fields: Fields[str, Any], mapping: Mapping) -> dict[str, Any]:
    value = decoded(get(fields, mapping.facts)) if mapping.facts else None
    if _blank(value):
        return {}
    return value if isinstance(value, dict) else {"facts": value}


def _metadata(fields: Fields[str, Any], mapping: Mapping) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for path in mapping.metadata or ():
        if path == REST:
            continue
        value = get(fields, path)
        inner = decoded(value)
        if isinstance(inner, dict):
            metadata |= inner
        elif value is not MISSING and not _blank(value):
            metadata[path.rpartition("/")[2] if path not in fields else path] = value
    if REST in (mapping.metadata or ()):
        used = _used(mapping)
        inner_paths = tuple(pointer({}, path) for path in used if path not in fields)
        for column, value in fields.items():
            if column in used:
                continue
            for steps, scalar in _unused(value, (column,), inner_paths):
                name = ".".join(steps)
                metadata[name if name not in metadata else f"column.{name}"] = scalar
    return metadata


@lru_cache(maxsize=8)
def _used(mapping: Mapping) -> frozenset[str]:
    return frozenset(mapping.used())


def _unused(value: Any, steps: tuple[str, ...], used: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(names, scalar) of each filled part of a row that no path of ``used`` leads to; lists as JSON texts."""
    if used:
        here = pointer_of(steps)
        if here in used:
            return
        if any(path.startswith(here + "/") for path in used):
            inner = decoded(value)
            value = dict(enumerate(inner)) if isinstance(inner, list) else inner
    if isinstance(value, Fields):
        for name, inner in value.items():
            yield from _unused(inner, (*steps, str(name)), used)
    elif not _blank(value):
        yield steps, json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value


def _blank(value: Any) -> bool:
    return value is None or value is MISSING or value in ([], {}) or (isinstance(value, str) and not value.strip())
