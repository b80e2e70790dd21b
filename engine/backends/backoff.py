"""How long to wait before a request is tried again: exponential, with full jitter, and never before Retry-After."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime


@dataclass(frozen=True)
class Backoff:
    """Waits in seconds. ``tries`` counts the first one too; a longer Retry-After than ``longest_told`` is not believed.

    A server that answers nobody is tried for ``patience`` seconds, however many tries that takes: servers are restarted.
    """

    base: float = 0.5
    longest: float = 30.0
    longest_told: float = 300.0
    tries: int = 8
    patience: float = 300.0

    def wait(self, failures: int, told: float | None, chance: Callable[[], float] = random.random) -> float:
        """Seconds to wait after so many failures (1, 2, ...); ``told`` is what the server said, ``chance`` lies in [0, 1).

        Full jitter spreads requests that failed together; after what the server said they are spread over the base wait.
        """
        if told is not None:
            return min(told, self.longest_told) + chance() * self.base
        return chance() * min(self.longest, self.base * 2.0 ** min(failures, 60))


def told_wait(header: str | None, now: Callable[[], float] = time.time) -> float | None:
    """Seconds that a Retry-After header asks for (a number or an HTTP date), not below 0; None without a readable one."""
    text = (header or "").strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return min(float(text), 1e9)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
