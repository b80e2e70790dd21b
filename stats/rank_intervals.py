"""Simultaneous rank intervals: which places each prompt may take, all intervals right at once.

All pairs of prompts are compared on the items they share; the largest lead of any prompt over any other, each in its
own standard error, has the null distribution that sign flips of the items give. Leads beyond what 5 % of flips reach are
significant, all of them together: the chance that even one names the wrong prompt as better is 5 %. Pairs that are
settled leave, the rest is compared anew (step-down), until nothing more is significant. A prompt that w others are
significantly better than and that is significantly better than b of M has a rank from 1 + w to M - b.

With 95 % confidence every prompt's true rank lies in its interval; of equally good prompts, every rank that they share.
For the question who is best alone, `stats.best_set` says more from the same items.

Sources: Mogstad, Romano, Shaikh and Wilhelm (2024), Review of Economic Studies 91, 476-518 (step-down, pairs); Klein,
Wright and Wieczorek (2020), Journal of the Royal Statistical Society A 183, 589-606 (intervals from all pairs).

>>> import numpy as np
>>> outcomes = np.array([[1, 1, 0]] * 10 + [[1, 0, 0]] * 2 + [[0, 1, 0]])
>>> found = rank_intervals(outcomes)
>>> found.ranks, found.best, found.worst
(array([1., 2., 3.]), array([1, 1, 3]), array([2, 2, 3]))
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.clusters import Labels
from stats.ranks import fair_ranks
from stats.sign_flip import (
    DRAWS,
    SAME,
    allowed,
    blocks,
    critical,
    differing,
    flipped_sums,
    largest_leads,
    root_squares,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RankIntervals:
    """Ranks (1 = best) of M prompts with simultaneous intervals, from ``n`` complete items; ``left_out`` items were not.

    ranks: [M], observed, ties sharing the average of their places. best, worst: [M], ends of the interval.
    better: [M, M], whether prompt i is significantly better than l.
    means: [M], over the complete items. draws: flips behind it; all there are when these are fewer than asked for.
    """

    ranks: Floats
    best: NDArray[np.int64]
    worst: NDArray[np.int64]
    better: NDArray[np.bool_]
    means: Floats
    n: int
    left_out: int
    confidence: float
    draws: int


def rank_intervals(
    outcomes: ArrayLike,
    confidence: float = 0.95,
    *,
    clusters: Labels | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> RankIntervals:
    """Simultaneous rank intervals of the M prompts of ``outcomes`` [N, M]: 0/1 or any finite numbers, higher is better.

    Missing outcomes (nan): only items with an outcome of every prompt count. ``clusters`` [N] labels items that belong
    together; clusters, not items, are then taken as independent. The same input gives the same intervals: flips come
    from ``seed``.

    Raises ValueError when the matrix is empty or holds an infinity, no item is complete, the labels do not match, the
    confidence is not in [0.5, 1) or draws < 1.

    >>> rank_intervals([[1, 0]] * 6).worst
    array([1, 2])
    """
    data = blocks(outcomes, clusters)
    sums = differing(data.sums)
    n_prompts = sums.shape[1]
    flipped, observed, errors = flipped_sums(sums, draws, seed), sums.sum(axis=0), root_squares(sums)
    allowed(confidence, flipped.shape[1])
    better = _step_down(flipped, observed, errors, confidence)
    return RankIntervals(
        ranks=fair_ranks(data.sums.sum(axis=0)),
        best=1 + better.sum(axis=0),
        worst=n_prompts - better.sum(axis=1),
        better=better,
        means=data.means,
        n=data.n,
        left_out=data.left_out,
        confidence=confidence,
        draws=flipped.shape[1],
    )


def _step_down(flipped: Floats, observed: Floats, errors: Floats, confidence: float) -> NDArray[np.bool_]:
    """[i, l], whether "i is not better than l" is dropped; both directions of every pair are hypotheses of one family."""
    leads = np.divide(observed[:, None] - observed, errors, out=np.zeros_like(errors), where=errors > 0.0)
    better = np.zeros(errors.shape, dtype=bool)
    undecided = np.where(errors > 0.0, errors, np.inf)
    largest = np.full((len(errors), flipped.shape[1]), -np.inf)
    changed = np.arange(len(errors))
    while changed.size:
        for other in changed.tolist():
            largest[other] = largest_leads(flipped, other, undecided[:, other])
        settled = np.isfinite(undecided) & (leads > critical(largest.max(axis=0), confidence) + SAME)
        better |= settled
        undecided[settled] = np.inf
        changed = np.flatnonzero(settled.any(axis=0))
    return better
