"""p-values adjusted for several tests."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import false_discovery_control
from statsmodels.stats.multitest import multipletests

from stats.multiplicity import benjamini_hochberg, holm

ADJUSTMENTS = {"holm": holm, "fdr_bh": benjamini_hochberg}
Values = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
families = arrays.arrays(
    np.float64,
    arrays.array_shapes(min_dims=1, max_dims=2, max_side=8),
    elements=st.sampled_from([0.0, 0.001, 0.01, 0.02, 0.02, 0.04, 0.3, 1.0, float("nan")]),
)


def test_benjamini_and_hochbergs_own_example() -> None:
    """Benjamini and Hochberg (1995), section 3.2: of 15 tests at .05 Holm's kind rejects 3 and theirs 4."""
    p = [.0001, .0004, .0019, .0095, .0201, .0278, .0298, .0344, .0459, .3240, .4262, .5719, .6528, .7590, 1.0]  # fmt: skip
    assert int((holm(p) <= 0.05).sum()) == 3
    assert int((benjamini_hochberg(p) <= 0.05).sum()) == 4
    assert benjamini_hochberg(p)[3] == pytest.approx(15 / 4 * 0.0095)


@pytest.mark.parametrize("method", ADJUSTMENTS)
def test_equal_to_statsmodels_with_ties(method: str) -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, 40, 300):
        for p in (rng.random(size), rng.choice([0.0, 0.001, 0.02, 0.02, 0.5, 1.0], size), rng.random(size) ** 6):
            expected = multipletests(p, method=method)[1]
            assert ADJUSTMENTS[method](p) == pytest.approx(expected, abs=1e-12)


def test_equal_to_scipy() -> None:
    p = np.random.default_rng(1).random(200) ** 3
    assert benjamini_hochberg(p) == pytest.approx(false_discovery_control(p, method="bh"), abs=1e-12)


@given(families)
def test_what_was_not_tested_stays_out(p: Values) -> None:
    for adjust in ADJUSTMENTS.values():
        adjusted = adjust(p)
        assert adjusted.shape == p.shape
        assert np.array_equal(np.isnan(adjusted), np.isnan(p))
        assert np.array_equal(adjusted[~np.isnan(p)], adjust(p[~np.isnan(p)]))


@given(families)
def test_no_p_value_falls_none_changes_places_and_holm_is_the_stricter(p: Values) -> None:
    tested = p[~np.isnan(p)]
    strict, mild = holm(tested), benjamini_hochberg(tested)
    assert (tested <= mild + 1e-15).all()
    assert (mild <= strict + 1e-15).all()
    assert (strict <= np.minimum(tested * tested.size, 1.0) + 1e-15).all()
    order = np.argsort(tested, kind="stable")
    for adjusted in (strict, mild):
        assert (np.diff(adjusted[order]) >= 0.0).all()


@given(st.lists(st.sampled_from([0.001, 0.01, 0.02, 0.03, 0.2, 0.9]), min_size=1, max_size=6))
def test_holm_is_the_closed_test_with_bonferroni(p: list[float]) -> None:
    """The definition behind it: the largest Bonferroni p-value among all sets of hypotheses that hold this one."""
    every = [rest for size in range(1, len(p) + 1) for rest in combinations(range(len(p)), size)]
    expected = [max(min(len(s) * min(p[j] for j in s), 1.0) for s in every if i in s) for i in range(len(p))]
    assert holm(p) == pytest.approx(expected, abs=1e-12)


def test_nothing_tested_is_no_error() -> None:
    for adjust in ADJUSTMENTS.values():
        assert adjust([]).shape == (0,)
        assert np.isnan(adjust([np.nan, np.nan])).all()


def test_the_callers_values_are_not_changed() -> None:
    p = np.array([0.01, 0.02, 0.9])
    for adjust in ADJUSTMENTS.values():
        adjust(p)
    assert p.tolist() == [0.01, 0.02, 0.9]


@pytest.mark.parametrize("wrong", [-0.1, 1.01, np.inf, -np.inf])
def test_impossible_p_values_are_refused(wrong: float) -> None:
    for adjust in ADJUSTMENTS.values():
        with pytest.raises(ValueError, match="between 0 and 1"):
            adjust([0.5, wrong])
