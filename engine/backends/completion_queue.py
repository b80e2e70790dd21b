"""Completions on their way from the thread that makes them to the one that asks for them."""

from __future__ import annotations

import queue
import threading

from engine.backends.protocol import Completion


class CompletionQueue:
    """Any thread puts, one takes. ``in_flight`` counts the requests that were counted in and not given back or dropped."""

    def __init__(self) -> None:
        self.in_flight = 0
        self._completions: queue.SimpleQueue[Completion] = queue.SimpleQueue()
        self._counting = threading.Lock()

    def expect(self, count: int) -> None:
        """Count requests in; a negative count drops them."""
        with self._counting:
            self.in_flight += count

    def put(self, completion: Completion) -> None:
        self._completions.put(completion)

    def take(self, timeout: float) -> list[Completion]:
        """Everything that was put since the last call, in that order; up to ``timeout`` seconds are waited for the first."""
        taken: list[Completion] = []
        try:
            taken.append(self._completions.get(timeout=max(0.0, timeout)))
            while True:
                taken.append(self._completions.get_nowait())
        except queue.Empty:
            pass
        self.expect(-len(taken))
        return taken
