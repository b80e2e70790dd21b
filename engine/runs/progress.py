"""Counting a run: what is finished over all starts, and how fast this start is."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine.backends.protocol import Request
from engine.runs.protocol import RunState

WINDOW_S = 60.0


class Progress:
    """Counters of one run, fed with the spool's lines at the start and with each new result afterwards.

    ``clock`` gives seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._planned: set[str] = set()
        self._began: float | None = None
        self._finished_here = 0
        self._recent: deque[tuple[float, int]] = deque()
        self.finished: set[str] = set()
        """Keys that have a result, good or bad."""
        self.remaining = 0
        """Planned requests without a result."""
        self.done = self.failed = self.refused_lines = 0
        self.prompt_tokens = self.cached_tokens = self.completion_tokens = 0
        self.cost = 0.0

    def plan(self, requests: Sequence[Request]) -> None:
        """Add to what is planned; a request counts once."""
        self._planned.update(request.key for request in requests)
        self.remaining = len(self._planned - self.finished)

    def begin(self) -> None:
        """The model is there: rates count from now on."""
        self._began = self._clock()

    def count(self, result: Mapping[str, Any]) -> None:
        """Count one result line; a second one for the same key is left out, a refused line only noted."""
        key = result["key"]
        if not key:
            self.refused_lines += 1
            return
        if key in self.finished:
            return
        self.finished.add(key)
        self.remaining -= key in self._planned
        if result["error"]:
            self.failed += 1
        else:
            self.done += 1
        self.prompt_tokens += result["prompt_tokens"]
        self.cached_tokens += result["cached_tokens"]
        self.completion_tokens += result["completion_tokens"]
        self.cost += result["cost"]
        if self._began is not None:
            self._finished_here += 1
            self._recent.append((self._clock(), result["completion_tokens"]))

    def tokens_per_s(self) -> float:
        """Completion tokens a second over the last minute of this start; 0 before the first result."""
        if self._began is None:
            return 0.0
        now = self._clock()
        while self._recent and self._recent[0][0] < now - WINDOW_S:
            self._recent.popleft()
        span = min(WINDOW_S, now - self._began)
        return sum(tokens for _, tokens in self._recent) / span if span > 0 else 0.0

    def eta_s(self) -> float | None:
        """Seconds until the plan is finished at this start's average rate; None before the first result."""
        if self._began is None or not self._finished_here:
            return None
        return self.remaining * (self._clock() - self._began) / self._finished_here

    def into(self, state: RunState) -> RunState:
        """``state`` with all counters and rates as they are now."""
        return replace(
            state,
            planned=len(self._planned),
            done=self.done,
            failed=self.failed,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
            cost=self.cost,
            tokens_per_s=self.tokens_per_s(),
            eta_s=self.eta_s(),
            extra=state.extra | {"refused_lines": self.refused_lines},
        )


def recounted(
    state: RunState, results: Iterable[Mapping[str, Any]], requests: Sequence[Request] | None = None
) -> tuple[RunState, int]:
    """``state`` with its counters taken from result lines and plan, for a state that its worker left behind.

    Also returns how many planned requests have no result. Without a plan that can be read, ``planned`` stays.
    """
    progress = Progress()
    for line in results:
        progress.count(line)
    if requests is None:
        planned, remaining = state.planned, max(0, state.planned - len(progress.finished))
    else:
        progress.plan(requests)
        planned, remaining = len({request.key for request in requests}), progress.remaining
    state = replace(progress.into(state), planned=planned, tokens_per_s=0.0, eta_s=None, in_flight=0)
    return state, remaining
