"""Expected agreement of two seeds: exact pair probabilities, and what follows from them."""

from __future__ import annotations

import csv
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import norm

from stats.gaussian_scores import gaussian_scores
from stats.pair_probabilities import pair_probabilities, tied_share
from stats.rank_agreement import all_pairs, mean_over_pairs
from stats.rank_correlation import mean_kendall_tau_a
from stats.ranks import fair_ranks, top_set
from stats.stability import (
    FIGURES,
    Stability,
    expected_rho,
    expected_tau_a,
    expected_tau_b,
    simulate,
    stability,
    stability_over_k,
)
from stats.subsets import resampled_means

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
small = arrays.arrays(
    np.float64, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=st.sampled_from([0.0, 1.0])
).flatmap(lambda x: st.tuples(st.just(x), st.integers(1, len(x))))


def near_the_ceiling() -> Matrix:
    """1,300 items x 40 prompts of accuracies .90 to .97 that find the same items hard."""
    generator = np.random.default_rng(1)
    latent = 0.8 * generator.normal(size=(1300, 1)) + 0.6 * generator.normal(size=(1300, 40))
    return (latent < norm.ppf(np.linspace(0.90, 0.97, 40))).astype(float)


def of_16_prompts(shared_data: Path) -> Matrix:
    with (shared_data / "ranking/oirl_gsm8k/gsm8k_test_correct.csv").open(newline="") as file:
        return np.array([[float(cell) for cell in row[1:]] for row in list(csv.reader(file))[1:]])


@settings(deadline=None, max_examples=30)
@given(small)
def test_tau_a_is_exact(case: tuple[Matrix, int]) -> None:
    """The mean product of signs over all pairs of subsets there are, each with each, itself included."""
    outcomes, k = case
    counts = np.array([outcomes[list(items)].sum(axis=0) for items in combinations(range(len(outcomes)), k)])
    above = np.triu_indices(outcomes.shape[1], 1)
    signs = np.sign(counts[:, above[0]] - counts[:, above[1]])
    pairs = pair_probabilities(outcomes, k)
    tau_a, tau_b, share = expected_tau_a(pairs), expected_tau_b(pairs), tied_share(pairs)
    if not above[0].size:
        assert tau_a is tau_b is share is None
        return
    assert tau_a == pytest.approx(float((signs.mean(axis=0) ** 2).mean()), abs=1e-12)
    if not np.abs(signs).sum():
        assert tau_b is None
        return
    assert tau_a is not None and tau_b is not None and share is not None
    assert tau_b * (1.0 - share) == pytest.approx(tau_a, abs=1e-12)


@settings(deadline=None, max_examples=30)
@given(small)
def test_whole_dataset_leaves_nothing_to_chance(case: tuple[Matrix, int]) -> None:
    outcomes, _ = case
    n, m = outcomes.shape
    result = stability(outcomes, n, 1, draws=3)
    ranks = fair_ranks(outcomes.sum(axis=0))
    own = all_pairs(np.vstack([ranks, ranks]), 1)
    for figure, cell in ((result.tau_b, own.tau_b[0, 1]), (result.top1, own.top1[0, 1])):
        assert figure.value == (None if np.isnan(cell) else pytest.approx(float(cell)))
    if m > 1:
        counts = outcomes.sum(axis=0)
        tied = np.mean([a == b for i, a in enumerate(counts) for b in counts[i + 1 :]])
        assert result.tied_pairs.value == pytest.approx(tied)


@settings(deadline=None, max_examples=30)
@given(small, st.data())
def test_figures_do_not_depend_on_the_order_of_prompts(case: tuple[Matrix, int], data: st.DataObject) -> None:
    outcomes, k = case
    order = data.draw(st.permutations(range(outcomes.shape[1])))
    one, other = stability(outcomes, k, 1, draws=20), stability(outcomes[:, order], k, 1, draws=20)
    for name in FIGURES:
        assert getattr(one, name).value == pytest.approx(getattr(other, name).value, abs=1e-9)


