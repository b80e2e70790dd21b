"""A private state folder, runs on the scripted backend, and the end of every process a test started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from engine.backends.protocol import ModelSpec, Request
from engine.runs import locks, plan_file, queue, states
from engine.runs.following import follow
from engine.runs.protocol import RunDir, RunState, RunStatus
from engine.runs.spool import read_results
from tests.engine.scripted_backend import reply

ROOT = Path(__file__).resolve().parents[3]
T = TypeVar("T")
DEVICE = "test:0"
PATIENCE_S = 60.0
WINDOW = 8
"""Requests that the worker keeps in a scripted backend of four at once."""


def wait_until(look: Callable[[], T]) -> T:
    """The first true value that ``look`` gives; a test that waits in vain fails."""
    deadline = time.monotonic() + PATIENCE_S
    while not (value := look()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
    return value


@dataclass(frozen=True)
class Desk:
    """One user's machine: a folder for the runs, and the device that they share."""

    folder: Path
    made: list[RunDir]

    def run(self, name: str, requests: int = 40, **script: Any) -> RunDir:
        """A planned run, not yet started."""
        run_dir = RunDir(self.folder / "workspace" / "runs" / name)
        run_dir.path.mkdir(parents=True)
        self.made.append(run_dir)
        self.describe(run_dir, **script)
        plan_file.write_plan(run_dir, [request(name, number) for number in range(requests)])
        return run_dir

    def describe(
        self, run_dir: RunDir, *, expected: str = "scripted", wait_gpu_memory: float = 0.0, **script: Any
    ) -> None:
        script = {"side_file": str(run_dir.path / "generated"), "gate": str(run_dir.path / "gate")} | script
        model = ModelSpec(
            "tests.engine.scripted_backend:ScriptedBackend",
            "scripted",
            json.dumps(script),
            wait_gpu_memory=wait_gpu_memory,
        )
        description = states.RunDescription(
            run_dir.run_id, run_dir.run_id, str(self.folder / "workspace"), DEVICE, model, expected, time.time()
        )
        states.write_description(run_dir, description)

    def worker(self, run_dir: RunDir, **options: Any) -> subprocess.Popen[str]:
        """A worker without a supervisor."""
        command = [sys.executable, "-P", "-m", "engine.runs.worker", str(run_dir.path)]
        options = {"stderr": subprocess.DEVNULL, "start_new_session": True} | options
        return subprocess.Popen(command, text=True, **options)

    def supervisor_pid(self) -> int:
        lock = queue.device_lock(DEVICE)
        return locks.holder(lock)[0] if locks.is_held(lock) else 0

    def worker_pid(self, run_dir: RunDir) -> int:
        return locks.holder(run_dir.lock)[0] if locks.is_held(run_dir.lock) else 0


def request(run: str, number: int) -> Request:
    return Request(f"{run}-{number:04d}", ({"role": "user", "content": f"question {number}"},), {"temperature": 0})


def finish(run_dir: RunDir) -> RunState:
    """Wait until the run is not active any more; its last state."""
    deadline = time.monotonic() + PATIENCE_S
    for state in follow(run_dir, 0.02):
        last = state
        assert time.monotonic() < deadline, "the run does not end"
    return last


def reached(run_dir: RunDir, results: int) -> Callable[[], bool]:
    """Whether the spool holds at least so many results."""
    return lambda: len(read_results(run_dir.results, 0)[0]) >= results


def has_status(run_dir: RunDir, *statuses: RunStatus) -> Callable[[], bool]:
    return lambda: states.read_state(run_dir).status in statuses


def says(run_dir: RunDir, message: str) -> Callable[[], bool]:
    return lambda: states.read_state(run_dir).message == message


def open_gate(run_dir: RunDir) -> None:
    """Let the scripted backend of a run with ``hold_after`` go on."""
    (run_dir.path / "gate").touch()


def kill(pid: int) -> None:
    """kill -9 of one process."""
    # 0 would mean every process of the test's own group.
    assert pid > 1
    os.kill(pid, signal.SIGKILL)


def generated(run_dir: RunDir) -> int:
    """How many generations were started over all starts."""
    side = run_dir.path / "generated"
    return len(side.read_text().splitlines()) if side.exists() else 0


def assert_complete(run_dir: RunDir) -> None:
    """Every planned request has exactly one result, and the right one."""
    lines, _ = read_results(run_dir.results, 0)
    planned = [request.key for request in plan_file.read_plan(run_dir)]
    assert Counter(line["key"] for line in lines) == Counter(planned)
    assert all(line["text"] == reply(line["key"]) for line in lines if not line["error"])
    state = states.read_state(run_dir)
    assert state.planned == len(planned)
    assert state.done + state.failed == len(planned)
    assert state.completion_tokens == 3 * state.done
    assert state.cached_tokens == 4 * state.done


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Spare the waits for the disk in tests that write thousands of small files; holds one entry per sync."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    return synced


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setenv(queue.STATE_VARIABLE, str(tmp_path / "state"))
    monkeypatch.setenv("EVALDESK_TEST_BACKENDS", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    desk = Desk(tmp_path, [])
    yield desk
    for entry in queue.entries(DEVICE):
        queue.remove(entry.run_dir, DEVICE)
    deadline = time.monotonic() + PATIENCE_S
    while pids := [pid for pid in (desk.supervisor_pid(), *map(desk.worker_pid, desk.made)) if pid]:
        assert time.monotonic() < deadline
        for pid in pids:
            if pid != os.getpid():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    # It ended by itself between the look and the kill.
                    continue
        time.sleep(0.02)
