"""Rates from labels drawn at random, alone, within the judge's verdicts or within cells. Positive = the judge reports a
failure."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stats.cell_strata import cell_limits, cell_moments, labels_only, post_stratified_by_cell
from stats.confusion import Confusion, swap_positive
from stats.post_stratified import (
    FEWEST_FOR_LOGIT,
    JudgedSample,
    logit_limits,
    post_stratified,
    post_stratified_limits,
    post_stratified_moments,
)
from stats.prediction_powered import best_weight, prediction_powered
from stats.proportion_limits import agresti_coull_limits, jeffreys_limits

counts = st.integers(0, 60)


@st.composite
def samples(draw: st.DrawFn, least: int = 0) -> JudgedSample:
    """Labelled and unlabelled judged cases; with ``least`` or more of each count."""
    table = Confusion(*(draw(st.integers(least, 60)) for _ in range(4)))
    flagged, passed = draw(st.integers(0, 500)), draw(st.integers(0, 500))
    flagged, passed = flagged + table.tp + table.fp, passed + table.fn + table.tn
    assume(flagged + passed > 0)
    return JudgedSample(table, flagged, flagged + passed)


def has_both_verdicts(sample: JudgedSample) -> bool:
    table = sample.labelled
    return table.tp + table.fp > 0 and table.fn + table.tn > 0


def test_truescore_of_the_design_page(shared_data: Path) -> None:
    """.7150 [.6826, .7452] passes with p over all 4,000 judged; the truth of this simulation is .7140."""
    with (shared_data / "audit/truescore/support_eval.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    flagged = sum(row["judge_passed"] == "0" for row in rows)
    labelled = [(row["judge_passed"] == "0", row["human_passed"] == "0") for row in rows if row["human_passed"]]
    table = Confusion(
        tp=sum(f and y for f, y in labelled),
        fn=sum(not f and y for f, y in labelled),
        fp=sum(f and not y for f, y in labelled),
        tn=sum(not f and not y for f, y in labelled),
    )
    assert table == Confusion(79, 90, 15, 416)
    assert (flagged, len(rows)) == (647, 4000)
    found = post_stratified(table, flagged, len(rows))
    assert (round(1 - found.value, 4), round(1 - found.high, 4), round(1 - found.low, 4)) == (0.7150, 0.6826, 0.7452)
    # With p over the unlabelled alone it would be another number.
    assert round(1 - float(post_stratified_moments(79, 90, 15, 416, 553, 3400)[0]), 4) == 0.7144


def test_the_formula_of_the_design_page() -> None:
    """theta = (1-p) mu0 + p mu1 and its variance, written out."""
    tp, fn, fp, tn, k, n = 12, 7, 9, 80, 190, 1000
    mu1, mu0, p = tp / (tp + fp), fn / (fn + tn), k / n
    theta = (1 - p) * mu0 + p * mu1
    variance = (mu1 - mu0) ** 2 * p * (1 - p) / n
    variance += (1 - p) ** 2 * mu0 * (1 - mu0) / (fn + tn) + p**2 * mu1 * (1 - mu1) / (tp + fp)
    found = post_stratified(Confusion(tp, fn, fp, tn), k, n)
    assert (found.value, found.variance) == pytest.approx((theta, variance), abs=1e-15)
    half = 1.959963984540054 * variance**0.5 / (theta * (1 - theta))
    odds = np.log(theta / (1 - theta))
    assert (found.low, found.high) == pytest.approx(
        (1 / (1 + np.exp(half - odds)), 1 / (1 + np.exp(-half - odds))), abs=1e-12
    )
    assert found.interval == "logit"


def test_squared_and_added_where_a_count_is_small() -> None:
    """No missed failure labelled: mu0 = 0 with Jeffreys' upper limit in place of no variance at all."""
    tp, fp, tn, k, n = 9, 2, 29, 500, 2000
    found = post_stratified(Confusion(tp, 0, fp, tn), k, n)
    (l1, u1), (l0, u0), (lp, up) = (
        tuple(float(end) for end in jeffreys_limits(*pair)) for pair in ((tp, tp + fp), (0, tn), (k, n))
    )
    mu1, p = tp / (tp + fp), k / n
    low = p * mu1 - ((p * (mu1 - l1)) ** 2 + ((1 - p) * (0 - l0)) ** 2 + (mu1 * (p - lp)) ** 2) ** 0.5
    high = p * mu1 + ((p * (u1 - mu1)) ** 2 + ((1 - p) * u0) ** 2 + (mu1 * (up - p)) ** 2) ** 0.5
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    assert found.interval == "mover"


@settings(deadline=None)
@given(samples(), st.sampled_from([0.8, 0.95, 0.99]))
def test_the_interval_holds_the_estimate(sample: JudgedSample, confidence: float) -> None:
    assume(has_both_verdicts(sample))
    found = post_stratified(sample.labelled, sample.flagged, sample.judged, confidence)
    assert 0.0 <= found.low <= found.value + 1e-12
    assert found.value - 1e-12 <= found.high <= 1.0
    assert found.low < found.high


