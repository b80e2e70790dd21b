"""How long a key takes until the last byte that it sets off has reached the terminal."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests.e2e.realterm import PtyApp

QUIET_S = 0.05
"""A pause this long ends what a key has set off; live updates come apart from it."""
_NO_ANSWER_S = 2.0


@dataclass(frozen=True)
class Latency:
    """Milliseconds from key to last byte over ``count`` keys, and the bytes that one key cost."""

    count: int
    p50_ms: float
    p95_ms: float
    max_ms: float
    bytes_per_key: float


def measure_latency(app: PtyApp, keys: Sequence[str], count: int) -> Latency:
    """Press ``keys`` in turn, ``count`` times in all, each after the answer to the one before."""
    times: list[float] = []
    sizes: list[int] = []
    for number in range(count):
        mark = app.mark
        sent = app.send(keys[number % len(keys)])
        deadline = time.perf_counter() + _NO_ANSWER_S
        while time.perf_counter() < deadline:
            chunks = app.since(mark)
            if chunks and time.perf_counter() - chunks[-1].at > QUIET_S:
                break
            time.sleep(0.002)
        chunks = app.since(mark)
        if chunks:
            times.append(1000 * (chunks[-1].at - sent))
            sizes.append(sum(len(chunk.data) for chunk in chunks))
    cuts = statistics.quantiles(times, n=20)
    return Latency(len(times), statistics.median(times), cuts[18], max(times), statistics.mean(sizes))
