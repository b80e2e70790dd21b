"""Which rate is shown for which labels. Positive = the judge reports a failure."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stats.cell_strata import labels_only, post_stratified_by_cell
from stats.confusion import Confusion
from stats.corrected_rates import DRAWN, CorrectedRates, HowDrawn, RateEstimate, corrected_rates
from stats.judge_rates import rates_as_counted, rates_by_cell, rates_by_judge
from stats.post_stratified import JudgedSample, post_stratified
from stats.proportion_limits import agresti_coull_limits
from stats.rogan_gladen import lang_reiczigel, observed_rate, rogan_gladen

TABLE = Confusion(tp=79, fn=90, fp=15, tn=416)
SAMPLE = JudgedSample(TABLE, flagged=647, judged=4000)
REFUSED = (None, 0.0, 1.0, "none", "none")


def as_refused(estimate: RateEstimate) -> str | None:
    """The reason, once it is sure that there is no number."""
    assert (estimate.value, estimate.low, estimate.high, estimate.estimator, estimate.interval) == REFUSED
    return estimate.reason


def test_the_designs_are_those_of_the_labels() -> None:
    assert set(get_args(HowDrawn)) == set(DRAWN) == {"random", "by_cell", "by_judge", "by_verdict", "hand"}


def test_random_labels_from_these_data() -> None:
    """Post-stratified, Rogan-Gladen and the labels' own rate beside it: truescore, 71.50, 70.66 and 71.83 % passes."""
    found = corrected_rates("random", SAMPLE)
    shown, expected = found.shown.as_pass_rate(), post_stratified(TABLE, 647, 4000)
    assert (found.shown.value, found.shown.low, found.shown.high) == (expected.value, expected.low, expected.high)
    assert (found.shown.estimator, found.shown.interval) == ("post-stratified", "logit")
    assert shown.value is not None
    assert (round(shown.value, 4), round(shown.low, 4), round(shown.high, 4)) == (0.7150, 0.6826, 0.7452)
    beside = found.rogan_gladen.as_pass_rate()
    assert beside.value is not None
    assert (round(beside.value, 4), round(beside.low, 4), round(beside.high, 4)) == (0.7066, 0.6428, 0.7708)
    assert found.labels_only is not None
    low, high = (float(end) for end in agresti_coull_limits(169, 600))
    assert (found.labels_only.low, found.labels_only.high) == pytest.approx((low, high), abs=1e-12)
    assert (found.labels_only.estimator, found.labels_only.interval) == ("labels only", "agresti-coull")
    assert found.observed == 647 / 4000


def test_labels_by_verdict_and_thinned_ones_show_rogan_gladen() -> None:
    """Also what is left of random or by-cell labels after a half/half build pile was picked by verdict."""
    interval = lang_reiczigel(647, 4000, 79, 169, 416, 431)
    for found in (
        corrected_rates("by_verdict", SAMPLE),
        corrected_rates("random", SAMPLE, thinned=True),
        corrected_rates("by_cell", SAMPLE, thinned=True),
        corrected_rates("random", SAMPLE, same_data=False),
        corrected_rates("by_verdict", SAMPLE, same_data=False),
    ):
        assert found.shown == found.rogan_gladen
        assert (found.shown.estimator, found.shown.interval) == ("Rogan-Gladen", "Lang-Reiczigel")
        assert found.shown.value == pytest.approx(float(rogan_gladen(647 / 4000, 79 / 169, 416 / 431)))
        assert (found.shown.low, found.shown.high) == (interval.low, interval.high)
        assert found.labels_only is None
        assert found.judge == rates_as_counted(TABLE)


def test_labels_from_other_data_may_outnumber_the_judged() -> None:
    few = JudgedSample(TABLE, flagged=20, judged=100)
    assert corrected_rates("random", few, same_data=False).shown.value is not None
    with pytest.raises(ValueError, match="labelled ones included"):
        corrected_rates("random", few)


