"""The confusion table and its rates. Positive = the judge reports a failure."""

from __future__ import annotations

import doctest
import math
from dataclasses import astuple, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats import confusion as module
from stats.confusion import (
    Confusion,
    is_constant,
    kappa,
    no_verdict_bounds,
    proportion,
    rates,
    swap_positive,
)
from stats.intervals import wilson

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


@pytest.mark.parametrize(
    ("table", "value", "low", "high"),
    [
        (RAGAS, 0.5205479452, 0.1557768129, 0.8853190776),
        (WORKED, 0.375, 0.1621915252, 0.5878084748),
        (TRUESCORE, 0.5001110864, 0.4210842210, 0.5791379519),
        (ARENA, 0.0144475456, -0.1020480371, 0.1309431283),
        (Confusion(20, 5, 10, 15), 0.4, 0.1510922905, 0.6489077095),
        (Confusion(1, 1, 0, 1_000_000), 0.6666662222, 0.0507085563, 1.0),
        (Confusion(0, 7, 3, 0), -0.7241379310, -1.0, -0.0486902138),
    ],
)
def test_kappa_equals_statsmodels(table: Confusion, value: float, low: float, high: float) -> None:
    """Values of statsmodels 0.14 `cohens_kappa` (kappa_low, kappa_upp), cut at -1 and 1."""
    assert astuple(kappa(table)) == pytest.approx((value, low, high), abs=1e-9)


def test_known_tables_of_real_judges() -> None:
    """Values from the folder of real inputs: ragas .818/.70, gpt-4o-mini .844/.169 with one answer not given."""
    assert rates(RAGAS).tpr.value == pytest.approx(0.818, abs=5e-4)
    assert rates(RAGAS).tnr.value == 0.7
    assert rates(ARENA).tpr.value == pytest.approx(0.844, abs=5e-4)
    assert rates(ARENA).tnr.value == pytest.approx(0.169, abs=5e-4)
    assert (ARENA.no_verdict, ARENA.judged, ARENA.labelled) == (1, 276, 277)


@given(tables)
def test_kappa_interval_is_the_delta_method(table: Confusion) -> None:
    """The same interval from numerical derivatives of kappa by the four shares, with no formula in common."""
    estimate = kappa(table)
    if estimate.low is None or estimate.high is None or estimate.value is None:
        return
    shares = [count / table.judged for count in (table.tp, table.fn, table.fp, table.tn)]

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
    variance = sum(p * (s - mean) ** 2 for p, s in zip(shares, slopes, strict=True)) / table.judged
    half = 1.959963985 * math.sqrt(variance)
    assert estimate.low == pytest.approx(max(estimate.value - half, -1.0), abs=1e-3)
    assert estimate.high == pytest.approx(min(estimate.value + half, 1.0), abs=1e-3)


def test_kappa_says_nothing_where_it_is_undefined() -> None:
    for table in (Confusion(0, 0, 0, 0), Confusion(0, 0, 0, 9), Confusion(9, 0, 0, 0)):
        assert astuple(kappa(table)) == (None, None, None)
    assert astuple(kappa(Confusion(3, 0, 0, 4))) == (1.0, None, None)
    assert astuple(kappa(Confusion(0, 4, 4, 0))) == (-1.0, None, None)


@given(tables)
def test_kappa_stays_in_range_and_its_interval_holds_it(table: Confusion) -> None:
    estimate = kappa(table)
    if estimate.value is not None:
        assert -1.0 <= estimate.value <= 1.0
    if estimate.low is not None and estimate.high is not None and estimate.value is not None:
        assert -1.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0


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
    for name in (
        "tpr",
        "tnr",
        "precision",
        "recall",
        "agreement",
        "baseline_agreement",
    ):
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


def test_the_docstrings_examples_hold() -> None:
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0
