"""The true failure rate behind a judge's failure rate, when it is known how often the judge errs: Rogan-Gladen.

Positive = the judge reports a failure. TPR = Se = share of the failures that it reports, TNR = Sp = share of the good
answers that it passes, theta = true failure rate. The judge reports p = TPR theta + (1 - TNR)(1 - theta), so
theta = (p + TNR - 1) / J with Youden's J = TPR + TNR - 1.

p counts *all* judged cases, labelled ones included. TPR and TNR must hold for the data that p is about; they may come
from other data like it, and from labels balanced by the expert's verdict.

>>> float(observed_rate(0.30, tpr=0.84, tnr=0.91).round(3)), float(rogan_gladen(0.315, tpr=0.84, tnr=0.91).round(3))
(0.315, 0.3)
>>> limits = lang_reiczigel(flagged=80, judged=400, caught=30, failures=40, passed=78, goods=80)
>>> round(limits.low, 4), round(limits.high, 4)
(0.1586, 0.3271)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.difference_limits import unpaired_limits
from stats.intervals import Interval, normal_quantile
from stats.proportion_limits import Limits

Floats = NDArray[np.float64]
NotIdentified = Literal["too_few_failures", "too_few_goods", "no_better_than_chance"]

FEWEST_LABELS: Final = 15
"""Labels with each of the expert's verdicts below which no rate is corrected by TPR and TNR."""


@dataclass(frozen=True)
class YoudenJ:
    """J = TPR + TNR - 1 with its interval: 1 for a perfect judge, 0 for one that guesses."""

    value: float
    low: float
    high: float

    @property
    def identifies(self) -> bool:
        """Whether the judge is better than chance beyond doubt: without that its rates correct nothing."""
        return self.low > 0.0


def observed_rate(theta: ArrayLike, tpr: ArrayLike, tnr: ArrayLike) -> Floats:
    """The share that a judge reports when the true failure rate is ``theta``: tpr theta + (1 - tnr)(1 - theta).

    Shares of any shape that broadcast. Two rates differ by J times as much for the judge. Raises ValueError when a share
    lies outside [0, 1].

    >>> observed_rate([0.30, 0.20], tpr=0.84, tnr=0.91).round(3)
    array([0.315, 0.24 ])
    """
    rate, caught, passed = (_share(value, name) for value, name in ((theta, "theta"), (tpr, "tpr"), (tnr, "tnr")))
    return np.asarray(caught * rate + (1.0 - passed) * (1.0 - rate))


def rogan_gladen(observed: ArrayLike, tpr: ArrayLike, tnr: ArrayLike) -> Floats:
    """The true rate behind the ``observed`` one, (observed + tnr - 1) / (tpr + tnr - 1); nan where J <= 0.

    Shares of any shape that broadcast. Not cut at 0 and 1: a value outside says that the three shares do not fit
    together, most often by chance. With J <= 0 the judge is no better than chance and nothing can be corrected.

    Raises ValueError when a share lies outside [0, 1].

    Source: Rogan and Gladen (1978), American Journal of Epidemiology 107, 71-76.

    >>> float(rogan_gladen(0.80, tpr=0.92, tnr=0.88).round(4))
    0.85
    >>> float(rogan_gladen(0.5, tpr=0.6, tnr=0.4))
    nan
    """
    share, caught, passed = (
        _share(value, name) for value, name in ((observed, "observed"), (tpr, "tpr"), (tnr, "tnr"))
    )
    # 0.6 + 0.4 - 1 may come out a hair above 0.
    j = caught + passed - 1.0
    better = j > 1e-12
    return np.where(better, (share + passed - 1.0) / np.where(better, j, 1.0), np.nan)


