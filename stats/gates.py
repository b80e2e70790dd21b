"""The gate that a judge has to pass: enough failures caught, on enough failures to say so.

>>> gate = default_gate(Confusion(tp=17, fn=5, fp=6, tn=58))
>>> gate.reached, gate.reason, gate.failures_needed
(None, 'not_enough_failures', 3)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stats.confusion import Confusion

GateReason = Literal["not_enough_failures", "reached", "missed"]


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
        return GateResult(
            False,
            None,
            "not_enough_failures",
            failures,
            needed - failures,
            target,
            needed,
        )
    reached = confusion.tp / failures >= target
    return GateResult(True, reached, "reached" if reached else "missed", failures, 0, target, needed)
