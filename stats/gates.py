"""The gate that a judge has to pass: enough failures caught, on enough failures to say so.

The *release* gate looks at the TPR point once there are enough failures. The *strict* gate looks at its interval, and
stays undecided while the target lies within. `labels_needed` says how many labels of a class that takes.

>>> gate = default_gate(Confusion(tp=17, fn=5, fp=6, tn=58))
>>> gate.reached, gate.reason, gate.failures_needed
(None, 'not_enough_failures', 3)
>>> strict = strict_gate(Confusion(tp=27, fn=3, fp=6, tn=58))
>>> strict.reached, strict.reason, strict.decides_at, strict.failures_needed
(None, 'undecided', 74, 44)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from stats.confusion import Confusion
from stats.intervals import Proportion, normal_quantile, proportion

GateReason = Literal["not_enough_failures", "reached", "missed"]
StrictReason = Literal["reached", "missed", "undecided"]

_MOST: Final = 10_000_000


@dataclass(frozen=True)
class GateResult:
    """What a gate says about TPR (positive = the judge reports a failure).

    decided: False below the count of failures; then ``reached`` is None: neither reached nor missed.
    reason: 'not_enough_failures', 'reached' or 'missed'.
    failures: the expert's FAIL cases with a judge verdict. failures_needed: how many more are needed, 0 when decided.
    target: the TPR asked for, as a share. needed: the count of failures asked for.
    """

    decided: bool
    reached: bool | None
    reason: GateReason
    failures: int
    failures_needed: int
    target: float
    needed: int


@dataclass(frozen=True)
class StrictResult:
    """What the strict gate says about TPR (positive = the judge reports a failure).

    reached: True, False (missed), or None while the target lies within the interval (undecided).
    tpr: caught of the expert's FAIL cases with a judge verdict, with its Wilson interval.
    decides_at: how many failures would decide at the present rate; before the first failure, how many would if none
    were missed. failures_needed: how many of these are still to come. Both are None where no number up to ten million
    would: the present rate is the target, or all but. When decided they are the present count and 0.
    """

    reached: bool | None
    reason: StrictReason
    tpr: Proportion
    decides_at: int | None
    failures_needed: int | None
    target: float


@dataclass(frozen=True)
class LabelsNeeded:
    """How many labels of a class put the interval's lower end at ``target``, when a share ``rate`` of them is right."""

    target: float
    rate: float
    labels: int | None


def default_gate(confusion: Confusion, target: float = 0.8, needed: int = 25) -> GateResult:
    """The release gate: the TPR point is at or above ``target`` on at least ``needed`` failures.

    Failures on which the judge gave no verdict do not count towards ``needed``. Raises ValueError when ``target`` is
    not in (0, 1] or ``needed`` is below 1.

    >>> default_gate(Confusion(tp=20, fn=5, fp=0, tn=10)).reason
    'reached'
    >>> default_gate(Confusion(tp=19, fn=6, fp=0, tn=10)).reason
    'missed'
    """
    if not 0.0 < target <= 1.0:
        raise ValueError(f"target must be a share above 0 and at most 1, got {target!r}")
    if needed < 1:
        raise ValueError(f"a gate needs at least one failure, got needed={needed!r}")
    failures = confusion.tp + confusion.fn
    if failures < needed:
        return GateResult(False, None, "not_enough_failures", failures, needed - failures, target, needed)
    reached = confusion.tp / failures >= target
    return GateResult(True, reached, "reached" if reached else "missed", failures, 0, target, needed)


