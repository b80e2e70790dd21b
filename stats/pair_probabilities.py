"""How often one prompt beats another, or ties with it, on k items drawn from the dataset.

Outcomes are 0/1, [N items, M prompts], complete; a subset of k items is drawn without replacement. What two prompts
do then depends on two counts only: the b items that the one has right and the other wrong, and the c of the reverse.

>>> outcomes = [[1, 0], [1, 0], [0, 1], [1, 1]]
>>> pairs = pair_probabilities(outcomes, k=2)
>>> round(float(pairs.wins[0, 1]), 12), round(float(pairs.ties[0, 1]), 12)
(0.5, 0.333333333333)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.count_distributions import CountDistribution, binomial
from stats.subsets import as_outcomes, is_binary

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

FEW_DISCORDANT: Final = 10.0
"""Expected discordant items on a subset below which `nearly_exact_pair_probabilities` does not trust the normal form."""


@dataclass(frozen=True)
class PairProbabilities:
    """For every pair of prompts, [M, M], what happens on a random k-subset.

    wins[i, l]: P+, that i has more correct items than l; 0 on the diagonal. ties[i, l]: P0; 1 on the diagonal.
    """

    wins: Floats
    ties: Floats
    k: int


def pair_probabilities(outcomes: ArrayLike, k: int) -> PairProbabilities:
    """P+ and P0 of every pair of prompts on a k-subset of the N items, exact to rounding.

    The subset holds u of the b items that only i has right and v of the c that only l has right; P+ sums
    C(b,u) C(c,v) C(N-b-c, k-u-v) / C(N,k) over u > v, P0 over u = v.

    ``outcomes`` [N, M] must be 0/1 and complete. Raises ValueError otherwise, or when k is not in 1..N.

    >>> pair_probabilities([[1, 0], [0, 1], [1, 0]], k=1).wins.round(3)
    array([[0.   , 0.667],
           [0.333, 0.   ]])
    """
    only, n_items, k = _only(outcomes, k)
    pairs = PairProbabilities(np.zeros(only.shape), np.eye(len(only)), k)
    _fill_exactly(pairs, only, n_items, np.triu(np.ones(only.shape, dtype=bool), 1))
    return pairs


def normal_pair_probabilities(outcomes: ArrayLike, k: int) -> PairProbabilities:
    """`pair_probabilities` by a normal approximation with continuity correction, for many prompts at once.

    The difference of two means has the mean d = (b - c)/N and the variance (1/k - 1/N) N/(N-1) ((b+c)/N - d^2); a tie is
    a difference within 1/(2k). On real and made matrices it was off by at most .004 where 10 discordant items or more
    are expected on a subset, .03 from 2 on, .14 below. Raises ValueError as `pair_probabilities` does.

    >>> outcomes = np.repeat([[1, 0], [0, 1], [1, 1]], [90, 70, 840], axis=0)
    >>> float((normal_pair_probabilities(outcomes, 200).wins - pair_probabilities(outcomes, 200).wins).max().round(3))
    0.0
    """
    only, n_items, k = _only(outcomes, k)
    return _normal(only, n_items, k)


def nearly_exact_pair_probabilities(outcomes: ArrayLike, k: int) -> PairProbabilities:
    """The normal form, and the exact one for every pair with fewer than `FEW_DISCORDANT` discordant items expected.

    Those are the pairs that the normal form gets wrong and the exact one does fast: near an accuracy of 0 or 1, at a
    small k, and prompts that differ little. Raises ValueError as `pair_probabilities` does.

    >>> nearly_exact_pair_probabilities([[1, 0], [0, 1], [1, 0]], k=1).wins.round(3)
    array([[0.   , 0.667],
           [0.333, 0.   ]])
    """
    only, n_items, k = _only(outcomes, k)
    pairs = _normal(only, n_items, k)
    _fill_exactly(pairs, only, n_items, np.triu((only + only.T) * k < FEW_DISCORDANT * n_items, 1))
    return pairs


def tied_share(pairs: PairProbabilities) -> float | None:
    """The expected share of pairs of prompts that a subset ties: the mean of P0; None for one prompt.

    >>> tied_share(pair_probabilities([[1, 0], [0, 1], [1, 1]], k=1))
    0.333...
    """
    above = np.triu_indices(len(pairs.ties), 1)
    return float(pairs.ties[above].mean()) if above[0].size else None


def _only(outcomes: ArrayLike, k: int) -> tuple[Indices, int, int]:
    """([i, l] the number of items that i has right and l has not, N, k); ValueError on what cannot be worked out."""
    values = as_outcomes(outcomes)
    n_items = len(values)
    if np.isnan(values).any() or not is_binary(values):
        raise ValueError("pair probabilities need a complete matrix of 0/1 outcomes")
    if k != int(k) or not 1 <= k <= n_items:
        raise ValueError(f"{k!r} of {n_items} items cannot be drawn without replacement")
    return (values.T @ (1.0 - values)).astype(np.int64), n_items, int(k)


def _normal(only: Indices, n_items: int, k: int) -> PairProbabilities:
    from scipy.special import ndtr

    difference = (only - only.T) / n_items
    variance = (only + only.T) / n_items - difference**2
    factor = (1.0 / k - 1.0 / n_items) * n_items / (n_items - 1) if n_items > 1 else 0.0
    deviation = np.sqrt(np.maximum(factor * variance, 0.0))
    half = 1.0 / (2 * k)
    # Without variance the difference is certain; any deviation far below the step of the scores says the same.
    deviation = np.maximum(deviation, 1e-6 * half)
    up, down = ndtr((difference - half) / deviation), ndtr((-difference - half) / deviation)
    return PairProbabilities(up, np.clip(1.0 - up - down, 0.0, 1.0), k)


def _fill_exactly(pairs: PairProbabilities, only: Indices, n_items: int, which: NDArray[np.bool_]) -> None:
    """Write the exact probabilities of the pairs [i, l] in ``which``, i < l, into ``pairs``; equal counts are done once."""
    i, other = np.nonzero(which)
    counts, group = np.unique(np.stack([only[i, other], only[other, i]], axis=1), axis=0, return_inverse=True)
    held = cache(lambda count: binomial(count, pairs.k / n_items))
    done = np.array([_win_tie_loss(int(b), int(c), n_items, pairs.k, held) for b, c in counts]).reshape(-1, 3)
    pairs.wins[i, other], pairs.ties[i, other], pairs.wins[other, i] = done[group.reshape(-1)].T
    pairs.ties[other, i] = pairs.ties[i, other]


def _win_tie_loss(
    b: int, c: int, n_items: int, k: int, held: Callable[[int], CountDistribution]
) -> tuple[float, float, float]:
    """The hypergeometric chances are the binomial ones of u, v and what is left, over that of k."""
    if k == n_items or not b + c:
        return float(b > c), float(b == c), float(b < c)
    only_i, only_l, rest = (held(count) for count in (b, c, n_items - b - c))
    of_i, of_l = only_i.chances, only_l.chances
    u, v = np.arange(len(of_i)), np.arange(len(of_l))
    # What is left of k when u and v are held, by u + v, and how likely it is to be held of the other items.
    left = k - rest.first - only_i.first - only_l.first - np.arange(len(u) + len(v) - 1)
    possible = (left >= 0) & (left < len(rest.chances))
    of_rest = np.where(possible, rest.chances[np.where(possible, left, 0)], 0.0)
    both = of_rest[np.add.outer(u, v)]
    level = only_i.first - only_l.first
    total = float(of_i @ (both @ of_l))
    won = float(of_i @ ((both * np.greater.outer(u + level, v)) @ of_l))
    equal = u[max(0, -level) : len(v) - level]
    tied = float((of_i[equal] * of_l[equal + level] * of_rest[2 * equal + level]).sum())
    # What is left out and what rounding adds are both far below 1e-12; dividing makes the three cases sum to 1.
    return won / total, tied / total, max((total - won - tied) / total, 0.0)
