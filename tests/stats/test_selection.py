"""Mean and LCB rules, and leaving one part out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stats.selection import by_lcb, by_mean, leave_one_out
from stats.subsets import Condition

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


@given(scores, st.data())
def test_permuting_prompts_permutes_the_winners(values: Matrix, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(values.shape[1])))
    for rule in (by_mean, by_lcb):
        assert {order[i] for i in rule(values[:, order]).winners} == set(rule(values).winners)


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
