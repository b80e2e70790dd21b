"""Agreement of rankings, against scipy and by hand."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats as scipy_stats

from stats import rank_agreement, rank_correlation
from stats.rank_agreement import all_pairs, between, mean_over_pairs, summarise
from stats.ranks import fair_ranks
from stats.subsets import Condition, resampled_means, seed_pairs

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]

shapes = st.tuples(st.integers(1, 7), st.integers(1, 7))
complete = arrays.arrays(np.float64, shapes, elements=st.sampled_from([0.0, 1.0, 2.0, 3.0]))
with_gaps = arrays.arrays(np.float64, shapes, elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, np.nan]))


def by_scipy(a: Matrix, b: Matrix) -> tuple[float, float]:
    """tau-b and rho of two rows over what both rank; nan where undefined."""
    known = ~np.isnan(a) & ~np.isnan(b)
    if known.sum() < 2:
        return np.nan, np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tau = scipy_stats.kendalltau(a[known], b[known], variant="b").statistic
        rho = scipy_stats.spearmanr(a[known], b[known]).statistic
    return float(tau), float(rho)


@settings(deadline=None, max_examples=40)
@given(st.one_of(complete, with_gaps))
def test_tau_and_rho_are_those_of_scipy(scores: Matrix) -> None:
    ranks = fair_ranks(scores[:4])
    both = all_pairs(ranks, 1)
    for a, row in enumerate(ranks):
        for b, other in enumerate(ranks):
            tau, rho = by_scipy(row, other)
            assert both.tau_b[a, b] == pytest.approx(tau, abs=1e-12, nan_ok=True)
            assert both.rho[a, b] == pytest.approx(rho, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("gaps", [0.0, 0.15])
@pytest.mark.parametrize("tile_cells", [1000, 1 << 22])
def test_many_long_rankings_are_those_of_pandas(monkeypatch: pytest.MonkeyPatch, gaps: float, tile_cells: int) -> None:
    """Ties, missing values, a row of equal scores, one without any and one with a single one."""
    monkeypatch.setattr(rank_correlation, "_TILE_CELLS", tile_cells)
    monkeypatch.setattr(rank_correlation, "_CACHE_CELLS", tile_cells)
    monkeypatch.setattr(rank_agreement, "_BLOCK", 7)
    generator = np.random.default_rng(5)
    scores = generator.integers(0, 40, (30, 60)).astype(float)
    scores[3], scores[4] = 7.0, scores[5]
    scores[generator.random(scores.shape) < gaps] = np.nan
    if gaps:
        scores[8], scores[9, 1:] = np.nan, np.nan
    ranks = fair_ranks(scores)
    both, means = all_pairs(ranks, 10), mean_over_pairs(ranks, 10)
    above = np.triu_indices(len(ranks), 1)
    for name, method in (("tau_b", "kendall"), ("rho", "spearman")):
        expected = pd.DataFrame(scores).T.corr(method=method, min_periods=2).to_numpy()
        assert getattr(both, name)[above] == pytest.approx(expected[above], abs=1e-12, nan_ok=True)
        assert (getattr(both, name) == getattr(both, name).T)[~np.isnan(getattr(both, name))].all()
        part = getattr(between(ranks[:11], ranks[5:], 10), name)
        assert part == pytest.approx(getattr(both, name)[:11, 5:], abs=0, nan_ok=True)
        assert getattr(means, name) == pytest.approx(np.nanmean(expected[above]), abs=1e-12)
    assert means.topm == pytest.approx(np.nanmean(both.topm[above]), abs=1e-12)
    assert both.tau_b[4, 5] == both.rho[4, 5] or gaps
    assert np.isnan(both.tau_b[3]).all() and np.isnan(both.rho[3]).all()


def test_equal_and_opposite_long_rankings_agree_by_exactly_one() -> None:
    ranks = fair_ranks(np.random.default_rng(2).integers(0, 90, (1, 200)).astype(float))
    both = between(ranks, np.vstack([ranks, 201.0 - ranks]), 1)
    assert both.tau_b.tolist() == both.rho.tolist() == [[1.0, -1.0]]


@settings(deadline=None, max_examples=40)
@given(st.one_of(complete, with_gaps), st.data())
def test_means_over_pairs_are_the_means_of_the_matrices(scores: Matrix, data: st.DataObject) -> None:
    m = data.draw(st.integers(1, scores.shape[1]))
    ranks = fair_ranks(scores)
    both, means = all_pairs(ranks, m), mean_over_pairs(ranks, m)
    above = np.triu_indices(len(ranks), 1)
    for name in ("tau_b", "rho", "top1", "topm"):
        cells = getattr(both, name)[above]
        cells = cells[~np.isnan(cells)]
        expected = cells.mean() if cells.size else None
        assert getattr(means, name) == (expected if expected is None else pytest.approx(expected, abs=1e-12))


@settings(deadline=None, max_examples=40)
@given(complete, st.data())
def test_figures_do_not_depend_on_the_order_of_prompts(scores: Matrix, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(scores.shape[1])))
    m = data.draw(st.integers(1, scores.shape[1]))
    one, other = all_pairs(fair_ranks(scores), m), all_pairs(fair_ranks(scores[:, order]), m)
    for name in ("tau_b", "rho", "top1", "topm"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-12, nan_ok=True)
        assert getattr(one, name) == pytest.approx(getattr(one, name).T, abs=0, nan_ok=True)


def test_top_agreement_by_hand() -> None:
    ranks = fair_ranks([[5.0, 4.0, 3.0], [5.0, 5.0, 3.0], [3.0, 5.0, 5.0], [1.0, 1.0, 1.0]])
    both = all_pairs(ranks, 2)
    assert both.top1.round(12).tolist() == [
        [1.0, 0.5, 0.0, round(1 / 3, 12)],
        [0.5, 0.5, 0.25, round(1 / 3, 12)],
        [0.0, 0.25, 0.5, round(1 / 3, 12)],
        [round(1 / 3, 12)] * 4,
    ]
    assert both.topm[0, 1] == 1.0 and both.topm[0, 2] == 0.5 and both.topm[0, 3] == pytest.approx(2 / 3)


def test_two_conditions_that_tie_the_same_two_do_not_agree_by_the_order_of_columns() -> None:
    tied = fair_ranks([[1.0, 1.0, 0.0]] * 2)
    assert all_pairs(tied, 1).top1[0, 1] == 0.5
    assert mean_over_pairs(tied, 1).top1 == 0.5


def test_all_tied_and_a_single_prompt_are_undefined() -> None:
    both = all_pairs(np.array([[1.5, 1.5], [1.0, 2.0]]), 1)
    assert np.isnan(both.tau_b[0]).all() and np.isnan(both.rho[0]).all()
    assert both.tau_b[1, 1] == both.rho[1, 1] == 1.0
    single = mean_over_pairs(np.ones((4, 1)), 1)
    assert (single.tau_b, single.rho, single.top1) == (None, None, 1.0)
    assert mean_over_pairs(np.array([[1.0, 2.0]]), 1).tau_b is None


def test_opposite_rankings() -> None:
    both = between([[1.0, 2.0, 3.0, 4.0]], [[4.0, 3.0, 2.0, 1.0]], 2)
    assert (both.tau_b[0, 0], both.rho[0, 0], both.top1[0, 0], both.topm[0, 0]) == (-1.0, -1.0, 0.0, 0.0)


def test_summary_by_hand() -> None:
    """Three seeds; pairs .2, .4, .9. Leaving a seed out leaves one pair: the jackknife is over .9, .4, .2."""
    matrix = np.array([[1.0, 0.2, 0.4], [0.2, 1.0, 0.9], [0.4, 0.9, 1.0]])
    figure = summarise(matrix, [[0, 1], [0, 2], [1, 2]], [10, 11, 12])
    assert figure.mean == pytest.approx(0.5)
    assert figure.std_over_pairs == pytest.approx(np.std([0.2, 0.4, 0.9], ddof=1))
    assert figure.standard_error == pytest.approx(np.sqrt(2 / 3 * (0.4**2 + 0.1**2 + 0.3**2)))
    assert (figure.pairs, figure.undefined) == (3, 0)
    two = summarise(matrix, [[0, 1]], [10, 11, 12])
    assert (two.mean, two.std_over_pairs, two.standard_error) == (0.2, None, None)


def by_leaving_out_each_seed(values: list[tuple[float, int, int]]) -> float:
    """The jackknife in its plain form: the mean over the pairs without seed s, for every s."""
    seeds = sorted({seed for _, *ends in values for seed in ends})
    left_out = [np.mean([value for value, a, b in values if seed not in (a, b)]) for seed in seeds]
    return float(np.sqrt((len(seeds) - 1) / len(seeds) * np.sum((left_out - np.mean(left_out)) ** 2)))


@settings(deadline=None, max_examples=40)
@given(st.integers(4, 8), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_the_jackknife_is_that_of_a_plain_loop(n_seeds: int, n_sizes: int, random: int) -> None:
    """Conditions of several k in any order; pairs have the same k and different seeds; one pair is undefined."""
    generator = np.random.default_rng(random)
    conditions = [Condition(int(seed), k + 1) for k in range(n_sizes) for seed in generator.permutation(n_seeds)]
    matrix = generator.random((len(conditions), len(conditions)))
    pairs = seed_pairs(conditions)
    matrix[tuple(pairs[0])] = np.nan
    figure = summarise(matrix, pairs, [condition.seed for condition in conditions])
    known = [(matrix[a, b], conditions[a].seed, conditions[b].seed) for a, b in pairs[1:]]
    assert figure.standard_error == pytest.approx(by_leaving_out_each_seed(known), abs=1e-12)
    assert (figure.pairs, figure.undefined) == (len(pairs) - 1, 1)


@pytest.mark.slow
def test_the_jackknife_is_not_too_small_and_the_spread_of_pairs_is_no_error() -> None:
    """2,000 sweeps of five seeds: the squared jackknife error averages the true variance or more (Efron and Stein)."""
    outcomes = (np.random.default_rng(1).random((400, 8)) < np.linspace(0.35, 0.65, 8)).astype(float)
    ranks = fair_ranks(resampled_means(outcomes, 50, 10_000)).reshape(2000, 5, 8)
    pairs = np.stack(np.triu_indices(5, 1), axis=1)
    found = [summarise(all_pairs(sweep, 1).tau_b, pairs, range(5)) for sweep in ranks]
    true = np.std([figure.mean for figure in found], ddof=1)
    jackknife = np.sqrt(np.mean([(figure.standard_error or 0.0) ** 2 for figure in found]))
    naive = np.sqrt(np.mean([(figure.std_over_pairs or 0.0) ** 2 / 10 for figure in found]))
    assert 1.0 <= jackknife / true < 1.4
    assert naive / true < 0.8


def test_undefined_pairs_are_counted_and_left_out() -> None:
    matrix = np.array([[1.0, np.nan, 0.4], [np.nan, 1.0, 0.8], [0.4, 0.8, 1.0]])
    figure = summarise(matrix, [[0, 1], [0, 2], [1, 2]], [0, 1, 2])
    assert figure.mean == pytest.approx(0.6)
    assert (figure.pairs, figure.undefined, figure.standard_error) == (2, 1, None)
    nothing = summarise(matrix, [[0, 1]], [0, 1, 2])
    assert (nothing.mean, nothing.pairs, nothing.undefined) == (None, 0, 1)


def test_the_jackknife_leaves_out_a_seed_with_all_its_conditions() -> None:
    """Two k with the same seeds: pairs of one seed fall together, so the error is that of one k, not smaller."""
    one = np.array([[1.0, 0.2, 0.4], [0.2, 1.0, 0.9], [0.4, 0.9, 1.0]])
    twice = np.kron(np.eye(2), one)
    pairs = [[0, 1], [0, 2], [1, 2]]
    doubled = [*pairs, *([a + 3, b + 3] for a, b in pairs)]
    assert summarise(twice, doubled, [0, 1, 2] * 2).standard_error == summarise(one, pairs, [0, 1, 2]).standard_error


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be compared"):
        between([[1.0, 2.0]], [[1.0]], 1)
    with pytest.raises(ValueError, match="at most"):
        all_pairs(np.ones((rank_agreement.MAX_MATRIX_CONDITIONS + 1, 1)), 1)
    with pytest.raises(ValueError, match="square"):
        summarise(np.ones((2, 2)), [[0, 1]], [0, 1, 2])
    with pytest.raises(ValueError, match="does not exist"):
        summarise(np.ones((2, 2)), [[0, 2]], [0, 1])
    with pytest.raises(ValueError, match="conditions x prompts"):
        all_pairs(np.ones(3), 1)
    for row in ([1.0, 1.0, 3.0], [0.2, 2.0, 3.8], [0.0, 3.0, 3.0], [1.0, 3.0, np.nan]):
        with pytest.raises(ValueError, match="row 1 holds no fair ranks"):
            mean_over_pairs([[1.0, 2.0, 3.0], row], 1)
    with pytest.raises(ValueError, match="lack no prompt"):
        rank_correlation.mean_kendall_tau_b([[1.0, np.nan]])
    with pytest.raises(ValueError, match="too many prompts"):
        rank_correlation.kendall_tau_b(np.arange(1.0, 5795.0)[None, :])


def test_a_thousand_conditions_of_twenty_prompts_take_well_under_a_second() -> None:
    ranks = fair_ranks(np.random.default_rng(0).integers(0, 50, (1000, 20)).astype(float))
    begin = time.perf_counter()
    all_pairs(ranks, 3)
    assert time.perf_counter() - begin < 1.0
