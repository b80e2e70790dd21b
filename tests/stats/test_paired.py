"""Two judges or prompts on the same cases."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, multinomial
from statsmodels.stats.contingency_tables import mcnemar as by_statsmodels

from stats.difference_limits import paired_limits
from stats.intervals import wilson
from stats.paired import compare, mcnemar, mcnemar_p_values, newcombe_paired, paired_changes

NONE = float("nan")
tables = st.tuples(*[st.integers(0, 40)] * 4).filter(any)
outcomes = st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, NONE])] * 2), max_size=30)
Table = tuple[int, int, int, int]


def test_the_designs_two_comparisons() -> None:
    assert round(mcnemar(118, 116), 4) == 0.9479
    assert round(mcnemar(259, 185), 6) == 0.000517


def test_mcnemars_published_example() -> None:
    """Fagerland, Lydersen and Laake (2017), chapter 8, exact conditional test of 16 gained and 6 lost."""
    assert round(mcnemar(16, 6), 6) == 0.052479


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_is_the_sign_test_in_whole_numbers(gained: int, lost: int) -> None:
    n = gained + lost
    tail = sum(comb(n, i) for i in range(min(gained, lost) + 1))
    assert mcnemar(gained, lost) == pytest.approx(float(min(Fraction(2 * tail, 2**n), Fraction(1))), abs=1e-13)
    assert mcnemar(gained, lost) == mcnemar(lost, gained)


def test_mcnemar_equals_scipy_and_statsmodels() -> None:
    rng = np.random.default_rng(0)
    for gained, lost in rng.integers(0, [[60, 60]] * 40 + [[3000, 3000]] * 40).tolist():
        if gained + lost:
            assert mcnemar(gained, lost) == pytest.approx(binomtest(gained, gained + lost).pvalue, abs=1e-12)
        expected = by_statsmodels([[5, gained], [lost, 7]], exact=True).pvalue
        assert mcnemar(gained, lost) == pytest.approx(expected, abs=1e-12)


def test_many_pairs_at_once_are_the_same_as_one_by_one() -> None:
    gained, lost = np.arange(12)[:, None], np.arange(9)[None, :]
    p_values = mcnemar_p_values(gained, lost)
    assert p_values.shape == (12, 9)
    for b, c in product(range(12), range(9)):
        assert p_values[b, c] == mcnemar(b, c)


@pytest.mark.parametrize(
    ("table", "difference", "low", "high"),
    [
        # Airway hyper-responsiveness before and after a transplantation, 21 children (Bentur et al. 2009).
        ((1, 7, 1, 12), 0.286, 0.026, 0.507),
        # Complete response before and after consolidation therapy, 161 patients (Cavo et al. 2012).
        ((59, 16, 6, 80), 0.0621, 0.0046, 0.1186),
    ],
)
def test_newcombe_worked_examples(table: Table, difference: float, low: float, high: float) -> None:
    """Fagerland, Lydersen and Laake (2017), Statistical Analysis of Contingency Tables, chapter 8: square-and-add.

    The published difference is first less second, with the opposite sign. Without lowering phi's numerator by n/2 the
    second interval would be .0059 to .1174.
    """
    _, gained, lost, _ = table
    interval = newcombe_paired(*table)
    digits = 3 if sum(table) == 21 else 4
    assert round((gained - lost) / sum(table), digits) == difference
    assert (round(interval.low, digits), round(interval.high, digits)) == (low, high)


def test_newcombe_without_correlation_is_square_and_add() -> None:
    """phi is 0 when the numerator is within n/2 above 0: then the two Wilson intervals are joined as if independent."""
    a, gained, lost, d = 10, 10, 10, 10
    p = wilson(20, 40)
    reach = ((p.high - 0.5) ** 2 + (0.5 - p.low) ** 2) ** 0.5
    interval = newcombe_paired(a, gained, lost, d)
    assert (interval.low, interval.high) == pytest.approx((-reach, reach), abs=1e-12)


@given(tables, st.sampled_from([0.8, 0.95, 0.99]))
def test_newcombe_holds_the_difference_and_mirrors_with_the_judges_and_with_right_and_wrong(
    table: Table, confidence: float
) -> None:
    a, gained, lost, d = table
    difference = (gained - lost) / sum(table)
    interval = newcombe_paired(a, gained, lost, d, confidence)
    assert -1.0 <= interval.low <= difference + 1e-12
    assert difference - 1e-12 <= interval.high <= 1.0
    assert interval.low < interval.high
    mirrored = newcombe_paired(a, lost, gained, d, confidence)
    assert (mirrored.low, mirrored.high) == pytest.approx((-interval.high, -interval.low), abs=1e-12)
    of_the_wrong = newcombe_paired(d, lost, gained, a, confidence)
    assert (of_the_wrong.low, of_the_wrong.high) == pytest.approx((-interval.high, -interval.low), abs=1e-12)


@given(tables)
def test_newcombe_widens_with_confidence(table: Table) -> None:
    narrow, wide = newcombe_paired(*table, 0.8), newcombe_paired(*table, 0.99)
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


@given(outcomes)
def test_every_case_is_in_one_list(rows: list[tuple[float, float]]) -> None:
    first, second = np.array([x for x, _ in rows]), np.array([y for _, y in rows])
    changes = paired_changes(first, second)
    lists = (changes.gained, changes.lost, changes.both_right, changes.both_wrong, changes.left_out)
    assert sorted(np.concatenate(lists).tolist()) == list(range(len(rows)))
    for cases, one, other in zip(lists[:4], (0, 1, 1, 0), (1, 0, 1, 0), strict=True):
        assert (first[cases] == one).all() and (second[cases] == other).all()
        assert (np.diff(cases) > 0).all()
    back = paired_changes(second, first)
    assert back.gained.tolist() == changes.lost.tolist()


@given(outcomes)
def test_the_comparison_counts_what_the_lists_hold(rows: list[tuple[float, float]]) -> None:
    first, second = np.array([x for x, _ in rows]), np.array([y for _, y in rows])
    changes = paired_changes(first, second)
    compared = compare(changes)
    known = ~np.isnan(first) & ~np.isnan(second)
    assert (compared.n, compared.left_out) == (known.sum(), (~known).sum())
    assert (compared.first, compared.second) == (first[known].sum(), second[known].sum())
    assert compared.p_value == mcnemar(compared.gained, compared.lost)
    if compared.n:
        assert compared.difference == pytest.approx((compared.second - compared.first) / compared.n, abs=1e-15)
        assert compared.interval == newcombe_paired(
            changes.both_right.size, changes.gained.size, changes.lost.size, changes.both_wrong.size
        )
    else:
        assert (compared.difference, compared.interval, compared.p_value) == (None, None, 1.0)


def newcombe_coverage(n: int, both: float, gained: float, lost: float) -> float:
    """The probability that the 95 % interval holds the true difference: the sum over all tables of n cases."""
    counts = np.array(
        [(a, b, c, n - a - b - c) for a in range(n + 1) for b in range(n + 1 - a) for c in range(n + 1 - a - b)]
    )
    chances = multinomial.pmf(counts, n, [both, gained, lost, 1.0 - both - gained - lost])
    likely = chances > 1e-9
    found = [newcombe_paired(*(int(x) for x in row)) for row in counts[likely]]
    held = np.array([x.low <= gained - lost <= x.high for x in found])
    return float(chances[likely][held].sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "cells", "expected"),
    [
        (40, (0.70, 0.05, 0.05), 0.9830),
        (40, (0.70, 0.10, 0.02), 0.9666),
        (40, (0.50, 0.15, 0.05), 0.9524),
        (40, (0.80, 0.10, 0.00), 0.9801),
        (40, (0.20, 0.20, 0.10), 0.9523),
        (100, (0.70, 0.10, 0.02), 0.9596),
        (100, (0.20, 0.20, 0.10), 0.9506),
    ],
)
def test_newcombe_covers_what_it_says(n: int, cells: tuple[float, float, float], expected: float) -> None:
    """At or above 95 % in these, the more above it the fewer cases change. ``cells``: both right, gained, lost."""
    assert round(newcombe_coverage(n, *cells), 4) == expected


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        paired_changes([1, 0], [1])
    with pytest.raises(ValueError, match="one length"):
        paired_changes([[1, 0]], [[1, 0]])
    with pytest.raises(ValueError, match="1 \\(right\\)"):
        paired_changes([1, 0.5], [1, 1])
    for counts in ((-1, 3), (1, 2.5), (NONE, 1)):
        with pytest.raises(ValueError, match="whole numbers"):
            mcnemar_p_values(*counts)
    with pytest.raises(ValueError, match="case"):
        newcombe_paired(0, 0, 0, 0)
    with pytest.raises(ValueError, match="k must lie"):
        newcombe_paired(3, -1, 4, 5)
    with pytest.raises(ValueError, match="confidence"):
        newcombe_paired(3, 1, 4, 5, confidence=95)
    with pytest.raises(ValueError, match="confidence"):
        compare(paired_changes([1], [0]), confidence=0.0)


def test_newcombes_interval_is_the_same_for_integers_of_numpy_and_for_arrays() -> None:
    """The product of the four margins is beyond int64 from about 100,000 cases on."""
    table = (90_000, 9_000, 9_500, 91_500)
    interval = newcombe_paired(*table)
    assert newcombe_paired(*(np.int64(count) for count in table)) == interval
    both, gained, lost, neither = table
    low, high = paired_limits([both, 1], [lost, 1], [gained, 7], [neither, 12])
    assert (low[0], high[0]) == (interval.low, interval.high)
