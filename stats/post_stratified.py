"""The true failure rate from labels that were drawn at random, alone or within the judge's verdicts or within cells.

Positive = the judge reports a failure; theta = true failure rate. The judge's verdicts are strata whose sizes are known:
theta = (1 - p) mu0 + p mu1, with p the flagged share of *all* judged cases (labelled ones included), mu1 = TP/(TP + FP)
the share of real failures among the flagged, mu0 = FN/(FN + TN) among the passed. It needs no TPR or TNR and holds
for a useless judge too, where it becomes the labels' own rate. It equals PPI++ at its best lambda.

It does not hold for labels that were balanced or thinned by the expert's verdict, nor for labels from other data: mu1
and mu0 depend on how frequent failures are. `stats.rogan_gladen` is for those.

>>> estimate = post_stratified(Confusion(tp=79, fn=90, fp=15, tn=416), flagged=647, judged=4000)
>>> round(estimate.value, 4), round(estimate.low, 4), round(estimate.high, 4), estimate.interval
(0.285, 0.2548, 0.3174, 'logit')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.confusion import Confusion
from stats.intervals import normal_quantile
from stats.proportion_limits import Limits, agresti_coull_limits, jeffreys_limits

Floats = NDArray[np.float64]
StratifiedInterval = Literal["logit", "mover", "agresti-coull", "effective-wilson"]

FEWEST_FOR_LOGIT: Final = 5
"""Each of TP, FN, FP and TN must be this large for the logit interval; a cell near 0 has almost no variance to show."""


@dataclass(frozen=True)
class JudgedSample:
    """Judged cases of which some are labelled.

    labelled: the labelled cases with a judge verdict. flagged: how many of all judged cases the judge reports as
    failures, labelled ones included. judged: how many have a verdict. Cases without one are in neither.

    Raises ValueError when flagged is outside 0..judged or there is nothing judged.
    """

    labelled: Confusion
    flagged: int
    judged: int

    def __post_init__(self) -> None:
        if self.judged < 1 or not 0 <= self.flagged <= self.judged:
            raise ValueError(f"flagged must lie in 0..judged, judged be 1 or more; got {self.flagged} of {self.judged}")

    @property
    def share(self) -> float:
        """p, the flagged share of all judged cases."""
        return self.flagged / self.judged

    def check_labelled_among_judged(self) -> None:
        """Raise ValueError when more cases are labelled than judged, in all or with one of the judge's verdicts."""
        flagged, passed = self.labelled.tp + self.labelled.fp, self.labelled.fn + self.labelled.tn
        if flagged > self.flagged or passed > self.judged - self.flagged:
            raise ValueError(
                f"the judge's verdicts count all judged cases, labelled ones included: {flagged} flagged and {passed} "
                f"passed are labelled, but {self.flagged} and {self.judged - self.flagged} are judged so"
            )


@dataclass(frozen=True)
class PostStratified:
    """A true failure rate from strata, with its interval.

    variance: of ``value``, by the delta method; 0 where every stratum is pure, which is why the interval is another then.
    interval: 'logit' or 'mover', see `post_stratified`; 'agresti-coull' where only the labels count; 'effective-wilson' over
    several cells, see `stats.cell_strata`.
    """

    value: float
    low: float
    high: float
    variance: float
    interval: StratifiedInterval


