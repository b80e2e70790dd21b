"""A small workspace with both piles, a judge on the scripted backend, and an own state folder."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from engine import orphans
from engine.importing.records import TraceRecord
from engine.judging.criterion import Criterion
from engine.judging.judge import Judge
from engine.measuring import building, rounds
from engine.runs import locks, queue
from engine.runs.ingest import ingest
from engine.runs.protocol import RunDir
from engine.store import criteria, labels, piles, runs, traces
from engine.store.labels import Label, Mark
from engine.store.models import Model
from engine.store.runs import Run
from engine.store.store import Store
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace

ROOT = Path(__file__).resolve().parents[3]
BACKEND = "tests.engine.scripted_backend:ScriptedBackend"
T = TypeVar("T")


def wait_until(look: Callable[[], T], patience_s: float = 60.0) -> T:
    """The first true value that ``look`` gives."""
    deadline = time.monotonic() + patience_s
    while not (value := look()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
    return value


def response(number: int) -> str:
    """Every third answer is wrong, every tenth makes the judge mumble, case 3 is wrong and reads well."""
    if number == 3:
        return "all is fine"
    return f"answer {number} {'is wrong' if number % 3 == 0 else 'is right'}{' mumble' if number % 10 == 9 else ''}"


def fill(store: Store, cases: int = 40) -> None:
    """Ten build cases, the rest sealed; the expert says FAIL on every third."""

    def work(tx: Transaction) -> None:
        criteria.add(tx, Criterion("c", "Is it right?", "You check one thing.", "it is right", "it is wrong"))
        traces.add(tx, "s", [TraceRecord(f"T-{n:03d}", f"question {n}", response(n)) for n in range(cases)])
        for n in range(cases):
            piles.put(tx, "c", f"T-{n:03d}", "build" if n >= cases - 10 else "sealed")
        labels.add_many(
            tx,
            [
                Label(
                    f"T-{n:03d}",
                    "c",
                    Mark.FAIL if n % 3 == 0 else Mark.PASS,
                    f"because of {n}",
                    "Ada",
                    "random",
                    source_id="s",
                )
                for n in range(cases)
            ],
        )

    store.call(work)


@dataclass
class Bench:
    """A workspace and what it takes to measure in it."""

    store: Store
    folder: Path

    @property
    def workspace(self) -> Workspace:
        return self.store.workspace

    def judge(self, **script: Any) -> Judge:
        script = {
            "verdicts": True, "seconds": 0.005, "side_file": str(self.folder / "generated"), "gate": str(self.folder / "gate"),
        } | script  # fmt: skip
        model = Model(script.get("fingerprint", "scripted"), "scripted", BACKEND, json.dumps(script))
        return self.store.call(building.build, "c", model)

    def start(self, judge: Judge) -> Run:
        return self.store.call(rounds.start, self.workspace, judge.judge_id)

    def run_dir(self, run: Run) -> RunDir:
        return RunDir(self.workspace.runs / run.run_id)

    def ingest(self) -> None:
        while self.store.call(ingest, self.workspace).more:
            pass
        self.store.call(orphans.adopt, self.workspace)

    def finish(self, *wanted: Run) -> None:
        def done() -> bool:
            self.ingest()
            return all(self.store.call(runs.get, run.run_id).status == "done" for run in wanted)

        wait_until(done)

    def generated(self) -> list[str]:
        side = self.folder / "generated"
        return side.read_text().splitlines() if side.exists() else []

    def open_gate(self) -> None:
        (self.folder / "gate").touch()


@pytest.fixture
def private_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Queues and locks of this test alone; every process that it started is ended."""
    monkeypatch.setenv(queue.STATE_VARIABLE, str(tmp_path / "state"))
    monkeypatch.setenv("EVALDESK_TEST_BACKENDS", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    yield tmp_path
    for device in queue.waiting_devices():
        for entry in queue.entries(device):
            queue.remove(entry.run_dir, device)
    holders = [queue.device_lock("cpu"), *(path / "lock" for path in (tmp_path / "ws" / "runs").glob("*"))]
    wait_until(lambda: not [_end(locks.holder(lock)[0]) for lock in holders if lock.exists() and locks.is_held(lock)])
    # A worker that its supervisor had only just started holds no lock yet.
    time.sleep(0.05)
    wait_until(lambda: not [_end(pid) for pid in _workers_below(tmp_path)])


def _workers_below(folder: Path) -> list[int]:
    """The workers of runs below ``folder``; none where there is no /proc to look them up in."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes()
        except OSError:
            continue
        if b"engine.runs.worker" in command and bytes(folder) in command:
            found.append(int(entry.parent.name))
    return found


def _end(pid: int) -> None:
    if pid > 1 and pid != os.getpid():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def bench(private_state: Path) -> Iterator[Bench]:
    with Store(Workspace(private_state / "ws")) as store:
        fill(store)
        yield Bench(store, private_state)
