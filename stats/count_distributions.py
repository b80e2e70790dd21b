"""How many marked items a draw holds: the binomial and the hypergeometric distribution as arrays.

Built outwards from the most likely number by the ratio of neighbours, so that no factorial and no logarithm costs
digits at large counts. Numbers that practically never occur, below 1e-17 of the most likely one, are left out.

>>> hypergeometric(10, 4, 2)
CountDistribution(first=0, chances=array([0.33333333, 0.53333333, 0.13333333]))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_NEGLIGIBLE = 1e-17


@dataclass(frozen=True)
class CountDistribution:
    """chances[j] is the probability of the number ``first`` + j; they sum to 1."""

    first: int
    chances: Floats


def binomial(n: int, p: float) -> CountDistribution:
    """Of ``n`` items, each marked with probability ``p`` by itself: how many are.

    Raises ValueError when n is negative or p outside 0..1.

    >>> binomial(2, 0.5).chances
    array([0.25, 0.5 , 0.25])
    """
    if n < 0 or not 0.0 <= p <= 1.0:
        raise ValueError(f"there is no binomial distribution of n={n!r}, p={p!r}")
    if p in (0.0, 1.0):
        return CountDistribution(int(n * p), np.ones(1))
    odds = p / (1.0 - p)
    return _outwards(
        (0, min(int((n + 1) * p), n), n), math.sqrt(n * p * (1.0 - p)), lambda at: (n - at) / (at + 1.0) * odds
    )


def hypergeometric(n_items: int, marked: int, k: int) -> CountDistribution:
    """``k`` of ``n_items`` drawn without replacement, ``marked`` of which are marked: how many marked ones the draw holds.

    Raises ValueError when marked or k is outside 0..n_items.

    >>> hypergeometric(3, 2, 3)
    CountDistribution(first=2, chances=array([1.]))
    """
    if not (0 <= marked <= n_items and 0 <= k <= n_items):
        raise ValueError(f"there is no draw of {k!r} of {n_items!r} items, {marked!r} of them marked")
    low, high, other = max(0, k - (n_items - marked)), min(k, marked), n_items - marked - k
    mode = min(max((k + 1) * (marked + 1) // (n_items + 2), low), high)
    share = marked / n_items if n_items else 0.0
    variance = k * share * (1.0 - share) * (n_items - k) / max(n_items - 1, 1)
    return _outwards(
        (low, mode, high), math.sqrt(variance), lambda at: (marked - at) * (k - at) / ((at + 1.0) * (other + at + 1.0))
    )


def _outwards(ends: tuple[int, int, int], deviation: float, ratio: Callable[[Floats], Floats]) -> CountDistribution:
    """From (lowest, most likely, highest) number and the ratio of the chance of the next number to that of this one."""
    low, mode, high = ends
    reach = int(9.0 * deviation) + 20
    low, high = max(low, mode - reach), min(high, mode + reach)
    ratios = ratio(np.arange(low, high, dtype=np.float64))
    below, above = np.cumprod(1.0 / ratios[: mode - low][::-1])[::-1], np.cumprod(ratios[mode - low :])
    # The one grows towards the mode, the other falls from it.
    first, end = int((below <= _NEGLIGIBLE).sum()), int((above > _NEGLIGIBLE).sum())
    chances = np.concatenate([below[first:], [1.0], above[:end]])
    return CountDistribution(low + first, chances / chances.sum())
