"""Agreement between rankings of the same prompts: tau-b, rho, and who is on top.

Rankings come as fair ranks [C, M] (1 = best, ties averaged, nan = not ranked; see `stats.ranks`). Between two of them:

tau_b: Kendall's tau-b; pairs of prompts that either ranking ties are taken out of its denominator.
rho: Spearman's rho, the correlation of the fair ranks.
top1: the probability that both crown the same prompt, each breaking its own ties by a fair lot: sum of w_a w_b with
    weights 1/t for the t prompts that share the top. Two rankings that tie the same two prompts on top agree with 1/2.
topm: the expected share of the first m that both have in common, ties broken in the same way.

tau_b and rho are taken over the prompts that both rank, and are nan where undefined: fewer than two such prompts, or
all of them tied in one of the rankings.

Sources: Kendall (1945), Biometrika 33, 239-251; Spearman (1904), American Journal of Psychology 15, 72-101; the
jackknife over seeds after Arvesen (1969), Annals of Mathematical Statistics 40, 2076-2100.

>>> import numpy as np
>>> ranks = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [1.5, 1.5, 3.0]])
>>> both = all_pairs(ranks, m=2)
>>> both.tau_b.round(3)[0], both.rho.round(3)[0], both.top1[0], both.topm[0]
(array([1.   , 0.333, 0.816]), array([1.   , 0.5  , 0.866]), array([1. , 0. , 0.5]), array([1., 1., 1.]))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.ranks import fair_ranks, ranked_pairs, tied_pairs, top_set

Floats = NDArray[np.float64]
Float32s = NDArray[np.float32]
Indices = NDArray[np.int64]

MAX_MATRIX_CONDITIONS = 5000
"""Most rankings that `all_pairs` compares, because its matrices grow with the square of that."""

_TILE_CELLS = 1 << 23
_EXACT_PAIRS = 2**24  # whole numbers up to here are exact in float32


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
    agree. Raises ValueError when m is not in 1..M or C is above `MAX_MATRIX_CONDITIONS`; means over more rankings come
    from `mean_over_pairs`, which needs no matrix.
    """
    values = _as_ranks(ranks)
    return between(values, values, m)


def between(ranks_a: ArrayLike, ranks_b: ArrayLike, m: int) -> Agreement:
    """Agreement of each ranking in ``ranks_a`` [A, M] with each in ``ranks_b`` [B, M]; raises as `all_pairs` does."""
    a, b = _as_ranks(ranks_a), _as_ranks(ranks_b)
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"rankings of {a.shape[1]} and of {b.shape[1]} prompts cannot be compared")
    if max(len(a), len(b)) > MAX_MATRIX_CONDITIONS:
        raise ValueError(
            f"at most {MAX_MATRIX_CONDITIONS:,} rankings are compared pair by pair, got {max(len(a), len(b)):,}"
        )
    return Agreement(
        tau_b=_tau_b(a, b),
        rho=_rho(a, b),
        top1=top_set(a, 1) @ top_set(b, 1).T,
        topm=top_set(a, m) @ top_set(b, m).T / m,
    )