def test_random_labels_from_earlier_data_would_mislead_post_stratified() -> None:
    """.19 for a true .10: labels drawn where theta was .30, judge .85/.90. Rogan-Gladen returns .10."""
    earlier = Confusion(tp=25_500, fn=4_500, fp=7_000, tn=63_000)
    flagged = round(1_000_000 * float(observed_rate(0.10, 0.85, 0.90)))
    misled = post_stratified(earlier, flagged, 1_000_000)
    assert round(misled.value, 2) == 0.19
    found = corrected_rates("random", JudgedSample(earlier, flagged, 1_000_000), same_data=False)
    assert found.shown.value == pytest.approx(0.10, abs=1e-9)


def test_labels_by_judge_show_post_stratified_and_turn_tpr_and_tnr_round() -> None:
    labelled = Confusion(tp=32, fn=4, fp=18, tn=46)
    found = corrected_rates("by_judge", JudgedSample(labelled, flagged=300, judged=2000))
    p, mu1, mu0 = 0.15, 32 / 50, 4 / 50
    theta = (1 - p) * mu0 + p * mu1
    assert found.shown.value == pytest.approx(theta, abs=1e-12)
    assert found.judge == rates_by_judge(labelled, 300, 2000)
    assert found.judge is not None
    assert found.judge.tpr.value == pytest.approx(p * mu1 / theta, abs=1e-12)
    assert found.judge.tnr.value == pytest.approx((1 - p) * (1 - mu0) / (1 - theta), abs=1e-12)
    # Rogan-Gladen with these is the same number.
    assert float(rogan_gladen(p, found.judge.tpr.value, found.judge.tnr.value)) == pytest.approx(theta, abs=1e-12)
    assert found.rogan_gladen.value == found.shown.value
    assert found.labels_only is None


def test_by_judge_as_counted_flatters_the_judge() -> None:
    """A true TPR of .70 reads .91 at theta .05 (TNR .85, half of the labels on flagged cases: .915)."""
    p = float(observed_rate(0.05, 0.70, 0.85))
    mu1, mu0 = 0.05 * 0.70 / p, 0.05 * 0.30 / (1 - p)
    many = 10**6
    table = Confusion(round(many * mu1), round(many * mu0), many - round(many * mu1), many - round(many * mu0))
    raw, turned = rates_as_counted(table), rates_by_judge(table, round(10**8 * p), 10**8)
    assert raw.tpr.value == pytest.approx(0.915, abs=1e-3)
    assert turned.tpr.value == pytest.approx(0.70, abs=1e-4)
    assert turned.tnr.value == pytest.approx(0.85, abs=1e-4)


def test_labels_by_cell_are_weighted() -> None:
    cells = [
        JudgedSample(Confusion(tp=16, fn=4, fp=3, tn=17), flagged=190, judged=400),
        JudgedSample(Confusion(tp=6, fn=4, fp=1, tn=29), flagged=250, judged=1600),
    ]
    found = corrected_rates("by_cell", cells)
    expected, alone = post_stratified_by_cell(cells), labels_only(cells)
    assert (found.shown.value, found.shown.low, found.shown.high) == (expected.value, expected.low, expected.high)
    assert found.labels_only is not None
    assert (found.labels_only.value, found.labels_only.high) == (alone.value, alone.high)
    # By hand: weights 400/40 and 1600/40.
    assert found.judge is not None
    assert found.judge == rates_by_cell(cells)
    assert found.judge.tpr.value == pytest.approx((10 * 16 + 40 * 6) / (10 * 20 + 40 * 10), abs=1e-12)
    assert found.judge.tnr.value == pytest.approx((10 * 17 + 40 * 29) / (10 * 20 + 40 * 30), abs=1e-12)
    assert found.judge.failures == pytest.approx((10 * 20 + 40 * 10) ** 2 / (100 * 20 + 1600 * 10), abs=1e-9)
    assert found.observed == 440 / 2000
    point = float(rogan_gladen(0.22, found.judge.tpr.value, found.judge.tnr.value))
    assert found.rogan_gladen.value == pytest.approx(point, abs=1e-12)


