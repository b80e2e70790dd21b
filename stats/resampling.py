"""Bootstrap over items: what the prompts' means would have been on other items like these.

A draw takes N items with replacement (or, where rows of one case belong together, as many clusters as there are). It is
a row of weights, how often each item was taken, and the same weights serve all prompts: their means on B draws are one
matrix product, paired by item, and every statistic of the means follows from that. For outcomes with few decimals the
products are sums of whole numbers, so that rankings of the draws tie as real ones do.

The draws speak of new items, not of other seeds, and not of which prompt is the best: the share of draws that a prompt
wins takes its luck on these items for granted (see `stats.winner_curve`).

Sources: Efron (1979), Annals of Statistics 7, 1-26; for clusters Field and Welsh (2007), JRSS B 69, 369-390.

>>> outcomes = np.array([[1, 0], [1, 1], [0, 0], [1, 0]])
>>> boot = bootstrap(outcomes, draws=1000)
>>> boot.means.shape, boot.standard_errors.round(2)
((1000, 2), array([0.22, 0.22]))
>>> standard_errors(outcomes)
array([0.25, 0.25])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.clusters import Labels, cluster_sums
from stats.intervals import normal_quantile
from stats.subsets import as_outcomes, whole_steps

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

DRAWS = 10_000
"""Draws of a bootstrap, unless said otherwise."""

_CACHE_CELLS = 1 << 16
_TILE_CELLS = 1 << 21
_EXACT = 2**24  # whole numbers up to here are exact in float32


@dataclass(frozen=True)
class Bootstrap:
    """Means [draws, M] of M prompts on resampled items; nan where a draw took no item with an outcome of the prompt.

    units: how many items, or clusters of items, were resampled.
    """

    means: Floats
    units: int

    @property
    def standard_errors(self) -> Floats:
        """[M], the standard deviation of each prompt's means over the draws."""
        return np.array([column.std(ddof=1) if column.size > 1 else np.nan for column in self._known()])

    def percentiles(self, confidence: float = 0.95) -> Floats:
        """[M, 2], each prompt's percentile interval; ValueError when the confidence is not in (0, 1)."""
        normal_quantile(confidence)
        ends = (0.5 - confidence / 2.0, 0.5 + confidence / 2.0)
        return np.array([np.quantile(column, ends) if column.size else (np.nan, np.nan) for column in self._known()])

    def _known(self) -> list[Floats]:
        return [column[~np.isnan(column)] for column in self.means.T]


def bootstrap(outcomes: ArrayLike, draws: int = DRAWS, *, clusters: Labels | None = None, seed: int = 0) -> Bootstrap:
    """Means of every prompt of ``outcomes`` [N, M] (nan = missing) on ``draws`` resamples; the same every time for a seed.

    ``clusters`` [N] names the case that each row belongs to (epochs of one item, turns of one conversation); rows of a
    case are then taken together, and a mean is the sum over all rows taken, divided by their number.

    Raises ValueError on an infinite or empty matrix, fewer than two draws, or clusters of another length.

    >>> bootstrap([[1.0], [1.0], [0.0], [0.0]], clusters=["a", "a", "b", "b"], draws=400).standard_errors.round(1)
    array([0.4])
    """
    values = as_outcomes(outcomes)
    if draws < 2:
        raise ValueError(f"a spread needs at least two draws, got {draws!r}")
    present = ~np.isnan(values)
    steps, scale, exact = whole_steps(np.where(present, values, 0.0))
    sums, counts = cluster_sums(steps, clusters), cluster_sums(present.astype(np.float64), clusters)
    # Rows that all have the same outcomes present need no count for each prompt.
    shared = bool((counts == counts[:, :1]).all())
    columns = np.concatenate([sums, counts[:, :1] if shared else counts], axis=1)
    units, n_prompts = sums.shape
    largest = float(np.abs(columns).max()) * units
    columns = columns.astype(np.float32) if exact and largest < _EXACT else columns
    means, at = np.empty((draws, n_prompts)), 0
    for weights in _weights(units, draws, seed, columns.dtype):
        totals = weights @ columns
        with np.errstate(invalid="ignore", divide="ignore"):
            np.divide(
                totals[:, :n_prompts],
                totals[:, n_prompts:] * float(scale),
                out=means[at : at + len(weights)],
                dtype=np.float64,
            )
        at += len(weights)
    return Bootstrap(means, units)


def standard_errors(outcomes: ArrayLike, *, clusters: Labels | None = None) -> Floats:
    """[M], the standard error of each prompt's mean over items, for new items; without resampling.

    s / sqrt(n) with s the deviation over the n items that have an outcome, n - 1 in it. With ``clusters`` [N] rows of
    one case count as one: sqrt(G/(G-1) sum over the G cases of (sum of their deviations from the mean)^2) / n (Liang and
    Zeger (1986), Biometrika 73, 13-22, with the usual factor). nan with fewer than two items, or cases.

    Raises ValueError as `bootstrap` does.

    >>> standard_errors([[1.0], [0.0], [1.0], [0.0]]).round(3)
    array([0.289])
    >>> standard_errors([[1.0], [1.0], [0.0], [0.0]], clusters=[7, 7, 8, 8])
    array([0.5])
    """
    values = as_outcomes(outcomes)
    present = ~np.isnan(values)
    n = present.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(present, values, 0.0).sum(axis=0) / n
        deviations = cluster_sums(np.where(present, values - means, 0.0), clusters)
        units = (cluster_sums(present.astype(np.float64), clusters) > 0.0).sum(axis=0)
        errors: Floats = np.sqrt((deviations**2).sum(axis=0) * units / (units - 1.0)) / n
    errors[units < 2] = np.nan
    return errors


def _weights(units: int, draws: int, seed: int, kind: np.dtype[np.floating]) -> Iterator[NDArray[np.floating]]:
    """Tiles [rows, units]: how often each unit is taken in a draw of as many, with replacement; overwritten by the next.

    From halves of raw 64-bit outputs of PCG64, whose stream never changes between versions of numpy. A unit is taken
    with probability 1 / units within 2^-32.
    """
    stream = np.random.PCG64(seed)
    part = max(1, _CACHE_CELLS // units)
    rows = part * max(1, _TILE_CELLS // (part * units))
    weights = np.empty((min(rows, draws), units), dtype=kind)
    for begin in range(0, draws, rows):
        tile = weights[: draws - begin]
        # Small parts, because counting is fast within the cache, and few products of large tiles.
        for at in range(0, len(tile), part):
            n = min(part, len(tile) - at)
            raw = stream.random_raw((n * units + 1) // 2).astype("<u8", copy=False).view("<u4")[: n * units]
            taken = ((raw.astype(np.uint64) * np.uint64(units)) >> np.uint64(32)).astype(np.int64).reshape(n, units)
            taken += np.arange(n)[:, None] * units
            tile[at : at + n] = np.bincount(taken.reshape(-1), minlength=n * units).reshape(n, units)
        yield tile
