"""Rows that repeat a case."""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import sem
from scipy.stats import t as student

from stats.best_set import best_set
from stats.clusters import (
    ClusteredMean,
    cluster_sums,
    clustered_mean,
    clustered_proportion,
    intraclass_correlation,
    numbered,
)
from stats.intervals import wilson
from stats.resampling import bootstrap, standard_errors

NONE = float("nan")
rows = st.lists(st.tuples(st.sampled_from([0.0, 1.0, NONE]), st.integers(0, 9)), max_size=40)
Rows = list[tuple[float, int]]


def test_equal_to_statsmodels_ols_on_an_intercept() -> None:
    """cov_type 'cluster' with its default small-sample factor G/(G-1) (N-1)/(N-1), and t with G - 1 degrees of freedom."""
    rng = np.random.default_rng(0)
    for rows_, cases_ in ((6, 3), (40, 7), (300, 40), (300, 290), (50, 2)):
        for values in (rng.normal(3.0, 2.0, rows_), rng.integers(0, 2, rows_).astype(float)):
            cases = np.concatenate([np.arange(cases_), rng.integers(0, cases_, rows_ - cases_)])
            fit = sm.OLS(values, np.ones(rows_)).fit(cov_type="cluster", cov_kwds={"groups": cases}, use_t=True)
            found = clustered_mean(values, cases.tolist(), 0.9)
            assert found.variance == pytest.approx(float(fit.cov_params()[0, 0]), abs=1e-12)
            assert (found.low, found.high) == pytest.approx(tuple(fit.conf_int(0.1)[0]), abs=1e-10)
            assert (found.rows, found.cases) == (rows_, cases_)


def test_with_one_row_a_case_it_is_the_usual_standard_error_and_t_interval() -> None:
    values = np.random.default_rng(1).normal(size=30)
    found = clustered_mean(values, list(range(30)))
    assert found.variance == pytest.approx(sem(values) ** 2, abs=1e-15)
    expected = student.interval(0.95, 29, loc=values.mean(), scale=sem(values))
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)
    assert found.design_effect == pytest.approx(1.0, abs=1e-12)
    assert found.effective_rows == pytest.approx(30.0, abs=1e-9)
    assert found.intraclass is None


def test_copies_of_a_case_add_nothing() -> None:
    """Each case five times: mean and variance are those of one row a case, the effective rows those of the cases."""
    values = np.random.default_rng(2).integers(0, 2, 40).astype(float)
    once, copied = (clustered_mean(np.repeat(values, m), np.repeat(np.arange(40), m).tolist()) for m in (1, 5))
    assert (copied.mean, copied.variance, copied.low, copied.high) == pytest.approx(
        (once.mean, once.variance, once.low, once.high), abs=1e-12
    )
    assert (copied.rows, copied.cases) == (200, 40)
    assert copied.intraclass == pytest.approx(1.0, abs=1e-12)
    assert copied.effective_rows == pytest.approx(40.0, rel=0.03)


def test_shrout_and_fleiss_1979() -> None:
    """Psychological Bulletin 86, 420-428, table 2: six targets, four judges, ICC(1,1) = .17."""
    ratings = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    found = intraclass_correlation(np.ravel(ratings).astype(float), np.repeat(np.arange(6), 4).tolist())
    assert found == pytest.approx(0.17, abs=5e-3)


