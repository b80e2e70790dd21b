"""Common beginnings follow each other, and nobody waits for ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.backends.prefix_order import next_in_order

_prompts = st.lists(st.lists(st.integers(0, 2), max_size=4), min_size=1, max_size=12)


def _taken(waiting: list[list[int]], last: list[int]) -> list[list[int]]:
    order = []
    while waiting:
        last = waiting.pop(next_in_order(waiting, last))
        order.append(last)
    return order


@given(_prompts)
def test_all_that_waits_is_taken_in_order_of_its_tokens(prompts: list[list[int]]) -> None:
    assert _taken(list(prompts), []) == sorted(prompts)


@given(_prompts, st.lists(st.integers(0, 2), max_size=4))
def test_a_round_goes_up_to_the_end_and_then_starts_from_below(prompts: list[list[int]], last: list[int]) -> None:
    above = sorted(prompt for prompt in prompts if prompt >= last)
    below = sorted(prompt for prompt in prompts if prompt < last)
    assert _taken(list(prompts), last) == above + below


def test_of_equal_prompts_the_older_comes_first() -> None:
    assert next_in_order([[2], [1], [1]], [1]) == 1
