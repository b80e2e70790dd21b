"""Seeded subsets and score matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stats import subsets
from stats.stability import stability
from stats.subsets import Condition, draw, is_binary, resampled_means, score_matrix, seed_pairs, whole_steps

sizes = st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n)))


@given(st.integers(0, 2**40), sizes)
def test_a_draw_is_a_set_of_k_items_and_the_same_every_time(seed: int, size: tuple[int, int]) -> None:
    n, k = size
    items = draw(seed, n, k)
    assert len(items) == k == len(set(items.tolist()))
    assert items.tolist() == sorted(items.tolist())
    assert items.min() >= 0 and items.max() < n
    assert draw(seed, n, k).tolist() == items.tolist()


@given(st.integers(0, 1000), sizes)
def test_draws_of_one_seed_are_nested(seed: int, size: tuple[int, int]) -> None:
    n, k = size
    assert set(draw(seed, n, k)) <= set(draw(seed, n, n))
    assert set(draw(seed, n, (k + 1) // 2)) <= set(draw(seed, n, k))


def test_golden_draws_never_change() -> None:
    """What a seed draws is written into results, so it must stay over versions of numpy and of this program."""
    assert draw(1, 10, 4).tolist() == [2, 4, 7, 9]
    assert draw(2, 10, 4).tolist() == [0, 3, 6, 7]
    assert draw(7, 1000, 5).tolist() == [6, 37, 114, 614, 865]


def test_every_item_is_drawn_equally_often() -> None:
    times = np.zeros(20)
    for seed in range(2000):
        times[draw(seed, 20, 5)] += 1
    # 500 expected each; standard deviation sqrt(2000 / 4 * 3 / 4) = 19.4.
    assert np.abs(times - 500).max() < 5 * 19.4


def test_impossible_draws_are_refused() -> None:
    for seed, n, k in ((0, 5, 6), (0, 5, 0), (-1, 5, 2), (0, 0, 1)):
        with pytest.raises(ValueError):
            draw(seed, n, k)
    with pytest.raises(ValueError, match="5 of 4 items"):
        score_matrix(np.ones((4, 2)), [Condition(0, 5)])


def test_scores_by_hand() -> None:
    outcomes = np.array([[1, 0], [0, np.nan], [1, 1], [0, 1]])
    whole = score_matrix(outcomes, [Condition(3, 4)])
    assert whole.sums.tolist() == [[2.0, 2.0]]
    assert whole.counts.tolist() == [[4, 3]]
    assert whole.means.tolist() == [[0.5, 2 / 3]]
    items = draw(3, 4, 2)
    part = score_matrix(outcomes, [Condition(3, 2)])
    assert part.sums[0, 0] == outcomes[items, 0].sum()
    assert part.counts[0, 1] == (~np.isnan(outcomes[items, 1])).sum()


@given(
    arrays.arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 6)), elements=st.sampled_from([0.0, 1.0])),
    st.lists(st.integers(0, 50), min_size=1, max_size=4),
)
def test_binary_sums_are_whole_numbers_and_the_sums_of_the_drawn_items(
    outcomes: np.ndarray[tuple[int, int], np.dtype[np.float64]], seeds: list[int]
) -> None:
    k = max(1, len(outcomes) // 2)
    scores = score_matrix(outcomes, [Condition(seed, k) for seed in seeds])
    assert scores.exact and scores.scale == 1
    for row, seed in enumerate(seeds):
        assert scores.sums[row].tolist() == outcomes[draw(seed, len(outcomes), k)].sum(axis=0).tolist()


def test_all_missing_has_no_mean() -> None:
    scores = score_matrix(np.array([[np.nan, 1.0], [np.nan, 0.0]]), [Condition(0, 2)])
    assert scores.counts.tolist() == [[0, 2]]
    assert np.isnan(scores.means[0, 0]) and scores.means[0, 1] == 0.5


def test_decimals_add_up_exactly() -> None:
    """.1 + .2 + .3 and .3 + .3 + 0 tie, which sums of floats would not show."""
    outcomes = np.array([[0.1, 0.3], [0.2, 0.3], [0.3, 0.0]])
    scores = score_matrix(outcomes, [Condition(0, 3)])
    assert (scores.scale, scores.exact) == (10, True)
    assert scores.means[0, 0] == scores.means[0, 1]
    assert 0.1 + 0.2 + 0.3 != 0.3 + 0.3


def test_equal_prompts_have_equal_sums_also_where_numbers_have_no_end() -> None:
    generator = np.random.default_rng(0)
    column = generator.random(997)
    scores = score_matrix(np.tile(column[:, None], (1, 13)), [Condition(seed, 313) for seed in range(3)])
    assert not scores.exact
    assert (scores.units == scores.units[:, :1]).all()


def test_whole_steps() -> None:
    assert whole_steps(np.array([[0.25, 1.0]]))[1:] == (100, True)
    assert whole_steps(np.array([[1 / 3, 0.5], [1.0, 2 / 3]]))[1:] == (6, True)
    assert whole_steps(np.array([[1 / 29]]))[1:] == (1, False)
    assert whole_steps(np.array([[2.0**60], [1.0]]))[1:] == (1, False)


def test_resampled_means_are_means_of_random_subsets() -> None:
    """Of items worth 1, 2, 4, 8 ... every subset has its own sum, so each of the 20 3-subsets of 6 must come up alike."""
    outcomes = 2.0 ** np.arange(6)[:, None]
    sums = resampled_means(outcomes, 3, 4000)[:, 0] * 3
    seen, times = np.unique(sums.round(), return_counts=True)
    assert len(seen) == 20 and all(int(total).bit_count() == 3 for total in seen)
    # 200 expected each; standard deviation sqrt(4000 / 20 * 19 / 20) = 13.8.
    assert np.abs(times - 200).max() < 5 * 13.8
    assert (resampled_means(outcomes, 3, 50) == sums[:50, None] / 3).all()
    assert not (resampled_means(outcomes, 3, 50, seed=1) == sums[:50, None] / 3).all()


def test_resampled_means_leave_missing_outcomes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = np.array([[1.0, np.nan], [np.nan, np.nan], [0.0, np.nan]])
    means = resampled_means(outcomes, 2, 300)
    assert set(np.unique(means[:, 0])) == {0.0, 0.5, 1.0}
    assert np.isnan(means[:, 1]).all()
    monkeypatch.setattr(subsets, "_TILE_CELLS", 10)
    assert resampled_means(outcomes, 2, 301).shape == (301, 2)
    for k, draws in ((4, 1), (0, 1), (1, 0)):
        with pytest.raises(ValueError):
            resampled_means(outcomes, k, draws)


def test_pairs_are_of_one_k_and_two_seeds() -> None:
    conditions = [Condition(seed, k) for k in (5, 10) for seed in (0, 1, 2)]
    pairs = seed_pairs(conditions)
    assert pairs.tolist() == [[0, 1], [0, 2], [1, 2], [3, 4], [3, 5], [4, 5]]
    assert len(seed_pairs([Condition(seed, 5) for seed in range(5)])) == 10
    assert seed_pairs([Condition(0, 5), Condition(0, 6)]).shape == (0, 2)


def test_what_is_no_outcome_matrix() -> None:
    for bad in (np.ones(3), np.ones((0, 2)), np.ones((2, 0)), np.array([[np.inf]])):
        with pytest.raises(ValueError):
            score_matrix(bad, [])
    assert is_binary([[0, 1], [np.nan, 1]])
    assert not is_binary([[0, 0.5]]) and not is_binary([[np.nan]])


def test_whole_numbers_of_any_kind_draw_the_same() -> None:
    assert Condition(np.int64(3), 4.0) == Condition(3, 4)  # type: ignore[arg-type]
    assert draw(3, 10, 4.0).tolist() == draw(3, 10, 4).tolist()  # type: ignore[arg-type]
    outcomes = np.random.default_rng(0).integers(0, 2, size=(30, 3))
    for whole in (outcomes, outcomes * 0.5):
        assert stability(whole, 10.0, 2.0) == stability(whole, 10, 2)  # type: ignore[arg-type]
