"""The confusion table and its rates. Positive = the judge reports a failure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple, replace
from typing import cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.confusion import (
    Confusion,
    Verdict,
    check_verdicts,
    is_constant,
    no_verdict_bounds,
    rates,
    swap_positive,
    tabulate,
    with_no_verdict_as,
)
from stats.intervals import METHODS, Interval, IntervalMethod, clopper_pearson, jeffreys, proportion, wilson
from stats.kappa import cohens_kappa

tables = st.builds(Confusion, *[st.integers(0, 60)] * 4, *[st.integers(0, 9)] * 3)
WORKED = Confusion(tp=8, fn=12, fp=9, tn=171)
RAGAS = Confusion(tp=9, fn=2, fp=3, tn=7)
TRUESCORE = Confusion(tp=79, fn=90, fp=15, tn=416, unlabelled=3400)
ARENA = Confusion(tp=178, fn=33, fp=54, tn=11, no_verdict_fail=1)


def test_the_worked_example_holds_to_the_digit() -> None:
    """20 failures and 180 good: TPR 40 %, TNR 95 %, raw agreement 89.5 % (design page on judge alignment)."""
    figures = rates(WORKED)
    assert (figures.tpr.k, figures.tpr.n, figures.tpr.value) == (8, 20, 0.4)
    assert (figures.tnr.k, figures.tnr.n, figures.tnr.value) == (171, 180, 0.95)
    assert (figures.agreement.k, figures.agreement.n, figures.agreement.value) == (
        179,
        200,
        0.895,
    )
    assert (figures.baseline_agreement.k, figures.baseline_agreement.value) == (
        180,
        0.9,
    )
    assert (figures.precision.k, figures.precision.n) == (8, 17)
    assert figures.recall == figures.tpr


def test_a_judge_that_always_says_pass_agrees_as_often_as_cases_pass() -> None:
    figures = rates(Confusion(tp=0, fn=20, fp=0, tn=180))
    assert figures.agreement.value == figures.baseline_agreement.value == 0.9
    assert figures.tpr.value == 0.0
    assert figures.tnr.value == 1.0
    assert figures.precision == proportion(0, 0)
    assert astuple(figures.kappa) == (0.0, None, None)


def test_a_judge_that_always_says_fail_agrees_as_often_as_cases_fail() -> None:
    figures = rates(Confusion(tp=20, fn=0, fp=180, tn=0))
    assert figures.agreement == figures.always_fail_agreement == proportion(20, 200)
    assert (figures.tpr.value, figures.tnr.value) == (1.0, 0.0)


def test_known_tables_of_real_judges() -> None:
    """Values from the folder of real inputs: ragas .818/.70, gpt-4o-mini .844/.169 with one answer not given."""
    assert rates(RAGAS).tpr.value == pytest.approx(0.818, abs=5e-4)
    assert rates(RAGAS).tnr.value == 0.7
    assert rates(ARENA).tpr.value == pytest.approx(0.844, abs=5e-4)
    assert rates(ARENA).tnr.value == pytest.approx(0.169, abs=5e-4)
    assert (ARENA.no_verdict, ARENA.judged, ARENA.labelled) == (1, 276, 277)


@given(tables)
def test_swapping_the_convention_trades_tpr_and_tnr(table: Confusion) -> None:
    swapped = swap_positive(table)
    here, there = rates(table), rates(swapped)
    assert (here.tpr, here.tnr) == (there.tnr, there.tpr)
    assert here.agreement == there.agreement
    assert here.kappa.value == there.kappa.value
    assert swap_positive(swapped) == table


@given(tables)
def test_every_proportion_is_k_of_n_with_its_wilson_interval(table: Confusion) -> None:
    figures = rates(table)
    for name in ("tpr", "tnr", "precision", "recall", "agreement", "baseline_agreement", "always_fail_agreement"):
        figure = getattr(figures, name)
        if figure.n == 0:
            assert astuple(figure) == (0, 0, None, None, None)
        else:
            interval = wilson(figure.k, figure.n)
            assert astuple(figure)[2:] == (
                figure.k / figure.n,
                interval.low,
                interval.high,
            )
    assert figures.tpr.n + figures.tnr.n == figures.agreement.n == table.judged
    assert table.labelled == table.judged + table.no_verdict


@given(tables)
def test_cases_without_a_verdict_move_no_rate_but_lie_within_the_bounds(
    table: Confusion,
) -> None:
    assert rates(table) == rates(replace(table, no_verdict_fail=0, no_verdict_pass=0, unlabelled=0))
    bounds = no_verdict_bounds(table)
    for low, figure, high in (
        (bounds.tpr_as_pass, rates(table).tpr, bounds.tpr_as_fail),
        (bounds.tnr_as_fail, rates(table).tnr, bounds.tnr_as_pass),
    ):
        if figure.value is not None:
            assert low.value is not None
            assert high.value is not None
            assert low.value <= figure.value <= high.value
        assert low.n == high.n


@given(tables)
def test_catching_one_more_failure_raises_tpr(table: Confusion) -> None:
    if table.fn:
        here, better = (
            rates(table).tpr,
            rates(replace(table, tp=table.tp + 1, fn=table.fn - 1)).tpr,
        )
        assert here.value is not None
        assert better.value is not None
        assert better.value > here.value


def test_bounds_with_missing_verdicts_as_pass_and_as_fail() -> None:
    bounds = no_verdict_bounds(Confusion(tp=8, fn=2, fp=1, tn=9, no_verdict_fail=2, no_verdict_pass=3))
    assert [(x.k, x.n) for x in (bounds.tpr_as_pass, bounds.tpr_as_fail)] == [
        (8, 12),
        (10, 12),
    ]
    assert [(x.k, x.n) for x in (bounds.tnr_as_pass, bounds.tnr_as_fail)] == [
        (12, 13),
        (9, 13),
    ]


@pytest.mark.parametrize(
    ("table", "verdict"),
    [
        (Confusion(0, 20, 0, 180), "PASS"),
        (Confusion(20, 0, 180, 0), "FAIL"),
        (Confusion(0, 0, 0, 5), "PASS"),
        (Confusion(0, 20, 0, 180, no_verdict_fail=3), "PASS"),
        (Confusion(1, 19, 0, 180), None),
        (Confusion(0, 19, 1, 180), None),
        (Confusion(0, 0, 0, 0, no_verdict_fail=3, unlabelled=9), None),
    ],
)
def test_a_constant_judge_is_named(table: Confusion, verdict: str | None) -> None:
    assert is_constant(table) == verdict


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="fn must be a whole number"):
        Confusion(1, -1, 0, 0)
    with pytest.raises(ValueError, match="unlabelled"):
        Confusion(1, 1, 0, 0, unlabelled=-3)
    with pytest.raises(ValueError, match="k must lie between"):
        proportion(3, 2)


def test_verdicts_are_counted_as_pandas_counts_them() -> None:
    rng = np.random.default_rng(0)
    expert, judge = (rng.choice(np.array(["PASS", "FAIL", None]), size=500).tolist() for _ in range(2))
    cells = pd.crosstab(pd.Series(expert).fillna("none"), pd.Series(judge).fillna("none"))
    table = tabulate(expert, judge)
    assert (table.tp, table.fn, table.fp, table.tn) == (
        cells.loc["FAIL", "FAIL"],
        cells.loc["FAIL", "PASS"],
        cells.loc["PASS", "FAIL"],
        cells.loc["PASS", "PASS"],
    )
    assert (table.no_verdict_fail, table.no_verdict_pass) == (cells.loc["FAIL", "none"], cells.loc["PASS", "none"])
    assert table.unlabelled == cells.loc["none"].sum()
    assert table.labelled + table.unlabelled == 500


def test_no_cases_make_an_empty_table() -> None:
    assert tabulate([], []) == Confusion(0, 0, 0, 0)
    assert astuple(rates(tabulate([], [])).tpr) == (0, 0, None, None, None)


def test_verdicts_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="rows of one length"):
        check_verdicts(["PASS"], ["PASS", "FAIL"])
    for wrong in ("pass", "", True, 1):
        with pytest.raises(ValueError, match="a verdict must be"):
            tabulate(["PASS"], cast("list[Verdict | None]", [wrong]))


@given(tables)
def test_the_bounds_are_the_rates_with_every_missing_verdict_read_one_way(table: Confusion) -> None:
    bounds = no_verdict_bounds(table)
    for verdict, tpr, tnr in (
        ("PASS", bounds.tpr_as_pass, bounds.tnr_as_pass),
        ("FAIL", bounds.tpr_as_fail, bounds.tnr_as_fail),
    ):
        read = with_no_verdict_as(table, cast("Verdict", verdict))
        assert (read.judged, read.no_verdict, read.unlabelled) == (table.labelled, 0, table.unlabelled)
        assert (rates(read).tpr, rates(read).tnr) == (tpr, tnr)


def test_a_missing_verdict_is_read_as_one_of_two() -> None:
    with pytest.raises(ValueError, match="'PASS' or 'FAIL'"):
        with_no_verdict_as(Confusion(1, 1, 1, 1), cast("Verdict", "none"))


@pytest.mark.parametrize(("method", "interval"), [("jeffreys", jeffreys), ("clopper-pearson", clopper_pearson)])
def test_another_interval_and_confidence_are_used_for_every_proportion(
    method: IntervalMethod, interval: Callable[[int, int, float], Interval]
) -> None:
    figures = rates(WORKED, 0.9, method)
    for figure in (figures.tpr, figures.tnr, figures.precision, figures.agreement, figures.always_fail_agreement):
        expected = interval(figure.k, figure.n, 0.9)
        assert (figure.low, figure.high) == (expected.low, expected.high)
    assert figures.kappa == cohens_kappa(8, 12, 9, 171, 0.9)
    assert method in METHODS


def test_counts_are_kept_as_ints_whatever_they_came_as() -> None:
    table = Confusion(np.int32(80_001), np.int64(20_000), 3.0, np.uint8(10))  # type: ignore[arg-type]
    assert table == Confusion(80_001, 20_000, 3, 10)
    assert {type(count) for count in (table.tp, table.fn, table.fp, table.tn)} == {int}
    for wrong in (math.inf, math.nan, 0.5, -1):
        with pytest.raises(ValueError, match="whole number"):
            Confusion(wrong, 0, 0, 0)  # type: ignore[arg-type]
