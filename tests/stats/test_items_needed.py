"""Items needed: closed forms, and a simulation that draws that many items."""

from __future__ import annotations

import csv
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stats.items_needed import against_leader, pair_items, winner_items
from stats.winner_curve import winner_curve

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
Z = 1.6448536269514722
matrices = arrays.arrays(
    np.float64, st.tuples(st.integers(2, 25), st.integers(1, 5)), elements=st.sampled_from([0.0, 0.5, 1.0])
)


def outcomes_of(b: int, c: int, both: int, neither: int) -> Matrix:
    return np.array([[1.0, 0.0]] * b + [[0.0, 1.0]] * c + [[1.0, 1.0]] * both + [[0.0, 0.0]] * neither)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(1, 40))
def test_two_prompts_by_the_formula(b: int, c: int, both: int, neither: int) -> None:
    n = b + c + both + neither
    d = (b - c) / n
    _, other = against_leader(outcomes_of(b, c, both, neither), leader=0)
    assert other.n == n and other.difference == pytest.approx(d, abs=1e-12)
    assert other.variance == pytest.approx((b + c) / n - d * d, abs=1e-12)
    if b == c:
        assert (other.needed, other.items) == (math.inf, None)
    else:
        assert other.needed == pytest.approx(Z**2 * ((b + c) / n - d * d) / d**2, rel=1e-9)
        assert other.items is not None and other.items - 1 < max(other.needed, 1e-9) <= other.items


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 9), st.integers(1, 40))
def test_the_winner_of_two_needs_what_the_pair_needs(b: int, c: int, both: int, neither: int) -> None:
    outcomes = outcomes_of(b, c, both, neither)
    found, pair = winner_items(outcomes, draws=100), against_leader(outcomes)
    assert found.needed == pytest.approx(max(one.needed for one in pair), rel=1e-9)
    assert found.winner == (None if b == c else int(b < c))


def test_half_as_far_ahead_takes_four_times_as_many() -> None:
    assert pair_items(0.25, 0.05) == pytest.approx(4 * pair_items(0.25, 0.1))
    assert pair_items(0.25, 0.1, probability=0.99) / pair_items(0.25, 0.1) == pytest.approx((2.3263479 / Z) ** 2)
    assert pair_items(0.0, 0.1) == 0.0


def test_equal_challengers_need_what_dunnetts_table_says() -> None:
    """Three independent ones, .4 against .6: differences correlate by 1/2, and 2.06 takes the place of 1.645.

    Dunnett (1955), Journal of the American Statistical Association 50, table 1a: one-sided, 3 treatments, infinitely many degrees.
    """
    columns = [[1.0] * 6 + [0.0] * 4] + [[1.0] * 4 + [0.0] * 6] * 3
    outcomes = np.array(list(product(*columns)))
    one = pair_items(variance=0.48, difference=0.2)
    assert [pair.needed for pair in against_leader(outcomes)[1:]] == pytest.approx([one] * 3)
    assert winner_items(outcomes).needed == pytest.approx(one * (2.06 / 1.645) ** 2, rel=0.02)


def test_that_many_new_items_keep_the_winner_in_95_percent() -> None:
    """New items drawn from the observed ones: in 20,000 replicates the winner is alone on top, or shares it by fair lot."""
    generator = np.random.default_rng(8)
    difficulty = generator.normal(0, 1.5, (400, 1))
    shift = np.array([0.9, 0.55, 0.5, 0.45, 0.2, -0.5])
    outcomes = (generator.random((400, 6)) < 1 / (1 + np.exp(difficulty - shift))).astype(float)
    found = winner_items(outcomes)
    assert found.items is not None and 60 < found.items < 2000
    patterns, counts = np.unique(outcomes, axis=0, return_counts=True)
    drawn = generator.multinomial(found.items, counts / 400, size=20_000) @ patterns
    on_top = drawn == drawn.max(axis=1, keepdims=True)
    share = float((on_top / on_top.sum(axis=1, keepdims=True))[:, found.winner].mean())
    assert share == pytest.approx(0.95, abs=0.008)
    stated = winner_curve(outcomes, (found.items,)).on_new_items[0]
    assert stated[found.winner] == pytest.approx(0.95, abs=0.008)
    assert stated == pytest.approx((on_top / on_top.sum(axis=1, keepdims=True)).mean(axis=0), abs=0.01)


