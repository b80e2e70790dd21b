"""Traces: request, context, facts, response and metadata, as they came in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from engine.hashing import content_hash
from engine.importing.records import Refusal, TraceRecord
from engine.judging.trace import Trace, group_key
from engine.store.transaction import Transaction, now

_COLUMNS = (
    "trace_id", "version", "position", "source_id", "source_row", "origin", "request", "context", "facts",
    "response", "metadata", "group_key", "content_hash", "imported_at",
)  # fmt: skip
_FIELDS = "trace_id, version, position, request, context, facts, response, metadata, origin, group_key"
REAL, WRITTEN = "real", "written"
"""Where a request comes from: from use, or written for a cell of the coverage grid."""
# The newest version of each trace. Positions count traces from 0 without gaps; a newer version has that of the old one.
CURRENT = "(SELECT * FROM trace ANTI JOIN superseded USING (trace_id, version))"


def trace_hash(record: TraceRecord) -> str:
    """Identity of a trace's content; metadata may be completed later and does not count."""
    return content_hash([record.request, list(record.context), dict(record.facts), record.response])


def add(
    tx: Transaction, source_id: str, records: Iterable[TraceRecord], *, origin: str = REAL
) -> tuple[int, int, list[Refusal]]:
    """Add traces; returns (added, already here, refused). Never replaces or deletes anything.

    A trace id that is here with the same content is left alone; with other content the row is refused.
    ``origin`` is that of the records that do not state their own.
    """
    known: dict[str, str] = dict(
        tx.rows("SELECT trace_id, arg_max(content_hash, version) FROM trace GROUP BY trace_id")
    )
    position = int(tx.value("SELECT coalesce(max(position), -1) + 1 FROM trace"))
    moment = now()
    rows: list[tuple[Any, ...]] = []
    refused: list[Refusal] = []
    same = 0
    for record in records:
        digest = trace_hash(record)
        if record.trace_id in known:
            if known[record.trace_id] == digest:
                same += 1
            else:
                refused.append(Refusal(record.row, "id", f"trace {record.trace_id} is already here with other content"))
            continue
        known[record.trace_id] = digest
        rows.append(
            (record.trace_id, 1, position, source_id, record.row, record.origin or origin, record.request, _dump(list(record.context)),
             _dump(record.facts), record.response, _dump(record.metadata), group_key(record.request), digest, moment)
        )  # fmt: skip
        position += 1
    added = tx.append("trace", _COLUMNS, rows)
    return added, same, refused


def get(tx: Transaction, trace_id: str) -> Trace | None:
    """The newest version of one trace."""
    row = tx.row(f"SELECT {_FIELDS} FROM trace WHERE trace_id = ? ORDER BY version DESC LIMIT 1", trace_id)
    return from_row(row) if row else None


def count(tx: Transaction) -> int:
    """How many traces there are, versions not counted."""
    return int(tx.value("SELECT coalesce(max(position) + 1, 0) FROM trace"))


def count_written(tx: Transaction) -> int:
    """How many of them were written for the coverage grid, rather than asked by somebody."""
    return int(tx.value("SELECT count(DISTINCT trace_id) FROM trace WHERE origin <> 'real'"))


def position_of(tx: Transaction, trace_id: str) -> int | None:
    """Where a trace stands in the order of arrival, or None when there is no such trace."""
    row = tx.row("SELECT any_value(position) FROM trace WHERE trace_id = ?", trace_id)
    return row[0] if row else None


def at(tx: Transaction, position: int) -> Trace | None:
    """The newest version of the trace at this position; in a large workspace this is found at once, one by its id is not."""
    row = tx.row(f"SELECT {_FIELDS} FROM trace WHERE position = ? ORDER BY version DESC LIMIT 1", position)
    return from_row(row) if row else None


def from_row(row: tuple[Any, ...]) -> Trace:
    """A Trace from a row of the columns (trace_id, version, position, request, context, facts, response, metadata, origin, group_key)."""
    return Trace(
        trace_id=row[0], version=row[1], position=row[2], request=row[3], context=tuple(json.loads(row[4])),
        facts=json.loads(row[5]), response=row[6], metadata=json.loads(row[7]), origin=row[8], group_key=row[9],
    )  # fmt: skip


def _dump(value: Any) -> str:
    return json.dumps(value if not isinstance(value, Mapping) else dict(value), ensure_ascii=False, default=str)
