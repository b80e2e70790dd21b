"""The modal ranking, and agreement with that of the others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stats.rank_agreement import between
from stats.ranks import fair_ranks
from stats.reference_ranking import against_others, modal_reference

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
scores = arrays.arrays(
    np.float64, st.tuples(st.integers(2, 6), st.integers(1, 5)), elements=st.sampled_from([0.0, 1.0, 2.0, np.nan])
)


def test_the_most_frequent_ranking() -> None:
    reference = modal_reference([[1, 2, 3], [2, 1, 3], [1, 2, 3], [3, 2, 1]])
    assert (reference.ranks.tolist(), reference.kind, reference.frequency) == ([1, 2, 3], "ranking", 2)


def test_where_all_are_unique_each_prompt_goes_by_its_most_frequent_rank() -> None:
    """Prompt 0: 1 twice. Prompt 1: 2 twice. Prompt 2: 3, 3. Prompt 3: 4, 4: no ranking occurs twice, all ranks do."""
    reference = modal_reference([[1, 2, 4, 3], [1, 3, 2, 4], [4, 2, 3, 1], [2, 1, 3, 4]])
    assert reference.kind == "per_prompt"
    assert reference.ranks.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert (reference.frequency, reference.ties) == (1, 0)


def test_rankings_that_lack_the_same_prompt_are_the_same() -> None:
    reference = modal_reference([[1, np.nan, 2], [1, np.nan, 2], [2, 1, 3]])
    assert (reference.kind, reference.frequency) == ("ranking", 2)
    assert np.array_equal(reference.ranks, [1, np.nan, 2], equal_nan=True)


def test_two_rankings_equally_frequent_are_no_mode_and_ties_are_said() -> None:
    reference = modal_reference([[1, 2, 3], [2, 1, 3]] * 2)
    assert reference.kind == "per_prompt"
    assert reference.ranks.tolist() == [1.5, 1.5, 3.0]
    assert reference.ties == 2


def test_a_condition_is_compared_with_the_others_only() -> None:
    """Were the tested ranking among the two, each would agree with itself."""
    result = against_others([[1.0, 2.0], [2.0, 1.0]], 1)
    assert (result.tau_b, result.rho, result.top1, result.topm) == (-1.0, -1.0, 0.0, 0.0)
    assert (result.top1_share, result.conditions, result.per_prompt) == (0.5, 2, 2)


def test_by_hand_of_three() -> None:
    """The two like ones each see one like and one reversed pair (first two prompts tied); the third sees the like ones."""
    result = against_others([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [2.0, 1.0, 3.0]], 1)
    # Against (1.5, 1.5, 3): two untied pairs agree of three, tau-b = 2 / sqrt(3 * 2); against (1, 2, 3): 1/3.
    assert result.tau_b == pytest.approx((2 * 2 / np.sqrt(6) + 1 / 3) / 3)
    assert result.top1 == pytest.approx((0.5 + 0.5 + 0.0) / 3)
    assert result.top1_share == pytest.approx(2 / 3)
    assert (result.per_prompt, result.ties) == (2, 2)


def test_shared_tops_count_in_parts() -> None:
    assert against_others([[1.5, 1.5, 3.0], [1.0, 2.0, 3.0]], 1).top1_share == 0.75


@settings(deadline=None, max_examples=50)
@given(scores, st.data())
def test_figures_do_not_depend_on_the_order_of_prompts(values: Matrix, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(values.shape[1])))
    one, other = against_others(fair_ranks(values), 1), against_others(fair_ranks(values[:, order]), 1)
    for name in ("tau_b", "rho", "top1", "topm", "top1_share"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(scores)
def test_leaving_out_in_one_pass_is_the_reference_of_the_others(values: Matrix) -> None:
    ranks = fair_ranks(values)
    result = against_others(ranks, 1)
    references = [modal_reference(np.delete(ranks, own, axis=0)) for own in range(len(ranks))]
    assert result.per_prompt == sum(reference.kind == "per_prompt" for reference in references)
    assert result.ties == sum(reference.ties > 0 for reference in references)
    taus = [between(ranks[own][None], reference.ranks[None], 1).tau_b[0, 0] for own, reference in enumerate(references)]
    known = [tau for tau in taus if not np.isnan(tau)]
    assert result.tau_b == (pytest.approx(np.mean(known)) if known else None)


def test_one_condition_has_no_others() -> None:
    alone = against_others([[1.0, 2.0]], 1)
    assert (alone.tau_b, alone.top1, alone.top1_share) == (None, None, 1.0)
    nothing = against_others([[np.nan, np.nan]] * 2, 1)
    assert (nothing.tau_b, nothing.top1, nothing.top1_share) == (None, None, None)
    with pytest.raises(ValueError):
        modal_reference(np.empty((0, 3)))


def test_a_top_set_that_does_not_exist_is_refused_with_one_condition_too() -> None:
    with pytest.raises(ValueError, match="does not exist"):
        against_others([[1.0, 2.0, 3.0]], m=9)
