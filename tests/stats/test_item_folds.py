"""Choosing on some items and scoring the choice on others."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stats.best_set import best_set
from stats.item_folds import fold_of_items, item_disjoint, on_conditions, worth
from stats.selection import Choice, by_borda, by_lcb, by_length, by_mean, leave_out
from stats.subsets import Condition, score_matrix

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
outcomes_of_some = arrays.arrays(
    np.float64, st.tuples(st.integers(4, 25), st.integers(1, 5)), elements=st.sampled_from([0.0, 1.0])
)


@settings(deadline=None, max_examples=50)
@given(st.integers(2, 60), st.integers(2, 10), st.integers(0, 5))
def test_folds_are_even_and_the_same_every_time(n_items: int, folds: int, seed: int) -> None:
    folds = min(folds, n_items)
    fold_of = fold_of_items(n_items, folds, seed)
    sizes = np.bincount(fold_of, minlength=folds)
    assert len(fold_of) == n_items and sizes.max() - sizes.min() <= 1
    assert np.array_equal(fold_of, fold_of_items(n_items, folds, seed))


def test_folds_of_a_seed_never_change() -> None:
    """Fixed for good: a figure of last year can be computed again."""
    assert fold_of_items(12, 4, seed=7).tolist() == [2, 3, 3, 1, 3, 2, 0, 1, 0, 1, 0, 2]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=40), st.integers(2, 4), st.integers(0, 3))
def test_a_group_is_never_divided(groups: list[str], folds: int, seed: int) -> None:
    sizes = Counter(groups)
    if len(sizes) < folds:
        with pytest.raises(ValueError, match="groups of items"):
            fold_of_items(len(groups), folds, seed, groups)
        return
    fold_of = fold_of_items(len(groups), folds, seed, groups)
    assert all(
        len({int(fold) for fold, group in zip(fold_of, groups, strict=True) if group == one}) == 1 for one in sizes
    )
    held = np.bincount(fold_of, minlength=folds)
    # The largest are placed first, each into the emptiest fold: no two folds differ by more than the largest group.
    assert held.min() > 0 and held.max() - held.min() <= max(sizes.values())


@settings(deadline=None, max_examples=30)
@given(outcomes_of_some, st.integers(2, 4), st.integers(1, 3), st.integers(0, 3))
def test_the_definition_fold_by_fold(outcomes: Matrix, folds: int, repeats: int, seed: int) -> None:
    found = item_disjoint(outcomes, by_mean, folds, repeats, seed)
    scores, chosen = np.zeros(len(outcomes)), np.zeros(outcomes.shape[1])
    for repeat in range(repeats):
        fold_of = fold_of_items(len(outcomes), folds, seed + repeat)
        for fold in range(folds):
            means = outcomes[fold_of != fold].mean(axis=0)
            best = np.flatnonzero(means >= means.max() - 1e-12)
            chosen[best] += 1 / len(best)
            for item in np.flatnonzero(fold_of == fold):
                scores[item] += outcomes[item, best].mean() / repeats
    assert found.mean == pytest.approx(scores.mean())
    assert found.standard_error == pytest.approx(scores.std(ddof=1) / np.sqrt(len(scores)))
    assert found.chosen == pytest.approx(chosen / (folds * repeats))
    assert (found.folds, found.items) == (folds * repeats, len(outcomes))
    assert found.in_sample == pytest.approx(outcomes.mean(axis=0).max())
    assert found.optimism == pytest.approx(outcomes.mean(axis=0).max() - scores.mean())


def test_the_rule_never_sees_what_it_is_scored_on() -> None:
    outcomes = np.arange(40.0).reshape(20, 2)
    seen: list[set[float]] = []

    def rule(part: Matrix) -> Choice:
        seen.append(set(part[:, 0].tolist()))
        return by_mean(part)

    item_disjoint(outcomes, rule, folds=4, seed=2, groups=[item // 2 for item in range(20)])
    fold_of = fold_of_items(20, 4, 2, [item // 2 for item in range(20)])
    for fold in range(4):
        assert seen[fold] == set(outcomes[fold_of != fold, 0].tolist())


@settings(deadline=None, max_examples=20)
@given(outcomes_of_some, st.data())
def test_permuting_prompts_and_a_failing_prompt_change_nothing(outcomes: Matrix, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(outcomes.shape[1])))
    for rule in (by_mean, by_borda):
        one, other = item_disjoint(outcomes, rule, 2), item_disjoint(outcomes[:, order], rule, 2)
        assert one.mean == pytest.approx(other.mean)
        assert one.chosen[order] == pytest.approx(other.chosen)
    ahead = np.vstack([outcomes, np.ones((len(outcomes) + 1, outcomes.shape[1]))])  # nobody always fails but the last
    failing = np.column_stack([ahead, np.zeros(len(ahead))])
    one, other = item_disjoint(ahead, by_mean, 2), item_disjoint(failing, by_mean, 2)
    assert (one.mean, one.in_sample) == (pytest.approx(other.mean), pytest.approx(other.in_sample))
    assert other.chosen[-1] == 0.0


def test_repeated_items_belong_into_one_group() -> None:
    """Duplicates of an item, kept together, change neither mean nor error; kept apart, the error is too small."""
    outcomes = (np.random.default_rng(1).random((60, 1)) < 0.4).astype(float)
    doubled = np.repeat(outcomes, 2, axis=0)
    groups = [item // 2 for item in range(120)]
    once, kept = item_disjoint(outcomes, by_mean, 5), item_disjoint(doubled, by_mean, 5, groups=groups)
    assert (kept.mean, kept.standard_error) == (pytest.approx(once.mean), pytest.approx(once.standard_error))
    apart = item_disjoint(doubled, by_mean, 5)
    assert apart.standard_error == pytest.approx(once.standard_error / np.sqrt(2), rel=0.01)


def test_missing_outcomes() -> None:
    nan = np.nan
    outcomes = np.array([[1.0, nan], [1.0, 0.0], [nan, 0.0], [1.0, 0.0]] * 5)
    found = item_disjoint(outcomes, by_mean, folds=5)
    assert (found.mean, found.items) == (1.0, 15)
    empty = item_disjoint(np.full((4, 2), nan), by_mean, folds=2)
    assert (empty.mean, empty.standard_error, empty.in_sample, empty.optimism, empty.items) == (
        None,
        None,
        None,
        None,
        0,
    )


def test_rules_on_conditions() -> None:
    generator = np.random.default_rng(8)
    outcomes = (generator.random((40, 3)) < [0.5, 0.6, 0.4]).astype(float)
    conditions = [Condition(seed, k) for k in (10, 30, 50) for seed in range(4)]
    possible = [condition for condition in conditions if condition.k <= 36]
    rule = on_conditions(by_lcb, conditions)
    assert rule(outcomes[:36]).winners == by_lcb(score_matrix(outcomes[:36], possible).means).winners
    with pytest.raises(ValueError, match="no subset size fits"):
        rule(outcomes[:5])
    fitting = [condition for condition in conditions if condition.k <= 40]
    found = worth(outcomes, fitting, {"mean": by_mean, "lcb": by_lcb}, folds=4)
    scores = score_matrix(outcomes, fitting).means
    assert list(found) == ["mean", "lcb"]
    assert found["lcb"].choice.winners == by_lcb(scores).winners
    assert found["lcb"].other_seeds == leave_out(scores, fitting, by_lcb)
    assert found["mean"].new_items.mean == item_disjoint(outcomes, on_conditions(by_mean, fitting), 4).mean


def load(path: Path) -> Matrix:
    with path.open(newline="") as file:
        return np.array([[float(cell) for cell in row[1:]] for row in list(csv.reader(file))[1:]])


def excess(population: Matrix, n_items: int, datasets: int) -> tuple[Matrix, Matrix]:
    """[2] means and standard errors, in points, of how much LOSO and item folds exceed a choice's worth on new items.

    A dataset is ``n_items`` items drawn with replacement from a real matrix, so that a prompt's worth on new items is
    known: its mean there. What all prompts gain or lose by an easier or harder dataset is subtracted, as its mean is 0.
    """
    generator, true = np.random.default_rng(6), population.mean(axis=0)
    conditions = [Condition(seed, k) for k in (50, 100, 200) for seed in range(1, 6)]
    rows = []
    for at in range(datasets):
        dataset = population[generator.integers(0, len(population), n_items)]
        luck = dataset.mean() - true.mean()
        scores = score_matrix(dataset, conditions).means
        own = true[list(by_mean(scores).winners)].mean()
        loso = leave_out(scores, conditions, by_mean).mean
        folds = item_disjoint(dataset, by_mean, seed=at)
        on_all = true[list(by_mean(dataset).winners)].mean()
        assert loso is not None and folds.mean is not None
        rows.append((loso - own - luck, folds.mean - on_all - luck))
    table = 100 * np.array(rows)
    return table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(datasets)


@pytest.mark.slow
def test_leaving_seeds_out_is_optimistic_for_new_items_and_item_folds_are_not(shared_data: Path) -> None:
    """16 close prompts on GSM8K, 300 items: LOSO says 2.3 points too much, item folds are right within the noise.

    Measured so (each figure +- .15): LOSO 3.2, 2.3, 1.5 and .7 points too high at 200, 300, 500 and 1,000 items; the
    design's 2 to 3 points belong to some 250 to 400 items. Holding out conditions instead of seeds is worse. Where one
    method leads clearly (4 methods on GSM8K) there is nothing to be optimistic about.
    """
    population = load(shared_data / "ranking/oirl_gsm8k/gsm8k_test_correct.csv")
    (loso, folds), errors = excess(population, 300, 300)
    assert 2.0 < loso < 3.0 and errors[0] < 0.2
    assert abs(folds) < 3 * errors[1] < 0.7
    clear = load(shared_data / "ranking/openai_gsm8k/gsm8k_correct.csv")
    (loso, folds), errors = excess(clear, 300, 100)
    assert abs(loso) < 3 * errors[0] < 1.0 and abs(folds) < 3 * errors[1] < 1.0


@pytest.mark.slow
def test_what_folds_lose_by_choosing_on_fewer_items_is_a_tenth_of_a_point(shared_data: Path) -> None:
    """The only bias of item-disjoint folds: choosing on nine tenths of the items. The design allows .13 *points*.

    Worked out without scoring noise: the worth of the choice on n and on 9n/10 items, each worth known exactly. First
    with items drawn with replacement (-.02 to -.04 points), then by halving the matrix, the choice scored on the other
    half (+.04): this half leans against what the first favours, the more, the larger the first.
    """
    for name in ("oirl_gsm8k/gsm8k_test_correct.csv", "openai_gsm8k/gsm8k_correct.csv"):
        population = load(shared_data / "ranking" / name)
        generator, n_all = np.random.default_rng(0), len(population)
        for n_items in (200, 500):
            by_size = []
            for size in (n_items * 9 // 10, n_items):
                totals = generator.multinomial(size, np.full(n_all, 1 / n_all), size=3000) @ population
                by_size.append(worth_of_best(totals, population.mean(axis=0)))
            assert abs(by_size[0] - by_size[1]) < 0.0013, (name, n_items)
        halves = []
        for size in (n_all // 2 * 9 // 10, n_all // 2):
            drawn = np.zeros((2000, n_all))
            np.put_along_axis(
                drawn, np.argpartition(generator.random(drawn.shape), size, axis=1)[:, :size], 1.0, axis=1
            )
            totals = drawn @ population
            halves.append(worth_of_best(totals, (population.sum(axis=0) - totals) / (n_all - size)))
        assert abs(halves[0] - halves[1]) < 0.0013, name


def worth_of_best(totals: Matrix, worth: Matrix) -> float:
    best = (totals == totals.max(axis=1, keepdims=True)).astype(float)
    return float((best * worth).sum(axis=1) @ (1.0 / best.sum(axis=1)) / len(totals))


def test_shortest_prompt_of_the_best_set_under_item_folds() -> None:
    """The set is worked out anew on the items that a choice may be made on; of two equal prompts the short one is taken."""
    generator = np.random.default_rng(4)
    outcomes = (generator.random((120, 3)) < [0.7, 0.7, 0.2]).astype(float)

    def shortest(part: Matrix) -> Choice:
        return by_length(part, [90, 40, 10], best_set=lambda rows: best_set(rows, draws=200).members)

    found = item_disjoint(outcomes, shortest, folds=4)
    assert found.chosen.tolist() == [0.0, 1.0, 0.0]
    assert found.mean == pytest.approx(outcomes[:, 1].mean())


def test_impossible_input_is_refused() -> None:
    for folds in (1, 6, 2.5):
        with pytest.raises(ValueError, match="5 items cannot be divided"):
            fold_of_items(5, folds)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="groups for"):
        fold_of_items(5, 2, groups=["a"])
    with pytest.raises(ValueError, match="at least once"):
        item_disjoint(np.ones((4, 2)), by_mean, folds=2, repeats=0)
    with pytest.raises(ValueError, match="items x prompts"):
        item_disjoint(np.ones(4), by_mean)


def test_groups_may_be_an_array() -> None:
    outcomes = np.random.default_rng(0).integers(0, 2, size=(40, 3))
    groups = np.arange(40) // 2
    as_array, as_list = (item_disjoint(outcomes, by_mean, groups=names) for names in (groups, groups.tolist()))
    assert (as_array.mean, as_array.standard_error) == (as_list.mean, as_list.standard_error)
