"""New modes among cases: when the last one came, and Good's estimate of the share not seen yet."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.saturation import ENOUGH_CASES, saturation

cases = st.lists(st.sets(st.sampled_from("abcdefgh"), max_size=4), max_size=40)


def test_worked_by_hand() -> None:
    """Modes a a b a c a a: b and c were seen once, the last new one came with the fifth case."""
    found = saturation([{mode} for mode in "aabacaa"])
    assert (found.cases, found.modes, found.once, found.alone, found.since_new) == (7, 3, 2, 2, 2)
    assert found.unseen == pytest.approx(2 / 7)


@given(st.text("abcde", min_size=1, max_size=30))
def test_with_one_mode_a_case_it_is_goods_n1_over_n(modes: str) -> None:
    assert saturation([{mode} for mode in modes]).unseen == sum(n == 1 for n in Counter(modes).values()) / len(modes)


def test_its_mean_is_the_missing_mass_of_one_case_less() -> None:
    """Good's identity, over every sample of 5 from three modes with chances .6, .3, .1: no simulation."""
    chance, n = {"a": 0.6, "b": 0.3, "c": 0.1}, 5

    def probability(modes: tuple[str, ...]) -> float:
        return prod(chance[mode] for mode in modes)

    estimate = sum(
        probability(m) * (saturation([{mode} for mode in m]).unseen or 0.0) for m in product(chance, repeat=n)
    )
    missing = sum(
        probability(m) * sum(p for mode, p in chance.items() if mode not in m) for m in product(chance, repeat=n - 1)
    )
    assert estimate == pytest.approx(missing, abs=1e-12)


@given(cases)
def test_it_is_the_share_of_cases_that_are_new_to_all_others(given_cases: list[set[str]]) -> None:
    found = saturation(given_cases)
    others = [set().union(*given_cases[:i], *given_cases[i + 1 :]) for i in range(len(given_cases))]
    assert found.alone == sum(not case <= rest for case, rest in zip(given_cases, others, strict=True))
    assert found.alone <= found.once <= found.modes and found.alone <= found.cases
    assert found.unseen is None or 0.0 <= found.unseen <= 1.0


@given(cases)
def test_reading_the_same_again_leaves_nothing_unseen_and_brings_nothing_new(given_cases: list[set[str]]) -> None:
    found = saturation(given_cases * 2)
    assert found.once == found.alone == 0
    assert found.since_new >= len(given_cases)


@given(cases)
def test_since_new_counts_from_the_case_that_brought_the_last_new_mode(given_cases: list[set[str]]) -> None:
    since = saturation(given_cases).since_new
    last = len(given_cases) - since
    assert set().union(*given_cases[:last]) == set().union(*given_cases)
    assert last == 0 or not given_cases[last - 1] <= set().union(*given_cases[: last - 1])


@given(cases.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
def test_the_order_matters_for_nothing_but_since_new(pair: tuple[list[set[str]], list[set[str]]]) -> None:
    a, b = (saturation(rows) for rows in pair)
    assert (a.cases, a.modes, a.once, a.alone) == (b.cases, b.modes, b.once, b.alone)


def test_a_case_with_several_modes_of_its_own_is_one_case() -> None:
    found = saturation([{"a", "b", "c"}])
    assert (found.once, found.alone, found.unseen) == (3, 1, 1.0)


def test_saturation_takes_so_many_cases_after_the_last_new_mode() -> None:
    assert not saturation([{"a"}] * ENOUGH_CASES).is_saturated
    assert saturation([{"a"}] * (ENOUGH_CASES + 1)).is_saturated
    assert not saturation([{"a"}] * ENOUGH_CASES + [{"b"}]).is_saturated
    assert saturation([{"a"}] * ENOUGH_CASES).is_enough and not saturation([{"a"}] * (ENOUGH_CASES - 1)).is_enough
