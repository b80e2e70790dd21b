"""What an importer hands to the store: traces and labels, with the place they came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TraceRecord:
    """One trace as read from a file. ``context`` items are {"kind": "tool"|"passage"|"message"|"text", ...}."""

    trace_id: str
    request: str
    response: str
    context: tuple[Mapping[str, Any], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    row: int = 0
    """1-based row (data row of a table, line of a JSONL file, index + 1 in a JSON array)."""
    origin: str = ""
    """real, written, or "" where the row does not say."""


@dataclass(frozen=True)
class LabelRecord:
    """One human verdict as read from a file. ``verdict`` is PASS, FAIL or "" (blank: not labelled)."""

    trace_id: str
    verdict: str
    critique: str = ""
    expert: str = ""
    row: int = 0


@dataclass(frozen=True)
class Refusal:
    """One refused row: its number (1-based, as in TraceRecord.row), the field at fault, and why."""

    row: int
    field: str
    reason: str