@settings(deadline=None)
@given(*[st.integers(1, 40)] * 4, st.integers(0, 300), st.integers(0, 300))
def test_cells_of_equal_weight_count_as_one_sample(tp: int, fn: int, fp: int, tn: int, more: int, rest: int) -> None:
    """Two equal cells: the same TPR, TNR and effective numbers as their labels together."""
    table, double = Confusion(tp, fn, fp, tn), Confusion(2 * tp, 2 * fn, 2 * fp, 2 * tn)
    cell = JudgedSample(table, tp + fp + more, table.judged + more + rest)
    weighted, pooled = rates_by_cell([cell, cell]), rates_as_counted(double)
    assert (weighted.tpr.value, weighted.tnr.value) == pytest.approx((pooled.tpr.value, pooled.tnr.value))
    assert (weighted.failures, weighted.goods) == pytest.approx((pooled.failures, pooled.goods))


def test_by_hand_shows_nothing_at_all() -> None:
    found = corrected_rates("hand", SAMPLE)
    assert as_refused(found.shown) == as_refused(found.rogan_gladen) == "drawn_by_hand"
    assert (found.labels_only, found.judge) == (None, None)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (Confusion(tp=12, fn=2, fp=5, tn=81), "too_few_failures"),
        (Confusion(tp=80, fn=6, fp=2, tn=12), "too_few_goods"),
        (Confusion(tp=10, fn=10, fp=38, tn=42), "no_better_than_chance"),
        (Confusion(tp=5, fn=25, fp=60, tn=20), "no_better_than_chance"),
    ],
)
def test_not_identified(table: Confusion, reason: str) -> None:
    """Rogan-Gladen is refused under each design; what needs no TPR and TNR is not."""
    sample = JudgedSample(table, flagged=table.tp + table.fp + 100, judged=1000)
    for how_drawn in ("by_verdict", "random"):
        assert as_refused(corrected_rates(how_drawn, sample, same_data=False).shown) == reason
        assert as_refused(corrected_rates(how_drawn, sample).rogan_gladen) == reason
    shown = corrected_rates("random", sample).shown
    assert (shown.estimator, shown.reason) == ("post-stratified", None)
    assert shown.value == post_stratified(table, sample.flagged, sample.judged).value


def test_what_labels_by_judge_need() -> None:
    assert as_refused(corrected_rates("by_judge", SAMPLE, same_data=False).shown) == "drawn_from_other_data"
    assert as_refused(corrected_rates("by_judge", SAMPLE, thinned=True).shown) == "thinned"
    only_flagged = JudgedSample(Confusion(tp=30, fn=0, fp=20, tn=0), flagged=300, judged=2000)
    assert as_refused(corrected_rates("by_judge", only_flagged).shown) == "verdict_without_labels"


def test_without_labels_there_is_no_rate() -> None:
    empty = JudgedSample(Confusion(0, 0, 0, 0, no_verdict_fail=3), flagged=10, judged=100)
    for how_drawn in ("random", "by_cell", "by_judge", "by_verdict"):
        assert as_refused(corrected_rates(how_drawn, empty).shown) == "no_labels"
    assert as_refused(corrected_rates("by_cell", [SAMPLE, empty]).shown) == "cell_without_labels"


def test_random_labels_on_one_verdict_only_show_the_labels_own_rate() -> None:
    rare = JudgedSample(Confusion(tp=0, fn=1, fp=0, tn=39), flagged=20, judged=2000)
    found = corrected_rates("random", rare)
    assert (found.shown.estimator, found.shown.interval, found.shown.value) == ("labels only", "agresti-coull", 0.025)
    assert found.shown == found.labels_only


def test_a_judge_that_always_passes_leaves_its_labels_a_random_sample() -> None:
    """Drawn within its one verdict: the labels' own rate, and a TPR of 0."""
    found = corrected_rates("by_judge", JudgedSample(Confusion(tp=0, fn=6, fp=0, tn=54), flagged=0, judged=2000))
    low, high = (float(end) for end in agresti_coull_limits(6, 60))
    assert (found.shown.value, found.shown.interval) == (0.1, "agresti-coull")
    assert (found.shown.low, found.shown.high) == pytest.approx((low, high), abs=1e-12)
    assert found.judge is not None
    assert (found.judge.tpr.value, found.judge.tnr.value) == (0.0, 1.0)


def test_jeffreys_in_place_of_lang_reiczigel() -> None:
    one, other = corrected_rates("by_verdict", SAMPLE), corrected_rates("by_verdict", SAMPLE, interval="Jeffreys")
    assert (one.shown.value, other.shown.interval) == (other.shown.value, "Jeffreys")
    assert (one.shown.low, one.shown.high) == pytest.approx((other.shown.low, other.shown.high), abs=0.01)
    assert other == corrected_rates("by_verdict", SAMPLE, interval="Jeffreys")


