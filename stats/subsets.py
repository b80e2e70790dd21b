"""Seeded subsets of a dataset and the scores of prompts on them.

A condition is a pair (seed, k): the seed draws k of the N items without replacement, and every prompt is scored on
those same items. All conditions are resamples of one N x M outcome matrix, so further ones cost no generation.

>>> import numpy as np
>>> draw(seed=1, n_items=10, k=4)
array([2, 4, 7, 9])
>>> outcomes = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, np.nan]])
>>> scores = score_matrix(outcomes, [Condition(seed=1, k=3)])
>>> scores.sums, scores.counts, scores.means
(array([[2., 1.]]), array([[3, 2]]), array([[0.66666667, 0.5       ]]))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_DECIMALS = 6
_MOST_PARTS = 24
_TILE_CELLS = 1 << 22


@dataclass(frozen=True)
class Condition:
    """One resample: the seed of the draw (0 or more) and the number k of items drawn (1 or more).

    Raises ValueError outside those ranges.
    """

    seed: int
    k: int

    def __post_init__(self) -> None:
        if self.seed != int(self.seed) or self.seed < 0:
            raise ValueError(f"a seed must be a whole number, 0 or more, got {self.seed!r}")
        if self.k != int(self.k) or self.k < 1:
            raise ValueError(f"a subset needs at least one item, got k={self.k!r}")
        object.__setattr__(self, "seed", int(self.seed))
        object.__setattr__(self, "k", int(self.k))


@dataclass(frozen=True)
class ScoreMatrix:
    """Scores of M prompts under C conditions.

    units: [C, M], each prompt's sum of outcomes in steps of 1/scale: whole numbers, held exactly, where ``exact``.
    counts: [C, M], how many of the k items have an outcome of the prompt (its coverage).
    scale: 1 for 0/1 outcomes and whole numbers, 10 for outcomes with one decimal, and so on.
    exact: False where the outcomes have more decimals than that; ``units`` are then floating-point sums.
    """

    conditions: tuple[Condition, ...]
    units: Floats
    counts: Indices
    scale: int
    exact: bool

    @property
    def sums(self) -> Floats:
        """[C, M], the sum of outcomes; 0 where a prompt has none. Whole numbers for 0/1 outcomes."""
        return self.units / self.scale

    @property
    def means(self) -> Floats:
        """[C, M], the mean outcome over the items that have one; nan without any.

        Where ``exact``, each is one division of whole numbers: prompts with the same count of correct items on as many
        items have the same mean to the last bit, and others do not. Ranking these ranks the counts.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.units / (self.scale * self.counts)


def draw(seed: int, n_items: int, k: int) -> Indices:
    """The items (0-based, ascending) that ``seed`` draws: k of ``n_items``, without replacement.

    Draws are nested: a seed stands for one permutation of the items, and its subset of size k is the first k of that.
    Subsets of one seed and several k are therefore not independent. Only conditions of the same k and of different
    seeds are compared with each other (see `seed_pairs`).

    The permutation sorts raw 64-bit outputs of numpy's PCG64, whose stream never changes between versions, unlike
    that of numpy's ``permutation``.

    Raises ValueError when k is not in 1..n_items or the seed is negative.

    >>> set(draw(seed=3, n_items=10, k=2)) <= set(draw(seed=3, n_items=10, k=5))
    True
    """
    k = Condition(seed, k).k
    if k > n_items:
        raise ValueError(f"{k} of {n_items} items cannot be drawn without replacement")
    return np.sort(_permutation(seed, n_items)[:k])


def score_matrix(outcomes: ArrayLike, conditions: Sequence[Condition]) -> ScoreMatrix:
    """Scores of every prompt under every condition.

    ``outcomes`` is [N items, M prompts]: 0/1 or any finite numbers, nan where there is no outcome. A missing outcome
    lowers the prompt's coverage in the conditions that draw the item; it is not counted as 0.

    Raises ValueError when the matrix has no item, no prompt or an infinite value, or when a k is above N.

    >>> score_matrix([[1, 0], [1, 1]], [Condition(seed=0, k=2)]).means
    array([[1. , 0.5]])
    """
    values = as_outcomes(outcomes)
    n_items, n_prompts = values.shape
    for condition in conditions:
        if condition.k > n_items:
            raise ValueError(f"{condition.k} of {n_items} items cannot be drawn without replacement")
    order = {seed: _permutation(seed, n_items) for seed in {condition.seed for condition in conditions}}

    def masks() -> Iterator[Floats]:
        rows = _tile_rows(n_items)
        for begin in range(0, len(conditions), rows):
            part = conditions[begin : begin + rows]
            drawn = np.zeros((len(part), n_items))
            for row, condition in enumerate(part):
                drawn[row, order[condition.seed][: condition.k]] = 1.0
            yield drawn

    units, counts, scale, exact = _score(values, masks())
    return ScoreMatrix(tuple(conditions), units.reshape(-1, n_prompts), counts.reshape(-1, n_prompts), scale, exact)