def corrected_interval(observed: Interval, tpr: float, tnr: float) -> Interval:
    """An interval of the observed rate carried over to the true one, when ``tpr`` and ``tnr`` are known exactly.

    Cut at 0 and 1. Where they are only estimates it is too short: use `lang_reiczigel`. Raises ValueError when J <= 0
    or a share lies outside [0, 1].

    Source: Reiczigel, Foldi and Ozsvari (2010), Epidemiology and Infection 138, 1674-1678.

    >>> corrected_interval(Interval(0.2342, 0.3813), tpr=0.96, tnr=0.89)
    Interval(low=0.1461..., high=0.3191...)
    """
    if tpr + tnr - 1.0 <= 1e-12:
        raise ValueError(f"a judge with TPR {tpr!r} and TNR {tnr!r} is no better than chance: nothing can be corrected")
    low, high = (float(np.clip(rogan_gladen(end, tpr, tnr), 0.0, 1.0)) for end in (observed.low, observed.high))
    return Interval(low, high)


def lang_reiczigel(
    flagged: float,
    judged: float,
    caught: float,
    failures: float,
    passed: float,
    goods: float,
    confidence: float = 0.95,
) -> Interval:
    """Interval of the true failure rate that carries the uncertainty of p, TPR and TNR; cut at 0 and 1.

    p = flagged/judged over all judged cases, TPR = caught/failures and TNR = passed/goods over the labelled ones; the
    counts may be effective ones (weighted, clustered). As in Agresti and Coull, z^2/2 cases are added to each side of p
    and one to each side of TPR and TNR; with those, theta~ = (p~ + Sp~ - 1)/J~, shifted by
    D = 2 z^2 [theta~ Se~(1-Se~)/(m1+2) - (1-theta~) Sp~(1-Sp~)/(m0+2)], and +- z times its standard error.

    Whether the judge tells anything is for `youden` to say: as J~ nears 0 this interval becomes [0, 1] only in the end,
    and with J~ <= 0 it is [0, 1]. Raises ValueError when a count is above its total or below 0, or a total is 0.

    Source: Lang and Reiczigel (2014), Preventive Veterinary Medicine 113, 13-22 (with (1 - theta)^2 for the printed
    (1 + theta)^2 in their eq. 4).

    >>> lang_reiczigel(4060, 11284, 178, 179, 358, 359)
    Interval(low=0.3486..., high=0.3720...)
    """
    if min(judged, failures, goods) <= 0:
        raise ValueError("an interval needs judged cases, and labelled ones of both verdicts")
    low, high = lang_reiczigel_limits(flagged, judged, caught, failures, passed, goods, confidence)
    return Interval(float(low), float(high))


def lang_reiczigel_limits(
    flagged: ArrayLike,
    judged: ArrayLike,
    caught: ArrayLike,
    failures: ArrayLike,
    passed: ArrayLike,
    goods: ArrayLike,
    confidence: float = 0.95,
) -> Limits:
    """`lang_reiczigel` for arrays of counts that broadcast; 0 and 1 where J~ <= 0. Raises ValueError as it does.

    >>> low, high = lang_reiczigel_limits([259, 51], 509, [84, 23], [127, 41], [96, 187], [109, 195])
    >>> low.round(3), high.round(3)
    (array([0.585, 0.037]), array([0.866, 0.195]))
    """
    z2 = normal_quantile(confidence) ** 2
    p, n = _added(flagged, judged, z2 / 2.0)
    se, m1 = _added(caught, failures, 1.0)
    sp, m0 = _added(passed, goods, 1.0)
    j = se + sp - 1.0
    better = j > 0.0
    j = np.where(better, j, 1.0)
    theta = (p + sp - 1.0) / j
    of_se, of_sp = se * (1.0 - se) / m1, sp * (1.0 - sp) / m0
    shift = 2.0 * z2 * (theta * of_se - (1.0 - theta) * of_sp)
    half = np.sqrt(z2 * (p * (1.0 - p) / n + theta**2 * of_se + (1.0 - theta) ** 2 * of_sp)) / j
    middle = theta + shift
    low, high = np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)
    return np.where(better, low, 0.0), np.where(better, high, 1.0)


