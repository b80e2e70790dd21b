"""How often a model contradicts itself: the same request asked several times, answered rightly and wrongly.

Of an item with c repeats of which s are right, a pair of repeats *flips* with probability 2 s (c - s) / (c (c - 1)): one is
right, the other is not. It estimates 2 p (1 - p) of the item's chance p without bias, whatever c is. The flip rate is its
mean over items: 0 where every item is answered alike each time, at most 1/2 with many repeats.

>>> import numpy as np
>>> float(flip_rate([3, 2, 0, 1], [3, 3, 3, 1]))
0.222...
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def flip_rate(right: ArrayLike, repeats: ArrayLike) -> Floats:
    """[...], the flip rate over items, the first axis of ``right`` [N, ...]; ``repeats`` [N, ...] are answers to each.

    Items with fewer than two repeats say nothing and are left out; nan where none is left. Raises ValueError when a
    number of right answers lies outside 0..repeats, or the shapes differ.

    >>> flip_rate([[1, 2], [0, 1]], [[2, 2], [2, 2]])
    array([0.5, 0.5])
    """
    s, c = np.asarray(right, dtype=np.float64), np.asarray(repeats, dtype=np.float64)
    if s.shape != c.shape or s.ndim == 0:
        raise ValueError(f"right answers and repeats must have one shape, got {s.shape} and {c.shape}")
    if not ((s >= 0.0) & (s <= c)).all():
        raise ValueError("right answers must lie in 0..repeats")
    known = c > 1.0
    pairs = np.where(known, c * (c - 1.0), 1.0)
    flips = np.where(known, 2.0 * s * (c - s) / pairs, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates: Floats = np.asarray(flips.sum(axis=0) / known.sum(axis=0))
    return rates
