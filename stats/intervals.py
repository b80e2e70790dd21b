"""Intervals for one observed proportion, k of n independent cases.

Wilson is the default: close to its confidence on average over rates, at any n. Jeffreys is as close and equal-tailed.
Clopper-Pearson never covers less than its confidence, at the price of width. Wald is there to be explained.

>>> wilson(248, 1000)
Interval(low=0.2222..., high=0.2756...)
>>> proportion(8, 20)
Proportion(k=8, n=20, value=0.4, low=0.2188..., high=0.6134...)
>>> proportion(8, 20, method="clopper-pearson").low
0.1911...
>>> round(100 * wald_half_width(8, 20))
21
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from types import MappingProxyType
from typing import Final, Literal

IntervalMethod = Literal["wilson", "jeffreys", "clopper-pearson", "wald"]


@dataclass(frozen=True)
class Interval:
    """A confidence interval, both ends included, on the scale of the quantity it belongs to."""

    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """A figure that is no proportion. ``value`` is None where undefined, ``low`` and ``high`` without an interval."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Proportion:
    """k of n with its interval (95 % Wilson unless asked otherwise); the last three are None when n = 0."""

    k: int
    n: int
    value: float | None
    low: float | None
    high: float | None


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


def as_count(count: float) -> int | None:
    """``count`` as an int of any size, None unless it is a whole number: numpy's own integers would overflow in products.

    >>> as_count(8.0), as_count(0.5), as_count(math.inf)
    (8, None, None)
    """
    return int(count) if math.isfinite(count) and count == int(count) else None


def check_count(k: int, n: int) -> tuple[int, int]:
    """``k`` and ``n`` as ints; ValueError unless they are whole numbers with 0 <= k <= n and n >= 1.

    >>> check_count(8, 20)
    (8, 20)
    """
    hits, size = as_count(k), as_count(n)
    if hits is None or size is None:
        raise ValueError(f"k and n must be whole numbers, got k={k!r}, n={n!r}")
    k, n = hits, size
    if n < 1:
        raise ValueError(f"a proportion needs at least one case, got n={n!r}")
    if not 0 <= k <= n:
        raise ValueError(f"k must lie between 0 and n, got k={k!r}, n={n!r}")
    return k, n


def proportion(k: int, n: int, confidence: float = 0.95, method: IntervalMethod = "wilson") -> Proportion:
    """k of n with its interval by ``method``; with n = 0 there is neither a value nor an interval.

    Raises ValueError when n < 0, k is outside 0..n, the method is unknown or ``confidence`` not strictly between 0
    and 1.

    >>> proportion(0, 0)
    Proportion(k=0, n=0, value=None, low=None, high=None)
    """
    if k == n == 0:
        return Proportion(0, 0, None, None, None)
    interval = proportion_interval(k, n, confidence, method)
    k, n = check_count(k, n)
    return Proportion(k, n, k / n, interval.low, interval.high)


def proportion_interval(k: int, n: int, confidence: float = 0.95, method: IntervalMethod = "wilson") -> Interval:
    """The interval for ``k`` of ``n`` by the method of that name in `METHODS`.

    Raises ValueError when n < 1, k is outside 0..n, the method is unknown or ``confidence`` not strictly between 0
    and 1.

    >>> proportion_interval(8, 20, method="jeffreys")
    Interval(low=0.2106..., high=0.6160...)
    """
    if method not in METHODS:
        raise ValueError(f"an interval's method must be one of {', '.join(METHODS)}, got {method!r}")
    return METHODS[method](k, n, confidence)


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
    k, n = check_count(k, n)
    z = normal_quantile(confidence)
    z2 = z * z
    share = k / n
    middle = (k + z2 / 2.0) / (n + z2)
    half = z * math.sqrt(k * (n - k) / n + z2 / 4.0) / (n + z2)
    # At the ends the exact bound is 0 or 1, and rounding must not push the estimate out of its own interval.
    low = 0.0 if k == 0 else min(max(middle - half, 0.0), share)
    high = 1.0 if k == n else max(min(middle + half, 1.0), share)
    return Interval(low, high)


