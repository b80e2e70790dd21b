"""Agreement between rankings of the same prompts: tau-b, rho, and who is on top.

Rankings come as fair ranks [C, M] (1 = best, ties averaged, nan = not ranked; see `stats.ranks`). Between two of them:

tau_b, rho: Kendall's tau-b and Spearman's rho, over the prompts that both rank; see `stats.rank_correlation`.
top1: the probability that both crown the same prompt, each breaking its own ties by a fair lot: sum of w_a w_b with
    weights 1/t for the t prompts that share the top. Two rankings that tie the same two prompts on top agree with 1/2.
topm: the expected share of the first m that both have in common, ties broken in the same way.

The jackknife over seeds is after Arvesen (1969), Annals of Mathematical Statistics 40, 2076-2100.

>>> import numpy as np
>>> ranks = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [1.5, 1.5, 3.0]])
>>> both = all_pairs(ranks, m=2)
>>> both.tau_b.round(3)[0], both.rho.round(3)[0], both.top1[0], both.topm[0]
(array([1.   , 0.333, 0.816]), array([1.   , 0.5  , 0.866]), array([1. , 0. , 0.5]), array([1., 1., 1.]))
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.rank_correlation import (
    kendall_tau_b,
    mean_kendall_tau_b,
    mean_off_diagonal,
    mean_spearman_rho,
    spearman_rho,
)
from stats.ranks import as_fair_ranks, top_set

Floats = NDArray[np.float64]

MAX_MATRIX_CONDITIONS = 5000
"""Most rankings that `all_pairs` compares, because its matrices grow with the square of that."""

_BLOCK = 512


@dataclass(frozen=True)
class Agreement:
    """Agreement of each of A rankings with each of B, [A, B] a figure; nan where undefined."""

    tau_b: Floats
    rho: Floats
    top1: Floats
    topm: Floats


@dataclass(frozen=True)
class MeanAgreement:
    """Means over all pairs of different rankings, those on which a figure is undefined left out; None without any."""

    tau_b: float | None
    rho: float | None
    top1: float | None
    topm: float | None


@dataclass(frozen=True)
class PairSummary:
    """One figure over pairs of conditions; pairs on which it is undefined are counted and left out.

    std_over_pairs: sample standard deviation (n - 1) of the pairs' values. The pairs share seeds, so this describes
    them and is no error of the mean. standard_error: of the mean, by leaving out one seed after the other; None with
    fewer than three seeds.
    """

    mean: float | None
    std_over_pairs: float | None
    standard_error: float | None
    pairs: int
    undefined: int


def all_pairs(ranks: ArrayLike, m: int) -> Agreement:
    """Agreement of every ranking in ``ranks`` [C, M] with every other, [C, C], symmetric, in matrix products.

    The diagonal of top1 and topm is below 1 where a ranking ties prompts across the border: two fair lots need not
    agree. Raises ValueError unless these are fair ranks, when m is not in 1..M or when C is above
    `MAX_MATRIX_CONDITIONS`; means over more rankings come from `mean_over_pairs`, which needs no matrix.

    >>> all_pairs([[1.0, 2.5, 2.5], [2.0, 1.0, 3.0]], m=2).topm
    array([[0.75, 0.75],
           [0.75, 1.  ]])
    """
    return between(ranks, ranks, m)


def between(ranks_a: ArrayLike, ranks_b: ArrayLike, m: int) -> Agreement:
    """Agreement of each ranking in ``ranks_a`` [A, M] with each in ``ranks_b`` [B, M]; raises as `all_pairs` does.

    >>> between([[1.0, 2.0, 3.0]], [[3.0, 2.0, 1.0], [1.0, 2.5, 2.5]], m=1).top1
    array([[0., 1.]])
    """
    a = as_fair_ranks(ranks_a)
    b = a if ranks_b is ranks_a else as_fair_ranks(ranks_b)
    if max(len(a), len(b)) > MAX_MATRIX_CONDITIONS:
        raise ValueError(
            f"at most {MAX_MATRIX_CONDITIONS:,} rankings are compared pair by pair, got {max(len(a), len(b)):,}"
        )
    return _agreement(a, b, m)


def mean_over_pairs(ranks: ArrayLike, m: int) -> MeanAgreement:
    """The mean of each figure over all pairs of different rankings in ``ranks`` [C, M], without a C x C matrix.

    Exactly what the mean over the defined cells above the diagonal of `all_pairs` is. Time grows with C; with its
    square where rankings lack prompts, because what two have in common is then another matter for every pair.

    Raises ValueError unless these are fair ranks, or when m is not in 1..M.

    >>> mean_over_pairs([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [1.5, 1.5, 3.0]], m=2)
    MeanAgreement(tau_b=0.655..., rho=0.744..., top1=0.333..., topm=1.0)
    """
    values = as_fair_ranks(ranks)
    if np.isnan(values).any():
        return _mean_of_blocks(values, m)
    return MeanAgreement(
        mean_kendall_tau_b(values),
        mean_spearman_rho(values),
        *(mean_top_overlap(top_set(values, size)) for size in (1, m)),
    )


def mean_top_overlap(weights: ArrayLike) -> float | None:
    """The mean of topm over all pairs of different rankings, from their top sets' ``weights`` [C, M]; top1 with m = 1.

    The weights come from `stats.ranks.top_set`; a row sums to m, and rows of nan, without a top set, must be left out.
    None with one ranking. Never raises on such weights.

    >>> mean_top_overlap(top_set([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [1.5, 1.5, 3.0]], m=1))
    0.333...
    """
    shares = np.asarray(weights, dtype=np.float64)
    m = round(float(shares[0].sum())) if len(shares) else 1
    return mean_off_diagonal(float((shares.sum(axis=0) ** 2).sum()) / m, float((shares**2).sum()) / m, len(shares))


def summarise(matrix: ArrayLike, pairs: ArrayLike, seeds: ArrayLike) -> PairSummary:
    """One figure's ``matrix`` [C, C] over the given ``pairs`` [P, 2] of conditions, whose seeds are ``seeds`` [C].

    With S seeds and t_s the mean over the pairs without seed s, standard_error = sqrt((S-1)/S sum of (t_s - mean t)^2):
    the jackknife of a mean over pairs, which counts their common seeds and is too large rather than too small (Efron
    and Stein (1981), Annals of Statistics 9, 586-596).

    Raises ValueError when a pair names a condition that does not exist.

    >>> summarise([[1.0, 0.2, 0.4], [0.2, 1.0, 0.9], [0.4, 0.9, 1.0]], [[0, 1], [0, 2], [1, 2]], seeds=[7, 8, 9])
    PairSummary(mean=0.5, std_over_pairs=0.360..., standard_error=0.416..., pairs=3, undefined=0)
    """
    cells, positions = np.asarray(matrix, dtype=np.float64), np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    of_seed = np.asarray(seeds)
    if cells.shape != (len(of_seed), len(of_seed)):
        raise ValueError(f"{len(of_seed)} seeds need a square matrix of that size, got the shape {cells.shape}")
    if positions.size and not (positions.min() >= 0 and positions.max() < len(of_seed)):
        raise ValueError("a pair names a condition that does not exist")
    values = cells[positions[:, 0], positions[:, 1]]
    known = ~np.isnan(values)
    values, ends = values[known], of_seed[positions[known]]
    undefined = int((~known).sum())
    if not values.size:
        return PairSummary(None, None, None, 0, undefined)
    spread = float(values.std(ddof=1)) if values.size > 1 else None
    return PairSummary(float(values.mean()), spread, _jackknife(values, ends), int(values.size), undefined)


def _jackknife(values: Floats, ends: NDArray[np.int64]) -> float | None:
    """Standard error of the mean over pairs, leaving out each seed with all its pairs."""
    names, at = np.unique(ends, return_inverse=True)
    first, second = at.reshape(ends.shape).T
    twice = np.where(first == second, 0.0, 1.0)
    touching = np.bincount(first, values, len(names)) + np.bincount(second, values * twice, len(names))
    left = len(values) - np.bincount(first, minlength=len(names)) - np.bincount(second, twice, len(names))
    if left.min() < 1:
        return None
    left_out = (values.sum() - touching) / left
    return float(np.sqrt((len(names) - 1) / len(names) * ((left_out - left_out.mean()) ** 2).sum()))


def _agreement(a: Floats, b: Floats, m: int) -> Agreement:
    tops = [(top_set(a, size), top_set(b, size)) for size in (1, m)]
    return Agreement(
        tau_b=kendall_tau_b(a, b),
        rho=spearman_rho(a, b),
        top1=tops[0][0] @ tops[0][1].T,
        topm=tops[1][0] @ tops[1][1].T / m,
    )


def _mean_of_blocks(ranks: Floats, m: int) -> MeanAgreement:
    """The means from `_BLOCK` rankings against as many others at a time."""
    names = ("tau_b", "rho", "top1", "topm")
    sums, counts = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0)
    blocks = [ranks[begin : begin + _BLOCK] for begin in range(0, len(ranks), _BLOCK)]
    for row, block in enumerate(blocks):
        for other in blocks[row:]:
            both = _agreement(block, other, m)
            for name in names:
                cells = getattr(both, name)
                cells = cells[np.triu_indices(len(block), 1)] if other is block else cells
                sums[name] += float(np.nansum(cells))
                counts[name] += int((~np.isnan(cells)).sum())
    return MeanAgreement(*(sums[name] / counts[name] if counts[name] else None for name in names))
