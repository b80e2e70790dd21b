"""Who leads on k items, on subsets of the dataset and on new items."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stats.pair_probabilities import pair_probabilities
from stats.ranks import top_set
from stats.stability import stability
from stats.subsets import resampled_means
from stats.winner_curve import winner_curve

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
binary = arrays.arrays(
    np.float64, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=st.sampled_from([0.0, 1.0])
)
graded = arrays.arrays(
    np.float64, st.tuples(st.integers(2, 8), st.integers(1, 4)), elements=st.sampled_from([0.0, 0.25, 0.5, 3.0])
)


def prompts(n: int = 600) -> Matrix:
    generator = np.random.default_rng(4)
    hard = generator.normal(size=(n, 1))
    skill = np.array([0.35, 0.3, 0.3, 0.2, 0.0, -0.4])
    return (hard + generator.normal(size=(n, 6)) < 1.0 + skill).astype(float)


@settings(deadline=None, max_examples=30)
@given(st.one_of(binary, graded), st.data())
def test_chances_permute_with_the_prompts_and_sum_to_one(outcomes: Matrix, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(outcomes.shape[1])))
    sizes = (1, len(outcomes), 50)
    one, other = winner_curve(outcomes, sizes, draws=50), winner_curve(outcomes[:, order], sizes, draws=50)
    for name in ("on_subsets", "on_new_items"):
        assert getattr(one, name)[:, order] == pytest.approx(getattr(other, name), abs=1e-12, nan_ok=True)
    assert one.on_subsets[:2].sum(axis=1) == pytest.approx(1.0)
    assert one.on_new_items.sum(axis=1) == pytest.approx(1.0)
    assert np.isnan(one.on_subsets[2]).all() or len(outcomes) >= 50


@settings(deadline=None, max_examples=30)
@given(st.one_of(binary, graded))
def test_all_items_have_one_leader_and_equal_means_share(outcomes: Matrix) -> None:
    whole = winner_curve(outcomes, (len(outcomes),), draws=5).on_subsets[0]
    best = outcomes.sum(axis=0) == outcomes.sum(axis=0).max()
    assert whole == pytest.approx(best / best.sum())


@settings(deadline=None, max_examples=30)
@given(binary)
def test_doubling_every_item_changes_nothing_on_new_ones(outcomes: Matrix) -> None:
    once = winner_curve(outcomes, (7, 30), draws=40).on_new_items
    assert winner_curve(np.repeat(outcomes, 2, axis=0), (7, 30), draws=40).on_new_items == pytest.approx(once)


def test_equal_prompts_share_alike() -> None:
    outcomes = prompts()
    curve = winner_curve(np.hstack([outcomes, outcomes[:, :1]]), (20, 300), draws=1000)
    assert (curve.on_subsets[:, 0] == curve.on_subsets[:, 6]).all()
    assert (curve.on_new_items[:, 0] == curve.on_new_items[:, 6]).all()


def test_chances_on_subsets_are_those_of_all_subsets_of_a_small_dataset() -> None:
    outcomes = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 0], [1, 1, 1], [0, 0, 1], [1, 0, 0], [0, 1, 0]])
    for k in (3, 5, 7):
        counts = np.array([outcomes[list(items)].sum(axis=0) for items in combinations(range(8), k)])
        exact = top_set(-counts, 1).mean(axis=0)
        assert winner_curve(outcomes, (k,)).on_subsets[0] == pytest.approx(exact, abs=0.03)


def test_chances_meet_seeded_subsets_and_new_items() -> None:
    outcomes = prompts()
    sizes = (30, 150, 600)
    curve = winner_curve(outcomes, sizes)
    for row, k in enumerate(sizes[:2]):
        drawn = top_set(-resampled_means(outcomes, k, 6000), 1).mean(axis=0)
        assert curve.on_subsets[row] == pytest.approx(drawn, abs=0.02)
    generator = np.random.default_rng(8)
    for row, n in enumerate(sizes):
        taken = generator.integers(0, 600, (3000, n))
        drawn = top_set(-outcomes[taken].sum(axis=1), 1).mean(axis=0)
        assert curve.on_new_items[row] == pytest.approx(drawn, abs=0.025)


def test_numbers_that_are_no_proportions() -> None:
    graded = prompts() * 0.7 + prompts()[::-1] * 0.2
    curve = winner_curve(graded, (60,))
    assert curve.on_subsets[0] == pytest.approx(top_set(-resampled_means(graded, 60, 6000), 1).mean(axis=0), abs=0.025)


def test_two_prompts_meet_the_exact_probability() -> None:
    outcomes = prompts()[:, [0, 3]]
    pairs = pair_probabilities(outcomes, 40)
    exact = pairs.wins[0, 1] + pairs.ties[0, 1] / 2
    assert winner_curve(outcomes, (40,)).on_subsets[0, 0] == pytest.approx(exact, abs=0.012)


def test_squares_sum_to_the_top1_agreement_of_two_seeds() -> None:
    outcomes = prompts()
    chances = winner_curve(outcomes, (50,)).on_subsets[0]
    assert float((chances**2).sum()) == pytest.approx(stability(outcomes, 50, 1).top1.value, abs=1e-3)


def test_the_leader_of_resamples_is_not_so_often_the_best() -> None:
    """Ten equally good prompts: none is more than 1/10 likely to be the best, and the leader wins far more resamples."""
    generator = np.random.default_rng(2)
    won = [
        winner_curve((generator.random((200, 10)) < 0.5).astype(float), (200,), draws=2000).on_new_items[0].max()
        for _ in range(20)
    ]
    assert np.mean(won) > 0.25


def test_more_items_make_the_leader_surer() -> None:
    curve = winner_curve(prompts(), (10, 40, 160, 640, 2560, 100_000))
    leader = int(prompts().sum(axis=0).argmax())
    assert (np.diff(curve.on_new_items[:, leader]) > 0.0).all()
    assert curve.on_new_items[-1, leader] > 0.95


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError, match="complete matrix"):
        winner_curve([[1, np.nan]], (1,))
    with pytest.raises(ValueError, match="at least one item"):
        winner_curve([[1, 0]], (0,))
    with pytest.raises(ValueError, match="two draws"):
        winner_curve([[1, 0]], (1,), draws=1)
    assert winner_curve([[1, 0]], ()).on_subsets.shape == (0, 2)
