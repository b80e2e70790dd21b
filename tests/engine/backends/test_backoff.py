"""Waits before another try stay inside their bounds, and believe the server."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backends.backoff import Backoff, told_wait

NOW = 1_800_000_000.0


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_a_wait_lies_between_nothing_and_a_doubling_bound(failures: int, chance: float) -> None:
    backoff = Backoff(base=0.5, longest=30.0)
    wait = backoff.wait(failures, None, lambda: chance)
    assert 0 <= wait <= min(30.0, 0.5 * 2.0 ** min(failures, 60))


@given(st.floats(0, 1e9), st.floats(0, 1, exclude_max=True))
def test_what_the_server_says_is_waited_and_no_longer_than_the_cap(told: float, chance: float) -> None:
    backoff = Backoff(base=0.5, longest_told=300.0)
    wait = backoff.wait(3, told, lambda: chance)
    assert min(told, 300.0) <= wait <= min(told, 300.0) + 0.5


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=2, max_size=2, unique=True))
def test_requests_that_failed_together_do_not_come_back_together(chances: list[float]) -> None:
    waits = {Backoff().wait(4, None, lambda chance=chance: chance) for chance in chances}  # type: ignore[misc]
    assert len(waits) == 2 or max(chances) < 1e-300


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0.0),
        (" 7 ", 7.0),
        ("1.5", 1.5),
        (formatdate(NOW + 90, usegmt=True), 90.0),
        (formatdate(NOW - 90, usegmt=True), 0.0),
        ("", None),
        (None, None),
        ("-3", None),
        ("soon", None),
        ("1.2.3", None),
        ("١٢", None),
        ("9" * 400, 1e9),
    ],
)
def test_retry_after_is_a_number_or_a_date(header: str | None, seconds: float | None) -> None:
    assert told_wait(header, lambda: NOW) == seconds


@given(st.text(max_size=40))
def test_any_header_is_survived(header: str) -> None:
    wait = told_wait(header, lambda: NOW)
    assert wait is None or wait >= 0
