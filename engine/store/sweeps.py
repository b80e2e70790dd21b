"""Sweeps: the protocols that were started here."""

from __future__ import annotations

import json

from engine.errors import EvaldeskError
from engine.store.transaction import Transaction, now
from engine.sweeping.sweep import Sweep

_FIELDS = "s.sweep_id, s.dataset_id, d.items, s.scorer, s.model_id, s.pool, s.seeds, s.ks, s.sampling, s.letters, s.pool_seed, s.name, s.repeats"


def remember(tx: Transaction, sweep: Sweep) -> None:
    """Keep the protocol, once."""
    if tx.row("SELECT 1 FROM sweep WHERE sweep_id = ?", sweep.sweep_id):
        return
    tx.insert(
        "sweep", sweep_id=sweep.sweep_id, name=sweep.name, dataset_id=sweep.dataset_id, scorer=sweep.scorer,
        letters=sweep.letters, model_id=sweep.model_id, sampling=json.dumps(dict(sweep.sampling)), pool=sweep.pool,
        pool_seed=sweep.pool_seed, seeds=json.dumps(sweep.seeds), ks=json.dumps(sweep.ks), repeats=sweep.repeats, created_at=now(),
    )  # fmt: skip
    tx.append(
        "sweep_prompt",
        ("sweep_id", "position", "prompt_id", "name"),
        [(sweep.sweep_id, i, prompt_id, name) for i, (prompt_id, name) in enumerate(sweep.prompts)],
    )


def get(tx: Transaction, sweep_id: str) -> Sweep:
    """The protocol of this id; raises EvaldeskError where there is none."""
    row = tx.row(f"SELECT {_FIELDS} FROM sweep s JOIN dataset d USING (dataset_id) WHERE s.sweep_id = ?", sweep_id)
    if row is None:
        raise EvaldeskError(f"there is no sweep {sweep_id!r}")
    prompts = tx.rows("SELECT prompt_id, name FROM sweep_prompt WHERE sweep_id = ? ORDER BY position", sweep_id)
    return Sweep(
        dataset_id=row[1], dataset_items=row[2], scorer=row[3], model_id=row[4], prompts=tuple((p, n) for p, n in prompts),
        pool=row[5], seeds=tuple(json.loads(row[6])), ks=tuple(json.loads(row[7])), sampling=json.loads(row[8]),
        letters=row[9], pool_seed=row[10], name=row[11], repeats=row[12],
    )  # fmt: skip
