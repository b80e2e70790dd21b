"""A backend without a model, for tests of the worker: same requests, same replies, failures on demand.

``ModelSpec.path`` holds its script as JSON, see ``Script``.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
import zlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.backends.protocol import BackendBroken, Completion, ModelInfo, ModelSpec, Request
from engine.errors import EvaldeskError


@dataclass
class Script:
    """How the backend behaves."""

    seconds: float = 0.01
    """A request takes this long; ``parallel`` of them go at once."""
    load_seconds: float = 0.0
    load_error: str = ""
    close_seconds: float = 0.0
    """Letting go of the model takes this long, as it does when something is still being generated."""
    parallel: int = 4
    fingerprint: str = "scripted"
    side_file: str = ""
    """Each generation that starts appends its key here."""
    fail_keys: list[str] = field(default_factory=list)
    fail_times: int = 1_000_000
    """How often a key of ``fail_keys`` fails in one process before it succeeds."""
    lose_keys: list[str] = field(default_factory=list)
    """Requests that never come back."""
    crash_after: int = -1
    """Dies by SIGKILL instead of starting generation number ``crash_after`` (from 0) of this process."""
    break_after: int = -1
    """Its device breaks in place of ending generation number ``break_after`` (from 0) of this process."""
    hold_after: int = -1
    """Generation number ``hold_after`` (from 0) of this process and later ones do not end before the gate opens."""
    gate: str = ""
    """The gate is open while this file exists."""
    verdicts: bool = False
    """Reply as a judge would: FAIL where the response says "wrong", prose without a verdict where it says "mumble"."""

    sums: bool = False
    """Reply as a model would that adds with the skill (0 to 9) that its prompt states: ``skill 7: 4 + 5``."""


def total(request: Request) -> str:
    """The right sum, one more, or no number at all; which of them follows from the text."""
    content = request.messages[-1]["content"]
    skill, _, question = content.removeprefix("skill ").partition(": ")
    # Greedy replies do not depend on the seed.
    seed = request.sampling["seed"] if request.sampling.get("temperature") else ""
    luck = zlib.crc32(f"{content}{seed}".encode()) % 10
    if luck == 9:
        return "I cannot say."
    right = sum(int(part) for part in question.split(" + "))
    return f"The answer is {right if luck < int(skill) else right + 1}."


def verdict(request: Request) -> str:
    """What a judge says that reads the case text, word by word."""
    response = request.messages[-1]["content"].partition("RESPONSE")[2]
    if "mumble" in response:
        return "I would rather not say"
    return json.dumps({"reason": "I read the response.", "verdict": "FAIL" if "wrong" in response else "PASS"})


def reply(key: str) -> str:
    """What the backend answers to the request ``key``."""
    return f"reply to {key} \N{SNOWMAN} \ud800"


class ScriptedBackend:
    """See the module."""

    def __init__(self) -> None:
        self._script = Script()
        self._waiting: deque[Request] = deque()
        self._working: list[tuple[float, int, Request]] = []
        self._started = 0
        self._failures: dict[str, int] = {}

    def load(self, model: ModelSpec) -> ModelInfo:
        self._script = Script(**json.loads(model.path))
        # As llamacpp does for the slots that it saves.
        Path(tempfile.mkdtemp(prefix="slots-"), "shared.bin").write_bytes(b"computed")
        time.sleep(self._script.load_seconds)
        if self._script.load_error:
            raise EvaldeskError(self._script.load_error)
        return ModelInfo(
            fingerprint=self._script.fingerprint,
            context_length=1000,
            parallel=self._script.parallel,
            features=frozenset({"schema"}),
            backend="scripted",
            backend_version="1.0",
        )

    def submit(self, requests: Sequence[Request]) -> None:
        self._waiting.extend(requests)
        self._start()

    def results(self, timeout: float) -> list[Completion]:
        deadline = time.monotonic() + timeout
        while True:
            if any(number == self._script.break_after for _, number, _ in self._working):
                raise BackendBroken("CUDA error: an illegal memory access was encountered")
            working, self._working = self._working, []
            ready = []
            for due, number, request in working:
                if self._is_over(due, number):
                    ready.append(request)
                else:
                    self._working.append((due, number, request))
            self._start()
            if ready or time.monotonic() >= deadline or not self._working:
                return [self._complete(request) for request in ready if request.key not in self._script.lose_keys]
            time.sleep(0.002)

    @property
    def in_flight(self) -> int:
        return len(self._waiting) + len(self._working)

    def cancel(self) -> None:
        self._waiting.clear()

    def close(self) -> None:
        self._waiting.clear()
        self._working.clear()
        time.sleep(self._script.close_seconds)

    def _start(self) -> None:
        while self._waiting and len(self._working) < self._script.parallel:
            if self._started == self._script.crash_after:
                os.kill(os.getpid(), signal.SIGKILL)
            request = self._waiting.popleft()
            if self._script.side_file:
                with Path(self._script.side_file).open("a", encoding="utf-8") as side:
                    side.write(f"{request.key}\n")
            self._working.append((time.monotonic() + self._script.seconds, self._started, request))
            self._started += 1

    def _is_over(self, due: float, number: int) -> bool:
        held = 0 <= self._script.hold_after <= number and not Path(self._script.gate).exists()
        return due <= time.monotonic() and not held

    def _complete(self, request: Request) -> Completion:
        failures = self._failures.get(request.key, 0)
        if request.key in self._script.fail_keys and failures < self._script.fail_times:
            self._failures[request.key] = failures + 1
            return Completion(request.key, error=f"scripted failure of {request.key}")
        return Completion(
            request.key,
            text=self._text(request),
            finish="stop",
            prompt_tokens=10,
            cached_tokens=4,
            completion_tokens=3,
            seconds=self._script.seconds,
        )

    def _text(self, request: Request) -> str:
        if self._script.verdicts:
            return verdict(request)
        return total(request) if self._script.sums else reply(request.key)