def youden(caught: float, failures: float, passed: float, goods: float, confidence: float = 0.95) -> YoudenJ:
    """Youden's J = TPR + TNR - 1 with the interval by squaring and adding the Wilson limits of TPR and TNR.

    TPR = caught/failures, TNR = passed/goods. Raises ValueError when a count is above its total or a total is 0.

    Source: Youden (1950), Cancer 3, 32-35; interval: Newcombe (1998), Statistics in Medicine 17, 873-890, method 10,
    for TPR - (1 - TNR), a difference of two independent proportions.

    >>> youden(caught=30, failures=40, passed=78, goods=80)
    YoudenJ(value=0.725, low=0.5610..., high=0.8346...)
    >>> youden(3, 6, 4, 6).identifies
    False
    """
    if min(failures, goods) <= 0:
        raise ValueError("Youden's J needs labelled cases of both verdicts")
    low, high = youden_limits(caught, failures, passed, goods, confidence)
    # One division, so that 30 of 40 and 78 of 80 give 0.725 and not a hair more.
    caught, failures, passed, goods = float(caught), float(failures), float(passed), float(goods)
    value = (caught * goods + passed * failures - failures * goods) / (failures * goods)
    return YoudenJ(value, float(low), float(high))


def youden_limits(
    caught: ArrayLike, failures: ArrayLike, passed: ArrayLike, goods: ArrayLike, confidence: float = 0.95
) -> Limits:
    """The interval of `youden` for arrays of counts that broadcast; -1 and 1 where a total is 0.

    Raises ValueError when a count is outside 0..its total, or ``confidence`` not strictly between 0 and 1.

    >>> low, high = youden_limits([30, 8], [40, 20], [78, 12], [80, 20])
    >>> low.round(3), high.round(3)
    (array([ 0.561, -0.28 ]), array([0.835, 0.28 ]))
    """
    passes, goods = np.asarray(passed, dtype=np.float64), np.asarray(goods, dtype=np.float64)
    # TPR - (1 - TNR), the shares flagged among failures and among good answers: samples that are independent.
    return unpaired_limits(goods - passes, goods, caught, failures, confidence)


def not_identified(
    caught: float, failures: float, passed: float, goods: float, confidence: float = 0.95
) -> NotIdentified | None:
    """Why TPR and TNR correct no rate, or None when they do: then any theta in [0, 1] is as good as another.

    Too few labelled failures or good answers (below `FEWEST_LABELS`), or an interval of Youden's J that touches 0, as it
    does for every J <= 0. Raises ValueError when a count is above its total.

    >>> not_identified(caught=30, failures=40, passed=78, goods=80) is None
    True
    >>> not_identified(8, 8, 60, 80), not_identified(12, 20, 40, 80)
    ('too_few_failures', 'no_better_than_chance')
    """
    low, _ = youden_limits(caught, failures, passed, goods, confidence)
    if failures < FEWEST_LABELS:
        return "too_few_failures"
    if goods < FEWEST_LABELS:
        return "too_few_goods"
    return None if low > 0.0 else "no_better_than_chance"


def _share(value: ArrayLike, name: str) -> Floats:
    share = np.asarray(value, dtype=np.float64)
    if not ((share >= 0.0) & (share <= 1.0)).all():
        raise ValueError(f"{name} must be a share between 0 and 1, got {value!r}")
    return share


def _added(count: ArrayLike, total: ArrayLike, each: float) -> tuple[Floats, Floats]:
    """The share and the total after ``each`` cases were added to both sides."""
    hits, size = np.asarray(count, dtype=np.float64), np.asarray(total, dtype=np.float64)
    if not ((hits >= 0.0) & (hits <= size) & np.isfinite(size)).all():
        raise ValueError("every count must lie between 0 and its total")
    return (hits + each) / (size + 2.0 * each), size + 2.0 * each
