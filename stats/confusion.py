"""A judge against one expert: the confusion table and the rates that follow from it.

Positive = the judge reports a failure. TPR is the share of the expert's FAIL cases that the judge calls FAIL,
TNR the share of the expert's PASS cases that it calls PASS. A case on which the judge gave *no verdict* is in no
rate, is counted apart, and `no_verdict_bounds` shows how far it could move TPR and TNR.

>>> table = Confusion(tp=8, fn=12, fp=9, tn=171)
>>> figures = rates(table)
>>> figures.tpr.value, figures.tnr.value, figures.agreement.value
(0.4, 0.95, 0.895)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal

from stats.intervals import normal_quantile, wilson

Verdict = Literal["PASS", "FAIL"]


@dataclass(frozen=True)
class Confusion:
    """Counts of cases by the expert's and the judge's verdict. Positive = the judge reports a failure.

    tp: expert FAIL, judge FAIL (a failure caught).
    fn: expert FAIL, judge PASS (a failure missed).
    fp: expert PASS, judge FAIL (a false alarm).
    tn: expert PASS, judge PASS.
    no_verdict_fail, no_verdict_pass: the judge gave no verdict, by the expert's verdict.
    unlabelled: cases without an expert verdict; in no rate.

    Raises ValueError when a count is negative or not a whole number.
    """

    tp: int
    fn: int
    fp: int
    tn: int
    no_verdict_fail: int = 0
    no_verdict_pass: int = 0
    unlabelled: int = 0

    def __post_init__(self) -> None:
        for entry in fields(self):
            count = getattr(self, entry.name)
            if count != int(count) or count < 0:
                raise ValueError(f"{entry.name} must be a whole number of cases, 0 or more, got {count!r}")

    @property
    def no_verdict(self) -> int:
        """Labelled cases on which the judge gave no verdict."""
        return self.no_verdict_fail + self.no_verdict_pass

    @property
    def judged(self) -> int:
        """Cases with a verdict of both: what agreement and kappa are taken over."""
        return self.tp + self.fn + self.fp + self.tn

    @property
    def labelled(self) -> int:
        """Cases with an expert verdict, those without a judge verdict included."""
        return self.judged + self.no_verdict


@dataclass(frozen=True)
class Proportion:
    """k of n with its 95 % Wilson interval; ``value``, ``low`` and ``high`` are None when n = 0."""

    k: int
    n: int
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Estimate:
    """A figure that is no proportion. ``value`` is None where undefined, ``low`` and ``high`` without an interval."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Rates:
    """What a confusion table says about the judge, over the cases with a verdict of both.

    tpr: tp of tp + fn. tnr: tn of fp + tn. precision: tp of tp + fp. recall: the same figure as tpr, by its other name.
    agreement: (tp + tn) of all. baseline_agreement: what a judge that always says PASS would reach, (fp + tn) of all.
    kappa: Cohen's kappa of expert and judge.
    """

    tpr: Proportion
    tnr: Proportion
    precision: Proportion
    recall: Proportion
    agreement: Proportion
    baseline_agreement: Proportion
    kappa: Estimate


@dataclass(frozen=True)
class NoVerdictBounds:
    """TPR and TNR with every missing judge verdict counted as PASS, and as FAIL: what silence about them could hide."""

    tpr_as_pass: Proportion
    tpr_as_fail: Proportion
    tnr_as_pass: Proportion
    tnr_as_fail: Proportion


def proportion(k: int, n: int) -> Proportion:
    """k of n with its 95 % Wilson interval.

    Raises ValueError when n < 0 or k is outside 0..n.

    >>> proportion(8, 20)
    Proportion(k=8, n=20, value=0.4, low=0.2188..., high=0.6134...)
    >>> proportion(0, 0)
    Proportion(k=0, n=0, value=None, low=None, high=None)
    """
    if k == n == 0:
        return Proportion(0, 0, None, None, None)
    interval = wilson(k, n)
    return Proportion(k, n, k / n, interval.low, interval.high)


def rates(confusion: Confusion) -> Rates:
    """The rates of a confusion table, each over the cases with a verdict of both expert and judge.

    >>> always_pass = rates(Confusion(tp=0, fn=10, fp=0, tn=90))
    >>> always_pass.agreement.value, always_pass.baseline_agreement.value, always_pass.tpr.value
    (0.9, 0.9, 0.0)
    >>> always_pass.precision.value is None
    True
    """
    tp, fn, fp, tn = confusion.tp, confusion.fn, confusion.fp, confusion.tn
    tpr = proportion(tp, tp + fn)
    return Rates(
        tpr=tpr,
        tnr=proportion(tn, fp + tn),
        precision=proportion(tp, tp + fp),
        recall=tpr,
        agreement=proportion(tp + tn, confusion.judged),
        baseline_agreement=proportion(fp + tn, confusion.judged),
        kappa=kappa(confusion),
    )


