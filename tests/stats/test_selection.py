"""The selection rules, when they disagree, and leaving one part out."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stats.selection import by_borda, by_lcb, by_length, by_mean, lcb_turn, leave_one_out
from stats.subsets import Condition, score_matrix

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
scores = arrays.arrays(
    np.float64, st.tuples(st.integers(2, 6), st.integers(1, 6)), elements=st.integers(0, 20).map(lambda n: n / 20)
)


def test_the_rules_by_hand() -> None:
    """Means .70 and .69, deviations .1414 and .0141: with z = 1 the steadier prompt wins."""
    values = np.array([[0.8, 0.70], [0.6, 0.68]])
    assert by_mean(values).winners == (0,)
    choice = by_lcb(values, z=1.0)
    assert choice.winners == (1,)
    assert choice.values.tolist() == pytest.approx([0.7 - 0.1, 0.69 - 0.01])
    assert by_lcb(values, z=0.0).winners == (0,)


def test_all_tied_winners_are_returned() -> None:
    # .3 + .3 + .6 and .6 + .3 + .3 differ in the last bit when summed in order.
    assert by_mean([[0.3, 0.6, 0.1], [0.3, 0.3, 0.1], [0.6, 0.3, 0.1]]).winners == (0, 1)
    assert by_mean([[0.5, 0.5]]).winners == (0, 1)
    assert by_lcb([[0.5, 0.5], [0.5, 0.5]], z=2.0).winners == (0, 1)


@settings(deadline=None, max_examples=40)
@given(scores, st.data())
def test_permuting_prompts_permutes_the_winners(values: Matrix, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(values.shape[1])))
    for rule in (by_mean, by_lcb):
        assert {order[i] for i in rule(values[:, order]).winners} == set(rule(values).winners)


@settings(deadline=None, max_examples=40)
@given(scores)
def test_a_duplicate_of_a_winner_wins_too(values: Matrix) -> None:
    for rule in (by_mean, by_lcb):
        first = rule(values).winners[0]
        doubled = np.column_stack([values, values[:, first]])
        assert {first, values.shape[1]} <= set(rule(doubled).winners)


def test_missing_scores() -> None:
    values = np.array([[np.nan, 0.9, 0.5], [np.nan, np.nan, 0.7]])
    assert by_mean(values).winners == (1,)
    assert by_lcb(values).winners == (2,)
    assert by_mean(np.full((2, 2), np.nan)).winners == ()


CONDITIONS = [Condition(seed, k) for k in (5, 10) for seed in (0, 1)]


def test_leaving_a_seed_out_takes_all_its_conditions() -> None:
    """Seed 0 favours prompt 0 at both k, seed 1 prompt 1: chosen on the one, each fails on the other."""
    values = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.0, 0.6]])
    result = leave_one_out(values, CONDITIONS, holdout="seed")
    # Held out seed 0: prompt 1 is chosen and scores (.1 + .3)/2; seed 1: prompt 0, (.2 + 0)/2.
    assert result.mean.mean == pytest.approx((0.2 + 0.1) / 2)
    assert result.mean.std == pytest.approx(np.std([0.2, 0.1], ddof=1))
    assert (result.mean.parts, result.mean.tied) == (2, 0)
    by_condition = leave_one_out(values, CONDITIONS, holdout="condition")
    assert by_condition.mean.parts == 4
    # Held out row 0: means .3 and .5667, prompt 1, .1. Row 1: .5333, .3333: .2. Row 2: .3667, .5: .3. Row 3: .6, .4: 0.
    assert by_condition.mean.mean == pytest.approx((0.1 + 0.2 + 0.3 + 0.0) / 4)


def test_tied_choices_are_averaged_and_counted() -> None:
    values = np.array([[0.5, 0.5], [0.8, 0.2], [0.5, 0.5]])
    result = leave_one_out(values, [Condition(seed, 5) for seed in range(3)])
    # Without seed 1 both are tied; on it they score .8 and .2.
    assert result.mean.tied == 1
    assert result.mean.mean == pytest.approx((0.5 + 0.5 + 0.5) / 3)


def test_too_few_conditions() -> None:
    alone = leave_one_out([[0.5, 0.4]], [Condition(0, 5)])
    assert (alone.mean.mean, alone.mean.std, alone.mean.parts, alone.lcb) == (None, None, 0, None)
    two = leave_one_out([[0.5, 0.4], [0.3, 0.6]], [Condition(0, 5), Condition(1, 5)])
    assert two.mean.mean == pytest.approx((0.4 + 0.3) / 2)
    assert two.lcb is None
    with pytest.raises(ValueError, match="at least two"):
        by_lcb([[0.5]])


@settings(deadline=None, max_examples=40)
@given(scores)
def test_a_prompt_that_always_leads_is_chosen_and_scores_its_own(values: Matrix) -> None:
    ahead = np.column_stack([values, np.full(len(values), 2.0)])
    result = leave_one_out(ahead, [Condition(seed, 5) for seed in range(len(values))])
    assert (result.mean.mean, result.mean.parts, result.mean.tied) == (2.0, len(values), 0)


def test_impossible_input_is_refused() -> None:
    for z in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="z must"):
            by_lcb([[0.5], [0.5]], z)
    with pytest.raises(ValueError, match="rows of scores"):
        leave_one_out([[0.5]], CONDITIONS)
    with pytest.raises(ValueError, match="holdout"):
        leave_one_out([[0.5]] * 4, CONDITIONS, holdout="item")  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        by_mean(np.empty((0, 2)))


def test_borda_by_hand() -> None:
    """Ranks 1 3 2, 1 2.5 2.5, 3 1 2: sums 5, 6.5, 6.5; points are the share of the two others that are behind."""
    values = np.array([[0.9, 0.1, 0.5], [0.9, 0.5, 0.5], [0.0, 0.9, 0.5]])
    choice = by_borda(values)
    assert choice.winners == (0,)
    assert choice.values.tolist() == pytest.approx([(3 - r / 3) / 2 for r in (5, 6.5, 6.5)])
    # The mean is swayed by how far prompts are apart, Borda is not.
    assert by_mean([[1.0, 0.0], [0.4, 0.5], [0.4, 0.5]]).winners == (0,)
    assert by_borda([[1.0, 0.0], [0.4, 0.5], [0.4, 0.5]]).winners == (1,)


def test_borda_with_missing_scores() -> None:
    choice = by_borda([[np.nan, 0.9, 0.5], [np.nan, np.nan, 0.7]])
    assert np.array_equal(choice.values, [np.nan, 1.0, 0.25], equal_nan=True)
    assert by_borda([[0.5], [0.7]]).winners == (0,)


@given(arrays.arrays(np.float64, st.tuples(st.integers(1, 9), st.integers(1, 6)), elements=st.sampled_from([0.0, 1.0])))
def test_borda_over_right_and_wrong_items_is_the_mean_rule(outcomes: Matrix) -> None:
    by_rank, by_score = by_borda(outcomes), by_mean(outcomes)
    assert by_rank.winners == by_score.winners
    m = outcomes.shape[1]
    if m > 1:
        # Right and wrong are M/2 ranks apart on every item, so points are m/(2(m-1)) times the mean, and a constant.
        difference = by_rank.values - m / (2 * (m - 1)) * by_score.values
        assert difference == pytest.approx(difference[0])


@settings(deadline=None, max_examples=40)
@given(scores, st.data())
def test_permuting_prompts_permutes_the_winners_of_every_rule(values: Matrix, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(values.shape[1])))
    lengths = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(order), max_size=len(order))))

    def shortest(part: Matrix, sizes: Matrix) -> tuple[int, ...]:
        return by_length(part, sizes, lambda rows: by_mean(rows).winners).winners

    assert {order[i] for i in by_borda(values[:, order]).winners} == set(by_borda(values).winners)
    assert {order[i] for i in shortest(values[:, order], lengths[order])} == set(shortest(values, lengths))


@settings(deadline=None, max_examples=100)
@given(scores, st.floats(0.0, 20.0))
def test_a_prompt_that_always_fails_changes_no_winner(values: Matrix, z: float) -> None:
    values[0, 0] += 0.05  # where all prompts always fail, a further one ties
    failing = np.column_stack([values, np.zeros(len(values))])
    for rule in (by_mean, lambda rows: by_lcb(rows, z)):
        assert rule(failing).winners == rule(values).winners
    # By Borda it takes half a rank from who fails beside it.
    values = values + 0.05
    assert by_borda(np.column_stack([values, np.zeros(len(values))])).winners == by_borda(values).winners


def test_where_no_bound_is_above_0_the_mean_decides() -> None:
    """One success under four conditions: mean .25 and standard error .25, so the bound is 0 at z = 1."""
    values = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    for z in (0.99, 1.0, 2.0):
        assert by_lcb(values, z).winners == (0,)
    assert by_lcb(values, 0.5).values.tolist() == pytest.approx([0.125, 0.0])
    assert by_lcb(values, 2.0).values.tolist() == [0.25, 0.0]
    # Scores below 0 have another worst, so bounds below 0 still say something.
    assert by_lcb(values - 1.0, 2.0).winners == (1,)
    # One bound above 0 is enough for all of them to count: .3 - 2 (.2), against .5 - 2 (.3) and .2.
    assert by_lcb([[0.1, 0.2, 0.2], [0.5, 0.8, 0.2]], 2.0).winners == (2,)


@settings(deadline=None, max_examples=40)
@given(scores)
def test_repeating_every_row_changes_no_mean(values: Matrix) -> None:
    doubled = np.repeat(values, 2, axis=0)
    assert by_mean(doubled).values == pytest.approx(by_mean(values).values, abs=1e-12)
    assert by_mean(doubled).winners == by_mean(values).winners
    assert by_borda(doubled).winners == by_borda(values).winners


def test_shortest_of_the_best_set() -> None:
    values = np.array([[0.5, 0.6, 0.1, 0.6]] * 2)
    choice = by_length(values, [20, 30, 1, 20], best_set={0, 1, 3})
    assert choice.winners == (0, 3)
    assert np.array_equal(choice.values, [-20.0, -30.0, np.nan, -20.0], equal_nan=True)
    assert by_length(values, [20, 30, 1, 40], best_set=lambda rows: by_mean(rows).winners).winners == (1,)
    assert by_length(values, [20, 30, 1, 40], best_set=()).winners == ()
    for lengths in ([1, 2, 3], [1, 2, 3, -1], [1, 2, 3, np.nan]):
        with pytest.raises(ValueError, match="length"):
            by_length(values, lengths, best_set={0})
    for best in ({4}, {-1}):
        with pytest.raises(ValueError, match="do not exist"):
            by_length(values, [1, 2, 3, 4], best_set=best)


@settings(deadline=None, max_examples=40)
@given(scores)
def test_lcb_agrees_with_the_mean_up_to_its_turn_and_not_behind_it(values: Matrix) -> None:
    turn = lcb_turn(values)
    leaders = set(by_mean(values).winners)
    if turn is None:
        for z in (0.5, 3.0, 50.0):
            assert leaders & set(by_lcb(values, z).winners)
        return
    assert set(turn.winners) <= set(by_lcb(values, turn.z).winners)
    assert set(by_lcb(values, turn.z * 0.999).winners) <= leaders
    behind = set(by_lcb(values, turn.z + 1e-6).winners)
    if np.array_equal(by_lcb(values, turn.z + 1e-6).values, by_mean(values).values):
        return  # the turn is so near to where no bound is above 0 that the mean decides again
    assert behind == set(turn.winners) or turn.z > 100
    if turn.z > 0.0:
        assert not behind & leaders


def test_the_turn_by_hand() -> None:
    """Means .70 and .69, standard errors .1 and .01: level at z = .01/.09."""
    turn = lcb_turn([[0.8, 0.70], [0.6, 0.68]])
    assert turn is not None
    assert (turn.z, turn.winners) == (pytest.approx(0.01 / 0.09), (1,))
    assert lcb_turn([[0.8, 0.5], [0.8, 0.4]]) is None
    tied = lcb_turn([[0.5, 0.4], [0.5, 0.6]])
    assert tied is not None and (tied.z, tied.winners) == (0.0, (0,))


@given(st.integers(2, 400), st.floats(0.0, 3.0), st.data())
def test_over_right_and_wrong_items_lcb_grows_with_the_mean(n: int, z: float, data: st.DataObject) -> None:
    """Except for means so low that 4 p(1-p)(n-1) < z^2 (1-2p)^2."""
    right = sorted(data.draw(st.lists(st.integers(0, n), min_size=2, max_size=5, unique=True)))
    p = np.array(right) / n
    low = 4 * p * (1 - p) * (n - 1) < z * z * (1 - 2 * p) ** 2
    outcomes = (np.arange(n)[:, None] < np.array(right)).astype(float)
    values, bounds = by_lcb(outcomes, z).values, p - z * np.sqrt(p * (1 - p) / (n - 1))
    assert values == pytest.approx(bounds if bounds.max() > 1e-12 else p, abs=1e-12)
    above = ~low & (p > 0.0)
    assert (np.diff(values[above]) > 0.0).all()
    if above[-1]:
        assert by_lcb(outcomes, z).winners[-1] == len(p) - 1


def test_over_conditions_lcb_differs_from_the_mean_by_noise_only() -> None:
    """All prompts equally good at heart: sigma says nothing, yet LCB at z = 1 disagrees with the mean in some draws.

    Chosen either way, a prompt is worth the same on new items.
    """
    generator = np.random.default_rng(5)
    disagreed, worth = 0, []
    skill = np.array([0.5, 0.5, 0.5, 0.5, 0.45, 0.45])
    for _ in range(100):
        outcomes = (generator.random((150, 6)) < skill).astype(float)
        means = score_matrix(outcomes, [Condition(seed, 50) for seed in range(5)]).means
        mean, lcb = by_mean(means).winners, by_lcb(means, 1.0).winners
        disagreed += mean != lcb
        worth.append(skill[list(lcb)].mean() - skill[list(mean)].mean())
    assert 10 <= disagreed <= 60
    assert abs(np.mean(worth)) < 0.005


def test_the_paper_rules_on_held_out_seeds_disagree_little(shared_data: Path) -> None:
    """Published labels of 16 prompts, 5 seeds x 3 sizes, drawn 40 times: LCB is worth what the mean is, within .002."""
    with (shared_data / "ranking/oirl_gsm8k/gsm8k_test_correct.csv").open(newline="") as file:
        outcomes = np.array([[float(cell) for cell in row[1:]] for row in list(csv.reader(file))[1:]])
    true, gains, disagreed = outcomes.mean(axis=0), [], 0
    for first in range(0, 200, 5):
        conditions = [Condition(seed, k) for k in (50, 100, 200) for seed in range(first, first + 5)]
        means = score_matrix(outcomes, conditions).means
        mean, lcb = by_mean(means).winners, by_lcb(means, 1.0).winners
        disagreed += mean != lcb
        gains.append(true[list(lcb)].mean() - true[list(mean)].mean())
    assert disagreed > 5
    assert abs(np.mean(gains)) < 0.002