def test_the_intraclass_correlation_is_that_of_a_one_way_analysis_of_variance() -> None:
    """From the F statistic of an independent fit, with cases of several sizes."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 9, 25)
    cases = np.repeat(np.arange(25), sizes)
    values = rng.normal(size=25)[cases] + rng.normal(size=cases.size)
    fit = sm.OLS(values, (cases[:, None] == np.arange(25)).astype(float)).fit()
    within = fit.mse_resid
    between = float((sizes * (fit.params - values.mean()) ** 2).sum()) / 24
    size = (cases.size - (sizes**2).sum() / cases.size) / 24
    expected = (between - within) / (between + (size - 1) * within)
    assert intraclass_correlation(values, cases.tolist()) == pytest.approx(expected, abs=1e-12)


def test_rows_that_contradict_each_other_have_the_lowest_correlation() -> None:
    """Two rows a case, always one of each: -1, a variance of 0, and no more effective rows than there are."""
    found = clustered_mean([0.0, 1.0] * 6, np.repeat(np.arange(6), 2).tolist())
    assert found.intraclass == pytest.approx(-1.0, abs=1e-12)
    assert found.variance == pytest.approx(0.0, abs=1e-15)
    assert found.effective_rows == 12.0
    share = clustered_proportion([0.0, 1.0] * 6, np.repeat(np.arange(6), 2).tolist())
    assert share.low is not None and share.low < 0.25


def test_a_single_repeated_row_gives_no_correlation_below_the_lowest() -> None:
    """By the formula MSB = .125, MSW = .5 and n0 = 1.25 give -1.5, which no correlation can be."""
    assert intraclass_correlation([0.0, 0.0, 0.0, 1.0], [0, 1, 2, 0]) == -1.0


def test_the_share_has_wilsons_interval_with_effective_rows_and_t() -> None:
    """With very many cases of one row each, t is z and the interval Wilson's."""
    outcomes = np.zeros(20_000)
    outcomes[:700] = 1.0
    found = clustered_proportion(outcomes, list(range(20_000)))
    expected = wilson(700, 20_000)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_the_share_reaches_its_worked_out_interval() -> None:
    """Ten rows of four cases: variance, effective rows and Wilson's formula by hand."""
    outcomes = [1, 1, 1, 0, 0, 0, 1, 1, 0, 0]
    found = clustered_proportion(outcomes, list("aaabbbccdd"))
    variance = 4 / 3 * (1.5**2 + 1.5**2 + 1 + 1) / 100
    size = 0.25 * 10 / 9 / variance
    t2 = student.ppf(0.975, 3) ** 2
    half = math.sqrt(t2 * (0.25 * size + t2 / 4)) / (size + t2)
    assert found.variance == pytest.approx(variance, abs=1e-15)
    assert found.effective_rows == pytest.approx(size, abs=1e-12)
    assert (found.low, found.high) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-12)


def test_equal_rows_throughout_count_once_a_case() -> None:
    """12 rows of 4 cases, all 1: as wide as 4 of 4 with t, not as narrow as 12 of 12."""
    found = clustered_proportion([1] * 12, np.repeat(np.arange(4), 3).tolist())
    t2 = student.ppf(0.975, 3) ** 2
    assert (found.design_effect, found.effective_rows, found.intraclass) == (None, None, None)
    assert found.high == 1.0
    assert found.low == pytest.approx(4 / (4 + t2), abs=1e-12)


def test_without_two_cases_there_is_no_interval() -> None:
    nothing = ClusteredMean(None, None, None, None, 0, 0, None, None, None)
    for of in (clustered_mean, clustered_proportion):
        assert of([], []) == of([NONE, NONE], ["a", "b"]) == nothing
        one = of([1.0, 0.0, NONE], ["a", "a", "b"])
        assert (one.mean, one.low, one.variance, one.rows, one.cases) == (0.5, None, None, 2, 1)


@settings(deadline=None)
@given(rows)
def test_rows_without_a_value_are_no_rows(table: Rows) -> None:
    values, cases = [x for x, _ in table], [c for _, c in table]
    kept = [(x, c) for x, c in table if not math.isnan(x)]
    for of in (clustered_mean, clustered_proportion):
        assert of(values, cases) == of([x for x, _ in kept], [c for _, c in kept])


@settings(deadline=None)
@given(rows.flatmap(lambda table: st.tuples(st.just(table), st.permutations(table))))
def test_neither_order_nor_names_of_cases_matter(tables: tuple[Rows, Rows]) -> None:
    table, shuffled = tables
    found = clustered_proportion([x for x, _ in table], [c for _, c in table])
    other = clustered_proportion([x for x, _ in shuffled], [f"case {c}" for _, c in shuffled])
    for name in ("mean", "low", "high", "variance", "rows", "cases", "intraclass"):
        assert getattr(other, name) == pytest.approx(getattr(found, name), abs=1e-9)


@settings(deadline=None)
@given(rows)
def test_the_share_and_the_correlation_stay_in_range(table: Rows) -> None:
    found = clustered_proportion([x for x, _ in table], [c for _, c in table])
    if found.mean is not None and found.low is not None and found.high is not None:
        assert 0.0 <= found.low <= found.mean <= found.high <= 1.0
        assert found.high - found.low > 0.0
    if found.intraclass is not None:
        assert -1.0 <= found.intraclass <= 1.0 + 1e-12
    if found.effective_rows is not None:
        assert 0.0 < found.effective_rows <= found.rows


