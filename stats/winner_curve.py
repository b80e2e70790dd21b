"""How likely each prompt is to lead on k items, over k.

Two questions, kept apart: on another subset of k items of *this* dataset (finite: at k = N the leader is certain), and
on n *new* items like these. A prompt's chance is the share of Gaussian draws (see `stats.gaussian_scores`) in which it
has the best score, t prompts tied on top sharing it, 1/t each: argmax of mu + Z sqrt(1/k - 1/N), or of mu + Z sqrt(1/n)
for new items, on whole numbers of items where outcomes are 0/1. Z is drawn once, with the items' covariance, and serves
every size, so that curves are smooth and differ between sizes by k only.

What it is: how often the prompt would come out on top if these outcomes were the truth; the squares of the chances on
subsets sum to the top-1 agreement of two seeds. What it is not: the probability that the prompt is the best one, nor is
any share of resamples won. The leader leads partly by luck, and resampling takes that luck for granted: a share of .45
can go with a probability of .2. Which prompts may be the best is what a best set says.

>>> outcomes = np.repeat([[1, 0], [0, 1], [1, 1]], [12, 8, 80], axis=0)
>>> curve = winner_curve(outcomes, (10, 50, 100))
>>> curve.on_subsets.round(2)
array([[0.61, 0.39],
       [0.81, 0.19],
       [1.  , 0.  ]])
>>> curve.on_new_items.round(2)[-1]
array([0.81, 0.19])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.gaussian_scores import gaussian_scores
from stats.ranks import top_set

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WinnerCurve:
    """Chances of being on top, [sizes, M]; a row sums to 1.

    sizes: the numbers of items k, or n. on_subsets: on k items of this dataset; nan where k is above N. on_new_items: on
    n new ones. draws: how many Gaussian draws they come from, with a standard error of sqrt(p (1 - p) / draws) each.
    """

    sizes: tuple[int, ...]
    on_subsets: Floats
    on_new_items: Floats
    draws: int
    method: Literal["approximate"] = "approximate"


def winner_curve(outcomes: ArrayLike, sizes: Sequence[int], draws: int | None = None, seed: int = 0) -> WinnerCurve:
    """The chance of each prompt of ``outcomes`` [N, M] to be on top at each of ``sizes``; the same every time for a seed.

    ``draws`` is 20,000 unless said otherwise, fewer above 52 prompts. Outcomes may be any finite numbers, and must be
    complete: what a missing one would have been cannot be resampled. Raises ValueError otherwise, or when a size is
    below 1 or draws below 2.

    >>> winner_curve([[1, 1, 0], [0, 0, 0], [1, 1, 1]], sizes=(3,)).on_subsets
    array([[0.5, 0.5, 0. ]])
    """
    scores = gaussian_scores(outcomes, draws, seed)
    on_new_items = [_chances(scores.on_new_items(size)) for size in sizes]
    nowhere = np.full(len(scores.row), np.nan)
    on_subsets = [_chances(scores.on_subset(size)) if size <= scores.n_items else nowhere for size in sizes]
    shape = (len(sizes), len(scores.row))
    return WinnerCurve(
        tuple(int(size) for size in sizes),
        np.array(on_subsets).reshape(shape),
        np.array(on_new_items).reshape(shape),
        scores.noise.shape[1],
    )


def _chances(scores: Floats) -> Floats:
    chances: Floats = top_set(-scores, 1).mean(axis=0)
    return chances
