"""Everything that can die does, again and again: in the end every request has exactly one accepted result."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from engine.runs import control, locks, queue
from engine.runs.locks import try_lock
from engine.runs.protocol import RunDir, RunStatus
from engine.runs.states import observed_state
from engine.store.store import Store
from engine.store.workspace import Workspace
from tests.engine.measuring.conftest import wait_until
from tests.engine.shifted_clock import Clock
from tests.engine.sweeping.conftest import Sweeper, skilled, sums, with_prompts

KILLS = int(os.environ.get("EVALDESK_FAULT_KILLS", "12"))
"""A dozen in the checks; EVALDESK_FAULT_KILLS=100 in full."""
SEEDS = [int(seed) for seed in os.environ.get("EVALDESK_FAULT_SEEDS", "1").split(",")]
IN_FLIGHT = 8
"""Requests that the worker keeps in a scripted backend of four at once."""

APP = textwrap.dedent("""
    import sys
    from pathlib import Path
    from engine.runs.queue import waiting_devices
    from engine.runs.supervisor import ensure_supervisor
    from engine.store.store import Store
    from engine.store.workspace import Workspace
    from engine.watch import Watch
    store = Store(Workspace(Path(sys.argv[1])), program="app")
    for device in waiting_devices():
        ensure_supervisor(device)
    Watch(store, lambda change: None).start()
    print("open", flush=True)
    sys.stdin.read()
