"""Intervals for one proportion."""

from __future__ import annotations

import math
from functools import cache
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom
from statsmodels.stats.proportion import proportion_confint

from stats.intervals import (
    METHODS,
    IntervalMethod,
    clopper_pearson,
    jeffreys,
    normal_quantile,
    proportion,
    proportion_interval,
    wald_half_width,
    wilson,
)
from stats.proportion_limits import agresti_coull_limits, jeffreys_limits, wilson_limits

STATSMODELS = {"wilson": "wilson", "jeffreys": "jeffreys", "clopper-pearson": "beta", "wald": "normal"}
RATES = (0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.35)

counts = st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_the_published_example_of_248_in_1000() -> None:
    """Prompt-OIRL's first prompt: 248 of 1000, Wilson 0.2222-0.2757 (design page on statistics)."""
    interval = wilson(248, 1000)
    assert (round(interval.low, 4), round(interval.high, 4)) == (0.2222, 0.2757)


def test_newcombe_1998_table_1_method_3() -> None:
    """Newcombe (1998), Statistics in Medicine 17, 857-872, table I: Wilson without continuity correction."""
    for k, n, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        interval = wilson(k, n)
        assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


def test_eight_of_twenty_is_off_by_about_21_points() -> None:
    assert wald_half_width(8, 20) == pytest.approx(1.959964 * math.sqrt(0.4 * 0.6 / 20))
    assert round(100 * wald_half_width(8, 20)) == 21
    assert wald_half_width(0, 20) == 0.0


