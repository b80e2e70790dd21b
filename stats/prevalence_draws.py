"""The true failure rate by simulation: what the counts allow, as draws.

Positive = the judge reports a failure. With p, TPR and TNR (or p, mu1 and mu0) drawn from the beta distributions that
their counts leave, every figure that follows from them gets its distribution, and from it an interval: equal-tailed, or
the shortest that holds the share asked for. Draws are seeded: the same counts give the same figures.

p counts all judged cases, labelled ones included.

>>> draws = jeffreys_draws(flagged=80, judged=400, caught=30, failures=40, passed=78, goods=80)
>>> interval = equal_tailed(draws)
>>> round(interval.low, 2), round(interval.high, 2)
(0.16, 0.33)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.confusion import Confusion
from stats.intervals import Interval, normal_quantile

Floats = NDArray[np.float64]

DRAWS: Final = 40_000
"""Draws behind an interval, unless said otherwise: its ends then vary by about 1 % of its width from seed to seed."""

SEED: Final = 20_001
"""Seed of the draws, unless said otherwise: the same counts give the same interval."""


@dataclass(frozen=True)
class JudgeRateDraws:
    """Draws of theta, TPR and TNR that belong together, one array each."""

    theta: Floats
    tpr: Floats
    tnr: Floats


def jeffreys_draws(
    flagged: float,
    judged: float,
    caught: float,
    failures: float,
    passed: float,
    goods: float,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Floats:
    """Draws of theta = (p + TNR - 1)/(TPR + TNR - 1), each rate from its Jeffreys posterior; cut at 0 and 1.

    p ~ Beta(flagged + 1/2, judged - flagged + 1/2), TPR from caught of failures and TNR from passed of goods likewise.
    Cutting keeps the mass that lies beyond an end at that end. A draw with J <= 0 says nothing of theta and is uniform.

    Raises ValueError when a count is above its total or below 0.

    Source: the rule of Jeffreys for each proportion (Brown, Cai and DasGupta 2001, Statistical Science 16, 101-133).

    >>> round(float(np.median(jeffreys_draws(344, 2400, 10, 12, 31, 34))), 3)
    0.071
    """
    rng = np.random.default_rng(seed)
    p = _beta(rng, flagged, judged, 0.5, draws)
    tpr, tnr = _beta(rng, caught, failures, 0.5, draws), _beta(rng, passed, goods, 0.5, draws)
    j = tpr + tnr - 1.0
    theta = np.clip((p + tnr - 1.0) / np.where(j > 0.0, j, 1.0), 0.0, 1.0)
    return np.where(j > 0.0, theta, rng.random(draws))


def flat_draws(
    flagged: float,
    judged: float,
    caught: float,
    failures: float,
    passed: float,
    goods: float,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Floats:
    """Draws from the posterior of theta with flat priors on theta, TPR and TNR, those with J > 0 only.

    A flat prior on p gives theta the density J on the values that TPR and TNR allow, so draws with theta in [0, 1] are
    kept with weight 1/J; they come sorted. They never pile up at 0: an interval at a low rate tends to leave 0 out, if only just.

    Raises ValueError as `jeffreys_draws` does, and when hardly any draw is possible.

    Source: Gelman and Carpenter (2020), Journal of the Royal Statistical Society C 69, 1269-1283, the simple model.

    >>> round(float(flat_draws(50, 3330, 103, 122, 399, 401).mean()), 3)
    0.01
    """
    rng = np.random.default_rng(seed)
    p = _beta(rng, flagged, judged, 1.0, draws)
    tpr, tnr = _beta(rng, caught, failures, 1.0, draws), _beta(rng, passed, goods, 1.0, draws)
    j = tpr + tnr - 1.0
    theta = (p + tnr - 1.0) / np.where(j > 0.0, j, 1.0)
    possible = (j > 0.0) & (theta >= 0.0) & (theta <= 1.0)
    if possible.sum() < max(min(100, draws // 10), 1):
        raise ValueError("the judge's share of failures does not fit its TPR and TNR: hardly any draw is possible")
    # Systematic resampling: one random start, then even steps through the weights, so that little is added to the noise.
    order = np.argsort(theta[possible])
    reached = np.cumsum((1.0 / j[possible])[order])
    steps = (np.arange(draws) + rng.random()) * reached[-1] / draws
    return np.asarray(theta[possible][order][np.searchsorted(reached, steps)], dtype=np.float64)


def by_judge_draws(
    labelled: Confusion, flagged: int, judged: int, draws: int = DRAWS, seed: int = SEED
) -> JudgeRateDraws:
    """Draws of theta, TPR and TNR from labels that are random within each of the judge's verdicts.

    p, mu1 = TP/(TP + FP) and mu0 = FN/(FN + TN) from their Jeffreys posteriors; theta = (1-p) mu0 + p mu1,
    TPR = p mu1/theta, TNR = (1-p)(1-mu0)/(1-theta). Raises ValueError when a count is above its total.

    >>> found = by_judge_draws(Confusion(tp=40, fn=4, fp=10, tn=46), flagged=300, judged=2000)
    >>> round(float(found.theta.mean()), 2), round(float(found.tpr.mean()), 2), round(float(found.tnr.mean()), 2)
    (0.19, 0.63, 0.96)
    """
    rng = np.random.default_rng(seed)
    p = _beta(rng, flagged, judged, 0.5, draws)
    mu1 = _beta(rng, labelled.tp, labelled.tp + labelled.fp, 0.5, draws)
    mu0 = _beta(rng, labelled.fn, labelled.fn + labelled.tn, 0.5, draws)
    theta = (1.0 - p) * mu0 + p * mu1
    return JudgeRateDraws(theta, p * mu1 / theta, (1.0 - p) * (1.0 - mu0) / (1.0 - theta))


def melded_interval(
    flagged: float,
    judged: float,
    caught: float,
    failures: float,
    passed: float,
    goods: float,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Interval:
    """Interval of theta that was never seen to cover less than its confidence, at the price of width.

    Each end takes for each rate the Clopper-Pearson distribution that is the least favourable for that end: the lower
    end p's lower one and the upper ones of TPR and of 1 - TNR, the upper end the reverse. A draw with J <= 0 counts as
    the end itself, 0 or 1.

    Raises ValueError as `jeffreys_draws` does, and when ``confidence`` is not strictly between 0 and 1.

    Source: Bayer, Fay and Graubard (2023), arXiv 2205.13494, the binomial method with one stratum.

    >>> interval = melded_interval(51, 509, 23, 41, 187, 195)
    >>> round(interval.low, 2), round(interval.high, 2)
    (0.03, 0.21)
    """
    normal_quantile(confidence)
    rng = np.random.default_rng(seed)
    tail = (1.0 - confidence) / 2.0
    ends = []
    for upper, quantile in ((False, tail), (True, 1.0 - tail)):
        p = _confidence_beta(rng, flagged, judged, upper, draws)
        tpr = _confidence_beta(rng, caught, failures, not upper, draws)
        false_alarms = _confidence_beta(rng, goods - passed, goods, not upper, draws)
        j = tpr - false_alarms
        inside = np.clip((p - false_alarms) / np.where(j > 0.0, j, 1.0), 0.0, 1.0)
        ends.append(float(np.quantile(np.where(j > 0.0, inside, float(upper)), quantile)))
    return Interval(ends[0], ends[1])


def equal_tailed(draws: ArrayLike, confidence: float = 0.95) -> Interval:
    """The interval with as many draws below as above it. Raises ValueError without draws or for a bad confidence.

    >>> equal_tailed([0.0, 1.0, 2.0, 3.0, 4.0], confidence=0.5)
    Interval(low=1.0, high=3.0)
    """
    held = _draws(draws, confidence)
    low, high = np.quantile(held, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0])
    return Interval(float(low), float(high))


def highest_density(draws: ArrayLike, confidence: float = 0.95) -> Interval:
    """The shortest interval that holds the share ``confidence`` of the draws (HPD, for one peak).

    It is not kept by a change of scale, and near 0 it starts at 0 more readily than `equal_tailed`. Raises ValueError
    without draws or for a bad confidence.

    >>> highest_density([0.0, 0.01, 0.02, 0.03, 0.9], confidence=0.8)
    Interval(low=0.0, high=0.03)
    """
    held = np.sort(_draws(draws, confidence))
    inside = max(int(np.ceil(confidence * held.size - 1e-9)), 1)
    widths = held[inside - 1 :] - held[: held.size - inside + 1]
    start = int(widths.argmin())
    return Interval(float(held[start]), float(held[start + inside - 1]))


def _draws(draws: ArrayLike, confidence: float) -> Floats:
    normal_quantile(confidence)
    held = np.asarray(draws, dtype=np.float64)
    if not held.size or np.isnan(held).any():
        raise ValueError("an interval needs at least one draw, and no nan among them")
    return held


def _beta(rng: np.random.Generator, count: float, total: float, prior: float, draws: int) -> Floats:
    _check(count, total)
    return rng.beta(count + prior, total - count + prior, size=draws)


def _confidence_beta(rng: np.random.Generator, count: float, total: float, upper: bool, draws: int) -> Floats:
    """Clopper-Pearson's lower or upper distribution of a proportion; a point at 0 of n (lower) and at n of n (upper)."""
    _check(count, total)
    above, below = (count + 1.0, total - count) if upper else (count, total - count + 1.0)
    if above == 0.0 or below == 0.0:
        return np.full(draws, 1.0 if upper else 0.0)
    return rng.beta(above, below, size=draws)


def _check(count: float, total: float) -> None:
    if not 0 <= count <= total:
        raise ValueError(f"a count must lie between 0 and its total, got {count!r} of {total!r}")
