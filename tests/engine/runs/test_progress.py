"""Counters over all starts, rates over this one."""

from __future__ import annotations

from typing import Any

import pytest

from engine.backends.protocol import Request
from engine.runs.progress import Progress
from engine.runs.protocol import RunState, RunStatus


def result(key: str, error: str = "") -> dict[str, Any]:
    return {"key": key, "error": error, "prompt_tokens": 10, "cached_tokens": 4, "completion_tokens": 6, "cost": 0.25}


def test_counters_hold_all_starts_and_rates_this_one_only() -> None:
    now = 100.0
    progress = Progress(clock=lambda: now)
    progress.plan([Request(key, (), {}) for key in "abcdef"])
    progress.count(result("a"))
    progress.count(result("b", "broken"))
    assert (progress.tokens_per_s(), progress.eta_s()) == (0.0, None)
    progress.begin()
    now = 104.0
    progress.count(result("c"))
    progress.count(result("d"))
    progress.count(result("d"))
    progress.count({"key": "", "refused": "rot"})
    state = progress.into(RunState(RunStatus.RUNNING))
    assert (state.planned, state.done, state.failed, progress.remaining) == (6, 3, 1, 2)
    assert (state.prompt_tokens, state.cached_tokens, state.completion_tokens) == (40, 16, 24)
    assert state.cost == pytest.approx(1.0)
    assert state.tokens_per_s == pytest.approx(12 / 4)
    assert state.eta_s == pytest.approx(2 * 4 / 2)
    assert state.extra == {"refused_lines": 1}


def test_the_rate_forgets_what_is_older_than_a_minute() -> None:
    now = 0.0
    progress = Progress(clock=lambda: now)
    progress.begin()
    for second in range(1, 121):
        now = float(second)
        progress.count(result(str(second)))
    assert progress.tokens_per_s() == pytest.approx(6.0, rel=0.02)
    now = 300.0
    assert progress.tokens_per_s() == 0.0