def meets_simulation(outcomes: Matrix, k: int, expected: Stability, draws: int) -> None:
    """Exact figures within 3 standard errors, approximate ones within .015; a tie on top within .03."""
    ranks = fair_ranks(resampled_means(outcomes, k, draws, seed=11))
    first, second = np.triu_indices(outcomes.shape[1], 1)
    total, tau_a = np.zeros(len(first)), np.empty(draws)
    tiles = [slice(begin, begin + 500) for begin in range(0, draws, 500)]
    for tile in tiles:
        total += np.sign(ranks[tile][:, second] - ranks[tile][:, first]).sum(axis=0)
    for tile in tiles:
        signs = np.sign(ranks[tile][:, second] - ranks[tile][:, first])
        tau_a[tile] = (signs @ total - np.abs(signs).sum(axis=1)) / ((draws - 1) * len(first))
    # Of a mean over pairs of draws: twice that of what each draw agrees on average with the others.
    error = 2.0 * tau_a.std(ddof=1) / np.sqrt(draws)
    assert mean_kendall_tau_a(ranks) == pytest.approx(tau_a.mean(), abs=1e-9)
    assert expected.tau_a.method == "exact"
    assert abs((expected.tau_a.value or 0.0) - tau_a.mean()) < 3.0 * error
    drawn, on_top = mean_over_pairs(ranks, 3), top_set(ranks, 1).max(axis=1)
    for name in ("tau_b", "rho", "top1", "topm"):
        figure = getattr(expected, name)
        assert (figure.method, figure.value) == ("approximate", pytest.approx(getattr(drawn, name), abs=0.015)), name
    assert expected.tied_pairs.value == pytest.approx(tied_share_of(ranks), abs=0.005)
    assert expected.tied_top.value == pytest.approx((on_top < 1.0).mean(), abs=0.03)


def tied_share_of(ranks: Matrix) -> float:
    pairs = ranks.shape[1] * (ranks.shape[1] - 1) / 2
    return float(np.mean([(np.bincount((2 * row).astype(int)) * (np.bincount((2 * row).astype(int)) - 1) / 2).sum() / pairs for row in ranks]))  # fmt: skip


def test_prompts_of_middling_accuracy_meet_a_simulation() -> None:
    generator = np.random.default_rng(3)
    outcomes = (generator.random((400, 8)) < np.linspace(0.35, 0.65, 8)).astype(float)
    for expected in stability_over_k(outcomes, (20, 80), 3):
        meets_simulation(outcomes, expected.k, expected, 4000)


@pytest.mark.slow
def test_prompts_near_the_ceiling_meet_a_long_simulation() -> None:
    outcomes = near_the_ceiling()
    for expected in stability_over_k(outcomes, (20, 50, 200), 3):
        meets_simulation(outcomes, expected.k, expected, 20_000)


@pytest.mark.slow
def test_16_published_prompts_meet_a_long_simulation(shared_data: Path) -> None:
    outcomes = of_16_prompts(shared_data)
    for expected in stability_over_k(outcomes, (10, 50, 200), 3):
        meets_simulation(outcomes, expected.k, expected, 20_000)


def test_near_the_ceiling_breaking_ties_by_position_flatters() -> None:
    """At k = 50 most conditions tie several prompts on top; the first column among them wins again and again."""
    outcomes = near_the_ceiling()[:, ::-1]
    expected = stability(outcomes, 50, 3)
    assert expected.tied_top.value == pytest.approx(0.77, abs=0.04)
    first = resampled_means(outcomes, 50, 2000).argmax(axis=1)
    by_position = float(((np.bincount(first, minlength=40) / 2000) ** 2).sum())
    assert by_position > 1.5 * (expected.top1.value or 0.0)


def test_methods_are_said() -> None:
    outcomes = np.array([[1.0, 0.0, 1.0]] * 3 + [[0.0, 1.0, 1.0]] * 4)
    result = stability(outcomes, 3, 1, draws=10)
    assert {name for name in FIGURES if getattr(result, name).method == "exact"} == {"tau_a", "tied_pairs"}
    assert {getattr(result, name).method for name in FIGURES} == {"exact", "approximate"}
    for other in (outcomes * 0.5, np.vstack([outcomes, [np.nan, 1.0, 0.0]])):
        assert {getattr(stability(other, 3, 1, draws=10), name).method for name in FIGURES} == {"simulated"}
    many = (np.random.default_rng(0).random((40, 61)) < 0.5).astype(float)
    assert {getattr(stability(many, 10, 1, draws=5), name).method for name in FIGURES} == {"approximate"}