def strict_gate(confusion: Confusion, target: float = 0.8, confidence: float = 0.95) -> StrictResult:
    """The strict gate: reached when the Wilson interval of TPR lies at or above ``target``, missed when it lies below.

    In between it is undecided, and ``decides_at`` says how many failures would decide at the present rate: the rule of
    `labels_needed`, towards whichever side of the target the rate is on. Failures on which the judge gave no verdict
    do not count.

    Raises ValueError when ``target`` or ``confidence`` is not strictly between 0 and 1.

    >>> strict_gate(Confusion(tp=16, fn=0, fp=0, tn=10)).reason
    'reached'
    >>> strict_gate(Confusion(tp=8, fn=12, fp=9, tn=171)).reason
    'missed'
    >>> strict_gate(Confusion(tp=0, fn=0, fp=0, tn=10)).decides_at
    16
    """
    _check_target(target)
    caught, failures = confusion.tp, confusion.tp + confusion.fn
    tpr = proportion(caught, failures, confidence)
    if tpr.low is not None and tpr.low >= target:
        return StrictResult(True, "reached", tpr, failures, 0, target)
    if tpr.high is not None and tpr.high < target:
        return StrictResult(False, "missed", tpr, failures, 0, target)
    decides_at = _decides_at(Fraction(caught, failures) if failures else Fraction(1), _as_meant(target), confidence)
    return StrictResult(
        None, "undecided", tpr, decides_at, None if decides_at is None else decides_at - failures, target
    )


def labels_needed(target: float, rate: float, confidence: float = 0.95) -> int | None:
    """The labels of a class from which on the Wilson interval's lower end stays at ``target`` or above.

    A share ``rate`` of the labels is taken to be judged right, rounded down to whole cases. Since rounding makes the
    lower end go up and down with n, the answer is the first n from which on it never falls below the target again, not
    the first n that happens to reach it. None when ``rate`` is not above ``target``, or so little that ten million labels
    would not be enough.

    Shares are taken as the decimals that they are written as. Raises ValueError when ``target`` or ``confidence`` is
    not strictly between 0 and 1, or ``rate`` not in 0..1.

    >>> labels_needed(0.8, 1.0), labels_needed(0.8, 0.95), labels_needed(0.8, 0.9), labels_needed(0.9, 0.95)
    (16, 33, 74, 166)
    """
    _check_target(target)
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"rate must be a share between 0 and 1, got {rate!r}")
    normal_quantile(confidence)
    share = _as_meant(rate)
    return _decides_at(share, _as_meant(target), confidence) if share > _as_meant(target) else None


def labels_needed_table(
    targets: tuple[float, ...] = (0.8, 0.9), rates: tuple[float, ...] = (1.0, 0.95, 0.9), confidence: float = 0.95
) -> list[LabelsNeeded]:
    """`labels_needed` for each target and each rate, row by row. Raises ValueError as it does.

    >>> [row.labels for row in labels_needed_table()]
    [16, 33, 74, 35, 166, None]
    """
    return [LabelsNeeded(target, rate, labels_needed(target, rate, confidence)) for target in targets for rate in rates]


def _check_target(target: float) -> None:
    if not 0.0 < target < 1.0:
        raise ValueError(f"an interval can only lie above a target between 0 and 1, got {target!r}")


def _as_meant(share: float) -> Fraction:
    return Fraction(share).limit_denominator(1_000_000)


def _decides_at(rate: Fraction, target: Fraction, confidence: float) -> int | None:
    """The first n from which on the interval of ``rate`` n cases, rounded towards the target, leaves the target out.

    The Wilson interval leaves the target t out when |k - t n| >= z sqrt(n t (1 - t)), so no interval is worked out.
    A rate below the target is the same question about the wrong cases.
    """
    if rate == target:
        return None
    if rate < target:
        rate, target = 1 - rate, 1 - target
    z = normal_quantile(confidence)
    ahead, deviation = float(rate - target), z * math.sqrt(target * (1 - target))
    # Rounding takes less than one case, so that from this n on every n does.
    certain = math.ceil(((deviation + math.sqrt(deviation**2 + 4.0 * ahead)) / (2.0 * ahead)) ** 2) + 1
    if certain > _MOST:
        return None
    for n in range(certain - 1, 0, -1):
        if n * rate.numerator // rate.denominator - n * float(target) < deviation * math.sqrt(n):
            return n + 1
    return 1
