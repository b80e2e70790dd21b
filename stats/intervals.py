"""Intervals for one observed proportion, k of n.

>>> wilson(248, 1000)
Interval(low=0.2222..., high=0.2756...)
>>> round(100 * wald_half_width(8, 20))
21
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist


@dataclass(frozen=True)
class Interval:
    """A confidence interval, both ends included, on the scale of the quantity it belongs to."""

    low: float
    high: float


@lru_cache(maxsize=64)
def normal_quantile(confidence: float) -> float:
    """The two-sided normal quantile z: 1.96 for a confidence of 0.95.

    Raises ValueError when ``confidence`` is not strictly between 0 and 1.

    >>> round(normal_quantile(0.95), 4)
    1.96
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    if not 0.0 < z < math.inf:
        raise ValueError(f"confidence {confidence!r} is too close to 0 or 1 for a normal quantile")
    return z


def check_count(k: int, n: int) -> None:
    """Raise ValueError unless ``k`` and ``n`` are whole numbers with 0 <= k <= n and n >= 1."""
    if k != int(k) or n != int(n):
        raise ValueError(f"k and n must be whole numbers, got k={k!r}, n={n!r}")
    if n < 1:
        raise ValueError(f"a proportion needs at least one case, got n={n!r}")
    if not 0 <= k <= n:
        raise ValueError(f"k must lie between 0 and n, got k={k!r}, n={n!r}")


def wilson(k: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson score interval for the proportion behind ``k`` hits in ``n`` independent cases.

    The interval always holds k/n, stays within [0, 1], and has a width above zero at 0 of n and n of n too.

    Raises ValueError when n < 1, k is outside 0..n, or ``confidence`` is not strictly between 0 and 1.

    Source: Wilson (1927), JASA 22, 209-212; without continuity correction.

    >>> wilson(8, 20)
    Interval(low=0.2188..., high=0.6134...)
    >>> wilson(0, 10).low, wilson(10, 10).high
    (0.0, 1.0)
    """
    check_count(k, n)
    z = normal_quantile(confidence)
    z2 = z * z
    share = k / n
    middle = (k + z2 / 2.0) / (n + z2)
    half = z * math.sqrt(k * (n - k) / n + z2 / 4.0) / (n + z2)
    # At the ends the exact bound is 0 or 1, and rounding must not push the estimate out of its own interval.
    low = 0.0 if k == 0 else min(max(middle - half, 0.0), share)
    high = 1.0 if k == n else max(min(middle + half, 1.0), share)
    return Interval(low, high)


def wald_half_width(k: int, n: int, confidence: float = 0.95) -> float:
    """Half the width of the Wald interval, z sqrt(p (1 - p) / n), as a share (0.21 = 21 points).

    Only to explain how far a figure can be off; it is 0 at 0 of n and at n of n, where it explains nothing.
    Intervals that are shown come from `wilson`. Raises ValueError as `wilson` does.

    >>> wald_half_width(8, 20)
    0.2147...
    """
    check_count(k, n)
    share = k / n
    return normal_quantile(confidence) * math.sqrt(share * (1.0 - share) / n)
