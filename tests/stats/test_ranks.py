"""Fair ranks and top sets."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from stats.ranks import fair_ranks, ranked_pairs, tied_on_top, tied_pairs, top_set

few_scores = st.lists(st.integers(0, 4), min_size=1, max_size=7)
some_missing = st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=1, max_size=7)


def as_array(values: list[int | None] | list[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


@settings(deadline=None, max_examples=50)
@given(few_scores)
def test_ranks_are_the_average_ranks_of_scipy(scores: list[int]) -> None:
    assert fair_ranks(scores).tolist() == rankdata(-np.array(scores), method="average").tolist()


@settings(deadline=None, max_examples=50)
@given(some_missing)
def test_missing_scores_change_no_other_rank(scores: list[int | None]) -> None:
    values = as_array(scores)
    known = ~np.isnan(values)
    ranks = fair_ranks(values)
    assert np.isnan(ranks[~known]).all()
    if known.any():
        assert ranks[known].tolist() == rankdata(-values[known]).tolist()


@settings(deadline=None, max_examples=50)
@given(some_missing)
def test_permuting_prompts_permutes_ranks_and_weights(scores: list[int | None]) -> None:
    values = as_array(scores)
    order = np.random.default_rng(len(scores)).permutation(len(values))
    assert np.array_equal(fair_ranks(values)[order], fair_ranks(values[order]), equal_nan=True)
    one, other = top_set(fair_ranks(values), 1), top_set(fair_ranks(values[order]), 1)
    assert np.array_equal(one[order], other, equal_nan=True)


def test_rows_are_ranked_each_on_its_own() -> None:
    scores = np.array([[[3.0, 1.0, 2.0], [1.0, 1.0, 0.0]]])
    assert fair_ranks(scores).tolist() == [[[1.0, 3.0, 2.0], [1.5, 1.5, 3.0]]]


@settings(deadline=None, max_examples=50)
@given(few_scores.flatmap(lambda s: st.tuples(st.just(s), st.integers(1, len(s)))))
def test_top_weights_are_the_chances_of_a_fair_lot(case: tuple[list[int], int]) -> None:
    scores, m = case
    if len(scores) > 5:
        scores = scores[:5]
        m = min(m, 5)
    # Every order of the prompts, each stable-sorted by score: a fair lot among the tied.
    chosen = np.zeros(len(scores))
    orders = list(permutations(range(len(scores))))
    for order in orders:
        for prompt in sorted(order, key=lambda i: -scores[i])[:m]:
            chosen[prompt] += 1
    assert top_set(fair_ranks(scores), m) == pytest.approx(chosen / len(orders))


def test_shared_top_and_its_size() -> None:
    ranks = fair_ranks([[2.0, 2.0, 2.0, 1.0], [3.0, 1.0, 1.0, 1.0], [np.nan] * 4])
    assert top_set(ranks, 1)[:2].tolist() == [[1 / 3, 1 / 3, 1 / 3, 0.0], [1.0, 0.0, 0.0, 0.0]]
    assert np.isnan(top_set(ranks, 1)[2]).all()
    assert tied_on_top(ranks).tolist() == [3, 1, 0]
    assert tied_pairs(ranks).tolist() == [3, 3, 0]
    assert ranked_pairs(ranks).tolist() == [6, 6, 0]


def test_a_row_with_fewer_ranked_prompts_than_places_has_no_top_set() -> None:
    ranks = fair_ranks([[1.0, np.nan, np.nan], [1.0, 2.0, np.nan]])
    weights = top_set(ranks, 2)
    assert np.isnan(weights[0]).all()
    assert weights[1].tolist() == [1.0, 1.0, 0.0]


@settings(deadline=None, max_examples=50)
@given(some_missing)
def test_tied_pairs_are_counted_as_by_hand(scores: list[int | None]) -> None:
    known = [score for score in scores if score is not None]
    by_hand = sum(a == b for i, a in enumerate(known) for b in known[i + 1 :])
    assert int(tied_pairs(as_array(scores))) == by_hand
    assert int(ranked_pairs(as_array(scores))) == len(known) * (len(known) - 1) // 2


def test_one_prompt() -> None:
    assert fair_ranks([[4.0], [5.0]]).tolist() == [[1.0], [1.0]]
    assert top_set(fair_ranks([4.0]), 1).tolist() == [1.0]
    assert int(tied_pairs([4.0])) == 0


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError):
        fair_ranks([np.inf, 1.0])
    with pytest.raises(ValueError):
        fair_ranks([])
    for m in (0, 3):
        with pytest.raises(ValueError, match="top set"):
            top_set([1.0, 2.0], m)
