"""Borda's and Kemeny's consensus, the latter against every order there is."""

from __future__ import annotations

import time
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stats.consensus import borda, borda_points, preferences
from stats.kemeny import kemeny
from stats.ranks import fair_ranks
from stats.reference_ranking import modal_reference

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
scores = arrays.arrays(
    np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, np.nan])
)


def reversed_by(order: tuple[int, ...], ranks: Matrix) -> int:
    """Strict preferences of the rankings that the order turns round."""
    return sum(int(row[late] < row[early]) for row in ranks for at, early in enumerate(order) for late in order[at:])


def all_best(ranks: Matrix) -> tuple[int, list[tuple[int, ...]]]:
    ranked = np.flatnonzero(~np.isnan(ranks).all(axis=0)).tolist()
    orders = list(permutations(ranked))
    puts_before = np.array(
        [[int((ranks[:, i] < ranks[:, j]).sum()) for j in range(len(ranks[0]))] for i in range(len(ranks[0]))]
    )
    table = np.array(orders, dtype=int).reshape(len(orders), -1)
    costs = np.zeros(len(orders), dtype=int)
    for early, late in combinations(range(len(ranked)), 2):
        costs += puts_before[table[:, late], table[:, early]]
    assert costs[0] == reversed_by(orders[0], ranks)
    return int(costs.min()), [orders[at] for at in np.flatnonzero(costs == costs.min())]


def check(ranks: Matrix) -> None:
    least, orders = all_best(ranks)
    best = kemeny(ranks)
    assert (best.cost, best.optimal, best.method, best.lower_bound) == (least, len(orders), "exact", least)
    assert best.order == min(orders)
    assert best.first == tuple(sorted({order[0] for order in orders if order}))
    assert best.unique == (len(orders) == 1)
    for prompt in range(ranks.shape[1]):
        places = [order.index(prompt) + 1 for order in orders if prompt in order]
        expected = np.mean(places) if places else np.nan
        assert best.places[prompt] == pytest.approx(expected, nan_ok=True)


@settings(deadline=None, max_examples=30)
@given(scores)
def test_kemeny_is_the_best_of_all_orders(values: Matrix) -> None:
    check(fair_ranks(values))


def test_kemeny_is_the_best_of_all_orders_of_seven() -> None:
    generator = np.random.default_rng(2)
    for n_rankings in (2, 3, 4, 9):
        check(fair_ranks(generator.integers(0, 9, (n_rankings, 7))))
        check(np.array([generator.permutation(7) + 1.0 for _ in range(n_rankings)]))


def test_condorcet_and_the_voting_paradox() -> None:
    """Three voters in a circle: each rotation reverses 4 of 9 preferences, and no prompt is before another."""
    circle = kemeny([[1, 2, 3], [3, 1, 2], [2, 3, 1]])
    assert (circle.cost, circle.preferences, circle.optimal, circle.unique) == (4, 9, 3, False)
    assert circle.ranks.tolist() == [2.0, 2.0, 2.0] and circle.first == (0, 1, 2)
    # Kemeny crowns whoever beats everyone by a majority; Borda need not: 3 of 5 put 0 before 1, 2 put it last.
    split = np.array([[1, 2, 3]] * 3 + [[3, 1, 2]] * 2)
    assert kemeny(split).first == (0,)
    assert borda(split).ranks.tolist() == [2.0, 1.0, 3.0]


def test_the_published_example_of_young() -> None:
    """60 voters, Young (1988), American Political Science Review 82, 1231-1244: Kemeny orders b, c, a; Borda b, a, c.

    23 abc, 17 bca, 2 bac, 10 cab, 8 cba: b over c 42, c over a 35, a over b 33 of 60.
    """
    votes = [([1, 2, 3], 23), ([3, 1, 2], 17), ([2, 1, 3], 2), ([2, 3, 1], 10), ([3, 2, 1], 8)]
    ranks = np.array([ranking for ranking, times in votes for _ in range(times)])
    before = preferences(ranks)
    assert (before[1, 2], before[2, 0], before[0, 1]) == (42, 35, 33)
    best = kemeny(ranks)
    assert best.order == (1, 2, 0) and best.unique
    assert borda(ranks).ranks.tolist() == [2.0, 1.0, 3.0]
    assert best.cost == 180 - (42 + 35 + 27)


