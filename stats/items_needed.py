"""How many items would settle it: for two prompts, and for the winner of all of them.

Everything here takes the observed means and covariances as the true ones and asks how many *new* items, drawn like
these and used on their own, would put the same prompt first with a probability of 95 %. It is a plan, not a test: with
a lead that is mostly luck the number is far too small, and with a tie there is none (inf).

Two prompts, d the lead and s_d^2 the variance of the items' differences (for 0/1: (b + c)/N - d^2):

    n = 1.645^2 s_d^2 / d^2

The winner of M prompts: with Z normal, its covariance the items', prompt i wins on n items when mu_i + Z_i / sqrt(n) is
the highest. The observed leader therefore wins exactly when sqrt(n) is at least R = max over l of
(Z_l - Z_leader) / (mu_leader - mu_l), and n is the square of R's 95 % quantile, from one set of simulated Z: never less
than what the leader needs against any one prompt, and exactly that for two.

>>> import numpy as np
>>> outcomes = np.array([[1, 1, 0]] * 50 + [[1, 0, 0]] * 30 + [[0, 1, 1]] * 20)
>>> runner_up = against_leader(outcomes)[1]
>>> round(runner_up.difference, 2), round(runner_up.variance, 2), runner_up.items
(0.1, 0.49, 133)
>>> winner_items(outcomes).winner
0
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.clusters import Labels
from stats.leader_tests import leaders
from stats.normal_draws import normal_root, standard_normal
from stats.sign_flip import blocks
from stats.subsets import as_outcomes

Floats = NDArray[np.float64]

DRAWS: Final = 50_000
"""Simulated normal vectors, unless said otherwise: a number of items from them is good to about 1 or 2 %."""

_NEGLIGIBLE: Final = 1e-12


@dataclass(frozen=True)
class PairItems:
    """New items until a prompt that is ahead by ``difference`` is ahead again, for ``prompt`` (column) behind it.

    variance: s_d^2 of the items' differences. n: the items that both prompts have. needed: items as a number, inf for
    a tie or, as difference and variance are nan then, without a shared item.
    """

    prompt: int
    n: int
    difference: float
    variance: float
    needed: float

    @property
    def items(self) -> int | None:
        """``needed`` rounded up to at least one item; None when no number is enough."""
        return _whole(self.needed)


@dataclass(frozen=True)
class WinnerItems:
    """New items until the observed winner is on top again; ``winner`` is None, and both numbers inf and N, for a tie.

    needed: new items, as a number. of_dataset: k for which a random k-subset of the same N items has it on top.
    n: complete items, N; left_out: items without an outcome of every prompt. probability: what was asked for.
    """

    winner: int | None
    needed: float
    of_dataset: float
    n: int
    left_out: int
    probability: float

    @property
    def items(self) -> int | None:
        """``needed`` rounded up to at least one item; None when no number is enough."""
        return _whole(self.needed)


def pair_items(variance: float, difference: float, probability: float = 0.95) -> float:
    """n = z^2 s_d^2 / d^2 with the one-sided normal quantile z (1.645 for .95); inf without a difference.

    Raises ValueError when the variance is negative, a figure is not finite, or the probability is not above .5 and
    below 1.

    >>> pair_items(variance=0.25, difference=0.1)
    67.6...
    """
    if not (0.0 <= variance < math.inf and math.isfinite(difference)):
        raise ValueError(f"a variance of {variance!r} and a difference of {difference!r} are no finite figures")
    z = _quantile(probability)
    return z * z * variance / difference**2 if difference else math.inf


def against_leader(
    outcomes: ArrayLike, leader: int | None = None, probability: float = 0.95, *, clusters: Labels | None = None
) -> tuple[PairItems, ...]:
    """`PairItems` of every prompt of ``outcomes`` [N, M], by column, against ``leader`` (None: the first on top).

    The leader itself stands with difference, variance and needed 0. Where a prompt is ahead of a ``leader`` that was
    named, its difference is below 0 and the number that of items to have it ahead again. The top two are the leader
    and the prompt with the smallest difference.

    Missing outcomes: each pair on the items that both have; only the choice of a leader needs complete items. With
    ``clusters`` [N] the variance is that of whole clusters per item, and new items are taken to come in such clusters.
    Raises ValueError as `stats.leader_tests.leader_tests` and `pair_items` do.

    >>> [pair.items for pair in against_leader([[1, 0, 1]] * 30 + [[0, 1, 1]] * 10 + [[1, 1, 0]] * 5)]
    [71, 5, 1]
    """
    values = as_outcomes(outcomes)
    first = leaders(values)[0] if leader is None else leader
    if first != int(first) or not 0 <= first < values.shape[1]:
        raise ValueError(f"the leader must be a column from 0 to {values.shape[1] - 1}, got {leader!r}")
    _quantile(probability)
    return tuple(_pair(values, int(first), prompt, probability, clusters) for prompt in range(values.shape[1]))


def winner_items(
    outcomes: ArrayLike,
    probability: float = 0.95,
    *,
    clusters: Labels | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> WinnerItems:
    """New items until the observed winner of ``outcomes`` [N, M] is on top of all with ``probability``.

    The Gaussian form leaves ties of small n out of account; it is meant for dozens of items or more. The k of the same
    dataset follows from n, since only the scale of Z differs: (1/k - 1/N) N/(N - 1) = 1/n. Missing outcomes: only items
    with an outcome of every prompt count. ``clusters`` as in `against_leader` (for k, clusters are no longer whole).

    Raises ValueError as `stats.sign_flip.blocks` does, when the probability is not above .5 and below 1, or draws < 1.

    >>> winner_items([[1, 0]] * 30 + [[0, 1]] * 10 + [[1, 1]] * 60).items
    25
    """
    _quantile(probability)
    _check_draws(draws)
    data = blocks(outcomes, clusters)
    means, winners = data.means, leaders(outcomes)
    if len(winners) > 1:
        return WinnerItems(None, math.inf, float(data.n), data.n, data.left_out, probability)
    own = winners[0]
    centred, _ = _centred(outcomes, clusters)
    variances = ((centred[:, [own]] - centred) ** 2).sum(axis=0) / data.n
    others = np.flatnonzero(np.arange(means.size) != own)
    pairs = [pair_items(float(variances[i]), float(means[own] - means[i]), probability) for i in others]
    needed = max(pairs, default=0.0)
    if others.size > 1:
        noise = _noise(outcomes, clusters, draws, seed)
        roots = ((noise[:, others] - noise[:, [own]]) / (means[own] - means[others])).max(axis=1)
        needed = max(needed, float(np.quantile(roots, probability, method="inverted_cdf")) ** 2)
    k = 1.0 / ((data.n - 1) / (data.n * needed) + 1.0 / data.n) if needed else 0.0
    return WinnerItems(own, needed, k, data.n, data.left_out, probability)


def _pair(values: Floats, first: int, prompt: int, probability: float, clusters: Labels | None) -> PairItems:
    both = values[:, [first, prompt]]
    n = int((~np.isnan(both).any(axis=1)).sum())
    if prompt == first:
        return PairItems(prompt, n, 0.0, 0.0, 0.0)
    if not n:
        return PairItems(prompt, 0, math.nan, math.nan, math.inf)
    centred, means = _centred(both, clusters)
    difference = float(means[0] - means[1])
    variance = float(((centred[:, 0] - centred[:, 1]) ** 2).sum()) / n
    return PairItems(prompt, n, difference, variance, pair_items(variance, difference, probability))


def _centred(outcomes: ArrayLike, clusters: Labels | None) -> tuple[Floats, Floats]:
    """([G, M] the sums within clusters less what the means [M] make them expect, the means), of the complete items."""
    values = as_outcomes(outcomes)
    data = blocks(values, clusters)
    # Sizes come from a column of ones that is missing where the items are.
    ones = np.where(np.isnan(values).any(axis=1), np.nan, 1.0)[:, None]
    sizes = blocks(ones, clusters).sums
    return data.sums / data.scale - sizes * data.means, data.means


def _noise(outcomes: ArrayLike, clusters: Labels | None, draws: int, seed: int) -> Floats:
    """[draws, M], normal vectors with the covariance of the items (sums over clusters, per item)."""
    _check_draws(draws)
    centred, means = _centred(outcomes, clusters)
    # Different prompts in an order that follows from their outcomes alone: each meets the same noise in every column, and
    # prompts with the same outcomes have one between them.
    different, column = np.unique(np.vstack([means, centred]), axis=1, return_inverse=True)
    scaled = different[1:] / math.sqrt(blocks(outcomes).n)
    noise = normal_root(scaled.T @ scaled) @ standard_normal(scaled.shape[1], draws, seed)
    return noise[column.reshape(-1)].T


def _check_draws(draws: int) -> None:
    if draws < 1:
        raise ValueError(f"there must be at least one draw, got {draws!r}")


def _quantile(probability: float) -> float:
    if not 0.5 < probability < 1.0:
        raise ValueError(f"the probability must be above 0.5 and below 1, got {probability!r}")
    return NormalDist().inv_cdf(probability)


def _whole(needed: float) -> int | None:
    return None if math.isinf(needed) else max(math.ceil(needed - _NEGLIGIBLE), 1)
