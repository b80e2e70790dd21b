"""The best set: exact where that can be worked out, its properties, and how often it holds the true best."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats as scipy_stats

from stats.best_set import best_set

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
Generator = Callable[[np.random.Generator], Matrix]
matrices = arrays.arrays(
    np.float64, st.tuples(st.integers(1, 30), st.integers(1, 5)), elements=st.sampled_from([0.0, 0.5, 1.0])
)


def by_enumeration(outcomes: Matrix, own: int) -> float:
    """The p-value of one prompt in plain loops over all flips of all items."""
    differences = outcomes - outcomes[:, [own]]
    errors = np.sqrt((differences**2).sum(axis=0))
    kept = errors > 0
    if not kept.any():
        return 1.0
    observed = (differences.sum(axis=0)[kept] / errors[kept]).max()
    flips = np.array(list(product((1, -1), repeat=len(outcomes))))
    largest = ((flips @ differences)[:, kept] / errors[kept]).max(axis=1)
    return float((largest >= observed - 1e-9).mean())


def test_tied_leaders_are_inside_at_the_lowest_confidence_too() -> None:
    """Neither is ahead: p is 1/2 and more, but random flips may give a little less."""
    generator = np.random.default_rng(0)
    for seed in range(20):
        column = generator.integers(0, 101, 60)
        outcomes = np.column_stack([column, generator.permutation(column)])
        assert best_set(outcomes, 0.5, draws=199, seed=seed).members == (0, 1)


@settings(deadline=None, max_examples=50)
@given(
    arrays.arrays(
        np.float64, st.tuples(st.integers(1, 9), st.integers(1, 4)), elements=st.sampled_from([0.0, 0.5, 1.0])
    )
)
def test_with_few_items_it_is_exact(outcomes: Matrix) -> None:
    found = best_set(outcomes)
    expected = [by_enumeration(outcomes, own) for own in range(outcomes.shape[1])]
    assert found.p_values == pytest.approx(expected, abs=1e-12)
    assert found.members == tuple(i for i, p in enumerate(expected) if p > 0.05 + 1e-9)


@settings(deadline=None, max_examples=50)
@given(
    arrays.arrays(
        np.float64, st.tuples(st.integers(5, 9), st.integers(2, 4)), elements=st.sampled_from([0.0, 0.5, 1.0])
    )
)
def test_intervals_by_hand(outcomes: Matrix) -> None:
    """Hsu's: up to min over l of D_il + d_i s_il, down from min over the set of D_il - d_l s_il, with 0 always inside."""
    found, (n, n_prompts) = best_set(outcomes, 0.8), outcomes.shape
    flips = np.array(list(product((1, -1), repeat=n)))
    errors, largest = np.zeros((n_prompts, n_prompts)), np.full((n_prompts, len(flips)), -np.inf)
    for i, other in product(range(n_prompts), repeat=2):
        difference = outcomes[:, other] - outcomes[:, i]
        errors[i, other] = math.sqrt(float((difference**2).sum()))
        if difference.any():
            largest[i] = np.maximum(largest[i], flips @ difference / errors[i, other])
    # Without the data's own flip, which comes first, the critical value is the (share of all flips)-th largest.
    differing = int((outcomes != outcomes[:, :1]).any(axis=1).sum())
    rank = math.floor(0.2 * 2**differing + 1e-9)
    for i in range(n_prompts):
        ups, downs = [], [0.0]
        for other in range(n_prompts):
            if other == i:
                continue
            ahead = float((outcomes[:, i] - outcomes[:, other]).sum())
            margins = []
            for control in (i, other):
                margin = 0.0
                if errors[i, other] > 0.0:
                    # Each flip of the differing items stands for as many of all.
                    drawn = np.sort(largest[control])[:: 2 ** (n - differing)]
                    without = list(drawn)
                    without.remove(min(without, key=lambda value: abs(value - largest[control][0])))
                    margin = without[-rank] * errors[i, other] if rank else math.inf
                margins.append(margin)
            ups.append(ahead + margins[0])
            if other in found.members:
                downs.append(ahead - margins[1])
        assert found.high[i] * n == pytest.approx(max(min(ups), 0.0), abs=1e-9)
        assert found.low[i] * n == pytest.approx(min(downs), abs=1e-9)