def beta_binomial(rng: np.random.Generator, rate: float, correlation: float, cases: int, rows_: int) -> np.ndarray:
    """[cases, rows] of 0/1 with the given rate and correlation of two rows of a case."""
    size = 1.0 / correlation - 1.0
    own = rng.beta(rate * size, (1.0 - rate) * size, cases)
    return (rng.random((cases, rows_)) < own[:, None]).astype(float)


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "cases", "rows_"), [(0.2, 30, 5), (0.2, 100, 5), (0.5, 30, 10), (0.05, 100, 3)])
def test_the_interval_of_a_share_covers_where_wilson_over_rows_does_not(rate: float, cases: int, rows_: int) -> None:
    """2,000 data sets, correlation .5 within a case; the standard error of a coverage of .95 is .005."""
    rng = np.random.default_rng(0)
    names = np.repeat(np.arange(cases), rows_).tolist()
    clustered = naive = 0
    for _ in range(2000):
        outcomes = beta_binomial(rng, rate, 0.5, cases, rows_).ravel()
        found = clustered_proportion(outcomes, names)
        assert found.low is not None and found.high is not None
        clustered += found.low <= rate <= found.high
        as_rows = wilson(int(outcomes.sum()), outcomes.size)
        naive += as_rows.low <= rate <= as_rows.high
    assert clustered / 2000 > 0.94
    assert naive / 2000 < 0.85


@pytest.mark.slow
def test_the_interval_of_a_share_covers_less_with_uneven_cases_and_a_rare_outcome() -> None:
    """As it is: about 90 % in 2,000 data sets of 60 cases with 1 to 9 rows each, at 5 % and correlation .5."""
    rng = np.random.default_rng(5)
    of_row = np.repeat(np.arange(60), rng.integers(1, 10, 60))
    names, held = of_row.tolist(), 0
    for _ in range(2000):
        own = rng.beta(0.05, 0.95, 60)
        found = clustered_proportion((rng.random(of_row.size) < own[of_row]).astype(float), names)
        assert found.low is not None and found.high is not None
        held += found.low <= 0.05 <= found.high
    assert 0.88 < held / 2000 < 0.93


@pytest.mark.slow
def test_the_interval_of_a_mean_covers_a_little_less_with_few_uneven_cases() -> None:
    """As it is: about 93 % in 2,000 data sets of 25 cases with 1 to 9 rows each, normal within and between."""
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 10, 25)
    of_row = np.repeat(np.arange(25), sizes)
    names, held = of_row.tolist(), 0
    for _ in range(2000):
        found = clustered_mean(rng.normal(size=25)[of_row] + rng.normal(size=of_row.size), names)
        assert found.low is not None and found.high is not None
        held += found.low <= 0.0 <= found.high
    assert 0.92 < held / 2000 < 0.945


def test_impossible_input_is_refused() -> None:
    for of in (clustered_mean, clustered_proportion):
        with pytest.raises(ValueError, match="needs one value"):
            of([1.0, 0.0], ["a"])
        with pytest.raises(ValueError, match="confidence"):
            of([1.0, 0.0], ["a", "b"], confidence=95)
    with pytest.raises(ValueError, match="finite"):
        clustered_mean([math.inf, 0.0], ["a", "b"])
    with pytest.raises(ValueError, match="0 or 1"):
        clustered_proportion([0.5, 0.0], ["a", "b"])


def test_labels_are_told_apart_as_they_are() -> None:
    assert numbered([1, "1", None, (2, "a"), "1"]).tolist() == [0, 1, 2, 3, 1]
    assert numbered(np.array(["x", "a", "x"])).tolist() == [0, 1, 0]
    rows = np.array([[1.0, 0.0], [2.0, 1.0], [4.0, 1.0]])
    assert cluster_sums(rows, [None, "a", None]).tolist() == [[5.0, 1.0], [2.0, 1.0]]
    assert cluster_sums(rows, None) is rows


def test_a_row_of_no_known_cluster_is_refused() -> None:
    """Taken as one cluster of all such rows, or as one each, either would be made up."""
    outcomes, labels = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], np.array([1.0, np.nan, np.nan])
    for use in (best_set, bootstrap, standard_errors):
        with pytest.raises(ValueError, match="must not be nan"):
            use(outcomes, clusters=labels)
    with pytest.raises(ValueError, match="must not be nan"):
        clustered_mean([1.0, 0.0, 1.0], labels)


@pytest.mark.parametrize("names", [[1, "1", None], [("a", 1), ("a", 2), ("b", 1)]])
def test_labels_of_any_kind_serve_every_statistic(names: list[Hashable]) -> None:
    outcomes = np.random.default_rng(5).integers(0, 2, size=(30, 3))
    numbers, labels = [0, 1, 2] * 10, names * 10
    assert standard_errors(outcomes, clusters=labels).tolist() == standard_errors(outcomes, clusters=numbers).tolist()
    assert (
        best_set(outcomes, clusters=labels).p_values.tolist() == best_set(outcomes, clusters=numbers).p_values.tolist()
    )