@settings(deadline=None, max_examples=60)
@given(
    *[st.integers(0, 60)] * 4,
    st.integers(0, 500),
    st.integers(0, 500),
    st.sampled_from(["random", "by_cell", "by_verdict", "hand"]),
    st.booleans(),
    st.booleans(),
)
def test_a_number_comes_with_its_interval_and_a_refusal_with_its_reason(
    tp: int, fn: int, fp: int, tn: int, more: int, rest: int, how_drawn: HowDrawn, same_data: bool, thinned: bool
) -> None:
    table = Confusion(tp, fn, fp, tn)
    assume(table.judged + more + rest)
    sample = JudgedSample(table, tp + fp + more, table.judged + more + rest)
    found: CorrectedRates = corrected_rates(how_drawn, sample, same_data=same_data, thinned=thinned)
    for estimate in (found.shown, found.rogan_gladen, found.labels_only):
        if estimate is None:
            continue
        if estimate.value is None:
            assert as_refused(estimate) is not None
        else:
            assert estimate.reason is None
            assert 0.0 <= estimate.low <= estimate.value + 1e-9
            assert estimate.value - 1e-9 <= estimate.high <= 1.0
    if how_drawn == "by_verdict" or thinned or not same_data or how_drawn == "hand":
        assert found.shown.estimator in ("Rogan-Gladen", "none")


def test_a_pass_rate_is_the_complement() -> None:
    shown = corrected_rates("random", SAMPLE).shown
    passes = shown.as_pass_rate()
    assert shown.value is not None
    assert passes.value == 1 - shown.value
    assert (passes.low, passes.high) == (1 - shown.high, 1 - shown.low)
    assert passes.as_pass_rate().low == pytest.approx(shown.low, abs=1e-15)
    assert RateEstimate(*REFUSED, "no_labels").as_pass_rate() == RateEstimate(*REFUSED, "no_labels")


def test_turned_round_rates_reach_the_ends_where_no_error_is_labelled() -> None:
    rates = rates_by_judge(Confusion(tp=50, fn=0, fp=0, tn=50), flagged=300, judged=2000)
    assert (rates.tpr.value, rates.tpr.high, rates.tnr.value, rates.tnr.high) == (1.0, 1.0, 1.0, 1.0)
    assert rates.tpr.low is not None
    assert 0.7 < rates.tpr.low < 1.0
    assert rates.youden is not None
    assert (rates.youden.value, rates.youden.high) == (1.0, 1.0)
    none_caught = rates_by_judge(Confusion(tp=0, fn=5, fp=50, tn=45), flagged=300, judged=2000)
    assert (none_caught.tpr.value, none_caught.tpr.low) == (0.0, 0.0)


def test_rates_without_labels_of_a_class_are_none() -> None:
    rates = rates_as_counted(Confusion(tp=0, fn=0, fp=2, tn=8))
    assert (rates.tpr.value, rates.tnr.value, rates.youden) == (None, 0.8, None)
    empty = JudgedSample(Confusion(0, 0, 0, 0), 1, 10)
    weighted = rates_by_cell([empty, JudgedSample(Confusion(0, 0, 2, 8), 4, 20)])
    assert (weighted.tpr.value, weighted.tnr.value) == (None, 0.8)
    no_failure = rates_by_judge(Confusion(tp=0, fn=0, fp=5, tn=5), flagged=10, judged=100)
    assert (no_failure.tpr.value, no_failure.youden) == (None, None)


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError, match="no way of drawing labels"):
        corrected_rates("by_chance", SAMPLE)  # type: ignore[arg-type]
    for samples in ([], [SAMPLE, SAMPLE]):
        with pytest.raises(ValueError, match="come as one sample"):
            corrected_rates("random", samples)
    with pytest.raises(ValueError, match="a label is needed"):
        rates_by_judge(Confusion(0, 1, 0, 1), 1, 10)
    with pytest.raises(ValueError, match="confidence"):
        corrected_rates("random", SAMPLE, confidence=np.nan)
