"""How to split labels between failures and good answers, for the narrowest corrected rate (Rogan-Gladen).

Positive = the judge reports a failure: failures measure TPR, good answers TNR. The more of the corrected rate's variance
comes from one of them, the more labels it gets.

>>> best_allocation(labels=200, theta=0.2, tpr=0.84, tnr=0.91)
Allocation(failures=49, goods=151)
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Allocation:
    """How many labels on failures, and how many on good answers."""

    failures: int
    goods: int


def best_allocation(labels: int, theta: float, tpr: float, tnr: float, fewest: int = 15) -> Allocation:
    """The split with the least variance of the corrected rate, each side with ``fewest`` or more.

    The labels' part of the variance is [theta^2 TPR(1-TPR)/m1 + (1-theta)^2 TNR(1-TNR)/m0] / J^2, least for
    m1 : m0 = theta sqrt(TPR(1-TPR)) : (1-theta) sqrt(TNR(1-TNR)) (Neyman). theta, TPR and TNR are guesses or come from
    a pilot; a rate of exactly 1 counts as half an error in ``labels``, since no sample shows that a judge never errs.

    Raises ValueError when a share lies outside [0, 1] or the labels do not suffice for ``fewest`` on both sides.

    Source: Neyman (1934), Journal of the Royal Statistical Society 97, 558-625.

    >>> best_allocation(labels=200, theta=0.05, tpr=0.7, tnr=0.9)
    Allocation(failures=15, goods=185)
    """
    for name, share in (("theta", theta), ("tpr", tpr), ("tnr", tnr)):
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"{name} must be a share between 0 and 1, got {share!r}")
    if fewest < 0 or labels < max(2 * fewest, 1):
        raise ValueError(f"{labels!r} labels do not suffice for {fewest!r} on both sides")
    nearly = 0.5 / labels
    of_tpr, of_tnr = (min(max(share, nearly), 1.0 - nearly) for share in (tpr, tnr))
    on_failures = theta * math.sqrt(of_tpr * (1.0 - of_tpr))
    on_goods = (1.0 - theta) * math.sqrt(of_tnr * (1.0 - of_tnr))
    failures = round(labels * on_failures / (on_failures + on_goods))
    failures = min(max(failures, fewest), labels - fewest)
    return Allocation(failures, labels - failures)


def lee_allocation(labels: int, flagged_share: float, tpr: float, tnr: float, pilot: int) -> Allocation:
    """The split that Lee et al. propose after a pilot of ``pilot`` labels on each side, which count towards it.

    m1 = labels / (1 + (1/p - 1) sqrt(kappa)), kappa = (pilot (1-TNR) + 1)/(pilot (1-TPR) + 1), p the flagged share, and
    no side below the pilot. It is near `best_allocation` only where TPR and TNR are close to each other and the
    flagged share is close to theta; at its published example (p .4, TPR .9, TNR .7: theta .167) the best
    split gives a third as many labels to the failures. It is here to reproduce published figures.

    Raises ValueError when a share lies outside [0, 1], the pilot is below 1 or larger than half the labels.

    Source: Lee, Zeng, Jeong, Sohn and Lee (2025), arXiv 2511.21140, whose positive is "judged correct".

    >>> lee_allocation(labels=200, flagged_share=0.4, tpr=0.9, tnr=0.7, pilot=10)
    Allocation(failures=64, goods=136)
    """
    for name, share in (("flagged_share", flagged_share), ("tpr", tpr), ("tnr", tnr)):
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"{name} must be a share between 0 and 1, got {share!r}")
    if pilot < 1 or labels < 2 * pilot:
        raise ValueError(f"a pilot must have a label on each side and fit into {labels!r} labels twice, got {pilot!r}")
    kappa = (pilot * (1.0 - tnr) + 1.0) / (pilot * (1.0 - tpr) + 1.0)
    # labels p / (p + (1 - p) sqrt(kappa)) is the same and bears p = 0.
    wanted = labels * flagged_share / (flagged_share + (1.0 - flagged_share) * math.sqrt(kappa))
    failures = max(pilot, round(min(labels - pilot, wanted)))
    return Allocation(failures, labels - failures)
