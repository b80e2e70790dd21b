"""Sequential halving: plans and replays."""

from __future__ import annotations

import csv
from math import ceil, log2
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stats.halving import halve, n_rounds, plan, staying

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
binary = arrays.arrays(
    np.float64, st.tuples(st.integers(1, 40), st.integers(1, 7)), elements=st.sampled_from([0.0, 1.0])
)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 300), st.integers(0, 10_000))
def test_a_plan_is_the_published_one(n_prompts: int, more: int) -> None:
    """Karnin, Koren, Somekh (2013): floor(B / (s ceil(log2 M))) items for each of s, ceil(s/2) go on."""
    rounds = ceil(log2(n_prompts))
    assert n_rounds(n_prompts) == rounds
    budget = rounds * n_prompts + more
    found, left = plan(n_prompts, budget), n_prompts
    for step in found.rounds:
        assert (step.prompts, step.items) == (left, budget // (left * rounds))
        left = ceil(left / 2)
    assert left == 1 and len(found.rounds) == rounds
    assert found.outcomes <= budget


def test_a_plan_within_a_dataset() -> None:
    found = plan(16, 8000, n_items=300)
    assert [(step.prompts, step.items) for step in found.rounds] == [(16, 125), (8, 175), (4, 0), (2, 0)]
    assert (found.items, found.outcomes) == (300, 16 * 125 + 8 * 175)
    assert plan(1, 0).rounds == ()


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_the_better_half_stays_with_whoever_ties_with_its_last(scores: list[int]) -> None:
    stay = staying(scores)
    half = (len(scores) + 1) // 2
    border = sorted(scores, reverse=True)[half - 1]
    assert stay.tolist() == [i for i, score in enumerate(scores) if score >= border]


def test_prompts_without_a_score_go_first() -> None:
    nan = np.nan
    assert staying([nan, 0.1, nan, 0.3, 0.2]).tolist() == [1, 3, 4]
    assert staying([nan, 0.1, nan, nan]).tolist() == [1]
    assert staying([nan, nan]).tolist() == [0, 1]


def test_ties_are_kept_and_the_budget_holds() -> None:
    """All prompts equal: none is ever dropped, and each round has as few items as the first."""
    found = halve(np.tile([[1.0], [0.0]], (50, 8)), budget=240)
    assert [(step.prompts, step.items) for step in found.rounds] == [(8, 10)] * 3
    assert found.winners == tuple(range(8)) and found.outcomes == 240


@settings(deadline=None, max_examples=50)
@given(binary, st.integers(0, 200), st.integers(0, 3), st.booleans(), st.data())
def test_replays(outcomes: Matrix, more: int, seed: int, forget: bool, data: st.DataObject) -> None:
    n_items, n_prompts = outcomes.shape
    budget = n_rounds(n_prompts) * n_prompts + more
    found = halve(outcomes, budget, seed, forget=forget)
    assert found.outcomes <= budget
    assert sum(step.items for step in found.rounds) <= n_items
    assert found.winners == (found.stayed[-1] if found.stayed else tuple(range(n_prompts)))
    order = data.draw(st.permutations(range(n_prompts)))
    other = halve(outcomes[:, order], budget, seed, forget=forget)
    assert {order[i] for i in other.winners} == set(found.winners)
    if found.rounds and not forget and sum(step.items for step in found.rounds) == n_items:
        # Whoever is left has seen all items, and is no worse than the others that were left before the last round.
        last = found.stayed[-2] if len(found.stayed) > 1 else tuple(range(n_prompts))
        totals = outcomes.sum(axis=0)
        assert max(totals[list(last)]) == max(totals[list(found.winners)])


def test_by_hand() -> None:
    """Four prompts, 16 outcomes: two items for each, then four for the two that are left."""
    outcomes = np.array([[1.0, 1.0, 0.0, 0.0]] * 2 + [[0.0, 1.0, 1.0, 1.0]] * 4)
    natural = outcomes[np.argsort(np.argsort(np.random.PCG64(0).random_raw(6), kind="stable"))]
    found = halve(natural, budget=16, seed=0)
    assert [(step.prompts, step.items) for step in found.rounds] == [(4, 2), (2, 4)]
    assert found.stayed == ((0, 1), (1,)) and found.winners == (1,)


def test_missing_outcomes() -> None:
    outcomes = np.array([[1.0, np.nan, 0.0]] * 40)
    assert halve(outcomes, budget=60).winners == (0,)
    numbers = np.array([[0.31, 0.3, 0.7123456789]] * 40)
    assert halve(numbers, budget=60).winners == (2,)


def test_published_labels_with_a_fifth_of_the_outcomes(shared_data: Path) -> None:
    """16 prompts x 1,000 items, of which 10 cannot be told from the best: the choice is within 2.5 points of it on average."""
    with (shared_data / "ranking/oirl_gsm8k/gsm8k_test_correct.csv").open(newline="") as file:
        outcomes = np.array([[float(cell) for cell in row[1:]] for row in list(csv.reader(file))[1:]])
    true = outcomes.mean(axis=0)
    lost = [true.max() - true[list(halve(outcomes, 3200, seed).winners)].mean() for seed in range(100)]
    uniform = [true.max() - true[list(staying_best(outcomes, 200, seed))].mean() for seed in range(100)]
    assert np.mean(lost) < 0.025
    assert np.mean(lost) < np.mean(uniform)


def staying_best(outcomes: Matrix, k: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The winners of the same budget spent evenly: all prompts on k items."""
    drawn = np.argsort(np.random.PCG64(seed).random_raw(len(outcomes)), kind="stable")[:k]
    totals = outcomes[drawn].sum(axis=0)
    return np.flatnonzero(totals == totals.max())


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 64 outcomes"):
        plan(16, 63)
    with pytest.raises(ValueError, match="at least one prompt"):
        plan(0, 10)
    with pytest.raises(ValueError, match="at least one prompt"):
        staying([])
