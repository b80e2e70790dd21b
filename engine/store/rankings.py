"""The score matrix, agreement and ranking of a sweep's run, kept as tables that equal what the screens show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.store.transaction import Transaction, now


def is_kept(tx: Transaction, run_id: str, top: int) -> bool:
    """Whether the tables of this run were written, for a top set of this size."""
    return tx.row("SELECT 1 FROM ranking WHERE run_id = ? AND top = ? LIMIT 1", run_id, top) is not None


def keep(
    tx: Transaction,
    run_id: str,
    top: int,
    *,
    cells: Sequence[Sequence[Any]],
    pairs: Sequence[Sequence[Any]],
    scores: Sequence[Sequence[Any]],
) -> None:
    """Write the three tables of one run anew.

    ``cells`` are (seed, k, prompt id, sum of scores, n); ``pairs`` (seed, k, seed, k, tau_b, rho, top1, topm) of two
    conditions; ``scores`` (prompt id, rank, sum, n, mean, low, high, no answer, failed).
    """
    moment = now()
    for table, columns, rows in (
        ("score_matrix", ("seed", "k", "prompt_id", "score_sum", "n"), cells),
        ("agreement", ("seed_a", "k_a", "seed_b", "k_b", "tau_b", "rho", "top1", "topm"), pairs),
        ("ranking", ("prompt_id", "rank", "score_sum", "n", "mean", "low", "high", "no_answer", "failed"), scores),
    ):
        tx.execute(f"DELETE FROM {table} WHERE run_id = ?", run_id)
        tx.append(table, ("run_id", "top", *columns, "updated_at"), [(run_id, top, *row, moment) for row in rows])
