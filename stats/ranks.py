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
    """
    first, last = _places(scores)
    ranks = (first + last) / 2.0
    ranks[np.isnan(np.asarray(scores, dtype=np.float64))] = np.nan
    return ranks


def tied_pairs(scores: ArrayLike) -> Indices:
    """[...], how many pairs of ranked prompts have the same score, in each row of ``scores`` (or ranks) [..., M]."""
    first, last = _places(scores)
    tied_with = np.where(np.isnan(np.asarray(scores, dtype=np.float64)), 0, last - first)
    pairs: Indices = np.asarray(tied_with.sum(axis=-1) / 2.0, dtype=np.int64)
    return pairs


def ranked_pairs(scores: ArrayLike) -> Indices:
    """[...], how many pairs of prompts have a score each, in each row of ``scores`` (or ranks) [..., M]."""
    ranked = (~np.isnan(np.asarray(scores, dtype=np.float64))).sum(axis=-1)
    pairs: Indices = np.asarray(ranked * (ranked - 1) // 2, dtype=np.int64)
    return pairs


def tied_on_top(ranks: ArrayLike) -> Indices:
    """[...], how many prompts share the best score, from fair ``ranks`` [..., M]; 0 where nothing is ranked."""
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
    """
    values = np.asarray(ranks, dtype=np.float64)
    if m != int(m) or not 1 <= m <= values.shape[-1]:
        raise ValueError(f"a top set of {m!r} of {values.shape[-1]} prompts does not exist")
    first, last = _places(-values)
    size = last - first + 1.0
    weights = np.clip(m - (first - 1.0), 0.0, size) / size
    ranked = ~np.isnan(values)
    weights[~ranked] = 0.0
    weights[ranked.sum(axis=-1) < m] = np.nan
    return weights


def _places(scores: ArrayLike) -> tuple[Floats, Floats]:
    """First and last place (1 = best) of the tied group that each score belongs to; nan comes last, each tied with all."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim == 0 or values.shape[-1] == 0:
        raise ValueError("a ranking needs at least one prompt")
    if np.isinf(values).any():
        raise ValueError("a score must be finite, or nan where there is none")
    size = values.shape[-1]
    keys = -values
    keys[np.isnan(keys)] = np.inf
    order = np.argsort(keys, axis=-1, kind="stable")
    ordered = np.take_along_axis(keys, order, axis=-1)
    changes = ordered[..., 1:] != ordered[..., :-1]
    edge = np.ones((*values.shape[:-1], 1), dtype=bool)
    places = np.arange(1, size + 1, dtype=np.float64)
    begins = np.concatenate([edge, changes], axis=-1)
    ends = np.concatenate([changes, edge], axis=-1)
    first_sorted = np.maximum.accumulate(np.where(begins, places, 0.0), axis=-1)
    last_sorted = np.flip(np.minimum.accumulate(np.flip(np.where(ends, places, np.inf), -1), axis=-1), -1)
    first, last = np.empty_like(keys), np.empty_like(keys)
    np.put_along_axis(first, order, first_sorted, axis=-1)
    np.put_along_axis(last, order, last_sorted, axis=-1)
    return first, last
