"""TPR and TNR of a judge by how the labels were drawn.

Positive = the judge reports a failure; TPR = share of the failures that it reports, TNR = share of the good answers that
it passes. Labels drawn within the judge's verdicts show neither as counted: half of them are flagged cases, so misses
are rare among them (a true TPR of .70 reads .91 at theta .05). p, the flagged share of all judged cases, turns them round.

>>> labelled = Confusion(tp=20, fn=2, fp=80, tn=98)
>>> raw, turned = rates_as_counted(labelled), rates_by_judge(labelled, flagged=356, judged=2000)
>>> round(raw.tpr.value, 2), round(turned.tpr.value, 2)
(0.91, 0.68)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stats.confusion import Confusion
from stats.intervals import Estimate, Interval
from stats.post_stratified import JudgedSample, check_verdicts_labelled
from stats.prevalence_draws import DRAWS, SEED, by_judge_draws, equal_tailed
from stats.proportion_limits import wilson_limits
from stats.rogan_gladen import YoudenJ, youden


@dataclass(frozen=True)
class JudgeRates:
    """TPR and TNR with intervals, and J; None where there is no label to tell.

    caught of failures, passed of goods: the labelled cases behind them, or for weighted labels as many independent
    ones as would tell as much.
    """

    tpr: Estimate
    tnr: Estimate
    youden: YoudenJ | None
    caught: float
    failures: float
    passed: float
    goods: float


def rates_as_counted(labelled: Confusion, confidence: float = 0.95) -> JudgeRates:
    """TPR = TP/(TP + FN) and TNR = TN/(FP + TN) with Wilson intervals: labels drawn at random or by the expert's verdict.

    A class without labels has no rate. Raises ValueError when ``confidence`` is not strictly between 0 and 1.

    >>> rates_as_counted(Confusion(tp=8, fn=12, fp=9, tn=171)).tpr
    Estimate(value=0.4, low=0.2188..., high=0.6134...)
    """
    return _from_counts(labelled.tp, labelled.tp + labelled.fn, labelled.tn, labelled.fp + labelled.tn, confidence)


def rates_by_cell(cells: Sequence[JudgedSample], confidence: float = 0.95) -> JudgeRates:
    """TPR and TNR over cells with their own number of labels each, a label weighing judged/labelled cases of its cell.

    TPR = sum w TP / sum w (TP + FN). The intervals are Wilson's for the effective number (sum of w)^2 / sum of w^2 over
    the labelled failures, and the same for good answers (Kish). Cells without labels have no weight.

    Source: Kish (1965), Survey Sampling, 11.7.

    Raises ValueError when ``confidence`` is not strictly between 0 and 1.

    >>> cells = [
    ...     JudgedSample(Confusion(tp=16, fn=4, fp=3, tn=17), flagged=190, judged=400),
    ...     JudgedSample(Confusion(tp=6, fn=4, fp=1, tn=29), flagged=250, judged=1600),
    ... ]
    >>> rates = rates_by_cell(cells)
    >>> round(rates.tpr.value, 3), round(rates.failures, 1)
    (0.667, 20.0)
    """
    labels = [(cell.labelled, cell.judged / cell.labelled.judged) for cell in cells if cell.labelled.judged]
    failures = [(table.tp, table.tp + table.fn, weight) for table, weight in labels]
    goods = [(table.tn, table.fp + table.tn, weight) for table, weight in labels]
    return _from_counts(*_effective(failures), *_effective(goods), confidence)


def rates_by_judge(
    labelled: Confusion,
    flagged: int,
    judged: int,
    confidence: float = 0.95,
    *,
    draws: int = DRAWS,
    seed: int = SEED,
) -> JudgeRates:
    """TPR = p mu1/theta and TNR = (1-p)(1-mu0)/(1-theta), for labels drawn at random within each of the judge's verdicts.

    p = flagged/judged, mu1 = TP/(TP + FP), mu0 = FN/(FN + TN), theta = (1-p) mu0 + p mu1. Intervals from Jeffreys draws
    of the three, reaching 1 without a labelled error of that kind and 0 without a right one. TPR stays wide at a low
    theta: the misses are few and far between the many cases that the judge passes.

    caught, failures, passed and goods are the labels as counted and give TPR and TNR only through p. Raises
    ValueError when a verdict that the judge gives has no label or flagged is outside 0..judged.

    >>> rates = rates_by_judge(Confusion(tp=40, fn=4, fp=10, tn=46), flagged=300, judged=2000)
    >>> round(rates.tpr.value, 3), round(rates.tpr.low, 2), round(rates.tpr.high, 2), round(rates.tnr.value, 3)
    (0.638, 0.43, 0.84, 0.963)
    """
    check_verdicts_labelled(JudgedSample(labelled, flagged, judged))
    tp, fn, fp, tn = labelled.tp, labelled.fn, labelled.fp, labelled.tn
    # Weighted counts: as if every judged case were labelled.
    flags, passes = flagged / max(tp + fp, 1), (judged - flagged) / max(fn + tn, 1)
    drawn = by_judge_draws(labelled, flagged, judged, draws, seed)
    of_tpr, of_tnr = equal_tailed(drawn.tpr, confidence), equal_tailed(drawn.tnr, confidence)
    j_interval = equal_tailed(drawn.tpr + drawn.tnr - 1.0, confidence)
    tpr = _turned(tp * flags, fn * passes, of_tpr)
    tnr = _turned(tn * passes, fp * flags, of_tnr)
    j = None
    if tpr.value is not None and tnr.value is not None:
        value = tpr.value + tnr.value - 1.0
        j = YoudenJ(value, min(j_interval.low, value), max(j_interval.high, value))
    return JudgeRates(tpr, tnr, j, tp, tp + fn, tn, fp + tn)


def _turned(right: float, wrong: float, drawn: Interval) -> Estimate:
    if right + wrong == 0.0:
        return Estimate(None, None, None)
    value = right / (right + wrong)
    return Estimate(
        value, 0.0 if right == 0.0 else min(drawn.low, value), 1.0 if wrong == 0.0 else max(drawn.high, value)
    )


def _from_counts(caught: float, failures: float, passed: float, goods: float, confidence: float) -> JudgeRates:
    j = youden(caught, failures, passed, goods, confidence) if failures and goods else None
    tpr, tnr = _share(caught, failures, confidence), _share(passed, goods, confidence)
    return JudgeRates(tpr, tnr, j, caught, failures, passed, goods)


def _share(count: float, total: float, confidence: float) -> Estimate:
    if not total:
        return Estimate(None, None, None)
    low, high = wilson_limits(count, total, confidence)
    return Estimate(count / total, float(low), float(high))


def _effective(classes: list[tuple[int, int, float]]) -> tuple[float, float]:
    """Of (right, labelled, weight) for each cell: right and labelled of as many independent cases as tell as much."""
    total = sum(weight * labelled for _, labelled, weight in classes)
    if not total:
        return 0.0, 0.0
    share = sum(weight * right for right, _, weight in classes) / total
    size = total**2 / sum(weight**2 * labelled for _, labelled, weight in classes)
    return min(share * size, size), size
