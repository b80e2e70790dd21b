"""Following a run from any process, by its files alone."""

from __future__ import annotations

import time
from collections.abc import Iterator

from engine.runs.protocol import RunDir, RunState
from engine.runs.states import observed_state


def follow(run_dir: RunDir, interval: float = 0.3) -> Iterator[RunState]:
    """The run's state now and after each change, looked at every ``interval`` seconds, until the run is not active.

    The last state that comes is the one the run stopped with.
    """
    last: RunState | None = None
    while True:
        state = observed_state(run_dir)
        if state != last:
            yield state
            last = state
        if not state.status.is_active:
            return
        time.sleep(interval)