def test_that_many_of_the_dataset_keep_the_winner_in_95_percent() -> None:
    generator = np.random.default_rng(8)
    outcomes = (generator.random((500, 4)) < np.array([0.63, 0.52, 0.5, 0.4])).astype(float)
    found = winner_items(outcomes)
    k = math.ceil(found.of_dataset)
    assert 20 < k < 500 and found.of_dataset < found.needed
    sums = np.array([outcomes[generator.permutation(500)[:k]].sum(axis=0) for _ in range(5000)])
    on_top = sums == sums.max(axis=1, keepdims=True)
    shares = (on_top / on_top.sum(axis=1, keepdims=True)).mean(axis=0)
    assert shares[found.winner] == pytest.approx(0.95, abs=0.015)
    curve = winner_curve(outcomes, (k, 500)).on_subsets
    assert curve[0] == pytest.approx(shares, abs=0.015)
    assert curve[1, found.winner] == 1.0


@settings(deadline=None, max_examples=30)
@given(matrices, st.data())
def test_permuting_prompts_permutes_the_figures(outcomes: Matrix, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(outcomes.shape[1])))
    one, other = winner_items(outcomes, draws=500), winner_items(outcomes[:, order], draws=500)
    assert (None if other.winner is None else order[other.winner]) == one.winner
    assert other.needed == pytest.approx(one.needed, rel=1e-6)


@settings(deadline=None, max_examples=30)
@given(matrices)
def test_copies_share_and_a_tie_on_top_is_never_settled(outcomes: Matrix) -> None:
    first = int(outcomes.sum(axis=0).argmax())
    doubled = np.column_stack([outcomes, outcomes[:, first]])
    found = winner_items(doubled, draws=200)
    assert (found.winner, found.needed, found.items, found.of_dataset) == (None, math.inf, None, len(outcomes))


def test_a_prompt_that_always_fails_changes_nothing() -> None:
    outcomes = (np.random.default_rng(2).random((200, 3)) < np.array([0.7, 0.6, 0.5])).astype(float)
    one, other = winner_items(outcomes), winner_items(np.column_stack([outcomes, np.zeros(200)]))
    assert other.winner == one.winner
    assert other.needed == pytest.approx(one.needed, rel=0.05)


def test_clusters_need_more_items() -> None:
    """Four identical turns a conversation carry what one does: four times the items."""
    single = outcomes_of(30, 15, 20, 35)
    copied, labels = np.repeat(single, 4, axis=0), np.repeat(np.arange(100), 4)
    one, four = against_leader(single)[1], against_leader(copied, clusters=labels)[1]
    assert four.needed == pytest.approx(4 * one.needed)
    assert winner_items(copied, clusters=labels).needed == pytest.approx(4 * winner_items(single).needed)


def test_missing_outcomes() -> None:
    outcomes = np.vstack([outcomes_of(30, 10, 0, 0), [[np.nan, 1.0]] * 9])
    _, other = against_leader(outcomes, leader=0)
    assert (other.n, other.difference) == (40, 0.5)
    found = winner_items(outcomes)
    assert (found.winner, found.n, found.left_out) == (0, 40, 9)
    apart = against_leader([[1.0, np.nan], [np.nan, 0.0]], leader=0)[1]
    assert apart.n == 0 and np.isnan(apart.difference) and apart.items is None


def test_impossible_input_is_refused() -> None:
    for probability in (0.5, 1.0, 95):
        with pytest.raises(ValueError, match="probability"):
            pair_items(0.2, 0.1, probability)
        with pytest.raises(ValueError, match="probability"):
            winner_items([[1, 0]], probability)
        with pytest.raises(ValueError, match="probability"):
            against_leader([[1, 0]], None, probability)
    with pytest.raises(ValueError, match="variance"):
        pair_items(-0.1, 0.1)
    with pytest.raises(ValueError, match="column"):
        against_leader([[1, 0]], leader=2)
    with pytest.raises(ValueError, match="draw"):
        winner_items([[1, 0]], draws=0)
    alone = winner_items([[1], [0]])
    assert (alone.winner, alone.needed, alone.items) == (0, 0.0, 1)


def test_the_top_two_of_16_published_prompts(shared_data: Path) -> None:
    """More than 100,000 items (design page): 2.706 x .234 / .002^2 = 158,272 for `nan` before `APE`."""
    with (shared_data / "ranking/oirl_gsm8k/gsm8k_test_correct.csv").open(newline="") as file:
        names, *rows = csv.reader(file)
    outcomes = [[float(cell) for cell in row[1:]] for row in rows]
    pairs = {names[1 + pair.prompt]: pair for pair in against_leader(outcomes)}
    assert pairs["APE"].items == 158_272
    assert pairs["APE"].variance == pytest.approx(0.234 - 0.002**2, abs=1e-12)
    assert pairs["gpt4_9"].items is not None and pairs["gpt4_9"].items < 20
    found = winner_items(outcomes)
    assert found.winner is not None and names[1 + found.winner] == "nan"
    assert 158_271 <= found.needed < 170_000