""")


@dataclass
class Machine:
    """A workspace whose app, supervisor and workers are there to be killed; counts what was killed and spoilt."""

    workspace: Path
    rng: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    app: subprocess.Popen[str] | None = None

    @property
    def runs(self) -> list[RunDir]:
        return [RunDir(path) for path in sorted((self.workspace / "runs").iterdir())]

    @property
    def over(self) -> bool:
        return all(observed_state(run).status is RunStatus.DONE for run in self.runs)

    def open_app(self) -> None:
        self.app = subprocess.Popen(
            [sys.executable, "-c", APP, str(self.workspace)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.app.stdout
        assert self.app.stdout.readline() == "open\n", "another process owns the workspace"

    def kill(self, victim: str) -> None:
        if victim == "app":
            self.close_app(signal.SIGKILL)
            self.kills[victim] += 1
            return
        held = [queue.device_lock("cpu")] if victim == "supervisor" else [run.lock for run in self.runs]
        for lock in held:
            if lock.exists() and locks.is_held(lock) and (pid := locks.holder(lock)[0]) > 1:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    self.kills[victim] += 1

    def close_app(self, number: int) -> None:
        assert self.app and self.app.stdin and self.app.stdout
        self.app.send_signal(number)
        self.app.wait()
        self.app.stdin.close()
        self.app.stdout.close()

    def spoil_a_spool(self) -> None:
        """A line twice and a line torn at a random byte, as a worker leaves them that dies while the disk is behind."""
        run = self.rng.choice(self.runs)
        lock = try_lock(run.lock)
        if lock is None:
            return
        lines = run.results.read_bytes().splitlines(keepends=True) if run.results.exists() else []
        if lines and lines[-1].endswith(b"\n"):
            again = self.rng.choice(lines)
            with run.results.open("ab") as spool:
                spool.write(again + again[: self.rng.randrange(1, len(again))])
            self.kills["spools spoilt"] += 1
        lock.release()

    def spools(self) -> list[Path]:
        return [run.results for run in self.runs]

    def go_on(self) -> None:
        """What a user does with runs that gave up or stand still: R."""
        for run in self.runs:
            if observed_state(run).status in (RunStatus.FAILED, RunStatus.INTERRUPTED):
                control.start(run)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_clock_that_jumps_while_runs_share_requests_costs_no_generation(
    sweeper: Sweeper, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    clock = Clock(sweeper.folder, monkeypatch)
    machine = Machine(sweeper.store.workspace.path, rng)

    def jump() -> None:
        spools = machine.spools() if (machine.workspace / "runs").exists() else []
        clock.jump(rng.choice([-1, 1]) * rng.choice([5, 60, 7200, 10**7]), *rng.sample(spools, len(spools) // 2))
        machine.kills["jumps"] += 1

    # Each run stands still when the next one is planned, so that this one plans the requests they share itself.
    orders = [
        with_prompts(replace(sweeper.order, dataset=sums(40), items=40, ks=(20, 40)), *skilled(n, n + 1))
        for n in range(4)
    ]
    planned = []
    for order in orders:
        jump()
        planned.append(sweeper.start(order, seconds=0.02))
        control.pause(RunDir(machine.workspace / "runs" / planned[-1].run_id))
        sweeper.ingest()
    started = sweeper.rows("SELECT run_id, awaited FROM run ORDER BY created_at")
    assert started == [(run.run_id, 0) for run in planned], "in the order of planning, and none waits for another"
    needed = 5 * 40
    sweeper.store.close()
    machine.open_app()
    waiting = list(planned)
    rng.shuffle(waiting)
    while waiting or not machine.over:
        time.sleep(rng.uniform(0.02, 0.3))
        if waiting:
            control.resume(RunDir(machine.workspace / "runs" / waiting.pop().run_id))
        if machine.kills["jumps"] < 2 * KILLS:
            jump()
        if machine.kills["worker"] < KILLS / 3:
            machine.kill("worker")
        if rng.random() < 0.1:
            machine.kill("app")
            machine.open_app()
        machine.go_on()
    machine.close_app(signal.SIGKILL)

    with Store(Workspace(machine.workspace)) as store:
        after = Sweeper(store, sweeper.folder)
        after.finish(*planned)
        assert after.rows("SELECT count(*), count(DISTINCT request_key), max(error) FROM completion") == [
            (needed, needed, "")
        ]
        assert after.rows("SELECT count(*) FROM outcome") == [(320,)]
    generated = Counter((sweeper.folder / "generated").read_text().splitlines())
    assert len(generated) == needed
    assert sum(generated.values()) <= needed + IN_FLIGHT * machine.kills["worker"]
    print(json.dumps({"seed": seed, **machine.kills, "needed": needed, "generated": sum(generated.values())}))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_is_killed_and_however_often_every_request_gets_one_result(sweeper: Sweeper, seed: int) -> None:
    rng = random.Random(seed)
    # Each run has prompts of its own, and shares those that are next to it: some of its requests wait for another run.
    orders = [
        with_prompts(replace(sweeper.order, dataset=sums(60), items=60, ks=(30, 60)), *skilled(n, n + 1))
        for n in range(4)
    ]
    planned = [sweeper.start(order, seconds=0.02 + KILLS / 1000) for order in orders]
    needed = 5 * 60
    sweeper.store.close()
    machine = Machine(sweeper.store.workspace.path, rng)
    machine.open_app()
    while not machine.over:
        time.sleep(rng.uniform(0.05, 0.6))
        if sum(machine.kills.values()) < KILLS:
            victims = rng.choice([["worker"], ["worker"], ["app"], ["supervisor"], ["worker", "app"], ["supervisor", "worker"],
                                  ["app", "supervisor", "worker"]])  # fmt: skip
            for victim in victims:
                machine.kill(victim)
            if rng.random() < 0.3:
                machine.spoil_a_spool()
            if "app" in victims:
                machine.open_app()
        machine.go_on()
    wait_until(lambda: machine.over)
    machine.close_app(signal.SIGKILL)

    assert sum(machine.kills.values()) >= min(KILLS, 10), machine.kills
    with Store(Workspace(machine.workspace)) as store:
        after = Sweeper(store, sweeper.folder)
        after.finish(*planned)
        assert after.rows("SELECT count(*), count(DISTINCT request_key) FROM completion WHERE error = ''") == [
            (needed, needed)
        ]
        assert after.rows("SELECT count(*) FROM completion WHERE error <> ''") == [(0,)]
        assert after.rows("SELECT count(*), count(DISTINCT (run_id, prompt_id, item)) FROM outcome") == [(480, 480)]
        matrices = [after.results(run).matrix.sums.tolist() for run in planned]
    generated = Counter((sweeper.folder / "generated").read_text().splitlines())
    assert len(generated) == needed
    assert sum(generated.values()) <= needed + IN_FLIGHT * machine.kills["worker"]
    print(json.dumps({"seed": seed, **machine.kills, "needed": needed, "generated": sum(generated.values())}))

    undisturbed = Workspace(sweeper.folder / "undisturbed")
    with Store(undisturbed) as store:
        quiet = Sweeper(store, sweeper.folder / "undisturbed")
        assert [quiet.swept(order, seconds=0.0).matrix.sums.tolist() for order in orders] == matrices
