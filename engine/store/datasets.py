"""Datasets that were swept here, by content hash."""

from __future__ import annotations

import json
from collections.abc import Sequence

from engine.store.transaction import Transaction, now
from engine.sweeping.dataset import Dataset, Item


def remember(tx: Transaction, dataset: Dataset, source: str) -> None:
    """Keep the dataset with its items, once."""
    if tx.row("SELECT 1 FROM dataset WHERE dataset_id = ?", dataset.dataset_id):
        return
    tx.insert(
        "dataset", dataset_id=dataset.dataset_id, name=dataset.name, source=source, items=len(dataset.items), created_at=now()
    )  # fmt: skip
    tx.append(
        "item",
        ("dataset_id", "position", "item_id", "fields", "answer"),
        [
            (dataset.dataset_id, position, item.item_id, json.dumps(dict(item.fields), ensure_ascii=False), item.answer)
            for position, item in enumerate(dataset.items)
        ],
    )


def items(tx: Transaction, dataset_id: str, positions: Sequence[int]) -> dict[int, Item]:
    """The items at these positions."""
    rows = tx.rows(
        "SELECT position, item_id, fields, answer FROM item WHERE dataset_id = ? AND position IN (SELECT unnest(?::BIGINT[]))",
        dataset_id,
        list(positions),
    )
    return {row[0]: Item(row[1], json.loads(row[2]), row[3]) for row in rows}


def name_of(tx: Transaction, dataset_id: str) -> str:
    """What the dataset is called."""
    row = tx.row("SELECT name FROM dataset WHERE dataset_id = ?", dataset_id)
    return str(row[0]) if row else dataset_id
