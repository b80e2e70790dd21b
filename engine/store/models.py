"""Models that were used here, by fingerprint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.errors import Refused
from engine.store.transaction import Transaction, now


@dataclass(frozen=True)
class Model:
    """A model as the workspace knows it; ``model_id`` is its fingerprint."""

    model_id: str
    name: str
    backend: str
    path: str
    details: Mapping[str, Any] = field(default_factory=dict)


def remember(tx: Transaction, model: Model) -> None:
    """Keep the model; one that is known is left as it is but for a file that has moved."""
    if find(tx, model.model_id):
        tx.execute("UPDATE model SET path = ? WHERE model_id = ? AND path <> ?", model.path, model.model_id, model.path)
        return
    tx.insert(
        "model", model_id=model.model_id, name=model.name, backend=model.backend, path=model.path,
        details=json.dumps(dict(model.details), default=str), created_at=now(),
    )  # fmt: skip


def find(tx: Transaction, model_id: str) -> Model | None:
    """The model with this fingerprint, or None."""
    row = tx.row("SELECT model_id, name, backend, path, details FROM model WHERE model_id = ?", model_id)
    return Model(row[0], row[1], row[2], row[3], json.loads(row[4])) if row else None


def get(tx: Transaction, model_id: str) -> Model:
    """The model with this fingerprint; raises Refused when it was never used here."""
    model = find(tx, model_id)
    if model is None:
        raise Refused("this model is not known in this workspace", where=model_id)
    return model
