"""What the items of an outcome matrix decide: who may be the best, which ranks are possible, how many items it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stats.best_set import best_set
from stats.items_needed import against_leader, winner_items
from stats.rank_intervals import rank_intervals
from stats.variance_components import items_for_reliability, reliability, variance_components

TARGET_RELIABILITY = 0.9


@dataclass(frozen=True)
class Decision:
    """Figures from the ``items`` that every ranked prompt has an outcome on; ``left_out`` answered ones were not.

    best_set: prompts (columns) that may be the best, with 95 % confidence. rank_intervals: by column, the ranks that it
    may have, all of them right at once with 95 %; columns without an outcome have none. winner: the column that leads on
    these items, None for a tie. winner_items: new items until it is on top again with 95 %, top_pair: until it is ahead
    of the second (of several, the one that takes most); None for a tie, which no number of items tells apart. reliability: by k. reliable_items: items for a reliability of 0.9; None where prompts do not differ.
    """

    best_set: tuple[int, ...]
    rank_intervals: dict[int, tuple[int, int]]
    winner: int | None
    winner_items: int | None
    top_pair: int | None
    reliability: dict[int, float | None]
    reliable_items: int | None
    items: int
    left_out: int


def decide(values: NDArray[np.float64], ks: Sequence[int]) -> Decision | None:
    """The decision for outcomes [N, M]; None where fewer than two prompts share two items with an outcome."""
    ranked = np.flatnonzero(~np.isnan(values).all(axis=0))
    known = values[:, ranked]
    complete = known[~np.isnan(known).any(axis=1)]
    if len(ranked) < 2 or len(complete) < 2:
        return None
    best, ranks, winner = best_set(complete), rank_intervals(complete), winner_items(complete)
    rivals = [pair for pair in against_leader(complete, winner.winner) if pair.prompt != winner.winner]
    # Means of one number of items; rounded, so that which of several prompts in second place it is does not hang on their order.
    closest = min(rivals, key=lambda pair: (round(pair.difference, 12), -pair.needed))
    parts = variance_components(complete)
    enough = items_for_reliability(parts, TARGET_RELIABILITY)
    return Decision(
        best_set=tuple(int(ranked[member]) for member in best.members),
        rank_intervals={
            int(column): (int(low), int(high))
            for column, low, high in zip(ranked, ranks.best, ranks.worst, strict=True)
        },
        winner=None if winner.winner is None else int(ranked[winner.winner]),
        winner_items=winner.items,
        top_pair=None if winner.winner is None else closest.items,
        reliability={k: reliability(parts, k) for k in ks},
        reliable_items=max(int(np.ceil(enough)), 1) if np.isfinite(enough) else None,
        items=len(complete),
        left_out=int((~np.isnan(known).all(axis=1)).sum()) - len(complete),
    )