def post_stratified(labelled: Confusion, flagged: int, judged: int, confidence: float = 0.95) -> PostStratified:
    """theta of ``judged`` cases of which the judge flags ``flagged``, from labels that are random within each verdict.

    With all of TP, FN, FP, TN at 5 or more: the logit interval of
    var = (mu1-mu0)^2 p(1-p)/n + (1-p)^2 mu0(1-mu0)/(FN+TN) + p^2 mu1(1-mu1)/(TP+FP). Otherwise 'mover': the Jeffreys
    limits of p, mu1 and mu0, their distances from the estimates squared and added with the same weights. The logit form
    alone covers as little as 82 % where a good judge leaves a cell empty (40 labels, TPR = TNR = .95, theta .20).

    Of a judge that gives one verdict throughout the labels are a plain random sample, with Wilson's interval. Raises
    ValueError when a verdict that the judge gives has no label, or more cases are labelled than judged.

    Source: post-stratification, Cochran (1977), Sampling Techniques, 5A.9; double sampling for misclassified counts,
    Tenenbein (1970), JASA 65, 1350-1361; MOVER, Zou and Donner (2008), Statistics in Medicine 27, 1693-1702.

    >>> post_stratified(Confusion(tp=1, fn=3, fp=3, tn=21), flagged=44, judged=276)
    PostStratified(value=0.1449..., low=0.0624..., high=0.3078..., variance=0.0044..., interval='mover')
    """
    sample = JudgedSample(labelled, flagged, judged)
    sample.check_labelled_among_judged()
    check_verdicts_labelled(sample)
    counts = (labelled.tp, labelled.fn, labelled.fp, labelled.tn, flagged, judged)
    low, high = post_stratified_limits(*counts, confidence)
    value, variance = (float(part) for part in post_stratified_moments(*counts))
    interval: StratifiedInterval = "mover" if _few(labelled) else "logit"
    if 0 in (labelled.tp + labelled.fp, labelled.fn + labelled.tn):
        interval = "agresti-coull"
    return PostStratified(value, float(low), float(high), variance, interval)


def post_stratified_moments(
    tp: ArrayLike, fn: ArrayLike, fp: ArrayLike, tn: ArrayLike, flagged: ArrayLike, judged: ArrayLike
) -> tuple[Floats, Floats]:
    """theta and its variance for arrays of counts that broadcast; the labels' own share where a verdict has no label.

    Counts are whole or effective; flagged and judged count labelled cases too. None is checked here, as `JudgedSample`
    does.

    >>> theta, variance = post_stratified_moments([79, 0], [90, 4], [15, 0], [416, 36], [647, 50], [4000, 1000])
    >>> theta.round(4), (variance**0.5).round(4)
    (array([0.285, 0.1  ]), array([0.016 , 0.0474]))
    """
    a, b, c, d, k, n = (np.asarray(count, dtype=np.float64) for count in (tp, fn, fp, tn, flagged, judged))
    m1, m0, p = a + c, b + d, k / n
    both = (m1 > 0.0) & (m0 > 0.0)
    mu1, mu0 = a / np.where(m1 > 0.0, m1, 1.0), b / np.where(m0 > 0.0, m0, 1.0)
    theta = (1.0 - p) * mu0 + p * mu1
    variance = (mu1 - mu0) ** 2 * p * (1.0 - p) / n
    variance = variance + (1.0 - p) ** 2 * mu0 * (1.0 - mu0) / np.where(m0 > 0.0, m0, 1.0)
    variance = variance + p**2 * mu1 * (1.0 - mu1) / np.where(m1 > 0.0, m1, 1.0)
    labels = np.where(m1 + m0 > 0.0, m1 + m0, 1.0)
    share = (a + b) / labels
    return np.where(both, theta, share), np.where(both, variance, share * (1.0 - share) / labels)


def post_stratified_limits(
    tp: ArrayLike,
    fn: ArrayLike,
    fp: ArrayLike,
    tn: ArrayLike,
    flagged: ArrayLike,
    judged: ArrayLike,
    confidence: float = 0.95,
) -> Limits:
    """The interval of `post_stratified` for arrays of counts, whole or effective; Wilson's of the labels alone where one
    of the judge's verdicts has no label, which only a random draw allows.

    Raises ValueError when flagged is outside 0..judged or ``confidence`` not strictly between 0 and 1; the other counts
    are not checked, as in `post_stratified_moments`.

    >>> low, high = post_stratified_limits([79, 1], [90, 3], [15, 3], [416, 21], [647, 44], [4000, 276])
    >>> low.round(4), high.round(4)
    (array([0.2548, 0.0624]), array([0.3174, 0.3078]))
    """
    a, b, c, d, k, n = np.broadcast_arrays(
        *(np.asarray(count, dtype=np.float64) for count in (tp, fn, fp, tn, flagged, judged))
    )
    theta, variance = post_stratified_moments(a, b, c, d, k, n)
    few = np.minimum(np.minimum(a, b), np.minimum(c, d)) < FEWEST_FOR_LOGIT
    low, high = logit_limits(theta, variance, confidence)
    by_mover = _mover_limits(a, b, c, d, k, n, confidence)
    alone = (a + c == 0.0) | (b + d == 0.0)
    by_labels = agresti_coull_limits(a + b, a + b + c + d, confidence)
    low = np.where(alone, by_labels[0], np.where(few, by_mover[0], low))
    high = np.where(alone, by_labels[1], np.where(few, by_mover[1], high))
    return low, high