def test_two_prompts_are_one_sided_mcnemar() -> None:
    """Ahead on 14, behind on 4 items of 60: P(Bin(18, 1/2) >= 14) = .0154 for the one behind."""
    outcomes = np.array([[1, 0]] * 14 + [[0, 1]] * 4 + [[1, 1]] * 42)
    found = best_set(outcomes)
    one_sided = scipy_stats.binomtest(14, 18, alternative="greater").pvalue
    assert found.p_values[1] == pytest.approx(one_sided, abs=0.005)
    assert found.members == (0,)
    assert best_set(outcomes, confidence=0.99).members == (0, 1)


@settings(deadline=None, max_examples=40)
@given(matrices, st.data())
def test_permuting_prompts_permutes_the_set(outcomes: Matrix, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(outcomes.shape[1])))
    one, other = best_set(outcomes, draws=199), best_set(outcomes[:, order], draws=199)
    assert {order[i] for i in other.members} == set(one.members)
    assert other.p_values.tolist() == one.p_values[order].tolist()
    assert other.low == pytest.approx(one.low[order], abs=1e-12, nan_ok=True)
    assert other.high == pytest.approx(one.high[order], abs=1e-12, nan_ok=True)


@settings(deadline=None, max_examples=40)
@given(matrices, st.data())
def test_a_copy_of_a_prompt_shares_its_place_and_changes_no_other(outcomes: Matrix, data: st.DataObject) -> None:
    copied = data.draw(st.integers(0, outcomes.shape[1] - 1))
    one, other = best_set(outcomes, draws=199), best_set(np.column_stack([outcomes, outcomes[:, copied]]), draws=199)
    assert other.p_values.tolist() == [*one.p_values.tolist(), float(one.p_values[copied])]


@settings(deadline=None, max_examples=40)
@given(matrices)
def test_the_leader_is_always_inside(outcomes: Matrix) -> None:
    found = best_set(outcomes, draws=199)
    leaders = np.flatnonzero(outcomes.sum(axis=0) == outcomes.sum(axis=0).max())
    assert set(leaders.tolist()) <= set(found.members)


@settings(deadline=None, max_examples=40)
@given(matrices)
def test_what_the_set_says_the_intervals_say(outcomes: Matrix) -> None:
    found = best_set(outcomes, draws=199)
    n_prompts = outcomes.shape[1]
    if n_prompts == 1:
        assert found.members == (0,) and np.isnan(found.low[0]) and np.isnan(found.high[0])
        return
    outside = np.setdiff1d(np.arange(n_prompts), found.members)
    assert (found.high[outside] == 0.0).all() and (found.high >= 0.0).all() and (found.low <= 0.0).all()
    for own in range(n_prompts):
        gap = found.means[own] - np.delete(found.means, own).max()
        assert found.low[own] - 1e-9 <= gap or own not in found.members
        assert gap <= found.high[own] + 1e-9
    if len(found.members) == 1:
        assert found.low[found.members[0]] == 0.0


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(2, 5))
def test_a_prompt_that_always_fails_stays_outside_and_changes_no_leader(seed: int, n_prompts: int) -> None:
    outcomes = (np.random.default_rng(seed).random((60, n_prompts)) < 0.7).astype(float)
    failing = np.column_stack([outcomes, np.zeros(60)])
    one, other = best_set(outcomes), best_set(failing)
    assert n_prompts not in other.members
    assert int(other.means.argmax()) == int(one.means.argmax())
    assert set(one.members) <= set(other.members)


