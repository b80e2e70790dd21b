"""No minute anywhere holds more than was allowed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backends.rate_limit import WINDOW_S, TokenBucket


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def starts(bucket: TokenBucket, clock: Clock, asked: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """(start, amount) of amounts asked for after pauses."""
    begun = []
    for pause, amount in asked:
        clock.now += pause
        begun.append((clock.now + bucket.reserve(amount), amount))
    return begun


def most_in_a_window(begun: list[tuple[float, float]]) -> float:
    return max(sum(amount for at, amount in begun if first <= at < first + WINDOW_S - 1e-6) for first, _ in begun)


@given(st.integers(1, 500), st.lists(st.floats(0, 100), min_size=1, max_size=200))
def test_no_window_holds_more_requests_than_allowed(limit: int, pauses: list[float]) -> None:
    clock = Clock()
    bucket = TokenBucket(limit, clock)
    begun = starts(bucket, clock, [(pause, 1.0) for pause in pauses])
    assert most_in_a_window(begun) <= limit + 1e-6


@given(
    st.integers(10, 100_000),
    st.lists(st.tuples(st.floats(0, 30), st.floats(0.001, 1)), min_size=1, max_size=100),
)
def test_no_window_holds_more_tokens_than_allowed(limit: int, asked: list[tuple[float, float]]) -> None:
    clock = Clock()
    begun = starts(TokenBucket(limit, clock), clock, [(pause, share * limit) for pause, share in asked])
    largest = max(amount for _, amount in begun)
    assert most_in_a_window(begun) <= (0.9 * limit + max(0.1 * limit, largest)) * (1 + 1e-6) + 1
    assert sum(amount for _, amount in begun) <= limit * (begun[-1][0] / WINDOW_S + 0.1) + limit * 1e-6


@given(st.integers(1, 1000), st.lists(st.floats(0, 50), min_size=2, max_size=50))
def test_turns_come_in_the_order_of_asking(limit: int, pauses: list[float]) -> None:
    clock = Clock()
    begun = [at for at, _ in starts(TokenBucket(limit, clock), clock, [(pause, 1.0) for pause in pauses])]
    assert begun == sorted(begun)


def test_a_steady_stream_gets_nearly_the_whole_allowance() -> None:
    clock = Clock()
    begun = starts(TokenBucket(600, clock), clock, [(0.0, 1.0)] * 6000)
    assert begun[-1][0] == pytest.approx(6000 / 600 * WINDOW_S, rel=0.15)


def test_what_an_estimate_took_too_much_is_given_back() -> None:
    clock = Clock()
    bucket = TokenBucket(6000, clock)
    bucket.reserve(600)
    assert bucket.reserve(90) > 0
    bucket.correct(690)
    assert bucket.reserve(90) == 0
    bucket.correct(-6000)
    assert bucket.reserve(1) > 60
