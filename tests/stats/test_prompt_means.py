"""One prompt's mean and its interval over items."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from stats.intervals import wilson
from stats.prompt_means import prompt_mean


def test_248_of_1000() -> None:
    figure = prompt_mean([1.0] * 248 + [0.0] * 752)
    assert (figure.mean, round(figure.low or 0, 4), round(figure.high or 0, 4)) == (0.248, 0.2222, 0.2757)
    assert (figure.n, figure.method) == (1000, "wilson")


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=30).filter(lambda v: not set(v) <= {0.0, 1.0}))
def test_numbers_have_the_t_interval_of_scipy(values: list[float]) -> None:
    figure = prompt_mean(values)
    error = scipy_stats.sem(values)
    half = scipy_stats.t.ppf(0.975, len(values) - 1) * error
    assert figure.method == "t"
    assert figure.mean == pytest.approx(np.mean(values), abs=1e-12)
    assert (figure.high or 0) - (figure.low or 0) == pytest.approx(2 * half, abs=1e-9)


def test_missing_outcomes_are_left_out() -> None:
    figure = prompt_mean([1.0, np.nan, 0.0, np.nan])
    assert (figure.mean, figure.n) == (0.5, 2)
    assert figure.low == wilson(1, 2).low


def test_a_prompt_of_graded_outcomes_that_scores_all_ones_is_no_proportion() -> None:
    figure = prompt_mean([1.0, 1.0, 1.0], binary=False)
    assert (figure.method, figure.low, figure.high) == ("t", 1.0, 1.0)
    with pytest.raises(ValueError, match="hold other numbers"):
        prompt_mean([0.5], binary=True)


def test_nothing_and_one_number() -> None:
    empty = prompt_mean([np.nan])
    assert (empty.mean, empty.low, empty.n, empty.method) == (None, None, 0, "none")
    one = prompt_mean([0.5])
    assert (one.mean, one.low, one.high, one.method) == (0.5, None, None, "none")
    with pytest.raises(ValueError):
        prompt_mean([np.inf])
    with pytest.raises(ValueError):
        prompt_mean([1.0], confidence=1.0)
