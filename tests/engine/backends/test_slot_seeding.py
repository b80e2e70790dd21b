"""When a common beginning is computed once for all slots."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from engine.backends.slot_seeding import WORTH_CHARACTERS, common_length, flat_text, worth_seeding

LONG = "x" * WORTH_CHARACTERS


@given(st.text(), st.text(), st.text())
def test_common_length_is_that_of_the_longest_common_prefix(start: str, first: str, second: str) -> None:
    assert common_length(start + first, start + second) == len(os.path.commonprefix([start + first, start + second]))  # noqa: RUF071  (character by character is what is wanted)


def test_a_long_new_beginning_is_worth_it_once() -> None:
    assert worth_seeding(LONG + "a", LONG + "b", "")
    assert not worth_seeding(LONG + "b", LONG + "c", LONG + "a")


def test_another_prompt_is_worth_it_again() -> None:
    other = "y" * WORTH_CHARACTERS
    assert worth_seeding(other + "a", other + "b", LONG + "a")


def test_short_or_lone_beginnings_are_not_worth_it() -> None:
    assert not worth_seeding("x a", "x b", "")
    assert not worth_seeding(LONG + "a", "y", "")


def test_roles_belong_to_the_text() -> None:
    assert flat_text([{"role": "user", "content": "a"}]) != flat_text([{"role": "system", "content": "a"}])
