"""The mean outcome of one prompt with an interval from its items.

The items are the sample: the interval speaks of new items like these, not of other seeds. Seeds that draw from one
dataset share items, and an interval over them would be far too short.

>>> prompt_mean([1.0, 0.0, 0.0, 1.0, float("nan")])
PromptMean(mean=0.5, low=0.15..., high=0.84..., n=4, method='wilson')
>>> prompt_mean([2.0, 4.0, 3.0])
PromptMean(mean=3.0, low=0.51..., high=5.48..., n=3, method='t')
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from stats.intervals import normal_quantile, wilson
from stats.subsets import is_binary

Method = Literal["wilson", "t", "none"]


@dataclass(frozen=True)
class PromptMean:
    """Mean over ``n`` items with its interval; ``mean`` is None without an outcome, ``low`` and ``high`` without an interval.

    method: 'wilson' for 0/1 outcomes, 't' for other numbers, 'none' with fewer than two of these.
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int
    method: Method


def prompt_mean(outcomes: ArrayLike, confidence: float = 0.95, *, binary: bool | None = None) -> PromptMean:
    """The mean of ``outcomes`` [N] (nan = missing, left out) with its interval over items.

    ``binary`` says that the outcomes are 0/1 by their nature; without it, that is so when all of them are 0 or 1. A
    prompt whose numbers happen to be all 0 or all 1 should be told apart by what the other prompts have.

    Wilson for 0/1, otherwise mean +- t s / sqrt(n) with n - 1 degrees of freedom; equal numbers throughout give an
    interval of no width there, which claims more than it should.

    Raises ValueError when an outcome is infinite, ``binary`` ones are not 0 or 1, or the confidence is not in (0, 1).

    >>> prompt_mean([1, 1, 1], binary=True).high, prompt_mean([]).mean
    (1.0, None)
    """
    values = np.asarray(outcomes, dtype=np.float64)
    values = values[~np.isnan(values)]
    if np.isinf(values).any():
        raise ValueError("an outcome must be a finite number, or nan where there is none")
    normal_quantile(confidence)
    n = int(values.size)
    if not n:
        return PromptMean(None, None, None, 0, "none")
    if is_binary(values) if binary is None else binary:
        if not is_binary(values):
            raise ValueError("outcomes said to be 0/1 hold other numbers")
        hits = int(values.sum())
        interval = wilson(hits, n, confidence)
        return PromptMean(hits / n, interval.low, interval.high, n, "wilson")
    mean = math.fsum(values) / n
    if n == 1:
        return PromptMean(mean, None, None, 1, "none")
    from scipy.special import stdtrit

    half = float(stdtrit(n - 1, 0.5 + confidence / 2.0)) * float(values.std(ddof=1)) / math.sqrt(n)
    return PromptMean(mean, mean - half, mean + half, n, "t")