@given(counts, st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_wilson_holds_the_estimate_and_stays_in_range(count: tuple[int, int], confidence: float) -> None:
    k, n = count
    interval = wilson(k, n, confidence)
    assert 0.0 <= interval.low <= k / n <= interval.high <= 1.0
    assert interval.low < interval.high


@given(counts)
def test_wilson_of_the_complement_is_mirrored(count: tuple[int, int]) -> None:
    k, n = count
    one, other = wilson(k, n), wilson(n - k, n)
    assert one.low == pytest.approx(1.0 - other.high, abs=1e-12)
    assert one.high == pytest.approx(1.0 - other.low, abs=1e-12)


@given(counts)
def test_wilson_rises_with_k_and_widens_with_confidence(count: tuple[int, int]) -> None:
    k, n = count
    here = wilson(k, n)
    if k < n:
        above = wilson(k + 1, n)
        assert above.low > here.low
        assert above.high >= here.high
    wider = wilson(k, n, 0.99)
    assert wider.low <= here.low
    assert here.high <= wider.high


def test_wilson_equals_scipy() -> None:
    binomtest = pytest.importorskip("scipy.stats").binomtest

    for n in (1, 2, 7, 20, 180, 1319):
        for k in sorted({0, 1, n // 3, n // 2, n - 1, n}):
            for confidence in (0.9, 0.95, 0.99):
                reference = binomtest(k, n).proportion_ci(confidence_level=confidence, method="wilson")
                interval = wilson(k, n, confidence)
                assert (interval.low, interval.high) == pytest.approx((reference.low, reference.high), abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_equals_statsmodels(method: IntervalMethod) -> None:
    """At 0 of n and n of n statsmodels leaves Jeffreys' outer end inside (0, 1); here it is 0 or 1 (see below)."""
    rng = np.random.default_rng(0)
    n = rng.integers(1, 3000, 300)
    k = rng.integers(0, n + 1)
    k[:40] = np.where(np.arange(40) % 2, n[:40], 0)
    for confidence in (0.8, 0.95, 0.99):
        low, high = proportion_confint(k, n, alpha=1.0 - confidence, method=STATSMODELS[method])
        if method == "jeffreys":
            low, high = np.where(k == 0, 0.0, low), np.where(k == n, 1.0, high)
        found = [proportion_interval(int(a), int(b), confidence, method) for a, b in zip(k, n, strict=True)]
        assert [x.low for x in found] == pytest.approx(low, abs=1e-12)
        assert [x.high for x in found] == pytest.approx(high, abs=1e-12)


def test_every_interval_ends_where_shares_end() -> None:
    """At 0 of n the lower end is 0, at n of n the upper end 1; the other end leaves room but for Wald."""
    for method in METHODS:
        for n in (1, 10, 1000):
            none, all_of_them = (proportion_interval(k, n, 0.95, method) for k in (0, n))
            assert none.low == 0.0
            assert all_of_them.high == 1.0
            assert none.high == pytest.approx(1.0 - all_of_them.low, abs=1e-12)
            assert none.high == 0.0 if method == "wald" else none.high > 0.0


def test_the_other_end_at_the_boundary_stays_two_sided() -> None:
    """0 of 10: Clopper-Pearson 1 - .025^(1/10), in closed form; one-sided it would be 1 - .05^(1/10)."""
    assert clopper_pearson(0, 10).high == pytest.approx(1.0 - 0.025**0.1, abs=1e-12)
    assert beta(0.5, 10.5).cdf(jeffreys(0, 10).high) == pytest.approx(0.975, abs=1e-12)


@given(counts, st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_every_interval_is_mirrored_in_range_and_clopper_pearson_the_widest(
    count: tuple[int, int], confidence: float
) -> None:
    k, n = count
    found = {method: proportion_interval(k, n, confidence, method) for method in METHODS}
    for method, interval in found.items():
        mirrored = proportion_interval(n - k, n, confidence, method)
        assert 0.0 <= interval.low <= k / n <= interval.high <= 1.0
        assert (interval.low, interval.high) == pytest.approx((1.0 - mirrored.high, 1.0 - mirrored.low), abs=1e-9)
    exact, half_way = found["clopper-pearson"], found["jeffreys"]
    assert exact.low <= half_way.low + 1e-12
    assert half_way.high <= exact.high + 1e-12


def test_a_proportion_carries_the_interval_asked_for() -> None:
    for method in METHODS:
        interval = proportion_interval(8, 20, 0.9, method)
        figure = proportion(8, 20, 0.9, method)
        assert (figure.k, figure.n, figure.value) == (8, 20, 0.4)
        assert (figure.low, figure.high) == (interval.low, interval.high)
    assert proportion(8, 20) == proportion(8, 20, 0.95, "wilson")
    assert proportion(0, 0).value is None
    with pytest.raises(ValueError, match="k must lie between"):
        proportion(3, 2)


def test_an_unknown_method_is_refused_by_the_names_there_are() -> None:
    with pytest.raises(ValueError, match="wilson, jeffreys, clopper-pearson, wald"):
        proportion_interval(1, 2, method=cast("IntervalMethod", "exact"))


@cache
def coverage(method: IntervalMethod, n: int, rate: float) -> float:
    """The probability that the 95 % interval holds ``rate``: the sum over all counts, no simulation."""
    chances = binom.pmf(np.arange(n + 1), n, rate)
    found = [proportion_interval(k, n, 0.95, method) for k in range(n + 1)]
    return float(sum(p for p, x in zip(chances, found, strict=True) if x.low <= rate <= x.high))


def test_coverage_is_worked_out_as_published() -> None:
    """Brown, Cai and DasGupta (2001), section 2: Wald at p = .5 covers .951 with n = 17 and .919 with n = 40."""
    assert round(coverage("wald", 17, 0.5), 3) == 0.951
    assert round(coverage("wald", 40, 0.5), 3) == 0.919


@pytest.mark.parametrize(
    ("method", "n", "mean", "least"),
    [
        ("wilson", 40, 0.9453, 0.9283),
        ("wilson", 100, 0.9455, 0.9332),
        ("jeffreys", 40, 0.9601, 0.9443),
        ("jeffreys", 100, 0.9502, 0.9347),
        ("clopper-pearson", 40, 0.9727, 0.9615),
        ("clopper-pearson", 100, 0.9644, 0.9543),
        ("wald", 40, 0.9220, 0.8681),
        ("wald", 100, 0.9303, 0.8775),
    ],
)
def test_coverage_over_rates_of_5_to_35_percent(method: IntervalMethod, n: int, mean: float, least: float) -> None:
    """Exact, and as it is: Wilson is within .5 points of 95 % on average and dips to 92.8 % at single rates.

    Jeffreys dips below 93.5 % too (n = 100, 5 %); between these rates both go lower still. Only Clopper-Pearson never
    falls below 95 %.
    """
    found = [coverage(method, n, rate) for rate in RATES]
    assert round(float(np.mean(found)), 4) == mean
    assert round(min(found), 4) == least


@pytest.mark.parametrize("n", [5, 20, 40])
def test_clopper_pearson_covers_at_every_rate(n: int) -> None:
    assert min(coverage("clopper-pearson", n, rate) for rate in np.linspace(0.001, 0.999, 400)) >= 0.95


def test_wilson_and_jeffreys_cover_on_average_over_all_rates() -> None:
    rates = np.linspace(0.0025, 0.9975, 200)
    for method in ("wilson", "jeffreys"):
        for n in (20, 40):
            mean = np.mean([coverage(cast("IntervalMethod", method), n, rate) for rate in rates])
            assert mean == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("k", "n"), [(0, 0), (-1, 5), (6, 5), (1, -2), (1.5, 5)])
def test_impossible_counts_are_refused(method: IntervalMethod, k: int, n: int) -> None:
    with pytest.raises(ValueError, match=r"k|case"):
        proportion_interval(k, n, 0.95, method)
    with pytest.raises(ValueError, match=r"k|case"):
        wald_half_width(k, n)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, 95, math.nan])
def test_an_impossible_confidence_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        normal_quantile(confidence)
    for method in METHODS:
        with pytest.raises(ValueError, match="confidence"):
            proportion_interval(8, 20, confidence, method)


@pytest.mark.parametrize("kind", [np.int32, np.int64, float])
def test_counts_of_any_kind_of_whole_number_give_the_same(kind: type) -> None:
    """numpy's own integers would overflow in k (n - k)."""
    k, n = (40_000, 100_000) if kind is np.int32 else (4 * 10**9, 10**10)
    assert wilson(kind(k), kind(n)) == wilson(k, n)
    found = proportion(kind(k), kind(n))
    assert found == proportion(k, n) and type(found.k) is type(found.n) is int


@pytest.mark.parametrize("wrong", [math.inf, math.nan, 0.5])
def test_what_is_no_number_of_cases_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="whole numbers"):
        wilson(1, wrong)  # type: ignore[arg-type]


@given(st.lists(counts, min_size=1, max_size=20), st.sampled_from([0.8, 0.95, 0.999]))
def test_limits_of_whole_arrays_are_those_of_each_count(of_each: list[tuple[int, int]], confidence: float) -> None:
    k, n = zip(*of_each, strict=True)
    for limits, interval in ((wilson_limits, wilson), (jeffreys_limits, jeffreys)):
        low, high = limits(k, n, confidence)
        alone = [interval(*count, confidence) for count in of_each]
        assert low == pytest.approx([one.low for one in alone], abs=1e-15)
        assert high == pytest.approx([one.high for one in alone], abs=1e-15)


def test_agresti_coull_equals_statsmodels() -> None:
    k, n = np.array([0, 1, 8, 40, 99, 100]), np.array([10, 20, 20, 100, 100, 100])
    low, high = agresti_coull_limits(k, n)
    expected = proportion_confint(k, n, method="agresti_coull")
    inside = (k > 0) & (k < n)
    assert low[inside] == pytest.approx(expected[0][inside], abs=1e-12)
    assert high[inside] == pytest.approx(expected[1][inside], abs=1e-12)
    assert (low[0], high[-1]) == (0.0, 1.0)
