"""Staying below what a server allows a minute, in requests or in tokens."""

from __future__ import annotations

import time
from collections.abc import Callable

WINDOW_S = 60.0
BURST = 0.1
"""Share of a minute's allowance that may go at once; the rest flows in evenly, so that no minute anywhere holds more."""


class TokenBucket:
    """An allowance of ``per_minute`` units; ``reserve`` says how long to wait before using some. ``clock`` never goes back.

    What is started in any window of 60 s sums to at most ``per_minute``: the burst and what flows in together. Where single
    amounts are larger than the burst, one of them may come on top. Waits are handed out in the order of asking.
    """

    def __init__(self, per_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst = max(min(1.0, per_minute), BURST * per_minute)
        # A limit of one a minute has no room for a burst and a flow: it flows at its own rate, one after the other.
        self._rate = max(per_minute - self._burst, 0.0) / WINDOW_S or per_minute / WINDOW_S
        self._clock = clock
        self._level = self._burst
        self._at = clock()

    def reserve(self, amount: float) -> float:
        """Take ``amount`` now; returns the seconds to wait before it may be used."""
        self._flow()
        self._level -= amount
        return max(0.0, -self._level / self._rate)

    def correct(self, amount: float) -> None:
        """Give back (or, below 0, take as well) what an estimate was off by."""
        self._flow()
        self._level = min(self._burst, self._level + amount)

    def _flow(self) -> None:
        now = self._clock()
        self._level = min(self._burst, self._level + (now - self._at) * self._rate)
        self._at = now
