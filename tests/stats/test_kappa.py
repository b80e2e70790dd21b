"""Cohen's kappa of two raters."""

from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa as by_statsmodels

from stats.kappa import cohens_kappa, kappa_variance

tables = st.tuples(*[st.integers(0, 60)] * 4)
Table = tuple[int, int, int, int]


@pytest.mark.parametrize(
    ("table", "value", "low", "high"),
    [
        ((9, 2, 3, 7), 0.5205479452, 0.1557768129, 0.8853190776),
        ((8, 12, 9, 171), 0.375, 0.1621915252, 0.5878084748),
        ((79, 90, 15, 416), 0.5001110864, 0.4210842210, 0.5791379519),
        ((178, 33, 54, 11), 0.0144475456, -0.1020480371, 0.1309431283),
        ((20, 5, 10, 15), 0.4, 0.1510922905, 0.6489077095),
        ((1, 1, 0, 1_000_000), 0.6666662222, 0.0507085563, 1.0),
        ((0, 7, 3, 0), -0.7241379310, -1.0, -0.0486902138),
    ],
)
def test_known_tables(table: Table, value: float, low: float, high: float) -> None:
    """Values of statsmodels 0.14 `cohens_kappa` (kappa_low, kappa_upp), cut at -1 and 1; the first four are real judges."""
    assert astuple(cohens_kappa(*table)) == pytest.approx((value, low, high), abs=1e-9)


def test_kappa_and_its_variance_equal_statsmodels_on_random_tables() -> None:
    """The variance is `var_kappa`, that around kappa's own value, not `var_kappa0`, that under no agreement."""
    rng = np.random.default_rng(0)
    compared = 0
    for _ in range(150):
        a, b, c, d = (int(x) for x in rng.integers(0, int(rng.choice([4, 40, 400])), 4))
        variance = kappa_variance(a, b, c, d)
        if not variance:
            continue
        expected = by_statsmodels(np.array([[a, b], [c, d]]))
        estimate = cohens_kappa(a, b, c, d, 0.95)
        assert estimate.value == pytest.approx(expected.kappa, abs=1e-12)
        assert variance == pytest.approx(expected.var_kappa, abs=1e-12)
        assert estimate.low == pytest.approx(max(expected.kappa_low, -1.0), abs=1e-12)
        assert estimate.high == pytest.approx(min(expected.kappa_upp, 1.0), abs=1e-12)
        compared += 1
    assert compared > 100


@given(tables)
def test_the_interval_is_the_delta_method(table: Table) -> None:
    """The same interval from numerical derivatives of kappa by the four shares, with no formula in common."""
    estimate, n = cohens_kappa(*table), sum(table)
    if estimate.low is None or estimate.high is None or estimate.value is None:
        return
    shares = [count / n for count in table]

    def of(p: list[float]) -> float:
        total = sum(p)
        a, b, c, d = (x / total for x in p)
        chance = (a + b) * (a + c) + (c + d) * (b + d)
        return (a + d - chance) / (1 - chance)

    step = 1e-6
    slopes = []
    for i in range(4):
        up, down = list(shares), list(shares)
        up[i] += step
        down[i] -= step
        slopes.append((of(up) - of(down)) / (2 * step))
    mean = sum(p * s for p, s in zip(shares, slopes, strict=True))
    variance = sum(p * (s - mean) ** 2 for p, s in zip(shares, slopes, strict=True)) / n
    half = 1.959963985 * math.sqrt(variance)
    assert estimate.low == pytest.approx(max(estimate.value - half, -1.0), abs=1e-3)
    assert estimate.high == pytest.approx(min(estimate.value + half, 1.0), abs=1e-3)


@given(tables)
def test_raters_and_verdicts_may_trade_places(table: Table) -> None:
    a, b, c, d = table
    for other in ((a, c, b, d), (d, b, c, a)):
        assert astuple(cohens_kappa(*other)) == pytest.approx(astuple(cohens_kappa(*table)), abs=1e-12, nan_ok=True)


@given(tables)
def test_kappa_stays_in_range_and_its_interval_holds_it(table: Table) -> None:
    estimate = cohens_kappa(*table)
    if estimate.value is not None:
        assert -1.0 <= estimate.value <= 1.0
    if estimate.low is not None and estimate.high is not None and estimate.value is not None:
        assert -1.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0


def test_nothing_is_said_where_it_is_undefined() -> None:
    for table in ((0, 0, 0, 0), (0, 0, 0, 9), (9, 0, 0, 0)):
        assert astuple(cohens_kappa(*table)) == (None, None, None)
        assert kappa_variance(*table) is None


def test_no_certainty_is_claimed_from_few_cases() -> None:
    """At kappa 1 and -1, and with a constant rater, the large-sample variance is 0: there is no interval then."""
    for table, value in (((3, 0, 0, 4), 1.0), ((0, 4, 4, 0), -1.0), ((0, 20, 0, 180), 0.0), ((5, 0, 7, 0), 0.0)):
        assert astuple(cohens_kappa(*table)) == (value, None, None)
        assert kappa_variance(*table) == 0.0


def test_impossible_input_is_refused() -> None:
    for table in ((-1, 0, 0, 3), (1, 2, 3, -4)):
        with pytest.raises(ValueError, match="whole numbers"):
            cohens_kappa(*table)
        with pytest.raises(ValueError, match="whole numbers"):
            kappa_variance(*table)
    with pytest.raises(ValueError, match="confidence"):
        cohens_kappa(1, 2, 3, 4, confidence=95)


def test_small_integers_of_numpy_do_not_overflow() -> None:
    counts = (40_000, 5_000, 6_000, 70_000)
    small = [np.int32(count) for count in counts]
    assert cohens_kappa(*small) == cohens_kappa(*counts)
    assert kappa_variance(*small) == kappa_variance(*counts)
