"""How labels are split. Positive = the judge reports a failure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.label_allocation import Allocation, best_allocation, lee_allocation

inner = st.floats(0.05, 0.95)


def variance(failures: int, goods: int, theta: float, tpr: float, tnr: float) -> float:
    """The labels' part of the corrected rate's variance, without 1/J^2."""
    return theta**2 * tpr * (1 - tpr) / failures + (1 - theta) ** 2 * tnr * (1 - tnr) / goods


@given(st.integers(40, 300), inner, inner, inner)
def test_no_other_split_has_less_variance(labels: int, theta: float, tpr: float, tnr: float) -> None:
    found = best_allocation(labels, theta, tpr, tnr)
    assert found.failures + found.goods == labels
    least = min(variance(m1, labels - m1, theta, tpr, tnr) for m1 in range(15, labels - 14))
    # Rounding to whole labels may cost a hair.
    assert variance(found.failures, found.goods, theta, tpr, tnr) <= least * 1.01


def test_what_an_even_or_published_split_costs() -> None:
    """At the published example the best split leaves 84 % of the variance that the published one does."""
    theta, tpr, tnr = 1 / 6, 0.9, 0.7
    best, published = best_allocation(200, theta, tpr, tnr), lee_allocation(200, 0.4, tpr, tnr, pilot=10)
    assert (best, published) == (Allocation(23, 177), Allocation(64, 136))
    ratio = variance(best.failures, best.goods, theta, tpr, tnr) / variance(64, 136, theta, tpr, tnr)
    assert ratio == pytest.approx(0.839, abs=0.001)
    assert variance(100, 100, theta, tpr, tnr) > variance(64, 136, theta, tpr, tnr)


def test_a_judge_that_seems_to_never_err_still_gets_labels() -> None:
    assert best_allocation(100, 0.3, 1.0, 0.9).failures >= 15
    assert best_allocation(100, 0.3, 1.0, 1.0) == Allocation(30, 70)
    assert best_allocation(100, 0.0, 0.8, 0.9) == Allocation(15, 85)
    assert best_allocation(100, 1.0, 0.8, 0.9) == Allocation(85, 15)


def test_published_cases_of_lee() -> None:
    """Values of the authors' program, worked out by its formula: no flagged case, all flagged, the pilot as a floor, and
    a half rounded to the even number."""
    assert lee_allocation(500, 0.0, 0.9, 0.9, pilot=20) == Allocation(20, 480)
    assert lee_allocation(50, 1.0, 0.8, 0.7, pilot=5) == Allocation(45, 5)
    assert lee_allocation(20, 0.02, 0.99, 0.5, pilot=8) == Allocation(8, 12)
    assert lee_allocation(7, 0.5, 0.6, 0.6, pilot=1) == Allocation(4, 3)
    assert lee_allocation(5, 0.5, 0.6, 0.6, pilot=1) == Allocation(2, 3)


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError, match="theta must be a share"):
        best_allocation(100, 1.5, 0.8, 0.8)
    with pytest.raises(ValueError, match="do not suffice"):
        best_allocation(29, 0.3, 0.8, 0.8)
    with pytest.raises(ValueError, match="flagged_share must be a share"):
        lee_allocation(100, -0.1, 0.8, 0.8, 10)
    for pilot in (0, 51):
        with pytest.raises(ValueError, match="a pilot must have"):
            lee_allocation(100, 0.1, 0.8, 0.8, pilot)
