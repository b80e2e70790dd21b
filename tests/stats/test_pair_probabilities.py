"""What two prompts do on a random subset: exact, by the normal form, and the one where the other fails."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats as scipy_stats

from stats.count_distributions import binomial, hypergeometric
from stats.pair_probabilities import (
    nearly_exact_pair_probabilities,
    normal_pair_probabilities,
    pair_probabilities,
    tied_share,
)

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
small = arrays.arrays(
    np.float64, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=st.sampled_from([0.0, 1.0])
).flatmap(lambda x: st.tuples(st.just(x), st.integers(1, len(x))))


def subsets(outcomes: Matrix, k: int) -> Matrix:
    """The counts of every k-subset there is."""
    return np.array([outcomes[list(items)].sum(axis=0) for items in combinations(range(len(outcomes)), k)])


@settings(deadline=None, max_examples=30)
@given(small)
def test_pair_probabilities_are_the_shares_of_all_subsets(case: tuple[Matrix, int]) -> None:
    outcomes, k = case
    counts = subsets(outcomes, k)
    wins = (counts[:, :, None] > counts[:, None, :]).mean(axis=0)
    ties = (counts[:, :, None] == counts[:, None, :]).mean(axis=0)
    # So few items are discordant here that the nearly exact form is the exact one.
    for pairs in (pair_probabilities(outcomes, k), nearly_exact_pair_probabilities(outcomes, k)):
        assert pairs.wins == pytest.approx(wins, abs=1e-12)
        assert pairs.ties == pytest.approx(ties, abs=1e-12)
        assert pairs.wins + pairs.wins.T + pairs.ties == pytest.approx(1.0, abs=1e-12)


@settings(deadline=None, max_examples=30)
@given(small, st.data())
def test_permuting_prompts_permutes_and_doubling_items_is_allowed_for(
    case: tuple[Matrix, int], data: st.DataObject
) -> None:
    outcomes, k = case
    order = data.draw(st.permutations(range(outcomes.shape[1])))
    for work_out in (pair_probabilities, normal_pair_probabilities):
        one, other = work_out(outcomes, k), work_out(outcomes[:, order], k)
        assert one.wins[np.ix_(order, order)] == pytest.approx(other.wins, abs=1e-12)
        assert one.ties[np.ix_(order, order)] == pytest.approx(other.ties, abs=1e-12)
    # One item drawn of a dataset and one of its double are the same draw.
    once, twice = pair_probabilities(outcomes, 1), pair_probabilities(np.vstack([outcomes, outcomes]), 1)
    assert once.wins == pytest.approx(twice.wins, abs=1e-12)


@pytest.mark.parametrize(("n", "b", "c", "k"), [(1000, 90, 70, 200), (1300, 40, 3, 50), (400, 0, 60, 399)])
def test_large_cases_in_whole_numbers_of_any_size(n: int, b: int, c: int, k: int) -> None:
    outcomes = np.zeros((n, 2))
    outcomes[:b, 0] = outcomes[b : b + c, 1] = 1.0
    won = tied = Fraction(0)
    for u in range(b + 1):
        for v in range(min(u, c) + 1):
            if 0 <= k - u - v <= n - b - c:
                share = Fraction(comb(b, u) * comb(c, v) * comb(n - b - c, k - u - v), comb(n, k))
                if u > v:
                    won += share
                else:
                    tied += share
    pairs = pair_probabilities(outcomes, k)
    assert pairs.wins[0, 1] == pytest.approx(float(won), abs=1e-12)
    assert pairs.ties[0, 1] == pytest.approx(float(tied), abs=1e-12)
    assert pairs.wins[1, 0] == pytest.approx(float(1 - won - tied), abs=1e-12)


def test_the_normal_form_is_as_good_as_it_says() -> None:
    """.004 from 10 discordant items on a subset on; below that it is worse, and the nearly exact form steps in."""
    generator = np.random.default_rng(0)
    hard = generator.random((900, 1)) < 0.3
    outcomes = np.where(hard, generator.random((900, 16)) < 0.6, generator.random((900, 16)) < 0.985).astype(float)
    outcomes[:, 15] = outcomes[:, 14]
    only = outcomes.T @ (1.0 - outcomes)
    worst = {"many": 0.0, "few": 0.0, "nearly": 0.0}
    for k in (10, 50, 300):
        exact, normal = pair_probabilities(outcomes, k), normal_pair_probabilities(outcomes, k)
        error = np.maximum(np.abs(exact.wins - normal.wins), np.abs(exact.ties - normal.ties))
        many = (only + only.T) * k / 900 >= 10.0
        worst["many"] = max(worst["many"], error[many].max(initial=0.0))
        worst["few"] = max(worst["few"], error[~many].max(initial=0.0))
        nearly = nearly_exact_pair_probabilities(outcomes, k)
        worst["nearly"] = max(worst["nearly"], np.abs(exact.ties - nearly.ties).max())
        assert nearly.wins + nearly.wins.T + nearly.ties == pytest.approx(1.0, abs=1e-12)
    assert worst["many"] < 0.004 and worst["nearly"] < 0.004 < worst["few"] < 0.14


def test_the_whole_dataset_is_certain() -> None:
    many = (np.random.default_rng(0).random((500, 20)) < 0.5).astype(float)
    whole, sure = normal_pair_probabilities(many, 500), pair_probabilities(many, 500)
    assert whole.wins == pytest.approx(sure.wins, abs=1e-9) and whole.ties == pytest.approx(sure.ties, abs=1e-9)
    counts = many.sum(axis=0)
    assert (sure.wins == (counts[:, None] > counts)).all()


def test_duplicate_prompts_always_tie() -> None:
    outcomes = np.array([[1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 0, 0]])
    pairs = pair_probabilities(outcomes, 2)
    assert pairs.ties[0, 1] == 1.0 and pairs.wins[0, 1] == pairs.wins[1, 0] == 0.0
    assert tied_share(pair_probabilities([[1], [0]], 1)) is None


def test_impossible_input_is_refused() -> None:
    for work_out in (pair_probabilities, normal_pair_probabilities, nearly_exact_pair_probabilities):
        for k in (0, 3, 1.5):
            with pytest.raises(ValueError, match="cannot be drawn"):
                work_out([[1, 0], [0, 1]], k)  # type: ignore[arg-type]
        for bad in ([[0.5, 1]], [[np.nan, 1]]):
            with pytest.raises(ValueError, match="complete matrix"):
                work_out(bad, 1)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 3000), st.integers(0, 1000))
def test_binomial_chances_are_those_of_scipy(n: int, per_mille: int) -> None:
    p = per_mille / 1000
    counts = binomial(n, p)
    at = counts.first + np.arange(len(counts.chances))
    # scipy's own numbers are good to about 1e-11 of themselves.
    assert counts.chances == pytest.approx(scipy_stats.binom.pmf(at, n, p), abs=1e-12, rel=1e-10)
    assert counts.chances.sum() == pytest.approx(1.0, abs=1e-14)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, n))))
def test_hypergeometric_chances_are_those_of_scipy(case: tuple[int, int, int]) -> None:
    n_items, marked, k = case
    counts = hypergeometric(n_items, marked, k)
    at = counts.first + np.arange(len(counts.chances))
    assert counts.chances == pytest.approx(scipy_stats.hypergeom.pmf(at, n_items, marked, k), abs=1e-12, rel=1e-9)
    assert counts.chances.sum() == pytest.approx(1.0, abs=1e-14)


def test_a_small_hypergeometric_distribution_in_fractions() -> None:
    counts = hypergeometric(60, 25, 20)
    exact = [Fraction(comb(25, u) * comb(35, 20 - u), comb(60, 20)) for u in range(21)]
    assert counts.first == 0
    assert counts.chances == pytest.approx([float(chance) for chance in exact[: len(counts.chances)]], abs=1e-15)


def test_distributions_that_do_not_exist() -> None:
    with pytest.raises(ValueError, match="binomial"):
        binomial(3, 1.2)
    with pytest.raises(ValueError, match="no draw"):
        hypergeometric(3, 4, 1)