def kappa(confusion: Confusion, confidence: float = 0.95) -> Estimate:
    """Cohen's kappa of expert and judge with a large-sample interval, cut at -1 and 1.

    The value is None when there is no case with both verdicts, or when both gave one and the same verdict throughout
    (chance agreement 1). The interval is None where its standard error is 0: kappa 1 or -1, and a constant judge or
    expert. There the approximation would claim certainty, however few the cases.

    Source: Cohen (1960); standard error of Fleiss, Cohen and Everitt (1969), Psychological Bulletin 72, 323-327.

    >>> kappa(Confusion(tp=9, fn=2, fp=3, tn=7))
    Estimate(value=0.5205..., low=0.1557..., high=0.8853...)
    """
    z = normal_quantile(confidence)
    n = confusion.judged
    tp, fn, fp, tn = confusion.tp, confusion.fn, confusion.fp, confusion.tn
    expert_fail, expert_pass = tp + fn, fp + tn
    judge_fail, judge_pass = tp + fp, fn + tn
    # Whole numbers as long as possible: n^2 (1 - chance agreement) is exactly 0 when kappa is undefined.
    by_chance = expert_fail * judge_fail + expert_pass * judge_pass
    beyond_chance = n * n - by_chance
    if beyond_chance == 0:
        return Estimate(None, None, None)
    value = (n * (tp + tn) - by_chance) / beyond_chance
    if 0 in (expert_fail, expert_pass, judge_fail, judge_pass, fn + fp) or (tp + tn == 0 and fn == fp):
        return Estimate(value, None, None)
    disagreement, room = (fn + fp) / n, beyond_chance / (n * n)
    # Derivative of kappa by each cell's share, times room squared: the delta method's weights. Centring them gives the
    # published formula in a form that cannot turn negative by rounding.
    cells = (
        (tp, room - disagreement * (judge_fail + expert_fail) / n),
        (tn, room - disagreement * (judge_pass + expert_pass) / n),
        (fn, -disagreement * (judge_fail + expert_pass) / n),
        (fp, -disagreement * (judge_pass + expert_fail) / n),
    )
    centre = sum(count * weight for count, weight in cells) / n
    variance = sum(count * (weight - centre) ** 2 for count, weight in cells) / n / room**4
    half = z * math.sqrt(variance / n)
    return Estimate(value, max(value - half, -1.0), min(value + half, 1.0))


def no_verdict_bounds(confusion: Confusion) -> NoVerdictBounds:
    """TPR and TNR over all labelled cases, with every missing verdict read as PASS, and as FAIL.

    >>> bounds = no_verdict_bounds(Confusion(tp=8, fn=2, fp=1, tn=9, no_verdict_fail=2, no_verdict_pass=1))
    >>> bounds.tpr_as_pass.k, bounds.tpr_as_fail.k, bounds.tpr_as_pass.n
    (8, 10, 12)
    """
    failures = confusion.tp + confusion.fn + confusion.no_verdict_fail
    passes = confusion.fp + confusion.tn + confusion.no_verdict_pass
    return NoVerdictBounds(
        tpr_as_pass=proportion(confusion.tp, failures),
        tpr_as_fail=proportion(confusion.tp + confusion.no_verdict_fail, failures),
        tnr_as_pass=proportion(confusion.tn + confusion.no_verdict_pass, passes),
        tnr_as_fail=proportion(confusion.tn, passes),
    )


def swap_positive(confusion: Confusion) -> Confusion:
    """The same table under the other convention (positive = the judge says PASS): TPR and TNR trade places.

    >>> swap_positive(Confusion(tp=8, fn=12, fp=9, tn=171))
    Confusion(tp=171, fn=9, fp=12, tn=8, no_verdict_fail=0, no_verdict_pass=0, unlabelled=0)
    """
    return Confusion(
        tp=confusion.tn,
        fn=confusion.fp,
        fp=confusion.fn,
        tn=confusion.tp,
        no_verdict_fail=confusion.no_verdict_pass,
        no_verdict_pass=confusion.no_verdict_fail,
        unlabelled=confusion.unlabelled,
    )


def is_constant(confusion: Confusion) -> Verdict | None:
    """The one verdict that the judge gave every time, or None when it gave both or none.

    Cases without a judge verdict or without a label say nothing here. A table in which the expert gave only that
    verdict too is constant as well; it cannot show whether the judge would ever say the other.

    >>> is_constant(Confusion(tp=0, fn=20, fp=0, tn=180))
    'PASS'
    """
    says_fail, says_pass = confusion.tp + confusion.fp, confusion.fn + confusion.tn
    if says_pass and not says_fail:
        return "PASS"
    if says_fail and not says_pass:
        return "FAIL"
    return None
