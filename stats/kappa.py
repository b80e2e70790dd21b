"""Cohen's kappa: how far two raters of the same cases agree beyond chance.

The raters are an expert and a judge, or one expert the first time and the second. The table of two verdicts is given
by its four counts, in this order: both FAIL, FAIL by the first only, FAIL by the second only, both PASS. Kappa and its
interval are the same when the raters trade places, or the verdicts do.

>>> cohens_kappa(9, 2, 3, 7)
Estimate(value=0.5205..., low=0.1557..., high=0.8853...)
>>> kappa_variance(9, 2, 3, 7)
0.0346...
"""

from __future__ import annotations

import math

from stats.intervals import Estimate, as_count, normal_quantile


def cohens_kappa(
    both_fail: int, first_only: int, second_only: int, both_pass: int, confidence: float = 0.95
) -> Estimate:
    """Kappa, (agreement - chance agreement) / (1 - chance agreement), with a large-sample interval cut at -1 and 1.

    The value is None when there is no case, or when both raters gave one and the same verdict throughout (chance
    agreement 1). The interval is None where `kappa_variance` is 0 or None.

    Raises ValueError when a count is negative or not a whole number, or ``confidence`` is not strictly between 0 and 1.

    Source: Cohen (1960), Educational and Psychological Measurement 20, 37-46.

    >>> cohens_kappa(20, 5, 10, 15)
    Estimate(value=0.4, low=0.1510..., high=0.6489...)
    >>> cohens_kappa(0, 20, 0, 180)
    Estimate(value=0.0, low=None, high=None)
    >>> cohens_kappa(0, 0, 0, 9)
    Estimate(value=None, low=None, high=None)
    """
    z = normal_quantile(confidence)
    both_fail, first_only, second_only, both_pass = _whole(both_fail, first_only, second_only, both_pass)
    beyond_chance = _beyond_chance(both_fail, first_only, second_only, both_pass)
    if beyond_chance == 0:
        return Estimate(None, None, None)
    n = both_fail + first_only + second_only + both_pass
    value = (beyond_chance - n * (first_only + second_only)) / beyond_chance
    variance = kappa_variance(both_fail, first_only, second_only, both_pass)
    if not variance:
        return Estimate(value, None, None)
    half = z * math.sqrt(variance)
    return Estimate(value, max(value - half, -1.0), min(value + half, 1.0))


def kappa_variance(both_fail: int, first_only: int, second_only: int, both_pass: int) -> float | None:
    """The large-sample variance of kappa around its own value: what its interval needs.

    This is not the variance under the hypothesis that kappa is 0, which only a test of that uses. It is 0 where the
    approximation would claim certainty however few the cases: at kappa 1 and -1, and where one rater gave one verdict
    throughout. It is None where kappa is.

    Raises ValueError when a count is negative or not a whole number.

    Source: Fleiss, Cohen and Everitt (1969), Psychological Bulletin 72, 323-327.

    >>> kappa_variance(20, 5, 10, 15)
    0.0161...
    >>> kappa_variance(3, 0, 0, 4), kappa_variance(0, 0, 0, 9)
    (0.0, None)
    """
    both, one, other, neither = _whole(both_fail, first_only, second_only, both_pass)
    beyond_chance = _beyond_chance(both, one, other, neither)
    if beyond_chance == 0:
        return None
    n = both + one + other + neither
    first_fail, second_fail = both + one, both + other
    first_pass, second_pass = n - first_fail, n - second_fail
    perfect = one + other == 0 or (both + neither == 0 and one == other)
    if perfect or 0 in (first_fail, first_pass, second_fail, second_pass):
        return 0.0
    disagreement, room = (one + other) / n, beyond_chance / (n * n)
    # Derivative of kappa by each cell's share, times room squared: the delta method's weights. Centring them gives the
    # published formula in a form that cannot turn negative by rounding.
    cells = (
        (both, room - disagreement * (second_fail + first_fail) / n),
        (neither, room - disagreement * (second_pass + first_pass) / n),
        (one, -disagreement * (second_fail + first_pass) / n),
        (other, -disagreement * (second_pass + first_fail) / n),
    )
    centre = sum(count * weight for count, weight in cells) / n
    return sum(count * (weight - centre) ** 2 for count, weight in cells) / n / room**4 / n


def _beyond_chance(both: int, one: int, other: int, neither: int) -> int:
    """n^2 (1 - chance agreement): in whole numbers, so that it is exactly 0 where kappa is undefined."""
    n = both + one + other + neither
    return n * n - (both + one) * (both + other) - (other + neither) * (one + neither)


def _whole(*counts: int) -> list[int]:
    whole = []
    for count in counts:
        held = as_count(count)
        if held is None or held < 0:
            raise ValueError(f"kappa needs whole numbers of cases, 0 or more, got {count!r}")
        whole.append(held)
    return whole
