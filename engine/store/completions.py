"""Completions: what was generated for a request key, once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.importing.rows import clean_text
from engine.store.transaction import Transaction, now


@dataclass(frozen=True)
class StoredCompletion:
    """The text of one completion, or the error that ended it."""

    request_key: str
    text: str
    finish: str
    error: str


_COLUMNS = (
    "request_key", "run_id", "text", "finish", "prompt_tokens", "cached_tokens", "completion_tokens", "seconds", "error",
    "backend", "backend_version", "likelihoods", "created_at",
)  # fmt: skip


def add(tx: Transaction, run_id: str, lines: Sequence[Mapping[str, Any]]) -> list[StoredCompletion]:
    """Take spool lines in; a key that has a good completion already, or stands twice, adds no row.

    Returns the completions that these lines are about, new and known ones, one for each key.
    """
    lines = [_storable(line) for line in lines]
    have = usable(tx, [str(line["key"]) for line in lines])
    mine = {row[0] for row in tx.rows("SELECT request_key FROM completion WHERE run_id = ?", run_id)}
    moment = now()
    new: dict[str, StoredCompletion] = {}
    rows: list[tuple[Any, ...]] = []
    for line in lines:
        key = str(line["key"])
        if key in have or key in mine or key in new:
            continue
        new[key] = StoredCompletion(
            key, str(line.get("text", "")), str(line.get("finish", "")), str(line.get("error") or "")
        )
        rows.append(
            (key, run_id, new[key].text, new[key].finish, int(line.get("prompt_tokens", 0)), int(line.get("cached_tokens", 0)),
             int(line.get("completion_tokens", 0)), float(line.get("seconds", 0.0)), new[key].error,
             str(line.get("backend", "")), str(line.get("backend_version", "")),
             json.dumps(line["likelihoods"]) if line.get("likelihoods") else None, moment)
        )  # fmt: skip
    tx.append("completion", _COLUMNS, rows)
    return [*have.values(), *new.values()]


def _storable(line: Mapping[str, Any]) -> dict[str, Any]:
    # A model may emit half a surrogate pair: legal in JSON, and in no database.
    return {name: clean_text(value) if isinstance(value, str) else value for name, value in line.items()}


def usable(tx: Transaction, keys: Sequence[str]) -> dict[str, StoredCompletion]:
    """The good completions among these keys; one with an error is not usable."""
    rows = tx.rows(
        "SELECT request_key, text, finish, error FROM completion WHERE error = '' AND request_key IN (SELECT unnest(?::VARCHAR[]))",
        list(keys),
    )
    return {row[0]: StoredCompletion(*row) for row in rows}
