"""Two systems under one judge. Positive = the judge reports a failure; second less first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stats.confusion import Confusion
from stats.difference_limits import paired_limits, unpaired_limits
from stats.rate_difference import (
    divided_limits,
    paired_rate_difference,
    rate_difference,
)

GOOD = Confusion(tp=84, fn=16, fp=27, tn=273)
judged = st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
pairs = st.tuples(*[st.integers(0, 120)] * 4)


def test_the_worked_difference_of_the_design_page() -> None:
    """70 -> 80 % pass reads 68.5 -> 76 % at TPR .84 and TNR .91: failures .315 -> .24, a true difference of -.10."""
    compared = rate_difference((315, 1000), (240, 1000), GOOD)
    assert compared.observed == pytest.approx(-0.075)
    assert compared.value == pytest.approx(-0.10)
    assert compared.youden is not None
    assert compared.youden.value == pytest.approx(0.75)
    assert compared.low < -0.10 < compared.high < 0


def test_newcombes_published_intervals() -> None:
    """Unpaired: Statistics in Medicine 17, 873-890, table II, method 10. Paired: 17, 2635-2650, table III, method 10."""
    for k1, n1, k2, n2, low, high in (
        (48, 80, 56, 70, 0.0524, 0.3339),
        (3, 10, 9, 10, 0.1705, 0.8090),
        (0, 20, 10, 10, 0.6791, 1.0),
    ):
        found = unpaired_limits(k1, n1, k2, n2)
        assert (float(found[0]), float(found[1])) == pytest.approx((low, high), abs=5.1e-5)
    for both, only_first, only_second, neither, low, high in (
        (36, 2, 12, 0, 0.0569, 0.3404),
        (36, 0, 14, 0, 0.1528, 0.4167),
    ):
        found = paired_limits(both, only_first, only_second, neither)
        assert (float(found[0]), float(found[1])) == pytest.approx((low, high), abs=5.1e-5)


@settings(deadline=None, max_examples=50)
@given(judged, judged)
def test_the_sign_is_the_judges(first: tuple[int, int], second: tuple[int, int]) -> None:
    """The true interval leaves out 0 exactly when the observed one does, and holds its estimate."""
    compared = rate_difference(first, second, GOOD)
    assert compared.value is not None
    assert -1.0 <= compared.low <= compared.value <= compared.high <= 1.0
    assert (compared.low > 0, compared.high < 0) == (compared.observed_low > 0, compared.observed_high < 0)
    assert abs(compared.value) >= abs(compared.observed)


@settings(deadline=None, max_examples=50)
@given(judged, judged)
def test_exchanging_the_systems_turns_the_interval_round(first: tuple[int, int], second: tuple[int, int]) -> None:
    one, other = rate_difference(first, second, GOOD), rate_difference(second, first, GOOD)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-12)


@settings(deadline=None, max_examples=50)
@given(pairs)
def test_exchanging_paired_systems_too(counts: tuple[int, int, int, int]) -> None:
    assume(sum(counts))
    both, only_first, only_second, neither = counts
    one = paired_rate_difference(both, only_first, only_second, neither, GOOD)
    other = paired_rate_difference(both, only_second, only_first, neither, GOOD)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-12)
    assert (one.low > 0, one.high < 0) == (one.observed_low > 0, one.observed_high < 0)


@settings(deadline=None, max_examples=50)
@given(judged, judged)
def test_a_judge_known_to_be_perfect_changes_nothing(first: tuple[int, int], second: tuple[int, int]) -> None:
    found = rate_difference(first, second, Confusion(tp=10**8, fn=0, fp=0, tn=10**8))
    assert found.value == pytest.approx(found.observed, abs=1e-12)
    assert (found.low, found.high) == pytest.approx((found.observed_low, found.observed_high), abs=1e-6)


def test_the_limit_of_a_ratio_is_where_the_lower_limit_of_the_rest_is_zero() -> None:
    """The definition: at R = lower limit, difference - R j minus the squared-and-added distances is 0."""
    rng = np.random.default_rng(8)
    for _ in range(200):
        d, j = rng.uniform(-0.5, 0.5), rng.uniform(0.2, 0.9)
        low, high = d - rng.uniform(0.01, 0.3), d + rng.uniform(0.01, 0.3)
        j_low, j_high = j - rng.uniform(0.01, 0.19), min(j + rng.uniform(0.01, 0.3), 1.0)
        lower, upper = (float(end) for end in divided_limits(d, low, high, j, j_low, j_high))
        assert lower <= d / j <= upper or 1.0 in (abs(lower), abs(upper))
        if abs(lower) < 1.0:
            # -R j is at its lowest with j high for R above 0, and with j low for R below.
            reach = ((d - low) ** 2 + (lower * ((j_high - j) if lower >= 0 else (j - j_low))) ** 2) ** 0.5
            assert d - lower * j - reach == pytest.approx(0.0, abs=1e-9)


def test_pairs_that_go_together_make_it_narrower() -> None:
    paired = paired_rate_difference(both=180, only_first=135, only_second=60, neither=625, labelled=GOOD)
    apart = rate_difference((315, 1000), (240, 1000), GOOD)
    assert paired.value == apart.value
    assert paired.high - paired.low < apart.high - apart.low


def test_few_labels_make_it_wider_but_not_the_observed_one() -> None:
    few = rate_difference((315, 1000), (240, 1000), Confusion(21, 4, 7, 68))
    many = rate_difference((315, 1000), (240, 1000), Confusion(2100, 400, 700, 6800))
    assert few.high - few.low > many.high - many.low
    assert (few.observed_low, few.observed_high) == (many.observed_low, many.observed_high)


@pytest.mark.parametrize(
    ("labelled", "reason"),
    [
        (Confusion(9, 1, 1, 89), "too_few_failures"),
        (Confusion(9, 11, 1, 9), "too_few_goods"),
        (Confusion(12, 8, 40, 40), "no_better_than_chance"),
        (Confusion(0, 0, 5, 95), "too_few_failures"),
    ],
)
def test_without_j_there_is_no_size_but_the_observed_difference_stays(labelled: Confusion, reason: str) -> None:
    compared = rate_difference((315, 1000), (240, 1000), labelled)
    assert (compared.value, compared.low, compared.high, compared.reason) == (None, -1.0, 1.0, reason)
    assert compared.observed_high < 0


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError, match="judged cases of both systems"):
        rate_difference((0, 0), (1, 10), GOOD)
    with pytest.raises(ValueError, match="must lie between 0 and"):
        rate_difference((11, 10), (1, 10), GOOD)
    for bad in ((0, 0, 0, 0), (-1, 2, 3, 4)):
        with pytest.raises(ValueError, match="paired counts"):
            paired_rate_difference(*bad, GOOD)
    with pytest.raises(ValueError, match="only where J is above 0"):
        divided_limits(0.1, 0.0, 0.2, 0.1, 0.0, 0.2)


def test_small_integers_of_numpy_do_not_overflow() -> None:
    labelled = Confusion(tp=84, fn=16, fp=27, tn=273)
    small = [(np.int32(50_000), np.int32(100_000)), (np.int32(40_000), np.int32(100_000))]
    assert rate_difference(*small, labelled) == rate_difference((50_000, 100_000), (40_000, 100_000), labelled)


def test_nothing_is_known_of_the_difference_from_an_empty_sample() -> None:
    low, high = unpaired_limits([0, 3], [0, 10], [1, 4], [2, 10])
    assert (low[0], high[0]) == (-1.0, 1.0) and -1.0 < low[1] < high[1] < 1.0
    for counts in ((0, 0, 0, 0), (-1, 2, 3, 4)):
        with pytest.raises(ValueError, match="0 or more"):
            paired_limits(*counts)