@settings(deadline=None, max_examples=30)
@given(scores, st.data())
def test_permuting_prompts_permutes_the_consensus(values: Matrix, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(values.shape[1])))
    ranks = fair_ranks(values)
    one, other = kemeny(ranks), kemeny(ranks[:, order])
    assert np.array_equal(one.ranks[order], other.ranks, equal_nan=True)
    assert (one.cost, one.optimal) == (other.cost, other.optimal)
    assert np.array_equal(borda(ranks).ranks[order], borda(ranks[:, order]).ranks, equal_nan=True)


@settings(deadline=None, max_examples=30)
@given(scores)
def test_rankings_that_agree_are_their_own_consensus(values: Matrix) -> None:
    ranks = fair_ranks(values)[:1]
    assert np.array_equal(borda(np.repeat(ranks, 3, axis=0)).ranks, ranks[0], equal_nan=True)
    best = kemeny(np.repeat(ranks, 3, axis=0))
    assert np.array_equal(best.ranks, ranks[0], equal_nan=True)
    assert best.cost == 0
    assert np.array_equal(modal_reference(np.repeat(ranks, 3, axis=0)).ranks, best.ranks, equal_nan=True)


def test_points_with_ties_and_missing_prompts() -> None:
    nan = np.nan
    points = borda_points([[1, 2, 3, nan], [1.5, 1.5, nan, nan], [nan, 1, nan, nan]])
    # Prompt 0 beats all, then half of one other; prompt 1 half, half, alone one half; prompt 2 none.
    assert np.array_equal(points, [0.75, 0.5, 0.0, nan], equal_nan=True)
    assert np.array_equal(borda([[1, 2, 3, nan], [1.5, 1.5, nan, nan]]).ranks, [1, 2, 3, nan], equal_nan=True)
    # Thirds that are added up in another order are the same points.
    assert borda([[1, 2, 3, 4], [3, 1, 2, 4], [2, 3, 1, 4]]).ranks.tolist() == [2.0, 2.0, 2.0, 4.0]


def test_without_any_preference_all_orders_are_equal() -> None:
    best = kemeny(np.full((2, 16), 8.5))
    assert best.optimal == 20922789888000 and best.ranks.tolist() == [8.5] * 16
    nobody = kemeny([[np.nan, np.nan]])
    assert (nobody.order, nobody.first, nobody.cost, nobody.optimal) == ((), (), 0, 1)


def test_a_long_cycle_is_approximated_and_says_so() -> None:
    """Rankings at random: one cycle of all 40. The local search ends between the bound and the cost of Borda's order."""
    generator = np.random.default_rng(4)
    ranks = np.array([generator.permutation(40) + 1.0 for _ in range(5)])
    found = kemeny(ranks)
    by_points = tuple(int(i) for i in np.argsort(borda(ranks).ranks))
    assert found.method == "approximate" and found.optimal is None and found.unique is None
    assert sorted(found.order) == list(range(40))
    assert found.lower_bound < found.cost == reversed_by(found.order, ranks) <= reversed_by(by_points, ranks)
    small = ranks[:, :8]
    assert kemeny(fair_ranks(-small), max_cycle=3).cost >= kemeny(fair_ranks(-small)).cost


def test_many_prompts_without_long_cycles_are_exact() -> None:
    """150 prompts with noisy rankings of few neighbours."""
    generator = np.random.default_rng(1)
    ranks = np.array([fair_ranks(-(np.arange(150) + generator.normal(0, 1, 150))) for _ in range(25)])
    best = kemeny(ranks)
    assert best.method == "exact" and best.optimal is not None
    assert best.cost == best.lower_bound == reversed_by(best.order, ranks)


def test_sixteen_prompts_in_one_cycle_within_a_second() -> None:
    generator = np.random.default_rng(4)
    ranks = np.array([generator.permutation(16) + 1.0 for _ in range(4)])
    kemeny(ranks[:, :2])  # imports what it needs
    begin = time.process_time()
    best = kemeny(ranks)
    assert best.method == "exact"
    assert time.process_time() - begin < 1.0


def test_impossible_input_is_refused() -> None:
    for function in (borda, kemeny, preferences):
        with pytest.raises(ValueError, match="consensus"):
            function(np.empty((0, 2)))
    with pytest.raises(ValueError, match="points"):
        borda_points([1.0, 2.0])
    for size in (0, 21, 2.5):
        with pytest.raises(ValueError, match="1 to 20"):
            kemeny([[1, 2]], max_cycle=size)  # type: ignore[arg-type]