@settings(deadline=None)
@given(samples())
def test_the_other_convention_gives_the_complement(sample: JudgedSample) -> None:
    """Passes counted as positive: everything is mirrored."""
    assume(has_both_verdicts(sample))
    found = post_stratified(sample.labelled, sample.flagged, sample.judged)
    other = post_stratified(swap_positive(sample.labelled), sample.judged - sample.flagged, sample.judged)
    assert (found.value, found.low, found.high) == pytest.approx(
        (1 - other.value, 1 - other.high, 1 - other.low), abs=1e-9
    )


@settings(deadline=None)
@given(samples(), st.floats(0.0, 1.0))
def test_it_equals_ppi_at_its_best_lambda(sample: JudgedSample, other: float) -> None:
    """PPI++ on labelled and unlabelled cases, its lambda from the labels, is the post-stratified value to rounding. And
    lambda is the best: no other has less variance by the same formula, up to var(f) from labels or from all."""
    table = sample.labelled
    flagged, rest = sample.flagged - table.tp - table.fp, sample.judged - table.judged
    assume(has_both_verdicts(sample) and table.judged > 1 and rest > 1)
    mu1, mu0 = table.tp / (table.tp + table.fp), table.fn / (table.fn + table.tn)
    weight = (mu1 - mu0) / (1 + table.judged / rest)
    found = prediction_powered(table, flagged, rest, weight)
    assert found.value == pytest.approx(post_stratified(table, sample.flagged, sample.judged).value, abs=1e-12)
    # cov(y, f) / var_n(f) is mu1 - mu0.
    share = (table.tp + table.fp) / table.judged
    covariance = table.tp / table.judged - share * (table.tp + table.fn) / table.judged
    assert weight == pytest.approx(covariance / (share * (1 - share)) / (1 + table.judged / rest), abs=1e-12)
    best = prediction_powered(table, flagged, rest, best_weight(table, flagged, rest, pooled=False))
    assert best.variance <= prediction_powered(table, flagged, rest, other).variance + 1e-15


def test_ppi_equals_its_definition_on_rows() -> None:
    """Means and variances over rows, in place of counts."""
    table, flagged, rest = Confusion(7, 3, 5, 25), 110, 400
    y = np.repeat([1.0, 1.0, 0.0, 0.0], [7, 3, 5, 25])
    f = np.repeat([1.0, 0.0, 1.0, 0.0], [7, 3, 5, 25])
    u = np.repeat([1.0, 0.0], [110, 290])
    for ddof in (0, 1):
        for weight in (0.0, 0.4, 1.0):
            found = prediction_powered(table, flagged, rest, weight, ddof=ddof)
            assert found.value == pytest.approx(y.mean() + weight * (u.mean() - f.mean()), abs=1e-14)
            variance = (y - weight * f).var(ddof=ddof) / 40 + weight**2 * u.var(ddof=ddof) / 400
            assert found.variance == pytest.approx(variance, abs=1e-15)
        pooled = np.cov(y, f, ddof=ddof)[0, 1] / (1.1 * np.concatenate([f, u]).var(ddof=ddof))
        assert best_weight(table, flagged, rest, ddof=ddof) == pytest.approx(pooled, abs=1e-14)
        apart = np.cov(y, f, ddof=ddof)[0, 1] / (f.var(ddof=ddof) + 0.1 * u.var(ddof=ddof))
        assert best_weight(table, flagged, rest, pooled=False, ddof=ddof) == pytest.approx(apart, abs=1e-14)
    assert best_weight(Confusion(0, 10, 0, 20), 0, 50) == 0.0


@settings(deadline=None)
@given(samples())
def test_arrays_and_single_samples_agree(sample: JudgedSample) -> None:
    assume(has_both_verdicts(sample))
    table = sample.labelled
    found = post_stratified(table, sample.flagged, sample.judged)
    low, high = post_stratified_limits(
        [table.tp, 1], [table.fn, 1], [table.fp, 1], [table.tn, 1], [sample.flagged, 5], [sample.judged, 10]
    )
    # numpy's loops over several numbers may round a last bit otherwise than over one.
    assert (low[0], high[0]) == pytest.approx((found.low, found.high), rel=1e-12)
    few = min(table.tp, table.fn, table.fp, table.tn) < FEWEST_FOR_LOGIT
    assert found.interval == ("mover" if few else "logit")


def test_a_judge_that_tells_nothing_leaves_the_labels_own_rate() -> None:
    """mu1 = mu0: the flagged share does not matter, nor does J = 0."""
    for flagged in (60, 300, 900):
        found = post_stratified(Confusion(tp=10, fn=30, fp=15, tn=45), flagged, 1000)
        assert found.value == pytest.approx(0.4, abs=1e-12)


