"""Newcombe's limits of the difference of two proportions, for whole arrays of counts at once.

Each builds on the Wilson limits of the two shares: the distances of the limits from the shares are squared and added.
The limits stay within [-1, 1] and have a width above zero at any counts.

>>> low, high = unpaired_limits([48, 0], [80, 10], [56, 0], [70, 10])
>>> low.round(4), high.round(4)
(array([ 0.0524, -0.2775]), array([0.3339, 0.2775]))
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.proportion_limits import Limits, wilson_limits

Floats = NDArray[np.float64]


def unpaired_limits(k1: ArrayLike, n1: ArrayLike, k2: ArrayLike, n2: ArrayLike, confidence: float = 0.95) -> Limits:
    """Newcombe's limits of k2/n2 - k1/n1 for independent samples, arrays that broadcast; -1 and 1 where n1 or n2 is 0.

    Counts need not be whole. Raises ValueError when a k is outside 0..n or ``confidence`` not strictly between 0 and 1.

    Source: Newcombe (1998), Statistics in Medicine 17, 873-890, method 10.

    >>> [float(end.round(4)) for end in unpaired_limits(48, 80, 56, 70)]
    [0.0524, 0.3339]
    """
    k1, n1, k2, n2 = (np.asarray(count, dtype=np.float64) for count in (k1, n1, k2, n2))
    (low1, high1), (low2, high2) = wilson_limits(k1, n1, confidence), wilson_limits(k2, n2, confidence)
    known = (n1 > 0.0) & (n2 > 0.0)
    p1, p2 = k1 / np.where(n1 > 0.0, n1, 1.0), k2 / np.where(n2 > 0.0, n2, 1.0)
    low = p2 - p1 - np.hypot(p2 - low2, high1 - p1)
    high = p2 - p1 + np.hypot(high2 - p2, p1 - low1)
    return np.where(known, np.maximum(low, -1.0), -1.0), np.where(known, np.minimum(high, 1.0), 1.0)


def paired_limits(
    both: ArrayLike, only_first: ArrayLike, only_second: ArrayLike, neither: ArrayLike, confidence: float = 0.95
) -> Limits:
    """Newcombe's limits of the paired difference (only_second - only_first)/n, arrays that broadcast.

    The distances are added with the correlation phi of the two shares, its numerator lowered by n/2 (not below 0) where
    it is positive; phi is 0 where a share is 0 or 1 throughout.

    Raises ValueError when there is no case, a count is negative, or ``confidence`` not strictly between 0 and 1.

    Source: Newcombe (1998), Statistics in Medicine 17, 2635-2650, method 10.

    >>> [float(end.round(4)) for end in paired_limits(1, 1, 7, 12)]
    [0.0256, 0.5069]
    """
    a, b, c, d = (np.asarray(count, dtype=np.float64) for count in (both, only_first, only_second, neither))
    n = a + b + c + d
    if not (n > 0.0).all() or any((count < 0.0).any() for count in (a, b, c, d)):
        raise ValueError("paired counts must be 0 or more, and one above 0")
    k1, k2 = a + b, a + c
    p1, p2 = k1 / n, k2 / n
    (low1, high1), (low2, high2) = wilson_limits(k1, n, confidence), wilson_limits(k2, n, confidence)
    agreement = a * d - b * c
    agreement = np.where(agreement > 0.0, np.maximum(agreement - n / 2.0, 0.0), agreement)
    margins = k1 * (n - k1) * k2 * (n - k2)
    phi = np.where(margins > 0.0, agreement / np.sqrt(np.where(margins > 0.0, margins, 1.0)), 0.0)

    def reach(one: Floats, other: Floats) -> Floats:
        return np.sqrt(np.maximum(one**2 - 2.0 * phi * one * other + other**2, 0.0))

    difference = (c - b) / n
    low = difference - reach(p2 - low2, high1 - p1)
    high = difference + reach(high2 - p2, p1 - low1)
    return np.maximum(low, -1.0), np.minimum(high, 1.0)
