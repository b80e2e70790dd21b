"""Intervals for one proportion."""

from __future__ import annotations

import doctest
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats import intervals
from stats.intervals import normal_quantile, wald_half_width, wilson

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


@pytest.mark.parametrize(("k", "n"), [(0, 0), (-1, 5), (6, 5), (1, -2), (1.5, 5)])
def test_impossible_counts_are_refused(k: int, n: int) -> None:
    with pytest.raises(ValueError, match=r"k|case"):
        wilson(k, n)
    with pytest.raises(ValueError, match=r"k|case"):
        wald_half_width(k, n)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, 95, math.nan])
def test_an_impossible_confidence_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        normal_quantile(confidence)


def test_the_docstrings_examples_hold() -> None:
    result = doctest.testmod(intervals, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0