def mean_over_pairs(ranks: ArrayLike, m: int) -> MeanAgreement:
    """The mean of each figure over all pairs of different rankings in ``ranks`` [C, M], without a C x C matrix.

    Exactly what the mean over the defined cells above the diagonal of `all_pairs` is, in time that grows with C. Where
    rankings lack prompts it is taken from those matrices, so C must then stay within `MAX_MATRIX_CONDITIONS`.

    Raises ValueError when m is not in 1..M.
    """
    values = _as_ranks(ranks)
    top1, topm = top_set(values, 1), top_set(values, m)
    if np.isnan(values).any():
        whole = all_pairs(values, m)
        above = np.triu_indices(len(values), 1)
        return MeanAgreement(
            *(_mean(figure[above]) for figure in (whole.tau_b, whole.rho, whole.top1, whole.topm)),
        )
    untied = (ranked_pairs(values) - tied_pairs(values)).astype(np.float64)
    centred = _centred(values)
    spread = (centred**2).sum(axis=1)
    defined = spread > 0.0
    unit = centred[defined] / np.sqrt(spread[defined])[:, None]
    total = 0.0
    if defined.any():
        weights = 1.0 / np.sqrt(untied[defined])
        width = max(1, _TILE_CELLS // len(weights))
        total = sum(float(((weights @ signs) ** 2).sum()) for signs in _sign_tiles(values[defined], width))
    return MeanAgreement(
        tau_b=_pair_mean(total, float(defined.sum()), int(defined.sum())),
        rho=_pair_mean(float((unit.sum(axis=0) ** 2).sum()), float(defined.sum()), int(defined.sum())),
        top1=_pair_mean(float((top1.sum(axis=0) ** 2).sum()), float((top1**2).sum()), len(values)),
        topm=_pair_mean(float((topm.sum(axis=0) ** 2).sum() / m), float((topm**2).sum() / m), len(values)),
    )


def summarise(matrix: ArrayLike, pairs: ArrayLike, seeds: ArrayLike) -> PairSummary:
    """One figure's ``matrix`` [C, C] over the given ``pairs`` [P, 2] of conditions, whose seeds are ``seeds`` [C].

    Raises ValueError when a pair names a condition that does not exist.
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


def _tau_b(a: Floats, b: Floats) -> Floats:
    n_prompts = a.shape[1]
    if n_prompts * (n_prompts - 1) // 2 >= _EXACT_PAIRS:
        raise ValueError(f"too many prompts to compare pair by pair: {n_prompts:,}")
    agreed = np.zeros((len(a), len(b)), dtype=np.float32)
    width = max(1, _TILE_CELLS // max(len(a), len(b), 1))
    missing = bool(np.isnan(a).any() or np.isnan(b).any())
    untied_a, untied_b = np.zeros_like(agreed), np.zeros_like(agreed)
    for of_a, of_b in zip(_sign_tiles(a, width), _sign_tiles(b, width), strict=True):
        if not missing:
            agreed += of_a @ of_b.T
            continue
        known_a, known_b = (~np.isnan(of_a)).astype(np.float32), (~np.isnan(of_b)).astype(np.float32)
        signs_a, signs_b = np.nan_to_num(of_a), np.nan_to_num(of_b)
        agreed += signs_a @ signs_b.T
        untied_a += np.abs(signs_a) @ known_b.T
        untied_b += known_a @ np.abs(signs_b).T
    if missing:
        product = untied_a.astype(np.float64) * untied_b
    else:
        product = np.outer(*(ranked_pairs(x) - tied_pairs(x) for x in (a, b))).astype(np.float64)
    return _quotient(agreed.astype(np.float64), product)


def _rho(a: Floats, b: Floats) -> Floats:
    if not (np.isnan(a).any() or np.isnan(b).any()):
        return _correlation(a, b)
    # What two rankings have in common depends on which prompts each lacks, so it is done by groups of like rankings.
    result = np.full((len(a), len(b)), np.nan)
    for rows_a, ranked_a in _groups(a):
        for rows_b, ranked_b in _groups(b):
            common = ranked_a & ranked_b
            if common.sum() > 1:
                part = (fair_ranks(-a[np.ix_(rows_a, common)]), fair_ranks(-b[np.ix_(rows_b, common)]))
                result[np.ix_(rows_a, rows_b)] = _correlation(*part)
    return result


def _correlation(a: Floats, b: Floats) -> Floats:
    a, b = _centred(a), _centred(b)
    return _quotient(a @ b.T, np.outer((a**2).sum(axis=1), (b**2).sum(axis=1)))


def _centred(ranks: Floats) -> Floats:
    """Twice the ranks less twice their mean: whole numbers."""
    centred: Floats = 2.0 * ranks - (ranks.shape[1] + 1.0)
    return centred


def _groups(ranks: Floats) -> list[tuple[Indices, NDArray[np.bool_]]]:
    """(rows, which prompts they rank) for each set of prompts that is ranked by some row."""
    patterns, of_row = np.unique(~np.isnan(ranks), axis=0, return_inverse=True)
    flat = of_row.reshape(-1)
    return [(np.flatnonzero(flat == group), patterns[group]) for group in range(len(patterns))]


def _sign_tiles(ranks: Floats, width: int) -> Iterator[Float32s]:
    """Blocks [C, pairs] of the signs of all pairs of prompts: 1 first before second, -1 after, 0 tied, nan unranked."""
    first, second = np.triu_indices(ranks.shape[1], 1)
    doubled = (2.0 * ranks).astype(np.float32)
    for begin in range(0, len(first), width):
        part = slice(begin, begin + width)
        yield np.sign(doubled[:, second[part]] - doubled[:, first[part]])


def _quotient(numerator: Floats, product: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        quotient: Floats = np.where(product > 0.0, numerator / np.sqrt(product), np.nan)
    return quotient


def _pair_mean(squared_sum: float, own: float, n: int) -> float | None:
    # Rounding must not carry a perfect agreement past 1.
    return max(-1.0, min((squared_sum - own) / (n * (n - 1)), 1.0)) if n > 1 else None


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None


def _as_ranks(ranks: ArrayLike) -> Floats:
    values = np.asarray(ranks, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(f"ranks must be conditions x prompts, got the shape {values.shape}")
    return values
