"""Fair ranks: ties are ties, never broken by position.

A rank is 1 for the best, higher scores are better, tied prompts share the average of their places, and a score that is
nan is not ranked. Rank counts of correct items, or means that are one division of such counts (see
`stats.subsets.ScoreMatrix.means`): equal counts then tie exactly.

>>> fair_ranks([3.0, 5.0, 3.0, 1.0])
array([2.5, 1. , 2.5, 4. ])
>>> top_set(fair_ranks([3.0, 5.0, 3.0, 1.0]), 2)
array([0.5, 1. , 0.5, 0. ])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def fair_ranks(scores: ArrayLike) -> Floats:
    """[..., M], the rank of each prompt within its row of ``scores`` [..., M]; nan where the score is nan.

    Raises ValueError when a score is infinite or there is no prompt.

    >>> fair_ranks([[2.0, 2.0, np.nan], [1.0, 2.0, 3.0]])
    array([[1.5, 1.5, nan],
           [3. , 2. , 1. ]])
    """
    values = _as_scores(scores)
    keys = np.where(np.isnan(values), np.inf, -values)
    order = np.argsort(keys, axis=-1)
    changes = _changes(np.take_along_axis(keys, order, axis=-1))
    places = np.arange(1, values.shape[-1] + 1, dtype=np.float64)
    first = np.maximum.accumulate(np.where(changes[..., :-1], places, 0.0), axis=-1)
    last = np.minimum.accumulate(np.where(changes[..., :0:-1], places[::-1], np.inf), axis=-1)[..., ::-1]
    ranks = np.empty_like(keys)
    np.put_along_axis(ranks, order, (first + last) / 2.0, axis=-1)
    ranks[np.isnan(values)] = np.nan
    return ranks


def as_fair_ranks(ranks: ArrayLike) -> Floats:
    """``ranks`` as float64 [C, M]; ValueError unless every row holds fair ranks: ties averaged, nan = not ranked.

    >>> as_fair_ranks([[1, 1, 3]])
    Traceback (most recent call last):
    ValueError: row 0 holds no fair ranks: they are multiples of 1/2 and sum to n (n + 1) / 2
    """
    values = np.asarray(ranks, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(f"ranks must be conditions x prompts, got the shape {values.shape}")
    ranked = ~np.isnan(values)
    filled = np.where(ranked, values, 1.0)
    n = ranked.sum(axis=1)
    sums = np.where(ranked, values, 0.0).sum(axis=1)
    unfair = (filled < 1.0).any(axis=1) | ((2.0 * filled) % 1.0 != 0.0).any(axis=1) | (sums != n * (n + 1) / 2.0)
    if unfair.any():
        raise ValueError(
            f"row {int(unfair.argmax())} holds no fair ranks: they are multiples of 1/2 and sum to n (n + 1) / 2"
        )
    return values


def tied_pairs(scores: ArrayLike) -> Indices:
    """[...], how many pairs of ranked prompts have the same score, in each row of ``scores`` (or ranks) [..., M].

    Raises ValueError as `fair_ranks` does.

    >>> tied_pairs([[2.0, 2.0, 2.0, 1.0], [1.0, 2.0, 3.0, 3.0]])
    array([3, 1])
    """
    ordered = np.sort(_as_scores(scores), axis=-1)
    # nan differs from nan, so that each is a group of its own.
    begins = _changes(ordered)[..., :-1]
    place = np.arange(ordered.shape[-1])
    pairs: Indices = (place - np.maximum.accumulate(np.where(begins, place, 0), axis=-1)).sum(axis=-1)
    return pairs


def ranked_pairs(scores: ArrayLike) -> Indices:
    """[...], how many pairs of prompts have a score each, in each row of ``scores`` (or ranks) [..., M].

    >>> ranked_pairs([[2.0, 2.0, 1.0], [1.0, 2.0, np.nan]])
    array([3, 1])
    """
    ranked = (~np.isnan(np.asarray(scores, dtype=np.float64))).sum(axis=-1)
    pairs: Indices = np.asarray(ranked * (ranked - 1) // 2, dtype=np.int64)
    return pairs


def tied_on_top(ranks: ArrayLike) -> Indices:
    """[...], how many prompts share the best score, from fair ``ranks`` [..., M]; 0 where nothing is ranked.

    >>> tied_on_top([[1.5, 1.5, 3.0], [1.0, 2.5, 2.5]])
    array([2, 1])
    """
    values = np.asarray(ranks, dtype=np.float64)
    # The first t of a row share the average of the places 1..t.
    best = np.fmin.reduce(values, axis=-1)
    shared: Indices = np.asarray(np.nan_to_num(2.0 * best - 1.0), dtype=np.int64)
    return shared


def top_set(ranks: ArrayLike, m: int) -> Floats:
    """[..., M], the probability that each prompt is among the first ``m`` when ties are broken by a fair lot.

    ``ranks`` [..., M] are fair ranks. A prompt clearly before the border weighs 1, one behind it 0; of t prompts that
    are tied across the border, of which p places are left, each weighs p/t. The weights of a row sum to m. With m = 1
    the t prompts that share the top weigh 1/t each. A prompt without a rank weighs 0; a row with fewer than m ranked
    prompts is nan throughout.

    Raises ValueError when m is not in 1..M.

    >>> top_set([[1.0, 3.0, 3.0, 3.0], [1.5, 1.5, 3.0, 4.0]], 2).round(3)
    array([[1.   , 0.333, 0.333, 0.333],
           [1.   , 1.   , 0.   , 0.   ]])
    """
    values = np.atleast_1d(np.asarray(ranks, dtype=np.float64))
    if m != int(m) or not 1 <= m <= values.shape[-1]:
        raise ValueError(f"a top set of {m!r} of {values.shape[-1]} prompts does not exist")
    m = int(m)
    # nan sorts last, so the border is nan where fewer than m are ranked.
    if m == 1:
        border = np.fmin.reduce(values, axis=-1, keepdims=True)
    else:
        border = np.partition(values, m - 1, axis=-1)[..., m - 1 : m]
    before, tied = values < border, values == border
    left = m - before.sum(axis=-1, keepdims=True)
    weights: Floats = before + tied * (left / np.maximum(tied.sum(axis=-1, keepdims=True), 1))
    weights[np.isnan(border[..., 0])] = np.nan
    return weights


def _as_scores(scores: ArrayLike) -> Floats:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim == 0 or values.shape[-1] == 0:
        raise ValueError("a ranking needs at least one prompt")
    if np.isinf(values).any():
        raise ValueError("a score must be finite, or nan where there is none")
    return values


def _changes(ordered: Floats) -> NDArray[np.bool_]:
    """[..., M + 1], whether a group of equal values ends before each of the M sorted ones; True at both ends."""
    changes = np.ones((*ordered.shape[:-1], ordered.shape[-1] + 1), dtype=bool)
    np.not_equal(ordered[..., 1:], ordered[..., :-1], out=changes[..., 1:-1])
    return changes
