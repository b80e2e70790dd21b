"""The flip rate between repeats."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.flips import flip_rate


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=5), min_size=1, max_size=8))
def test_it_is_the_share_of_pairs_that_differ_averaged_over_items(items: list[list[bool]]) -> None:
    shares = [np.mean([a != b for a, b in combinations(item, 2)]) for item in items if len(item) > 1]
    found = float(flip_rate([sum(item) for item in items], [len(item) for item in items]))
    assert found == pytest.approx(np.mean(shares)) if shares else np.isnan(found)


def test_it_estimates_twice_p_times_1_minus_p_whatever_the_number_of_repeats() -> None:
    generator = np.random.default_rng(2)
    for repeats in (2, 3, 7):
        right = generator.binomial(repeats, 0.3, 40_000)
        assert float(flip_rate(right, np.full(40_000, repeats))) == pytest.approx(2 * 0.3 * 0.7, abs=0.01)


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="right answers must lie"):
        flip_rate([3], [2])
    with pytest.raises(ValueError, match="one shape"):
        flip_rate([1, 1], [2])
