"""One ranking for many, without a mode: Borda's, and what Kemeny's (`stats.kemeny`) starts from.

Rankings come as fair ranks [C, M] (1 = best, ties averaged, nan = not ranked; see `stats.ranks`). Their rows may be
conditions, or single items. The modal ranking, which the paper uses, is in `stats.reference_ranking`; it needs rankings
that repeat, these do not.

Borda: prompts by the mean share of the other ranked prompts that a ranking puts behind them, ties counting one half.
On single items with 0/1 outcomes that is the order of the means: each item's fair ranks of right and wrong answers are
M/2 apart, whatever the item.

Sources: Borda (1784), Histoire de l'Académie royale des sciences (1781), 657-665; comparison of methods, Ali and Meilă
(2012), Mathematical Social Sciences 64, 28-40.

>>> borda([[1, 2, 3], [1, 3, 2], [3, 1, 2]]).ranks
array([1., 2., 3.])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.ranks import fair_ranks

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Borda:
    """points [M]: mean share, in 0..1, of the others that a prompt beats; nan for one never ranked. ranks: fair ranks by it."""

    points: Floats
    ranks: Floats


def borda_points(ranks: ArrayLike) -> Floats:
    """[..., M], Borda's points from fair ranks [..., C, M]: (t - rank)/(t - 1) of t ranked prompts, averaged over rankings.

    Without missing prompts, most points are the smallest sum of ranks. A prompt that is ranked alone gets 1/2, since
    that says nothing either way; one that is never ranked gets nan.

    Raises ValueError unless there is at least one ranking of at least one prompt.

    >>> borda_points([[1, 2.5, 2.5], [2, 1, float("nan")]])
    array([0.5  , 0.625, 0.25 ])
    """
    values = np.asarray(ranks, dtype=np.float64)
    if values.ndim < 2 or 0 in values.shape[-2:]:
        raise ValueError(f"points need rankings x prompts with at least one of each, got the shape {values.shape}")
    known = ~np.isnan(values)
    ranked = known.sum(axis=-1, keepdims=True)
    shares = np.where(ranked > 1, (ranked - values) / np.maximum(ranked - 1, 1), 0.5)
    counts = known.sum(axis=-2)
    points: Floats = np.where(known, shares, 0.0).sum(axis=-2) / np.maximum(counts, 1)
    points[counts == 0] = np.nan
    return points


def borda(ranks: ArrayLike) -> Borda:
    """Borda's consensus of fair ``ranks`` [C, M].

    Where rankings lack prompts, points of a prompt are over the rankings that have it.

    Raises ValueError when there is no ranking or no prompt.

    >>> borda([[1, 2, 3], [2, 1, 3]]).ranks
    array([1.5, 1.5, 3. ])
    """
    points = borda_points(as_rankings(ranks))
    # Averages of fractions with different denominators may differ in the last bits only.
    return Borda(points, fair_ranks(np.round(points, 12)))


def preferences(ranks: ArrayLike) -> Indices:
    """[M, M], how many of the rankings [C, M] put prompt i before prompt l; ties and missing prompts count on neither side.

    Raises ValueError as `borda` does.

    >>> preferences([[1, 2], [1.5, 1.5], [2, 1], [1, 2]])
    array([[0, 2],
           [1, 0]])
    """
    values = as_rankings(ranks)
    before = np.zeros((values.shape[1], values.shape[1]), dtype=np.int64)
    for row in values:
        before += row[:, None] < row[None, :]
    return before


def as_rankings(ranks: ArrayLike) -> Floats:
    """The rankings as float64 [C, M]; ValueError when they are not two-dimensional or there is none, or no prompt.

    >>> as_rankings([[1, 2]]).dtype.name
    'float64'
    """
    values = np.asarray(ranks, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(
            f"a consensus needs rankings x prompts with at least one of each, got the shape {values.shape}"
        )
    return values
