"""Sign flips: what differences between prompts on the same items look like when there is none.

If two prompts are equally good, each item's difference is as likely to be positive as negative. Flipping the signs of
the items at random, the same flip for all prompts, gives the distribution of the differences of their means under
that hypothesis, with the dependence between prompts that share items kept as it is. For 0/1 outcomes and two prompts
this is the exact McNemar test; for other numbers its like, without ranks and without normality. Items of one cluster
(repeats of a case, turns of one conversation) flip together: only clusters need to be independent.

Items on which all prompts agree change nothing.

>>> sign_flip_test([1, 1, 1, 1, 1, -1, 0, 0])
SignFlipTest(p_value=0.21875, clusters=6, method='exact')
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.clusters import Labels, cluster_sums
from stats.subsets import as_outcomes, whole_steps

Floats = NDArray[np.float64]

DRAWS: Final = 9_999
"""Flips that a simulated null distribution comes from, unless said otherwise; with the data themselves they are 10,000."""

SAME: Final = 1e-9
"""Statistics this close count as equal, as rounding may part what is the same."""

_EXACT_CELLS: Final = 1 << 25
_TILE_CELLS: Final = 1 << 22
_CACHED_CELLS: Final = 1 << 17
_WHOLE_IN_FLOAT32: Final = 1 << 24


@dataclass(frozen=True)
class Blocks:
    """Outcomes of M prompts on the complete items, summed within clusters, [G, M]; an item alone is its own cluster.

    sums: in steps of 1/scale: whole numbers where ``exact``. n: the complete items. left_out: items without an
    outcome of every prompt; they are in no figure.
    """

    sums: Floats
    scale: int
    exact: bool
    n: int
    left_out: int

    @property
    def means(self) -> Floats:
        """[M], the mean outcome over the complete items."""
        means: Floats = self.sums.sum(axis=0) / (self.scale * self.n)
        return means


@dataclass(frozen=True)
class SignFlipTest:
    """Two-sided p-value of "the mean difference is 0"; ``clusters``: how many have a difference other than 0."""

    p_value: float
    clusters: int
    method: Literal["exact", "simulated"]


def blocks(outcomes: ArrayLike, clusters: Labels | None = None) -> Blocks:
    """The complete items of ``outcomes`` [N, M], summed within ``clusters`` [N] (any labels; None: items are independent).

    Raises ValueError when the matrix is empty or holds an infinity, no item has an outcome of every prompt, or there is
    not one cluster label an item.

    >>> blocks([[1, 0], [1, 1], [0, float("nan")]], clusters=["a", "a", "b"]).sums
    array([[2., 1.]])
    """
    values = as_outcomes(outcomes)
    complete = ~np.isnan(values).any(axis=1)
    if not complete.any():
        raise ValueError("no item has an outcome of every prompt")
    steps, scale, exact = whole_steps(values[complete])
    if clusters is not None and len(clusters) != len(values):
        raise ValueError(f"{len(values)} items need as many cluster labels, got {len(clusters)}")
    labels = None if clusters is None else [clusters[row] for row in np.flatnonzero(complete).tolist()]
    return Blocks(cluster_sums(steps, labels), scale, exact, int(complete.sum()), int((~complete).sum()))


def differing(sums: Floats) -> Floats:
    """The rows of ``sums`` [G, M] on which prompts differ; the others take no part in any comparison.

    >>> differing(np.array([[1.0, 1.0], [1.0, 0.0]]))
    array([[1., 0.]])
    """
    kept: Floats = sums[(sums != sums[:, :1]).any(axis=1)]
    return kept


def root_squares(sums: Floats) -> Floats:
    """[M, M], the standard error that flips give the sum over g of x_gi - x_gl: the root of its sum of squares.

    It is the same under every flip. Two prompts with the same outcomes have 0.

    >>> root_squares(np.array([[1.0, 0.0], [0.0, 4.0], [1.0, 1.0]])).round(3)
    array([[0.   , 4.123],
           [4.123, 0.   ]])
    """
    squares = np.array([((sums - sums[:, [prompt]]) ** 2).sum(axis=0) for prompt in range(sums.shape[1])])
    roots: Floats = np.sqrt(squares)
    return roots


def flipped_sums(sums: Floats, draws: int = DRAWS, seed: int = 0) -> Floats:
    """[M, B], the sum of each column of ``sums`` [G, M] under B flips of its rows, the unflipped one not among them.

    All 2^G - 1 others where these are at most ``draws``; otherwise ``draws`` random ones from one seeded stream, the
    same every time. Raises ValueError when draws < 1 or the seed is negative.

    >>> flipped_sums(np.array([[1.0, 2.0]]))
    array([[-1.],
           [-2.]])
    """
    if draws < 1:
        raise ValueError(f"there must be at least one flip, got {draws!r}")
    if seed < 0:
        raise ValueError(f"a seed must be a whole number, 0 or more, got {seed!r}")
    n_rows, n_columns = sums.shape
    if n_rows < 62 and 2**n_rows - 1 <= draws:
        codes = np.arange(1, 2**n_rows, dtype=np.int64)
        flips = 1.0 - 2.0 * (codes[:, None] >> np.arange(n_rows) & 1)
        return np.ascontiguousarray((flips @ sums).T)
    exact = np.array_equal(sums, np.round(sums)) and float(np.abs(sums).sum(axis=0).max()) < _WHOLE_IN_FLOAT32
    # Whole numbers up to 2^24 are exact in single precision too.
    kind: type[np.floating[Any]] = np.float32 if exact else np.float64
    values, total = sums.astype(kind), sums.sum(axis=0)
    words = -(-n_rows // 64)
    stream, rows = np.random.PCG64(seed), max(1, _TILE_CELLS // n_rows)
    result = np.empty((n_columns, draws))
    for begin in range(0, draws, rows):
        size = min(rows, draws - begin)
        raw = stream.random_raw(size * words).astype("<u8").reshape(size, words).view(np.uint8)
        kept = np.unpackbits(raw, axis=1, count=n_rows).astype(kind)
        result[:, begin : begin + size] = (2.0 * (kept @ values).astype(np.float64) - total).T
    return result


def largest_leads(flipped: Floats, own: int, errors: Floats) -> Floats:
    """[B], the largest lead of another column over ``own`` under each flip, in its own standard error.

    ``flipped`` [M, B] as from `flipped_sums`; ``errors`` [M] are those against ``own``, inf for a column that takes no
    part. For the data themselves give their sums as [M, 1]. -inf when no column takes part.

    >>> largest_leads(np.array([[1.0, -1.0], [3.0, 0.0], [9.0, 9.0]]), 0, np.array([np.inf, 2.0, np.inf]))
    array([1. , 0.5])
    """
    others = np.flatnonzero(np.isfinite(errors))
    flips = flipped.shape[1]
    largest = np.full(flips, -np.inf)
    if not others.size:
        return largest
    weights, part = 1.0 / errors[others, None], max(1, _CACHED_CELLS // others.size)
    for begin in range(0, flips, part):
        here = flipped[:, begin : begin + part]
        leads = here[others]
        leads -= here[own]
        leads *= weights
        largest[begin : begin + part] = leads.max(axis=0)
    return largest


def allowed(confidence: float, flips: int) -> int:
    """How many of ``flips`` + 1 equally likely outcomes, the data's among them, may be as extreme as the rejected ones.

    Raises ValueError when the confidence is not in [0.5, 1).

    >>> allowed(0.95, 99), allowed(0.95, 9)
    (5, 0)
    """
    if not 0.5 <= confidence < 1.0:
        raise ValueError(f"confidence must be at least 0.5 and below 1, got {confidence!r}")
    return math.floor((1.0 - confidence) * (flips + 1) + SAME)


def critical(largest: Floats, confidence: float) -> float:
    """The value that a statistic must exceed, from its values under all flips but the data's own; inf if none can be.

    A statistic above it has p = (1 + flips at least as large) / (flips + 1) <= 1 - confidence, and no other has.

    Raises ValueError unless ``confidence`` is in [0.5, 1).

    >>> critical(np.arange(99.0), 0.95), critical(np.arange(9.0), 0.95)
    (94.0, inf)
    """
    number = allowed(confidence, largest.size)
    if not number:
        return math.inf
    return float(np.partition(largest, largest.size - number)[largest.size - number])


def sign_flip_test(
    differences: ArrayLike, clusters: Labels | None = None, draws: int = DRAWS, seed: int = 0
) -> SignFlipTest:
    """Whether the mean of paired ``differences`` [N] (nan = missing, left out) is other than 0, two-sided.

    Exact over all flips when the differences are whole multiples of a step (0/1 outcomes, scores with few decimals)
    and there are not too many steps: sums build up by p <- (p + p shifted by the next difference) / 2. Otherwise from
    ``draws`` seeded flips, p = (1 + flips at least as extreme) / (draws + 1). 1 without any difference.

    Raises ValueError when a difference is infinite, all are missing, or the cluster labels do not match.

    Sources: Fisher (1935), The Design of Experiments, section 21; for the sum over clusters, Hemerik, Goeman and Finos
    (2020), Journal of the Royal Statistical Society B 82, 841-864.

    >>> sign_flip_test([0.5, 1.0, 0.25])
    SignFlipTest(p_value=0.25, clusters=3, method='exact')
    >>> sign_flip_test([1, 1, 1, 1], clusters=[0, 0, 1, 1]).p_value
    0.5
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"differences must be one row with at least one of them, got the shape {values.shape}")
    summed = blocks(values[:, None], clusters)
    sums = summed.sums[summed.sums != 0.0]
    if not sums.size:
        return SignFlipTest(1.0, 0, "exact")
    if summed.exact:
        steps = np.abs(sums).astype(np.int64)
        steps //= np.gcd.reduce(steps)
        if int(steps.sum()) * steps.size <= _EXACT_CELLS:
            return SignFlipTest(_exact(steps, sums > 0.0), int(sums.size), "exact")
    flipped = np.abs(flipped_sums(sums[:, None], draws, seed)[0])
    observed = abs(float(sums.sum()))
    extreme = int((flipped >= observed - SAME * float(np.abs(sums).sum())).sum())
    everything = sums.size < 62 and flipped.size == 2**sums.size - 1
    return SignFlipTest((1 + extreme) / (flipped.size + 1), int(sums.size), "exact" if everything else "simulated")


def _exact(steps: NDArray[np.int64], positive: NDArray[np.bool_]) -> float:
    """The share of flips whose positive steps sum to as much as the observed ones, or to as little."""
    total, reached = int(steps.sum()), 0
    chances = np.zeros(total + 1)
    chances[0] = 1.0
    for step in np.sort(steps):
        before = chances[: reached + 1].copy()
        reached += int(step)
        chances[: before.size] = before / 2.0
        chances[step : reached + 1] += before / 2.0
    up = int(steps[positive].sum())
    tail = float(chances[max(up, total - up) :].sum())
    return 1.0 if 2 * up == total else min(2.0 * tail, 1.0)
