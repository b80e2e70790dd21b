"""Two judges (or two prompts) on the same cases: which cases changed, and whether the change is more than chance.

Each case is right (1), wrong (0) or without an outcome (nan) under a first and a second judge. A case is *gained* when
only the second has it right, *lost* when only the first has. Cases on which both agree say nothing about which of the
two is better, so the test looks at the gained and the lost ones alone; the interval of the difference needs all.

>>> changes = paired_changes([1, 0, 0, 1, 1, 0], [1, 1, 1, 0, float("nan"), 0])
>>> changes.gained.tolist(), changes.lost.tolist(), changes.left_out.tolist()
([1, 2], [3], [4])
>>> compared = compare(changes)
>>> compared.difference, round(compared.p_value, 4)
(0.2, 1.0)
>>> round(mcnemar(118, 116), 4), round(mcnemar(259, 185), 6)
(0.9479, 0.000517)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.difference_limits import paired_limits
from stats.intervals import Interval, check_count

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class PairedChanges:
    """The cases (positions, rising) by what became of them from the first judge to the second.

    gained: only the second right. lost: only the first right. both_right, both_wrong: as they say.
    left_out: no outcome under one of the two, or both; in no figure.
    """

    gained: Indices
    lost: Indices
    both_right: Indices
    both_wrong: Indices
    left_out: Indices


@dataclass(frozen=True)
class PairedComparison:
    """A second judge against a first, over the ``n`` cases with an outcome under both.

    first, second: cases that each has right. gained, lost: cases that only the second, only the first has right.
    difference: (second - first) / n with its interval; None, as the interval, when n = 0.
    p_value: exact McNemar, 1 when no case changed.
    """

    n: int
    first: int
    second: int
    gained: int
    lost: int
    difference: float | None
    interval: Interval | None
    p_value: float
    left_out: int


def paired_changes(first: ArrayLike, second: ArrayLike) -> PairedChanges:
    """The cases gained and lost from ``first`` [N] to ``second`` [N]: 1 right, 0 wrong, nan no outcome (no verdict).

    Raises ValueError when the shapes differ or another number is among the outcomes.

    >>> paired_changes([0, 1], [1, 1]).gained
    array([0])
    """
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.ndim != 1 or one.shape != other.shape:
        raise ValueError(
            f"paired outcomes must be two rows of one length, got the shapes {one.shape} and {other.shape}"
        )
    for values in (one, other):
        if not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
            raise ValueError("an outcome must be 1 (right), 0 (wrong) or nan (none)")
    return PairedChanges(
        gained=np.flatnonzero((one == 0.0) & (other == 1.0)),
        lost=np.flatnonzero((one == 1.0) & (other == 0.0)),
        both_right=np.flatnonzero((one == 1.0) & (other == 1.0)),
        both_wrong=np.flatnonzero((one == 0.0) & (other == 0.0)),
        left_out=np.flatnonzero(np.isnan(one) | np.isnan(other)),
    )


def compare(changes: PairedChanges, confidence: float = 0.95) -> PairedComparison:
    """The difference in the share of right cases with Newcombe's paired interval and the exact McNemar test.

    Raises ValueError when ``confidence`` is not strictly between 0 and 1.

    >>> compare(paired_changes([1, 0, 0, 0], [1, 1, 1, 0])).difference
    0.5
    """
    both, gained, lost, neither = (
        int(cases.size) for cases in (changes.both_right, changes.gained, changes.lost, changes.both_wrong)
    )
    n = both + gained + lost + neither
    return PairedComparison(
        n=n,
        first=both + lost,
        second=both + gained,
        gained=gained,
        lost=lost,
        difference=(gained - lost) / n if n else None,
        interval=newcombe_paired(both, gained, lost, neither, confidence) if n else None,
        p_value=mcnemar(gained, lost),
        left_out=int(changes.left_out.size),
    )


def mcnemar(gained: int, lost: int) -> float:
    """Two-sided p-value of the exact McNemar test: twice the smaller tail of Binomial(gained + lost, 1/2), at most 1.

    1 when nothing changed. Raises ValueError when a count is negative or not a whole number.

    Source: McNemar (1947), Psychometrika 12, 153-157; the exact form is the sign test on the changed cases.

    >>> mcnemar(8, 1)
    0.0390...
    >>> mcnemar(0, 0)
    1.0
    """
    return float(mcnemar_p_values(gained, lost))


def mcnemar_p_values(gained: ArrayLike, lost: ArrayLike) -> Floats:
    """`mcnemar` for many pairs at once: ``gained`` and ``lost`` are arrays of counts that broadcast to one shape.

    Two-sided. Raises ValueError unless all are whole numbers of 0 or more.

    >>> mcnemar_p_values([0, 5, 6], [0, 0, 6])
    array([1.    , 0.0625, 1.    ])
    """
    from scipy.special import betainc

    b, c = np.asarray(gained, dtype=np.float64), np.asarray(lost, dtype=np.float64)
    for counts in (b, c):
        if not ((counts >= 0.0) & (counts == np.floor(counts))).all():
            raise ValueError("gained and lost must be whole numbers of cases, 0 or more")
    # The tail up to the smaller count as an incomplete beta function; without any change there is no tail.
    few, many = np.minimum(b, c), np.maximum(b, c)
    p_values: Floats = np.where(many > 0.0, np.minimum(2.0 * betainc(np.maximum(many, 1.0), few + 1.0, 0.5), 1.0), 1.0)
    return p_values


def newcombe_paired(both_right: int, gained: int, lost: int, both_wrong: int, confidence: float = 0.95) -> Interval:
    """Newcombe's interval for the difference of two paired proportions, second less first: (gained - lost) / n.

    The Wilson intervals of the two shares are joined by square and add, with the correlation phi of the two: see
    `stats.difference_limits.paired_limits`, which is for many pairs at once. The interval lies within [-1, 1] and has a
    width above zero without any change too.

    Raises ValueError when there is no case, a count is negative, or ``confidence`` is not strictly between 0 and 1.

    Source: Newcombe (1998), Statistics in Medicine 17, 2635-2650, method 10.

    >>> newcombe_paired(1, 7, 1, 12)
    Interval(low=0.0255..., high=0.5069...)
    """
    n = both_right + gained + lost + both_wrong
    for count in (both_right, gained, lost, both_wrong):
        check_count(count, n)
    low, high = paired_limits(both_right, lost, gained, both_wrong, confidence)
    return Interval(float(low), float(high))
