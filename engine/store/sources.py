"""Sources: the files that rows came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from engine.store.transaction import Transaction, now


def is_known(tx: Transaction, source_id: str) -> bool:
    """Whether this file was imported before, with the same mapping."""
    return bool(tx.value("SELECT count(*) > 0 FROM source WHERE source_id = ?", source_id))


def settled_traces(tx: Transaction, source_id: str) -> set[str]:
    """Traces that were here when this file was last imported: what it says of them has been dealt with."""
    rows = tx.rows(
        "SELECT DISTINCT trace_id FROM trace WHERE imported_at <= (SELECT max(imported_at) FROM source WHERE source_id = ?)",
        source_id,
    )
    return {row[0] for row in rows}


def add(
    tx: Transaction,
    source_id: str,
    *,
    path: str,
    kind: str,
    format: str,
    mapping: Mapping[str, Any],
    accepted: int,
    refused: int,
) -> None:
    """Record a file after its rows were taken in; once more for each time that it brought something."""
    tx.insert(
        "source", source_id=source_id, path=path, kind=kind, format=format, mapping=json.dumps(dict(mapping)),
        accepted=accepted, refused=refused, imported_at=now(),
    )  # fmt: skip