def resampled_means(outcomes: ArrayLike, k: int, draws: int, seed: int = 0) -> Floats:
    """[draws, M], each prompt's mean outcome on ``draws`` independent k-subsets from one seeded stream; nan without any.

    For simulations, which need many subsets and none of them again by name; much faster than as many conditions.
    ``outcomes`` as in `score_matrix`, whose means tie as these do. Raises ValueError as that does, or when draws < 1.

    >>> resampled_means([[1, 0], [1, 1]], k=2, draws=3).shape
    (3, 2)
    """
    values = as_outcomes(outcomes)
    n_items = len(values)
    k = Condition(seed, k).k
    if k > n_items:
        raise ValueError(f"{k} of {n_items} items cannot be drawn without replacement")
    if draws < 1:
        raise ValueError(f"there must be at least one draw, got {draws!r}")

    def masks() -> Iterator[Floats]:
        stream, rows = np.random.PCG64(seed), _tile_rows(n_items)
        for begin in range(0, draws, rows):
            raw = stream.random_raw(min(rows, draws - begin) * n_items).reshape(-1, n_items)
            drawn = np.zeros(raw.shape)
            np.put_along_axis(drawn, np.argpartition(raw, k - 1, axis=1)[:, :k], 1.0, axis=1)
            yield drawn

    units, counts, scale, exact = _score(values, masks())
    return ScoreMatrix((), units, counts, scale, exact).means


def seed_pairs(conditions: Sequence[Condition]) -> Indices:
    """[P, 2], the positions of all pairs of conditions with the same k and different seeds, first before second.

    >>> seed_pairs([Condition(1, 5), Condition(2, 5), Condition(2, 9)])
    array([[0, 1]])
    """
    pairs = [
        (a, b)
        for a, one in enumerate(conditions)
        for b, other in enumerate(conditions[a + 1 :], start=a + 1)
        if one.k == other.k and one.seed != other.seed
    ]
    return np.array(pairs, dtype=np.int64).reshape(len(pairs), 2)


def as_outcomes(outcomes: ArrayLike) -> Floats:
    """The outcome matrix as float64 [N, M]; ValueError when it is not two-dimensional, empty or holds an infinity.

    >>> as_outcomes([[1, None]])
    array([[ 1., nan]])
    """
    values = np.asarray(outcomes, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"outcomes must be items x prompts with at least one of each, got the shape {values.shape}")
    if np.isinf(values).any():
        raise ValueError("an outcome must be a finite number, or nan where there is none")
    return values


def is_binary(outcomes: ArrayLike) -> bool:
    """Whether every outcome that is there is 0 or 1, and there is at least one.

    >>> is_binary([[1, 0], [float("nan"), 1]]), is_binary([[0.5, 1]])
    (True, False)
    """
    values = np.asarray(outcomes, dtype=np.float64)
    present = values[~np.isnan(values)]
    return present.size > 0 and bool(np.isin(present, (0.0, 1.0)).all())


def whole_steps(filled: Floats) -> tuple[Floats, int, bool]:
    """(steps, scale, exact): ``filled`` (no nan) as whole multiples of 1/scale: a power of ten, or 2 to 24 as means of
    so many 0/1 outcomes have it.

    ``exact`` is False, and ``filled`` comes back with scale 1, when its numbers have too many decimals for that or
    their sums would leave the whole numbers that float64 holds.

    >>> steps, scale, exact = whole_steps(np.array([[0.5], [0.25]]))
    >>> steps.ravel(), scale, exact
    (array([50., 25.]), 100, True)
    >>> whole_steps(np.array([1 / 3, 2 / 3]))
    (array([1., 2.]), 3, True)
    """
    for scale in (*(10**decimals for decimals in range(_DECIMALS + 1)), *range(2, _MOST_PARTS + 1)):
        steps = np.round(filled * scale)
        if np.array_equal(steps / scale, filled):
            exact = bool(np.abs(steps).sum(axis=0).max() < 2.0**53)
            return (steps, scale, True) if exact else (filled, 1, False)
    return filled, 1, False


def _permutation(seed: int, n_items: int) -> Indices:
    raw = np.random.PCG64(seed).random_raw(n_items)
    return np.argsort(raw, kind="stable").astype(np.int64)


def _score(values: Floats, masks: Iterator[Floats]) -> tuple[Floats, Indices, int, bool]:
    """(units, counts, scale, exact) as in `ScoreMatrix`, for subsets that come as tiles of rows of 0 and 1, [rows, N]."""
    present = ~np.isnan(values)
    steps, scale, exact = whole_steps(np.where(present, values, 0.0))
    complete, has = bool(present.all()), present.astype(np.float64)
    units, counts = [np.empty((0, values.shape[1]))], [np.empty((0, values.shape[1]))]
    for drawn in masks:
        size = drawn.sum(axis=1, keepdims=True)
        counts.append(np.broadcast_to(size, (len(drawn), values.shape[1])) if complete else drawn @ has)
        # Row after row in one order for all prompts, so that equal prompts get equal sums; a matrix product may not.
        units.append(drawn @ steps if exact else np.array([_ordered_sum(steps[row > 0.0]) for row in drawn]))
    return np.concatenate(units), np.concatenate(counts).astype(np.int64), scale, exact


def _tile_rows(n_items: int) -> int:
    return max(1, _TILE_CELLS // n_items)


def _ordered_sum(rows: Floats) -> Floats:
    total = np.zeros(rows.shape[1])
    for row in rows:
        total += row
    return total
