"""The true difference of two systems' failure rates under one judge.

Positive = the judge reports a failure. With one judge of TPR and TNR for both systems, the observed difference is J =
TPR + TNR - 1 times the true one: the judge shrinks it and keeps its sign. So the true difference is d/J; that it is not
0 shows in d already, without TPR and TNR. Dividing supposes that the judge errs as often on either system's answers.

>>> labelled = Confusion(tp=84, fn=16, fp=27, tn=273)
>>> compared = rate_difference(first=(315, 1000), second=(240, 1000), labelled=labelled)
>>> compared.observed, round(compared.value, 3)
(-0.075, -0.1)
>>> round(compared.low, 3), round(compared.high, 3)
(-0.155, -0.048)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.confusion import Confusion
from stats.difference_limits import paired_limits, unpaired_limits
from stats.intervals import check_count
from stats.proportion_limits import Limits
from stats.rogan_gladen import NotIdentified, YoudenJ, not_identified, youden

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RateDifference:
    """Second system's failure rate less the first's: below 0 when the second fails less often.

    observed, observed_low, observed_high: by the judge's verdicts alone, with Newcombe's interval.
    value, low, high: the true difference; None, -1 and 1 when not identified, and ``reason`` says why. The interval
    leaves out 0 exactly when the observed one does.
    youden: J, by which the observed difference is divided; None without labels of both verdicts.
    """

    observed: float
    observed_low: float
    observed_high: float
    value: float | None
    low: float
    high: float
    youden: YoudenJ | None
    reason: NotIdentified | None


def rate_difference(
    first: tuple[int, int], second: tuple[int, int], labelled: Confusion, confidence: float = 0.95
) -> RateDifference:
    """The true difference of two systems on different cases; ``first`` and ``second`` are (flagged, judged).

    d = p2 - p1 with Newcombe's interval for independent proportions, J from the labels with its own, and d/J by MOVER
    (see `divided_limits`). TPR and TNR must hold for both systems: labels drawn at random or by the expert's verdict,
    over either or both. Raises ValueError when flagged is no whole number in 0..judged or nothing was judged.

    Source: Newcombe (1998), Statistics in Medicine 17, 873-890, method 10.

    >>> rate_difference((30, 100), (20, 100), Confusion(tp=9, fn=1, fp=1, tn=89)).reason
    'too_few_failures'
    """
    if min(first[1], second[1]) < 1:
        raise ValueError("a difference needs judged cases of both systems")
    (k1, n1), (k2, n2) = (check_count(*system) for system in (first, second))
    low, high = unpaired_limits(k1, n1, k2, n2, confidence)
    # One division, so that the difference of equal shares is exactly 0.
    return _divided((k2 * n1 - k1 * n2) / (n1 * n2), float(low), float(high), labelled, confidence)


def paired_rate_difference(
    both: int, only_first: int, only_second: int, neither: int, labelled: Confusion, confidence: float = 0.95
) -> RateDifference:
    """The true difference of two systems on the same cases, by whose answer the judge flags.

    As `rate_difference`, with Newcombe's interval for paired proportions. A case without a verdict for one of the two
    systems is in none of the counts. Raises ValueError when a count is negative or all are 0.

    Source: Newcombe (1998), Statistics in Medicine 17, 2635-2650, method 10.

    >>> labelled = Confusion(tp=84, fn=16, fp=27, tn=273)
    >>> compared = paired_rate_difference(both=180, only_first=135, only_second=60, neither=625, labelled=labelled)
    >>> round(compared.value, 3), round(compared.low, 3), round(compared.high, 3)
    (-0.1, -0.14, -0.063)
    """
    counts = (both, only_first, only_second, neither)
    low, high = paired_limits(*counts, confidence)
    return _divided((only_second - only_first) / sum(counts), float(low), float(high), labelled, confidence)


def divided_limits(
    difference: ArrayLike, low: ArrayLike, high: ArrayLike, j: ArrayLike, j_low: ArrayLike, j_high: ArrayLike
) -> Limits:
    """Limits of difference/j from the limits of both, independent of each other (MOVER-R), cut at -1 and 1.

    The lower one is the value R at which difference - R j has the lower limit 0; it is above 0 exactly when ``low`` is.
    Arrays broadcast; ``j_low`` must be above 0. Raises ValueError otherwise.

    Source: Newcombe (2016), Statistical Methods in Medical Research 25, 1774-1778; Donner and Zou (2012), the same
    journal 21, 347-359.

    >>> [float(end.round(4)) for end in divided_limits(-0.075, -0.114, -0.036, 0.75, 0.66, 0.82)]
    [-0.1552, -0.0478]
    """
    d, d_low, d_high, whole, least, most = (
        np.asarray(part, dtype=np.float64) for part in (difference, low, high, j, j_low, j_high)
    )
    if not (least > 0.0).all():
        raise ValueError("a difference is divided by J only where J is above 0 beyond doubt")
    lower = _lower_ratio(d, d_low, whole, least, most)
    upper = -_lower_ratio(-d, -d_high, whole, least, most)
    return np.clip(lower, -1.0, 1.0), np.clip(upper, -1.0, 1.0)


def _divided(difference: float, low: float, high: float, labelled: Confusion, confidence: float) -> RateDifference:
    failures, goods = labelled.tp + labelled.fn, labelled.fp + labelled.tn
    reason = not_identified(labelled.tp, failures, labelled.tn, goods, confidence)
    j = youden(labelled.tp, failures, labelled.tn, goods, confidence) if failures and goods else None
    if reason is not None or j is None:
        return RateDifference(difference, low, high, None, -1.0, 1.0, j, reason)
    lower, upper = divided_limits(difference, low, high, j.value, j.low, j.high)
    value = min(max(difference / j.value, -1.0), 1.0)
    return RateDifference(difference, low, high, value, float(lower), float(upper), j, None)


def _lower_ratio(d: Floats, low: Floats, j: Floats, j_low: Floats, j_high: Floats) -> Floats:
    # The lower limit is unfavourable for d and, by the sign of the limit, favourable or not for j. Of the two forms of
    # the root each is used where it divides by no difference of near-equal numbers.
    j_end = np.where(low >= 0.0, j_high, j_low)
    product = low * (2.0 * d - low)
    square = j_end * (2.0 * j - j_end)
    root = np.sqrt(np.maximum((d * j) ** 2 - square * product, 0.0))
    above = d * j + root
    return np.where(
        low >= 0.0, product / np.where(above > 0.0, above, 1.0), (d * j - root) / np.where(square > 0, square, 1.0)
    )