def test_labels_only_is_a_proportion_and_a_verdict_without_labels_falls_back_on_it() -> None:
    table = Confusion(tp=0, fn=4, fp=0, tn=36)
    sample = JudgedSample(table, flagged=50, judged=1000)
    low, high = agresti_coull_limits(4, 40)
    for found in (labels_only([sample]), post_stratified_by_cell([sample])):
        assert (found.value, found.interval) == (0.1, "agresti-coull")
        assert (found.low, found.high) == pytest.approx((float(low), float(high)), abs=1e-12)


@settings(deadline=None)
@given(samples())
def test_one_cell_is_the_sample_itself(sample: JudgedSample) -> None:
    assume(has_both_verdicts(sample))
    assert post_stratified_by_cell([sample]) == post_stratified(sample.labelled, sample.flagged, sample.judged)


@settings(deadline=None, max_examples=40)
@given(st.lists(samples(least=5), min_size=2, max_size=5))
def test_cells_are_weighted_by_their_share(cells: list[JudgedSample]) -> None:
    total = sum(cell.judged for cell in cells)
    parts = [post_stratified(cell.labelled, cell.flagged, cell.judged) for cell in cells]
    found = post_stratified_by_cell(cells)
    value = sum(cell.judged / total * part.value for cell, part in zip(cells, parts, strict=True))
    variance = sum((cell.judged / total) ** 2 * part.variance for cell, part in zip(cells, parts, strict=True))
    assert (found.value, found.variance) == pytest.approx((value, variance), abs=1e-12)
    low, high = logit_limits(value, variance)
    assert (found.low, found.high, found.interval) == (pytest.approx(float(low)), pytest.approx(float(high)), "logit")
    alone = labels_only(cells)
    shares = [(cell.labelled.tp + cell.labelled.fn) / cell.labelled.judged for cell in cells]
    assert alone.value == pytest.approx(
        sum(c.judged / total * s for c, s in zip(cells, shares, strict=True)), abs=1e-12
    )


@settings(deadline=None, max_examples=40)
@given(st.lists(samples(), min_size=2, max_size=5))
def test_cells_with_few_labels_keep_their_estimate_within(cells: list[JudgedSample]) -> None:
    assume(all(cell.labelled.judged for cell in cells))
    for found in (post_stratified_by_cell(cells), labels_only(cells)):
        assert 0.0 <= found.low <= found.value + 1e-9
        assert found.value - 1e-9 <= found.high <= 1.0
        assert found.low < found.high


def test_many_cells_alike_tell_as_much_as_one() -> None:
    """Four cells with the same counts, each a quarter: the interval comes near that of all labels in one."""
    cell = JudgedSample(Confusion(tp=4, fn=3, fp=6, tn=37), flagged=100, judged=500)
    one = post_stratified(Confusion(tp=16, fn=12, fp=24, tn=148), flagged=400, judged=2000)
    four = post_stratified_by_cell([cell] * 4)
    assert four.interval == "effective-wilson"
    assert (four.value, four.low, four.high) == pytest.approx((one.value, one.low, one.high), abs=0.01)


def test_cell_arrays_hold_many_samples_at_once() -> None:
    cells = [JudgedSample(Confusion(8, 2, 3, 27), 30, 100), JudgedSample(Confusion(1, 1, 2, 36), 90, 900)]
    found = post_stratified_by_cell(cells)
    columns = ([8, 1], [2, 1], [3, 2], [27, 36], [30, 90], [100, 900])
    rows = [np.array([column, column[::-1]]) for column in columns]
    low, high = cell_limits(*rows)
    value, variance = cell_moments(*rows)
    assert (low[0], high[1], value[0], variance[1]) == pytest.approx(
        (found.low, found.high, found.value, found.variance)
    )


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError, match="flagged must lie in"):
        JudgedSample(Confusion(1, 1, 1, 1), 11, 10)
    with pytest.raises(ValueError, match="judged be 1 or more"):
        JudgedSample(Confusion(0, 0, 0, 0), 0, 0)
    with pytest.raises(ValueError, match="count all judged cases, labelled ones included"):
        post_stratified(Confusion(5, 5, 5, 5), flagged=9, judged=100)
    with pytest.raises(ValueError, match="count all judged cases"):
        post_stratified_by_cell([JudgedSample(Confusion(5, 5, 5, 5), 95, 100)])
    with pytest.raises(ValueError, match="a label is needed"):
        post_stratified(Confusion(0, 5, 0, 5), flagged=9, judged=100)
    for by_cell in (post_stratified_by_cell, labels_only):
        with pytest.raises(ValueError, match="at least one cell"):
            by_cell([])
        with pytest.raises(ValueError, match="has no label"):
            by_cell([JudgedSample(Confusion(5, 5, 5, 5), 20, 100), JudgedSample(Confusion(0, 0, 0, 0), 20, 100)])
    with pytest.raises(ValueError, match="two labelled and two unlabelled"):
        prediction_powered(Confusion(1, 0, 0, 0), 1, 10, 1.0)
    with pytest.raises(ValueError, match=r"flagged must lie in 0\.\.rest"):
        best_weight(Confusion(1, 1, 1, 1), 11, 10)