@settings(deadline=None, max_examples=25)
@given(matrices, st.integers(1, 20))
def test_items_on_which_all_agree_change_nothing(outcomes: Matrix, more: int) -> None:
    same = np.ones((more, outcomes.shape[1]))
    assert (
        best_set(np.vstack([same, outcomes]), draws=199).p_values.tolist()
        == best_set(outcomes, draws=199).p_values.tolist()
    )


def test_scale_and_shift_of_outcomes_change_nothing() -> None:
    outcomes = np.random.default_rng(4).random((80, 4)).round(2) + np.array([0.0, 0.02, 0.05, -0.2])
    one, other = best_set(outcomes), best_set(3.7 * outcomes + 11.0)
    assert other.members == one.members
    assert other.p_values == pytest.approx(one.p_values, abs=2e-4)
    assert other.high == pytest.approx(3.7 * one.high, abs=1e-9)


def test_clusters_count_once() -> None:
    """Eight items ahead are enough to tell two prompts apart; two cases of four repeats each are not."""
    outcomes = np.array([[1.0, 0.0]] * 8)
    assert best_set(outcomes).members == (0,)
    assert best_set(outcomes, clusters=[0, 0, 0, 0, 1, 1, 1, 1]).members == (0, 1)
    single = np.random.default_rng(0).random((50, 4)).round(1)
    copied, labels = np.repeat(single, 3, axis=0), np.repeat(np.arange(50), 3)
    assert best_set(copied, clusters=labels).p_values.tolist() == best_set(single).p_values.tolist()


def test_only_complete_items_count() -> None:
    outcomes = np.array([[1.0, 0.0]] * 6 + [[np.nan, 1.0]] * 50)
    found = best_set(outcomes)
    assert (found.members, found.n, found.left_out) == ((0,), 6, 50)
    with pytest.raises(ValueError, match="no item"):
        best_set([[np.nan, 1.0], [1.0, np.nan]])


def test_too_few_items_say_nothing() -> None:
    found = best_set([[1, 0], [1, 0]])
    assert (found.members, found.draws) == ((0, 1), 3)
    assert found.low.tolist() == [-math.inf, -math.inf] and found.high.tolist() == [math.inf, math.inf]
    assert best_set([[1, 1, 1]]).members == (0, 1, 2)


def test_impossible_input_is_refused() -> None:
    for confidence in (0.3, 1.0):
        with pytest.raises(ValueError, match="confidence"):
            best_set([[1, 0]], confidence)
    with pytest.raises(ValueError, match="flip"):
        best_set([[1, 0]], draws=0)
    with pytest.raises(ValueError, match="cluster labels"):
        best_set([[1, 0]], clusters=[1, 2])
    with pytest.raises(ValueError, match="finite"):
        best_set([[1, math.inf]])


def test_ten_of_16_published_prompts_may_be_the_best(shared_data: Path) -> None:
    """Design pages: 10 of 16 stay. The nearest decisions are far from the border: p = .22 inside, .004 outside."""
    with (shared_data / "ranking/oirl_gsm8k/gsm8k_test_correct.csv").open(newline="") as file:
        names, *rows = csv.reader(file)
    found = best_set([[float(cell) for cell in row[1:]] for row in rows])
    inside = [names[1 + i] for i in found.members]
    assert inside == ["nan", "CoT", "APE", "Decomp", "gpt4_0", "gpt4_1", "gpt4_2", "gpt4_5", "gpt4_7", "gpt4_8"]
    assert found.p_values[list(found.members)].min() > 0.15
    assert np.delete(found.p_values, found.members).max() < 0.01


def independent(*accuracy: float, n: int = 100) -> Generator:
    return lambda generator: (generator.random((n, len(accuracy))) < np.array(accuracy)).astype(float)


def alike(*shift: float, n: int = 100) -> Generator:
    """Items differ in difficulty, which prompts share: outcomes of a prompt that is ``shift`` better on a logit scale."""

    def draw(generator: np.random.Generator) -> Matrix:
        difficulty = generator.normal(0.0, 2.0, (n, 1))
        return (generator.random((n, len(shift))) < 1.0 / (1.0 + np.exp(difficulty - np.array(shift)))).astype(float)

    return draw


