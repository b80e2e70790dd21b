"""Options by their likelihood: which one decides, and when none does."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from engine.backends.option_likelihoods import decided, likeliest, of_listed
from engine.backends.protocol import Completion

LOGPROBS = st.floats(-30, 0)
TOKENS = st.sampled_from(["A", " A", "B", "B\n", "C", "AB", "The", "", " ", "\u2028", "a"])


@given(st.lists(st.tuples(TOKENS, LOGPROBS)))
def test_an_option_has_the_likelihood_of_its_likeliest_token(listed: list[tuple[str, float]]) -> None:
    found = of_listed("ABC", listed)
    assert set(found) == {token.strip() for token, _ in listed} & set("ABC")
    for option, likelihood in found.items():
        assert likelihood == max(value for token, value in listed if token.strip() == option)


@given(st.dictionaries(st.sampled_from("ABCD"), LOGPROBS), st.integers(1, 4))
def test_what_is_not_listed_would_not_have_decided(full: dict[str, float], shown: int) -> None:
    listed = sorted(full.items(), key=lambda pair: -pair[1])
    found = of_listed("ABCD", listed[:shown])
    if len(set(full.values())) == len(full) and full:
        assert likeliest(found) == listed[0][0]


def test_nothing_decides_between_equals_and_among_none() -> None:
    assert likeliest({"A": -1.0, "B": -1.0, "C": -2.0}) == likeliest({}) == ""
    assert likeliest({"A": -2.0, "B": -1.0}) == "B"


def test_the_reply_is_the_option_that_decides() -> None:
    made = decided(
        Completion("k", text="The", finish="length", completion_tokens=1), {"A": math.log(0.2), "B": math.log(0.3)}
    )
    assert (made.text, made.finish, made.completion_tokens) == ("B", "stop", 1)
    assert made.likelihoods == {"A": math.log(0.2), "B": math.log(0.3)}
