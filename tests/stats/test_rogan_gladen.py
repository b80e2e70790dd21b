"""Rogan-Gladen's correction, Lang and Reiczigel's interval, Youden's J. Positive = the judge reports a failure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stats.intervals import Interval, wilson
from stats.proportion_limits import jeffreys_limits, wilson_limits
from stats.rogan_gladen import (
    FEWEST_LABELS,
    corrected_interval,
    lang_reiczigel,
    lang_reiczigel_limits,
    not_identified,
    observed_rate,
    rogan_gladen,
    youden,
    youden_limits,
)

shares = st.floats(0.0, 1.0)
good_rates = st.floats(0.55, 1.0)
classes = st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@settings(deadline=None)  # The first call may import scipy.
@given(shares, good_rates, good_rates)
def test_the_correction_undoes_what_the_judge_does(theta: float, tpr: float, tnr: float) -> None:
    assert float(rogan_gladen(observed_rate(theta, tpr, tnr), tpr, tnr)) == pytest.approx(theta, abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(shares, good_rates, good_rates)
def test_the_other_convention_gives_the_complement(observed: float, tpr: float, tnr: float) -> None:
    """Passes counted as positive: p, TPR and TNR turn round, and so does the corrected rate."""
    failures, passes = rogan_gladen(observed, tpr, tnr), rogan_gladen(1.0 - observed, tnr, tpr)
    assert float(failures) == pytest.approx(1.0 - float(passes), abs=1e-9)


def test_no_better_than_chance_corrects_nothing() -> None:
    """J = 0 exactly and by rounding, and J below 0."""
    assert np.isnan(rogan_gladen(0.3, [0.5, 0.6, 0.9, 0.2], [0.5, 0.4, 0.1, 0.3])).all()
    assert not np.isnan(rogan_gladen(0.3, 0.6, 0.41))
    with pytest.raises(ValueError, match="no better than chance"):
        corrected_interval(Interval(0.2, 0.4), 0.7, 0.3)


def test_a_perfect_judge_needs_no_correction() -> None:
    assert float(rogan_gladen(0.17, 1.0, 1.0)) == pytest.approx(0.17)
    interval = wilson(17, 100)
    same = corrected_interval(interval, 1.0, 1.0)
    assert (same.low, same.high) == pytest.approx((interval.low, interval.high), abs=1e-12)


def test_two_rates_differ_by_j_times_as_much_for_the_judge() -> None:
    """70 -> 80 % pass reads 68.5 -> 76 % at TPR .84 and TNR .91 (design page on judge alignment)."""
    first, second = observed_rate([0.30, 0.20], 0.84, 0.91)
    assert (1 - first, 1 - second) == pytest.approx((0.685, 0.76), abs=1e-12)
    assert first - second == pytest.approx(0.75 * 0.10, abs=1e-12)


@settings(deadline=None, max_examples=50)
@given(classes, classes, classes, st.sampled_from([0.8, 0.95, 0.99]))
def test_lang_reiczigel_lies_within_the_unit_interval_and_widens_with_confidence(
    flags: tuple[int, int], caught: tuple[int, int], passed: tuple[int, int], confidence: float
) -> None:
    interval = lang_reiczigel(*flags, *caught, *passed, confidence)
    assert 0.0 <= interval.low <= interval.high <= 1.0


@settings(deadline=None, max_examples=50)
@given(classes, classes, classes)
def test_arrays_and_single_counts_agree(
    flags: tuple[int, int], caught: tuple[int, int], passed: tuple[int, int]
) -> None:
    interval = lang_reiczigel(*flags, *caught, *passed)
    low, high = lang_reiczigel_limits([flags[0]] * 2, flags[1], [caught[0]] * 2, caught[1], passed[0], passed[1])
    assert (interval.low, interval.high) == (low[0], high[1])
    j = youden(*caught, *passed)
    assert (j.low, j.high) == tuple(float(end) for end in youden_limits(*caught, *passed))
    assert -1.0 <= j.low <= j.value <= j.high <= 1.0


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 400), st.integers(20, 40), st.integers(70, 80))
def test_lang_reiczigel_is_the_same_in_the_other_convention(flagged: int, caught: int, passed: int) -> None:
    """Failures and passes exchanged: the interval is mirrored."""
    interval = lang_reiczigel(flagged, 400, caught, 40, passed, 80)
    mirrored = lang_reiczigel(400 - flagged, 400, passed, 80, caught, 40)
    assert (interval.low, interval.high) == pytest.approx((1 - mirrored.high, 1 - mirrored.low), abs=1e-9)


def test_with_ever_more_labels_only_the_judged_cases_are_left() -> None:
    """With TPR and TNR known it becomes Wilson's interval carried over, up to Agresti and Coull's form of it."""
    interval = lang_reiczigel(300, 1000, 840_000_000, 1_000_000_000, 910_000_000, 1_000_000_000)
    known = corrected_interval(wilson(300, 1000), 0.84, 0.91)
    assert (interval.low, interval.high) == pytest.approx((known.low, known.high), abs=2e-4)


def test_a_worthless_judge_leaves_everything_open() -> None:
    interval = lang_reiczigel(100, 400, 10, 40, 20, 80)
    assert (interval.low, interval.high) == (0.0, 1.0)


def test_when_rates_do_not_identify() -> None:
    few = FEWEST_LABELS - 1
    assert not_identified(few, few, 80, 80) == "too_few_failures"
    assert not_identified(40, 40, few, few) == "too_few_goods"
    assert not_identified(FEWEST_LABELS, FEWEST_LABELS, 80, 80) is None
    # J = .10, but not beyond doubt; J = .10 with many labels is.
    assert not_identified(22, 40, 44, 80) == "no_better_than_chance"
    assert not_identified(2200, 4000, 4400, 8000) is None
    assert not_identified(0, 0, 50, 60) == "too_few_failures"


@pytest.mark.parametrize(
    ("caught", "failures", "alarms", "goods", "low", "high"),
    [
        (56, 70, 48, 80, 0.0524, 0.3339),
        (9, 10, 3, 10, 0.1705, 0.8090),
        (6, 7, 2, 7, 0.0582, 0.8062),
        (5, 56, 0, 29, -0.0381, 0.1926),
        (0, 10, 0, 20, -0.1611, 0.2775),
        (0, 10, 0, 10, -0.2775, 0.2775),
        (10, 10, 0, 20, 0.6791, 1.0),
        (10, 10, 0, 10, 0.6075, 1.0),
    ],
)
def test_j_is_newcombes_difference_of_tpr_and_false_alarms(
    caught: int, failures: int, alarms: int, goods: int, low: float, high: float
) -> None:
    """J = TPR - (1 - TNR). Newcombe (1998), Statistics in Medicine 17, 873-890, table II, method 10."""
    j = youden(caught, failures, goods - alarms, goods)
    assert (j.low, j.high) == pytest.approx((low, high), abs=5.1e-5)


@pytest.mark.slow
def test_j_equals_statsmodels() -> None:
    """To 1e-12 on random counts, empty and full classes among them."""
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    rng = np.random.default_rng(4)
    for failures, goods in rng.integers(1, 200, size=(50, 2)):
        caught, alarms = rng.integers(0, failures + 1), rng.integers(0, goods + 1)
        reference = proportion.confint_proportions_2indep(
            caught, failures, alarms, goods, method="newcomb", compare="diff"
        )
        j = youden(int(caught), int(failures), int(goods - alarms), int(goods))
        assert (j.low, j.high) == pytest.approx(reference, abs=1e-12)


@settings(deadline=None, max_examples=50)
@given(classes, st.sampled_from([0.8, 0.95, 0.99]))
def test_limits_of_arrays_equal_those_of_one_proportion(count: tuple[int, int], confidence: float) -> None:
    betaincinv = pytest.importorskip("scipy.special").betaincinv
    k, n = count
    one = wilson(k, n, confidence)
    low, high = wilson_limits([k, k], [n, n], confidence)
    assert (low[0], high[1]) == pytest.approx((one.low, one.high), abs=1e-12)
    low, high = jeffreys_limits(k, n, confidence)
    tail = (1 - confidence) / 2
    assert float(low) == (0.0 if k == 0 else pytest.approx(betaincinv(k + 0.5, n - k + 0.5, tail), abs=1e-12))
    assert float(high) == (1.0 if k == n else pytest.approx(betaincinv(k + 0.5, n - k + 0.5, 1 - tail), abs=1e-12))
    assert float(low) <= k / n <= float(high)


def test_without_a_case_a_proportion_may_be_anything() -> None:
    for limits in (wilson_limits, jeffreys_limits):
        assert tuple(float(end) for end in limits(0, 0)) == (0.0, 1.0)


def test_impossible_input_is_refused() -> None:
    for bad in ((1.2, 0.9, 0.9), (0.2, -0.1, 0.9), (0.2, 0.9, float("nan"))):
        with pytest.raises(ValueError, match="must be a share"):
            rogan_gladen(*bad)
        with pytest.raises(ValueError, match="must be a share"):
            observed_rate(*bad)
    with pytest.raises(ValueError, match="between 0 and its total"):
        lang_reiczigel(11, 10, 5, 10, 5, 10)
    with pytest.raises(ValueError, match="labelled ones of both verdicts"):
        lang_reiczigel(5, 10, 0, 0, 5, 10)
    with pytest.raises(ValueError, match="labelled cases of both verdicts"):
        youden(0, 0, 5, 10)
    with pytest.raises(ValueError, match="must lie between 0 and its n"):
        youden(11, 10, 5, 10)
    with pytest.raises(ValueError, match="confidence"):
        lang_reiczigel(5, 10, 5, 10, 5, 10, confidence=95)
    for limits in (wilson_limits, jeffreys_limits):
        with pytest.raises(ValueError, match="must lie between"):
            limits([1, 4], [3, 3])
