"""What starts in the same moment: one owns the workspace or works on the run, and nothing that was asked for is lost."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from engine import requests
from engine.errors import EvaldeskError, WorkspaceBusy
from engine.runs import control, queue
from engine.runs.protocol import RunDir, RunStatus
from engine.runs.states import read_state
from engine.runs.supervisor import EXIT_ENDED, EXIT_HELD
from engine.store import criteria
from engine.store.store import Store
from engine.store.workspace import Workspace
from tests.engine.racing import Racers
from tests.engine.runs.conftest import DEVICE, Desk, assert_complete, desk, finish, generated, open_gate, wait_until

__all__ = ["desk"]

RACERS = 3
LATEST_S = 0.05
"""Starts are up to so much apart."""


def own(path: str, hold_s: float) -> dict[str, Any]:
    """Open the workspace as an app does; when it was owned, or who has it."""
    try:
        with Store(Workspace(Path(path)), program="racer") as store:
            began = time.monotonic()
            steps = store.call(lambda tx: tx.rows("SELECT number FROM schema_migrations"))
            time.sleep(hold_s)
            owned = (began, time.monotonic())
    except WorkspaceBusy as busy:
        return {"busy": busy.pid, "said": str(busy)}
    return {"pid": os.getpid(), "owned": owned, "steps": len(steps)}


def ask(path: str, name: str) -> dict[str, Any]:
    """A criterion of that name, or what fails and leaves no workspace where there was none."""
    body = {"kind": "criterion", "criterion": name, "question": "?", "pass_when": "p", "fail_when": "f"}
    if name == "fails":
        body["question"] = ""
    return requests.ask(Workspace(Path(path)), body, create=True)


def start(path: str) -> str:
    control.start(RunDir(Path(path)))
    return "started"


def offsets(rng: random.Random) -> list[float]:
    return [rng.uniform(0, LATEST_S) for _ in range(RACERS)]


def race_for_a_workspace(folder: Path, rounds: int) -> None:
    rng = random.Random(rounds)
    with Racers(RACERS) as racers:
        for number in range(rounds):
            path = folder / f"ws{number}"
            found = racers.race(own, [(offset, [str(path), rng.uniform(0, 0.03)]) for offset in offsets(rng)])
            assert not [one for one in found if "fault" in one or "error" in one], found
            spans = sorted(one["owned"] for one in found if "owned" in one)
            assert spans
            assert all(before[1] < after[0] for before, after in itertools.pairwise(spans)), "two at once"
            owners = {one["pid"] for one in found if "owned" in one}
            for one in found:
                assert one.get("busy", 0) in {0, *owners}
                assert "busy" not in one or "the workspace is in use by" in one["said"]
            assert len({one["steps"] for one in found if "steps" in one}) == 1


def race_to_ask(folder: Path, rounds: int) -> None:
    rng = random.Random(rounds)
    with Racers(RACERS) as racers:
        for number in range(rounds):
            path = folder / f"asked{number}"
            names = [rng.choice(["fails", f"c{racer}"]) for racer in range(RACERS)]
            # Not all in one moment: the next one comes while the one before closes, or takes its workspace away.
            starts = [racer * rng.uniform(0, LATEST_S) for racer in range(RACERS)]
            found = racers.race(ask, [(t, [str(path), name]) for t, name in zip(starts, names, strict=True)])
            wanted = sorted(name for name in names if name != "fails")
            for name, one in zip(names, found, strict=True):
                assert ("a criterion needs" in one["error"]) if name == "fails" else one["criterion"] == name, found
            assert path.exists() or not wanted
            if path.exists():
                with Store(Workspace(path), create=False) as store:
                    assert sorted(c.criterion_id for c in store.call(criteria.everyone)) == wanted, found
                assert not any((path / "inbox").iterdir())


def race_of_workers(desk: Desk, rounds: int) -> None:
    rng = random.Random(rounds)
    for number in range(rounds):
        run_dir = desk.run(f"w{number}", 24, hold_after=8)
        workers: list[subprocess.Popen[str]] = []
        for pause in (0.0, rng.uniform(0, LATEST_S), rng.uniform(0, LATEST_S)):
            time.sleep(pause)
            workers.append(desk.worker(run_dir))
        wait_until(lambda workers=workers: sum(worker.poll() is not None for worker in workers) == len(workers) - 1)
        open_gate(run_dir)
        codes = Counter(worker.wait() for worker in workers)
        assert codes == {EXIT_ENDED: 1, EXIT_HELD: 2}
        assert_complete(run_dir)
        assert (generated(run_dir), read_state(run_dir).starts) == (24, 1)


def race_to_start(desk: Desk, rounds: int) -> None:
    rng = random.Random(rounds)
    with Racers(RACERS) as racers:
        for number in range(rounds):
            run_dir = desk.run(f"s{number}", 24, seconds=0.005)
            found = racers.race(start, [(offset, [str(run_dir.path)]) for offset in offsets(rng)])
            assert found == ["started"] * RACERS
            wait_until(lambda run_dir=run_dir: finish(run_dir).status is RunStatus.DONE)
            if rng.random() < 0.5:  # else the supervisors of this round meet the next run
                wait_until(lambda: not desk.supervisor_pid() and not queue.entries(DEVICE))
            assert_complete(run_dir)
            assert generated(run_dir) == 24


@pytest.mark.slow
def test_of_those_who_open_a_workspace_at_once_one_owns_it_and_the_others_are_told(tmp_path: Path) -> None:
    race_for_a_workspace(tmp_path, 3)


def test_of_workers_that_start_at_once_one_works_on_the_run(desk: Desk) -> None:
    race_of_workers(desk, 1)


def test_what_another_puts_into_a_workspace_while_it_is_being_taken_away_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ws"
    real = Workspace.remove_unused
    with Racers(1) as racers, ThreadPoolExecutor(1) as pool:
        asked: list[Future[list[Any]]] = []

        def remove(workspace: Workspace) -> None:
            asked.append(pool.submit(racers.race, ask, [(0.0, [str(path), "c1"])]))
            # It has what it asked for, or it waits for the one that is here.
            wait_until(lambda: asked[0].done() or any((path / "inbox").glob("*.request.json")))
            real(workspace)

        monkeypatch.setattr(Workspace, "remove_unused", remove)
        with pytest.raises(EvaldeskError, match="a criterion needs"):
            ask(str(path), "fails")
        assert asked[0].result()[0]["criterion"] == "c1"
    with Store(Workspace(path), create=False) as store:
        assert [c.criterion_id for c in store.call(criteria.everyone)] == ["c1"]


@pytest.mark.slow
def test_races_for_a_workspace_many_times(tmp_path: Path) -> None:
    race_for_a_workspace(tmp_path, 60)


@pytest.mark.slow
def test_what_commands_ask_at_once_is_all_done_though_some_fail_and_take_their_empty_workspace_away(
    tmp_path: Path,
) -> None:
    race_to_ask(tmp_path, 60)


@pytest.mark.slow
def test_races_of_workers_many_times(desk: Desk) -> None:
    race_of_workers(desk, 15)


@pytest.mark.slow
def test_a_run_that_is_started_from_everywhere_at_once_is_done_once(desk: Desk) -> None:
    race_to_start(desk, 30)