def test_many_prompts_are_worked_out_nearly_as_exactly() -> None:
    outcomes = (np.random.default_rng(0).random((300, 70)) < np.linspace(0.6, 0.98, 70)).astype(float)
    many, pairs = stability(outcomes, 50, 3, draws=10), pair_probabilities(outcomes, 50)
    assert many.tau_a.value == pytest.approx(expected_tau_a(pairs), abs=0.001)
    assert many.tied_pairs.value == pytest.approx(tied_share(pairs), abs=0.001)


def test_figures_are_the_same_every_time_and_at_every_k() -> None:
    outcomes = near_the_ceiling()[:, :5]
    assert stability_over_k(outcomes, (10, 60), 2, draws=500) == tuple(
        stability(outcomes, k, 2, draws=500) for k in (10, 60)
    )


@settings(deadline=None, max_examples=30)
@given(small)
def test_scores_are_possible_ones_with_the_right_mean(case: tuple[Matrix, int]) -> None:
    """Each prompt's own distribution is exact, so its mean over many draws is k mu; equal columns always tie."""
    outcomes, k = case
    scores = gaussian_scores(np.hstack([outcomes, outcomes[:, :1]]), draws=4000).on_subset(k)
    assert (scores[:, 0] == scores[:, -1]).all()
    hits, wrong = outcomes.sum(axis=0), (1.0 - outcomes).sum(axis=0)
    assert (scores[:, :-1] >= np.maximum(k - wrong, 0)).all() and (scores[:, :-1] <= np.minimum(k, hits)).all()
    n = len(outcomes)
    deviation = np.sqrt(k * hits * wrong / n**2 * (n - k) / max(n - 1, 1))
    assert (np.abs(scores[:, :-1].mean(axis=0) - k * hits / n) <= 5.0 * deviation / np.sqrt(4000)).all()


def test_one_prompt_one_item_and_all_tied() -> None:
    single = stability([[1], [0]], 1, 1, draws=4)
    assert (single.tau_b.value, single.rho.value, single.tied_pairs.value, single.top1.value) == (None, None, None, 1.0)
    item = stability([[1, 0]], 1, 1, draws=4)
    assert (item.tau_b.value, item.rho.value, item.top1.value, item.tied_top.value) == (1.0, 1.0, 1.0, 0.0)
    tied = stability([[1, 1, 1], [0, 0, 0]], 1, 1, draws=4)
    assert (tied.tau_b.value, tied.rho.value, tied.tied_pairs.value, tied.tied_top.value) == (None, None, 1.0, 1.0)
    assert tied.top1.value == pytest.approx(1 / 3)
    missing = stability([[np.nan, np.nan]], 1, 1, draws=4)
    assert (missing.tau_b.value, missing.top1.value, missing.tied_pairs.value, missing.tied_top.value) == (None,) * 4


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError, match="two draws"):
        simulate([[1, 0]], 1, 1, draws=1)
    for m in (0, 3):
        with pytest.raises(ValueError, match="top set"):
            stability([[1, 0]], 1, m, draws=2)
    for outcomes in ([[1, 0], [0, 1]], [[0.5, 0], [0, 1]]):
        for k in (0, 3):
            with pytest.raises(ValueError):
                stability(outcomes, k, 1)
        with pytest.raises(ValueError, match="two draws"):
            stability(outcomes, 1, 1, draws=1)
    with pytest.raises(ValueError, match="complete matrix"):
        gaussian_scores([[1, np.nan]])
    with pytest.raises(ValueError, match="at least one item"):
        gaussian_scores([[1, 0]]).on_new_items(0)


def test_published_labels_of_16_prompts(shared_data: Path) -> None:
    """E rho .583 before the correction for ties, .591 simulated, 7.5 % of pairs tied at k = 50 (design pages)."""
    outcomes = of_16_prompts(shared_data)
    pairs = pair_probabilities(outcomes, 50)
    assert expected_rho(pairs, correct_ties=False) == pytest.approx(0.583, abs=0.0005)
    assert expected_rho(pairs) == pytest.approx(0.591, abs=0.004)
    assert tied_share(pairs) == pytest.approx(0.075, abs=0.0006)
    drawn = simulate(outcomes, 50, 3, draws=8000)
    assert drawn.rho == pytest.approx(0.591, abs=0.005)
    assert drawn.tau_a == pytest.approx(expected_tau_a(pairs), abs=0.005)
    uncorrected, corrected = expected_rho(pairs, correct_ties=False), expected_rho(pairs)
    assert abs((uncorrected or 0) - (drawn.rho or 0)) > 2 * abs((corrected or 0) - (drawn.rho or 0))
