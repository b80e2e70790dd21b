"""The score matrix, agreement and ranking of a sweep's run, kept as tables that equal what the screens show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.store.transaction import Transaction, now


def is_kept(tx: Transaction, run_id: str, top: int = 0) -> bool:
    """Whether the tables of this run were written, for a top set of this size where one is said."""
    return tx.row("SELECT 1 FROM ranking WHERE run_id = ? AND ? IN (0, top) LIMIT 1", run_id, top) is not None


def behind(tx: Transaction) -> list[str]:
    """The ended runs of sweeps whose tables lack what came in, or were written before the end."""
    rows = tx.rows(
        "SELECT run_id FROM run WHERE kind = 'sweep' AND finished_at IS NOT NULL AND EXISTS (SELECT 1 FROM sweep_prompt p "
        "WHERE p.sweep_id = run.sweep_id) AND NOT EXISTS (SELECT 1 FROM ranking r "
        "WHERE r.run_id = run.run_id AND r.updated_at >= run.finished_at AND r.updated_at >= coalesce("
        "(SELECT max(o.created_at) FROM outcome o WHERE o.run_id = run.run_id), run.finished_at))"
    )
    return [row[0] for row in rows]


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
    conditions; ``scores`` (prompt id, rank, sum, n, mean, low, high, no answer, failed, flip rate).
    """
    moment = now()
    for table, columns, rows in (
        ("score_matrix", ("seed", "k", "prompt_id", "score_sum", "n"), cells),
        ("agreement", ("seed_a", "k_a", "seed_b", "k_b", "tau_b", "rho", "top1", "topm"), pairs),
        (
            "ranking",
            ("prompt_id", "rank", "score_sum", "n", "mean", "low", "high", "no_answer", "failed", "flip_rate"),
            scores,
        ),
    ):
        tx.execute(f"DELETE FROM {table} WHERE run_id = ?", run_id)
        tx.append(table, ("run_id", "top", *columns, "updated_at"), [(run_id, top, *row, moment) for row in rows])


def leaders(tx: Transaction, run_id: str) -> list[str]:
    """Names of the prompts that lead in the kept ranking of a run, several when tied; none before there is one."""
    rows = tx.rows(
        "SELECT p.name FROM ranking r JOIN run USING (run_id) JOIN sweep_prompt p ON p.sweep_id = run.sweep_id "
        "AND p.prompt_id = r.prompt_id WHERE r.run_id = ? AND r.rank = (SELECT min(rank) FROM ranking WHERE run_id = ?) "
        "ORDER BY p.position",
        run_id,
        run_id,
    )
    return [row[0] for row in rows]


def crowned(tx: Transaction, run_id: str) -> tuple[int, int]:
    """(conditions in which a leader of the kept ranking is on top, alone or tied; conditions with scores)."""
    row = tx.row(
        "WITH means AS (SELECT seed, k, prompt_id, score_sum / n AS mean FROM score_matrix WHERE run_id = ? AND n > 0), "
        "best AS (SELECT seed, k, max(mean) AS top FROM means GROUP BY seed, k), "
        "first AS (SELECT prompt_id FROM ranking WHERE run_id = ? AND rank = (SELECT min(rank) FROM ranking WHERE run_id = ?)) "
        "SELECT count(*) FILTER (EXISTS (SELECT 1 FROM means m JOIN first USING (prompt_id) "
        "WHERE m.seed = best.seed AND m.k = best.k AND m.mean = best.top)), count(*) FROM best",
        run_id,
        run_id,
        run_id,
    )
    assert row is not None
    return int(row[0]), int(row[1])