def jeffreys(k: int, n: int, confidence: float = 0.95) -> Interval:
    """Jeffreys interval: the equal-tailed quantiles of Beta(k + 1/2, n - k + 1/2).

    Boundary: the lower end is 0 at 0 of n and the upper end 1 at n of n, so that the observed share is not left out;
    the other end stays the two-sided quantile. The ends next to the boundary (1 of n, n - 1 of n) are not changed.

    Raises ValueError when n < 1, k is outside 0..n, or ``confidence`` is not strictly between 0 and 1.

    Source: Brown, Cai and DasGupta (2001), Statistical Science 16, 101-133.

    >>> jeffreys(8, 20)
    Interval(low=0.2106..., high=0.6160...)
    >>> jeffreys(0, 10)
    Interval(low=0.0, high=0.2171...)
    """
    k, n = check_count(k, n)
    low, high = _tails(confidence)
    return Interval(
        0.0 if k == 0 else _beta_quantile(low, k + 0.5, n - k + 0.5),
        1.0 if k == n else _beta_quantile(high, k + 0.5, n - k + 0.5),
    )


def clopper_pearson(k: int, n: int, confidence: float = 0.95) -> Interval:
    """Clopper-Pearson ("exact") interval: the rates that neither one-sided binomial test at (1 - confidence)/2 rejects.

    Boundary: the lower end is 0 at 0 of n and the upper end 1 at n of n; the other end keeps (1 - confidence)/2 in its
    tail there too, it is not made one-sided (0 of 10: up to .308, not .259).

    Raises ValueError when n < 1, k is outside 0..n, or ``confidence`` is not strictly between 0 and 1.

    Source: Clopper and Pearson (1934), Biometrika 26, 404-413.

    >>> clopper_pearson(8, 20)
    Interval(low=0.1911..., high=0.6394...)
    >>> clopper_pearson(0, 10)
    Interval(low=0.0, high=0.3084...)
    """
    k, n = check_count(k, n)
    low, high = _tails(confidence)
    return Interval(
        0.0 if k == 0 else _beta_quantile(low, k, n - k + 1),
        1.0 if k == n else _beta_quantile(high, k + 1, n - k),
    )


def wald(k: int, n: int, confidence: float = 0.95) -> Interval:
    """The Wald interval k/n +- z sqrt(p (1 - p) / n), cut at 0 and 1. Only to explain: it covers too little.

    It has no width at 0 of n and n of n. Raises ValueError as `wilson` does.

    >>> wald(8, 20)
    Interval(low=0.1852..., high=0.6147...)
    """
    k, n = check_count(k, n)
    half = wald_half_width(k, n, confidence)
    return Interval(max(k / n - half, 0.0), min(k / n + half, 1.0))


def wald_half_width(k: int, n: int, confidence: float = 0.95) -> float:
    """Half the width of the Wald interval, z sqrt(p (1 - p) / n), as a share (0.21 = 21 points).

    Only to explain how far a figure can be off; it is 0 at 0 of n and at n of n, where it explains nothing.
    Intervals that are shown come from `wilson`. Raises ValueError as `wilson` does.

    >>> wald_half_width(8, 20)
    0.2147...
    """
    k, n = check_count(k, n)
    share = k / n
    return normal_quantile(confidence) * math.sqrt(share * (1.0 - share) / n)


METHODS: Final[Mapping[IntervalMethod, Callable[[int, int, float], Interval]]] = MappingProxyType(
    {"wilson": wilson, "jeffreys": jeffreys, "clopper-pearson": clopper_pearson, "wald": wald}
)
"""Every interval for k of n by the name under which it may be asked for, the default first."""


def _tails(confidence: float) -> tuple[float, float]:
    """The probabilities below the lower and below the upper end."""
    normal_quantile(confidence)
    return (1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0


def _beta_quantile(probability: float, a: float, b: float) -> float:
    from scipy.special import betaincinv

    return float(betaincinv(a, b, probability))
