"""Prediction-powered inference for a share: labels on a few cases, a judge's verdicts on many.

Positive = the judge reports a failure. theta = mean(y) + lambda (mean f over the rest - mean f over the labelled), with y
the labels and f the judge's verdicts (0/1). lambda = 0 is the labels alone, 1 is PPI; PPI++ takes the lambda with the
least variance. For verdicts of 0 and 1 that is the post-stratified estimate (`stats.post_stratified`), which the product
shows; these forms are here to say so, and to reproduce figures published elsewhere.

The labels must be a random draw from the same data. Here ``flagged`` of ``rest`` counts the *unlabelled* cases only.

>>> table = Confusion(tp=1, fn=3, fp=3, tn=21)
>>> estimate = prediction_powered(table, flagged=40, rest=248, weight=1.0)
>>> round(estimate.value, 4)
0.1613
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from stats.confusion import Confusion
from stats.intervals import normal_quantile


@dataclass(frozen=True)
class PredictionPowered:
    """theta for one lambda (``weight``), with its Wald interval; neither is cut at 0 or 1."""

    value: float
    low: float
    high: float
    variance: float
    weight: float


def prediction_powered(
    labelled: Confusion, flagged: int, rest: int, weight: float, confidence: float = 0.95, *, ddof: int = 0
) -> PredictionPowered:
    """theta = mean(y) + weight (flagged/rest - flagged share of the labelled), and its Wald interval.

    variance = var(y - weight f)/n over the n labelled + weight^2 var(f)/N over the N unlabelled, with ``ddof`` 0 or 1 as
    published programs differ. Raises ValueError without labels or unlabelled cases, or with flagged outside 0..rest.

    Source: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic (2023), Science 382, 669-674; with a weight: Angelopoulos,
    Duchi and Zrnic (2023), arXiv 2311.01453.

    >>> prediction_powered(Confusion(tp=79, fn=90, fp=15, tn=416), flagged=553, rest=3400, weight=0.0).value
    0.2816...
    """
    n = labelled.judged
    _check(labelled, flagged, rest)
    share = flagged / rest
    failures, says_fail = (labelled.tp + labelled.fn) / n, (labelled.tp + labelled.fp) / n
    value = failures + weight * (share - says_fail)
    residuals = ((labelled.tp, 1.0 - weight), (labelled.fn, 1.0), (labelled.fp, -weight), (labelled.tn, 0.0))
    mean = failures - weight * says_fail
    of_labels = math.fsum(count * (residual - mean) ** 2 for count, residual in residuals) / (n - ddof) / n
    variance = of_labels + weight**2 * share * (1.0 - share) / (rest - ddof)
    half = normal_quantile(confidence) * math.sqrt(variance)
    return PredictionPowered(value, value - half, value + half, variance, weight)


def best_weight(labelled: Confusion, flagged: int, rest: int, *, pooled: bool = True, ddof: int = 0) -> float:
    """The lambda of PPI++: cov(y, f) / ((1 + n/N) var(f)), 0 where the judge's verdicts are all the same.

    ``pooled``: var(f) over labelled and unlabelled cases together, as in the authors' program. Otherwise the two parts
    keep their own, cov(y, f) / (var_n(f) + n/N var_N(f)), which minimises the variance of `prediction_powered`.
    Raises ValueError as `prediction_powered` does.

    >>> table = Confusion(tp=1, fn=3, fp=3, tn=21)
    >>> round(best_weight(table, 40, 248), 4), round(best_weight(table, 40, 248, pooled=False, ddof=1), 4)
    (0.1026, 0.1115)
    """
    n = labelled.judged
    _check(labelled, flagged, rest)
    failures, says_fail = (labelled.tp + labelled.fn) / n, (labelled.tp + labelled.fp) / n
    covariance = (labelled.tp - n * failures * says_fail) / (n - ddof)
    if pooled:
        share = (labelled.tp + labelled.fp + flagged) / (n + rest)
        spread = (1.0 + n / rest) * share * (1.0 - share) * (n + rest) / (n + rest - ddof)
    else:
        share = flagged / rest
        spread = says_fail * (1.0 - says_fail) * n / (n - ddof) + n / rest * share * (1.0 - share) * rest / (
            rest - ddof
        )
    return covariance / spread if spread > 0.0 else 0.0


def _check(labelled: Confusion, flagged: int, rest: int) -> None:
    if labelled.judged < 2 or rest < 2:
        raise ValueError("prediction-powered inference needs two labelled and two unlabelled cases or more")
    if not 0 <= flagged <= rest:
        raise ValueError(f"flagged must lie in 0..rest, got {flagged!r} of {rest!r}")
