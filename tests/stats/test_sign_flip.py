"""Sign flips: the exact test, the simulated one, and the sums that the simultaneous procedures are built on."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from stats.paired import mcnemar
from stats.sign_flip import allowed, blocks, critical, differing, flipped_sums, root_squares, sign_flip_test

tenths = st.integers(-10, 10).map(lambda n: n / 10)


def by_enumeration(values: list[float]) -> float:
    sums = [
        abs(sum(s * v for s, v in zip(signs, values, strict=True))) for signs in product((1, -1), repeat=len(values))
    ]
    return sum(total >= abs(sum(values)) - 1e-9 for total in sums) / len(sums)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 5))
def test_of_right_and_wrong_it_is_mcnemar(gained: int, lost: int, same: int) -> None:
    test = sign_flip_test([1.0] * gained + [-1.0] * lost + [0.0] * (same + 1))
    assert test.p_value == pytest.approx(mcnemar(gained, lost), abs=1e-12)
    assert (test.method, test.clusters) == ("exact", gained + lost)


@settings(deadline=None)
@given(st.lists(tenths, min_size=1, max_size=9))
def test_exact_is_the_share_of_all_flips(values: list[float]) -> None:
    test = sign_flip_test(values)
    assert test.p_value == pytest.approx(by_enumeration(values), abs=1e-12)
    assert test.method == "exact"


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(-30, 30).map(lambda n: n * math.pi / 10), min_size=1, max_size=8))
def test_few_numbers_without_a_step_are_exact_too(values: list[float]) -> None:
    assert sign_flip_test(values).p_value == pytest.approx(by_enumeration(values), abs=1e-12)


def test_exact_equals_scipy() -> None:
    generator = np.random.default_rng(5)
    for n in (3, 8, 12):
        values = np.round(generator.normal(0.3, 1.0, n), 1)
        reference = scipy_stats.permutation_test(
            (values,),
            lambda x, axis: x.mean(axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=np.inf,
        )
        assert sign_flip_test(values).p_value == pytest.approx(reference.pvalue, abs=1e-12)


def test_simulated_is_near_exact() -> None:
    """Thirty tenths: exact from their steps; times pi they have none and are simulated, standard error .004."""
    values = np.round(np.random.default_rng(2).normal(0.15, 0.6, 30), 1)
    exact, drawn = sign_flip_test(values), sign_flip_test(values * math.pi)
    assert (exact.method, drawn.method) == ("exact", "simulated")
    assert 0.02 < exact.p_value < 0.98
    assert drawn.p_value == pytest.approx(exact.p_value, abs=0.02)
    assert sign_flip_test(values * math.pi) == drawn
    assert sign_flip_test(values * math.pi, seed=1) != drawn


def test_clusters_flip_together() -> None:
    """Copies of a row in its own cluster are that row once; counted as independent they would be much more."""
    values = [1.0, 1.0, 1.0, -1.0, 1.0]
    copied = [value for value in values for _ in range(4)]
    labels = [f"case {case}" for case in range(5) for _ in range(4)]
    assert sign_flip_test(copied, labels).p_value == sign_flip_test(values).p_value
    assert sign_flip_test(copied).p_value < 0.02 < sign_flip_test(copied, labels).p_value


def test_nothing_to_tell_and_missing() -> None:
    assert sign_flip_test([0.0, 0.0]).p_value == 1.0
    assert sign_flip_test([1.0, math.nan, 1.0]) == sign_flip_test([1.0, 1.0])
    with pytest.raises(ValueError, match="no item"):
        sign_flip_test([math.nan])
    with pytest.raises(ValueError, match="one row"):
        sign_flip_test([[1.0]])
    with pytest.raises(ValueError, match="finite"):
        sign_flip_test([math.inf])
    with pytest.raises(ValueError, match="cluster labels"):
        sign_flip_test([1.0, 0.0], clusters=[1])


@pytest.mark.parametrize("scale", [1.0, math.pi])
def test_random_flips_have_the_right_moments(scale: float) -> None:
    """Mean 0 and covariance X'X, for whole numbers and others; 70 rows need two words of random bits."""
    values = np.random.default_rng(0).integers(0, 3, (70, 3)) * scale
    drawn = flipped_sums(values, draws=40_000)
    assert drawn.mean(axis=1) == pytest.approx(np.zeros(3), abs=5 * math.sqrt((values**2).sum(axis=0).max() / 40_000))
    assert np.cov(drawn) == pytest.approx(values.T @ values, rel=0.05)
    reach = np.abs(values).sum(axis=0)
    assert (np.abs(drawn) <= reach[:, None] + 1e-9).all()


def test_all_flips_where_there_are_few() -> None:
    values = np.array([[1.0, 0.0], [2.0, 5.0], [4.0, 1.0]])
    drawn = flipped_sums(values, draws=7)
    expected = sorted(
        (a + 2 * b + 4 * c, 5 * b + c) for a, b, c in product((1, -1), repeat=3) if (a, b, c) != (1, 1, 1)
    )
    assert sorted(map(tuple, drawn.T.tolist())) == expected
    assert flipped_sums(values, draws=6).shape == (2, 6)


def test_blocks_count_complete_items_and_sum_clusters() -> None:
    data = blocks([[0.5, 1.0], [0.25, math.nan], [1.0, 0.0], [0.0, 0.5]], clusters=["b", "b", "a", "b"])
    assert (data.n, data.left_out, data.exact) == (3, 1, True)
    assert (data.sums / data.scale).tolist() == [[0.5, 1.5], [1.0, 0.0]]
    assert data.means.tolist() == [0.5, 0.5]
    assert differing(np.array([[1.0, 1.0], [1.0, 0.0]])).tolist() == [[1.0, 0.0]]
    assert root_squares(np.array([[1.0, 0.0], [3.0, 1.0]]))[0, 1] == pytest.approx(math.sqrt(5))


@pytest.mark.parametrize("confidence", [0.4, 1.0, 95.0, math.nan])
def test_an_impossible_confidence_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        allowed(confidence, 999)


def test_a_critical_value_and_a_p_value_say_the_same() -> None:
    drawn = np.random.default_rng(1).integers(0, 30, 199).astype(float)
    for confidence in (0.9, 0.95, 0.99):
        threshold = critical(drawn, confidence)
        for value in np.arange(31.0):
            p_value = (1 + (drawn >= value).sum()) / 200
            assert (value > threshold) == (p_value <= 1.0 - confidence + 1e-9)


def test_impossible_flips_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one flip"):
        flipped_sums(np.ones((3, 2)), draws=0)
    with pytest.raises(ValueError, match="seed"):
        flipped_sums(np.ones((3, 2)), seed=-1)
