"""The bootstrap over items, and standard errors over items: what they cover and what they do not."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats as scipy_stats

from stats.ranks import fair_ranks, tied_pairs
from stats.resampling import bootstrap, standard_errors
from stats.subsets import Condition, score_matrix

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
some = arrays.arrays(
    np.float64, st.tuples(st.integers(2, 12), st.integers(1, 4)), elements=st.sampled_from([0.0, 1.0, 0.5])
)
with_gaps = arrays.arrays(
    np.float64, st.tuples(st.integers(2, 12), st.integers(1, 4)), elements=st.sampled_from([0.0, 1.0, 0.3, np.nan])
)


def prompts(n: int, seed: int, skill: tuple[float, ...] = (0.2, 0.0, -0.4, 1.2)) -> Matrix:
    generator = np.random.default_rng(seed)
    return (generator.normal(size=(n, 1)) + generator.normal(size=(n, len(skill))) < np.array(skill)).astype(float)


@settings(deadline=None, max_examples=30)
@given(with_gaps, st.data())
def test_permuting_prompts_permutes_the_draws(outcomes: Matrix, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(outcomes.shape[1])))
    one, other = bootstrap(outcomes, 20), bootstrap(outcomes[:, order], 20)
    assert one.means[:, order] == pytest.approx(other.means, abs=1e-12, nan_ok=True)
    errors = standard_errors(outcomes)
    assert errors[order] == pytest.approx(standard_errors(outcomes[:, order]), abs=1e-12, nan_ok=True)


@settings(deadline=None, max_examples=30)
@given(some)
def test_doubling_every_item_as_a_cluster_changes_nothing(outcomes: Matrix) -> None:
    twice, names = np.repeat(outcomes, 2, axis=0), np.repeat(np.arange(len(outcomes)), 2)
    assert bootstrap(twice, 20, clusters=names).means == pytest.approx(bootstrap(outcomes, 20).means, abs=1e-12)
    assert standard_errors(twice, clusters=names) == pytest.approx(standard_errors(outcomes), abs=1e-12)


def test_a_draw_is_the_mean_over_the_items_it_took() -> None:
    """An outcome that names its item shows the weights: N in all, each item's share 1/N, spread as the multinomial's."""
    n, draws = 37, 4000
    weights = bootstrap(np.eye(n), draws).means * n
    assert np.array_equal(weights, np.round(weights)) and (weights.sum(axis=1) == n).all()
    # The chi-squared statistic of all counts; 36 degrees of freedom.
    totals = weights.sum(axis=0)
    assert scipy_stats.chisquare(totals).pvalue > 0.001
    assert weights.var(axis=0).mean() == pytest.approx(1.0 - 1.0 / n, abs=0.03)
    outcomes = np.random.default_rng(1).random((n, 3)).round(2)
    assert bootstrap(outcomes, draws).means == pytest.approx(weights @ outcomes / n, abs=1e-12)


def test_missing_outcomes_are_left_out_of_a_draws_mean() -> None:
    outcomes = prompts(50, 1)
    gaps = outcomes.copy()
    gaps[::3, 1] = np.nan
    gaps[:, 3] = np.nan
    weights = bootstrap(np.eye(50), 300).means * 50
    drawn = bootstrap(gaps, 300)
    present = ~np.isnan(gaps[:, 1])
    expected = weights[:, present] @ gaps[present, 1] / weights[:, present].sum(axis=1)
    assert drawn.means[:, 1] == pytest.approx(expected, abs=1e-12)
    assert drawn.means[:, 0] == pytest.approx(bootstrap(outcomes, 300).means[:, 0], abs=0)
    assert np.isnan(drawn.means[:, 3]).all() and np.isnan(drawn.standard_errors[3])
    assert np.isnan(drawn.percentiles()[3]).all()


def test_prompts_with_equal_counts_tie_in_every_draw() -> None:
    outcomes = prompts(90, 2)
    tenths = 0.1 * outcomes
    for values in (outcomes, tenths):
        means = bootstrap(np.hstack([values, values[:, :1]]), 500).means
        assert (means[:, 0] == means[:, -1]).all()
    ties = tied_pairs(fair_ranks(bootstrap(outcomes, 500).means))
    assert (ties == tied_pairs(fair_ranks(bootstrap(tenths, 500).means))).all() and ties.sum() > 0


def test_draws_are_the_same_every_time_and_others_with_another_seed() -> None:
    outcomes = prompts(30, 3)
    assert np.array_equal(bootstrap(outcomes, 50).means, bootstrap(outcomes, 50).means)
    assert not np.array_equal(bootstrap(outcomes, 50).means, bootstrap(outcomes, 50, seed=1).means)
    # The first draws do not depend on how many follow.
    assert np.array_equal(bootstrap(outcomes, 20_000).means[:50], bootstrap(outcomes, 50).means)


def test_errors_of_draws_and_of_the_formula_agree() -> None:
    outcomes = prompts(400, 4)
    boot = bootstrap(outcomes, 8000)
    assert boot.standard_errors == pytest.approx(standard_errors(outcomes), rel=0.04)
    low, high = boot.percentiles().T
    assert high - low == pytest.approx(2 * 1.96 * standard_errors(outcomes), rel=0.06)
    names = np.random.default_rng(5).integers(0, 60, 400)
    by_cluster = bootstrap(outcomes, 8000, clusters=names)
    assert by_cluster.units == 60
    assert by_cluster.standard_errors == pytest.approx(standard_errors(outcomes, clusters=names), rel=0.08)


@settings(deadline=None, max_examples=30)
@given(with_gaps)
def test_errors_are_those_of_scipy(outcomes: Matrix) -> None:
    for column, error in zip(outcomes.T, standard_errors(outcomes), strict=True):
        known = column[~np.isnan(column)]
        expected = scipy_stats.sem(known) if known.size > 1 else np.nan
        assert error == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_clustered_errors_are_those_of_statsmodels() -> None:
    outcomes = prompts(120, 6)
    names = np.random.default_rng(7).integers(0, 25, 120)
    for column, error in zip(outcomes.T, standard_errors(outcomes, clusters=names), strict=True):
        fitted = sm.OLS(column, np.ones(120)).fit(
            cov_type="cluster", cov_kwds={"groups": names, "use_correction": False}
        )
        assert error == pytest.approx(float(fitted.bse[0]) * np.sqrt(25 / 24), abs=1e-12)
    assert standard_errors(outcomes, clusters=[str(name) for name in names]) == pytest.approx(
        standard_errors(outcomes, clusters=names), abs=1e-12
    )


def test_repeated_items_need_clusters() -> None:
    """The same 200 items four times: taken for 800, they halve an error that has not changed."""
    outcomes = prompts(200, 8)
    repeated, names = np.tile(outcomes, (4, 1)), np.tile(np.arange(200), 4)
    assert standard_errors(repeated) == pytest.approx(standard_errors(outcomes) / 2, rel=0.01)
    assert standard_errors(repeated, clusters=names) == pytest.approx(standard_errors(outcomes), rel=1e-9)


def coverage(population: Matrix, n_items: int, datasets: int) -> tuple[float, float]:
    """Shares of 95 % intervals that hold the population's mean: over items, and over 5 seeds of k = n_items / 2."""
    truth, by_items, by_seeds = population.mean(axis=0), [], []
    generator = np.random.default_rng(9)
    for first_seed in range(0, 5 * datasets, 5):
        outcomes = population[generator.integers(0, len(population), n_items)]
        off = np.abs(outcomes.mean(axis=0) - truth)
        by_items.append(off <= 1.96 * standard_errors(outcomes))
        scores = score_matrix(outcomes, [Condition(first_seed + seed, n_items // 2) for seed in range(5)]).means
        by_seeds.append(np.abs(scores.mean(axis=0) - truth) <= 1.96 * scores.std(axis=0, ddof=1) / np.sqrt(5))
    return float(np.mean(by_items)), float(np.mean(by_seeds))


@pytest.mark.slow
def test_errors_over_items_cover_new_items_and_errors_over_seeds_do_not(shared_data: Path) -> None:
    """94-95 % against 20-72 % (design pages)."""
    with (shared_data / "ranking/oirl_gsm8k/gsm8k_test_correct.csv").open(newline="") as file:
        published = np.array([[float(cell) for cell in row[1:]] for row in list(csv.reader(file))[1:]])
    for population, n_items in ((published, 400), (prompts(20_000, 10), 300)):
        over_items, over_seeds = coverage(population, n_items, 600)
        assert 0.935 <= over_items <= 0.955
        assert 0.2 <= over_seeds <= 0.72


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError, match="two draws"):
        bootstrap([[1.0]], 1)
    for function in (bootstrap, standard_errors):
        with pytest.raises(ValueError, match="as many cluster labels"):
            function([[1.0], [0.0]], clusters=[1])
        with pytest.raises(ValueError, match="finite number"):
            function([[np.inf]])
        with pytest.raises(ValueError, match="items x prompts"):
            function(np.ones((0, 2)))
    with pytest.raises(ValueError, match="confidence"):
        bootstrap([[1.0], [0.0]], 2).percentiles(1.0)


def test_one_item_says_nothing_about_others() -> None:
    assert np.isnan(standard_errors([[1.0, 0.0]])).all()
    assert bootstrap([[1.0, 0.0]], 5).standard_errors.tolist() == [0.0, 0.0]
    assert np.isnan(standard_errors([[1.0], [0.0]], clusters=["a", "a"])).all()
