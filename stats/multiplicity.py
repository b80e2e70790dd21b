"""Adjusted p-values for several tests that are read together: Holm and Benjamini-Hochberg.

An adjusted p-value is compared with the level itself: at or below .05 the hypothesis is rejected. `holm` keeps the
chance of *any* wrong rejection at the level, whatever the tests have to do with one another; `benjamini_hochberg` keeps
the expected *share* of wrong ones among the rejections there (for independent tests, and for positively dependent ones).

A family is one array of any shape. nan = not tested: it stays nan and does not count among the tests.

>>> import numpy as np
>>> p = np.array([0.01, 0.04, 0.03, np.nan, 0.005])
>>> holm(p)
array([0.03, 0.06, 0.06,  nan, 0.02])
>>> benjamini_hochberg(p)
array([0.02, 0.04, 0.04,  nan, 0.02])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def holm(p_values: ArrayLike) -> Floats:
    """Holm's step-down adjusted p-values, of the shape of ``p_values``; nan where that is nan.

    Of m tests in rising order of p the i-th gets max over j <= i of (m - j + 1) p_(j), at most 1.

    Raises ValueError when a p-value is outside [0, 1].

    Source: Holm (1979), Scandinavian Journal of Statistics 6, 65-70.

    >>> holm([0.02, 0.02, 0.5])
    array([0.06, 0.06, 0.5 ])
    """
    values, order = _ordered(p_values)
    m = order.size
    steps = values.flat[order] * (m - np.arange(m))
    return _placed(values, order, np.maximum.accumulate(steps))


def benjamini_hochberg(p_values: ArrayLike) -> Floats:
    """Benjamini and Hochberg's step-up adjusted p-values, of the shape of ``p_values``; nan where that is nan.

    Of m tests in rising order of p the i-th gets min over j >= i of m p_(j) / j, at most 1.

    Raises ValueError when a p-value is outside [0, 1].

    Source: Benjamini and Hochberg (1995), Journal of the Royal Statistical Society B 57, 289-300.

    >>> benjamini_hochberg([0.02, 0.03, 0.9])
    array([0.045, 0.045, 0.9  ])
    """
    values, order = _ordered(p_values)
    m = order.size
    steps = values.flat[order] * (m / np.arange(1.0, m + 1.0))
    return _placed(values, order, np.minimum.accumulate(steps[::-1])[::-1])


def _ordered(p_values: ArrayLike) -> tuple[Floats, NDArray[np.int64]]:
    """The p-values, and where those that were tested stand (flat), smallest first."""
    values = np.asarray(p_values, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(values))
    held = values.flat[tested]
    if ((held < 0.0) | (held > 1.0)).any():
        raise ValueError("a p-value must lie between 0 and 1, or be nan where nothing was tested")
    order: NDArray[np.int64] = tested[np.argsort(held, kind="stable")]
    return values, order


def _placed(values: Floats, order: NDArray[np.int64], adjusted: Floats) -> Floats:
    result = np.full(values.shape, np.nan)
    result.flat[order] = np.minimum(adjusted, 1.0)
    return result