def graded(*shift: float, n: int = 60) -> Generator:
    """Skewed numbers rather than 0/1."""
    return lambda generator: np.round(generator.gamma(1.0, 1.0, (n, len(shift))) + np.array(shift), 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("generator", "largest"),
    [
        (independent(0.8, 0.5, 0.5, 0.4, 0.3), 1.3),
        (independent(0.70, 0.69, 0.68, 0.66, 0.64), 5.0),
        (alike(0.3, 0.2, 0.1, 0.0, -0.3), 5.0),
        (independent(0.98, 0.97, 0.97, 0.96, 0.95), 5.0),
        (independent(0.03, 0.02, 0.02, 0.01, 0.01), 5.0),
        (graded(0.1, 0.05, 0.0, 0.0, -0.1), 5.0),
    ],
    ids=["well separated", "near ties", "near ties, shared difficulty", "near the ceiling", "near 0", "numbers"],
)
def test_it_holds_the_true_best(generator: Generator, largest: float) -> None:
    """2,000 replicates with the best prompt first."""
    stream = np.random.default_rng(17)
    found = [best_set(generator(stream), draws=999).members for _ in range(2000)]
    assert sum(0 in members for members in found) / 2000 >= 0.95
    assert np.mean([len(members) for members in found]) <= largest


@pytest.mark.slow
@pytest.mark.parametrize(
    "generator",
    [independent(*[0.5] * 6), independent(*[0.95] * 6), alike(*[0.0] * 6), graded(*[0.0] * 6)],
    ids=["even", "near the ceiling", "shared difficulty", "numbers"],
)
def test_the_level_is_used_up_when_all_are_equal(generator: Generator) -> None:
    """The least favourable case: each prompt is a true best one. 95 %, simulation error .005, neither less nor much more."""
    stream = np.random.default_rng(23)
    inside = sum(0 in best_set(generator(stream), draws=999).members for _ in range(2000)) / 2000
    assert 0.94 <= inside <= 0.975


@pytest.mark.slow
def test_all_intervals_hold_the_true_gaps_at_once() -> None:
    accuracy = np.array([0.62, 0.6, 0.55, 0.3])
    gaps = np.array([0.02, -0.02, -0.07, -0.32])
    stream, generator = np.random.default_rng(3), independent(*accuracy)
    found = [best_set(generator(stream), draws=999) for _ in range(1000)]
    assert np.mean([bool((one.low <= gaps).all() and (gaps <= one.high).all()) for one in found]) >= 0.95
    assert np.mean([one.high[0] - one.low[0] for one in found]) < 0.4


@pytest.mark.slow
def test_many_equal_prompts_near_the_ceiling_are_the_known_limit() -> None:
    """Sixteen of accuracy .99, no shared difficulty: who fails least by luck also has the smallest standard error."""
    stream, generator = np.random.default_rng(31), independent(*[0.99] * 16, n=1000)
    inside = sum(0 in best_set(generator(stream), draws=999).members for _ in range(1000)) / 1000
    assert 0.92 <= inside <= 0.955


@pytest.mark.slow
def test_clusters_keep_the_level_that_ignoring_them_loses() -> None:
    """Forty conversations of five turns, in each of which some prompts do better by chance: five equal prompts."""
    stream, labels = np.random.default_rng(5), np.repeat(np.arange(40), 5)
    clustered = ignored = 0
    for _ in range(1000):
        chance = 1.0 / (1.0 + np.exp(-stream.normal(0.0, 1.5, (40, 1, 5))))
        outcomes = (stream.random((40, 5, 5)) < chance).reshape(200, 5).astype(float)
        clustered += 0 in best_set(outcomes, clusters=labels, draws=999).members
        ignored += 0 in best_set(outcomes, draws=999).members
    assert clustered / 1000 >= 0.95 - 2 * 0.007
    assert ignored / 1000 <= 0.9