def logit_limits(share: ArrayLike, variance: ArrayLike, confidence: float = 0.95) -> Limits:
    """Limits of a share with a given variance, symmetric on the logit scale; the share itself where it is 0 or 1.

    logit theta +- z sqrt(var) / (theta (1 - theta)). Shares strictly between 0 and 1; arrays broadcast.

    Raises ValueError when ``confidence`` is not strictly between 0 and 1; shares and variances are not checked.

    >>> [float(end.round(4)) for end in logit_limits(0.285, 0.000255)]
    [0.2548, 0.3173]
    """
    from scipy.special import expit, logit

    theta, spread = np.asarray(share, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    inside = (theta > 0.0) & (theta < 1.0)
    held = np.where(inside, theta, 0.5)
    half = normal_quantile(confidence) * np.sqrt(spread) / (held * (1.0 - held))
    return np.where(inside, expit(logit(held) - half), theta), np.where(inside, expit(logit(held) + half), theta)


def _mover_limits(
    tp: Floats, fn: Floats, fp: Floats, tn: Floats, flagged: Floats, judged: Floats, confidence: float
) -> Limits:
    m1, m0, p = tp + fp, fn + tn, flagged / judged
    mu1, mu0 = tp / np.where(m1 > 0.0, m1, 1.0), fn / np.where(m0 > 0.0, m0, 1.0)
    theta, gap = (1.0 - p) * mu0 + p * mu1, mu1 - mu0
    p_low, p_high = jeffreys_limits(flagged, judged, confidence)
    low1, high1 = jeffreys_limits(tp, m1, confidence)
    low0, high0 = jeffreys_limits(fn, m0, confidence)
    # A larger p moves theta up when the flagged fail more often than the passed, and down otherwise.
    p_down, p_up = np.where(gap >= 0.0, p - p_low, p_high - p), np.where(gap >= 0.0, p_high - p, p - p_low)
    below = (p * (mu1 - low1)) ** 2 + ((1.0 - p) * (mu0 - low0)) ** 2 + (gap * p_down) ** 2
    above = (p * (high1 - mu1)) ** 2 + ((1.0 - p) * (high0 - mu0)) ** 2 + (gap * p_up) ** 2
    return np.maximum(theta - np.sqrt(below), 0.0), np.minimum(theta + np.sqrt(above), 1.0)


def check_verdicts_labelled(sample: JudgedSample) -> None:
    """Raise ValueError when a verdict that the judge gives has no label.

    >>> check_verdicts_labelled(JudgedSample(Confusion(tp=3, fn=0, fp=1, tn=0), flagged=9, judged=20))
    Traceback (most recent call last):
    ValueError: a label is needed among the cases that the judge flags and among those that it passes
    """
    labelled = sample.labelled
    unknown_flagged = sample.flagged and not labelled.tp + labelled.fp
    unknown_passed = sample.judged - sample.flagged and not labelled.fn + labelled.tn
    if unknown_flagged or unknown_passed or not labelled.judged:
        raise ValueError("a label is needed among the cases that the judge flags and among those that it passes")


def _few(labelled: Confusion) -> bool:
    return min(labelled.tp, labelled.fn, labelled.fp, labelled.tn) < FEWEST_FOR_LOGIT
