"""The queue goes on, whoever is killed: every request gets exactly one result, with little done twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import EvaldeskError
from engine.runs import control, plan_file, queue, states
from engine.runs.protocol import RunDir, RunStatus
from engine.runs.spool import read_results
from engine.runs.supervisor import ensure_supervisor
from tests.engine.runs.conftest import (
    DEVICE,
    WINDOW,
    Desk,
    assert_complete,
    finish,
    generated,
    has_status,
    kill,
    open_gate,
    reached,
    request,
    says,
    wait_until,
)


def kill_worker(desk: Desk, run_dir: RunDir) -> bool:
    """Kill the run's worker if there is one now; whether there was."""
    pid = desk.worker_pid(run_dir)
    try:
        if pid:
            kill(pid)
    except ProcessLookupError:
        return False
    return bool(pid)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))])
def test_a_worker_killed_at_random_moments_loses_and_doubles_nothing(desk: Desk, seed: int) -> None:
    rng = random.Random(seed)
    run_dir = desk.run("killed", 60, seconds=0.02)
    control.start(run_dir)
    kills = 0
    for share in sorted(rng.uniform(0.0, 0.9) for _ in range(3)):
        wait_until(reached(run_dir, int(60 * share)))
        wait_until(lambda: desk.worker_pid(run_dir) or states.read_state(run_dir).status is RunStatus.DONE)
        kills += kill_worker(desk, run_dir)
    assert finish(run_dir).status is RunStatus.DONE
    assert kills
    assert_complete(run_dir)
    assert generated(run_dir) <= 60 + kills * WINDOW


def test_three_queued_runs_finish_in_order_though_a_worker_is_killed(desk: Desk) -> None:
    runs = [desk.run(name, 20, hold_after=5 if name == "two" else -1) for name in ("one", "two", "three")]
    for run_dir in runs:
        control.start(run_dir)
    wait_until(reached(runs[1], 3))
    assert kill_worker(desk, runs[1])
    open_gate(runs[1])
    for run_dir in runs:
        assert finish(run_dir).status is RunStatus.DONE
        assert_complete(run_dir)
    ends = [max(line["at"] for line in read_results(run_dir.results, 0)[0]) for run_dir in runs]
    assert ends == sorted(ends)
    wait_until(lambda: not desk.supervisor_pid())
    assert queue.entries(DEVICE) == []


def test_a_killed_supervisor_holds_up_neither_its_run_nor_the_next(desk: Desk) -> None:
    first, second = desk.run("first", 40, hold_after=3), desk.run("second", 10)
    control.start(first)
    control.start(second)
    wait_until(reached(first, 3))
    kill(desk.supervisor_pid())
    open_gate(first)
    assert finish(first).status is RunStatus.DONE
    assert finish(second).status is RunStatus.DONE
    for run_dir in (first, second):
        assert_complete(run_dir)
    assert generated(first) == 40, "the orphaned worker went on, nothing was done twice"


def test_a_new_supervisor_waits_for_an_orphaned_worker(desk: Desk) -> None:
    run_dir, after = desk.run("orphan", 40, hold_after=3), desk.run("after", 5)
    control.start(run_dir)
    wait_until(reached(run_dir, 3))
    kill(desk.supervisor_pid())
    wait_until(lambda: not desk.supervisor_pid())
    control.start(after)
    wait_until(desk.supervisor_pid)
    assert states.read_state(after).status is RunStatus.QUEUED
    open_gate(run_dir)
    assert finish(run_dir).status is RunStatus.DONE
    assert finish(after).status is RunStatus.DONE
    assert generated(run_dir) == 40
    assert states.read_state(run_dir).starts == 1


def test_when_supervisor_and_worker_are_killed_the_next_start_of_the_app_goes_on(desk: Desk) -> None:
    run_dir = desk.run("both", 40, hold_after=3)
    control.start(run_dir)
    wait_until(reached(run_dir, 3))
    kill(desk.supervisor_pid())
    kill_worker(desk, run_dir)
    wait_until(lambda: not desk.supervisor_pid() and not desk.worker_pid(run_dir))
    open_gate(run_dir)
    assert queue.waiting_devices() == [DEVICE]
    assert ensure_supervisor(DEVICE)
    assert finish(run_dir).status is RunStatus.DONE
    assert_complete(run_dir)
    assert generated(run_dir) <= 40 + WINDOW


def test_a_run_that_crashes_without_progress_fails_with_the_reason_and_the_next_one_runs(desk: Desk) -> None:
    crashing, fine = desk.run("crashing", 10, crash_after=0), desk.run("fine", 10)
    control.start(crashing)
    control.start(fine)
    state = finish(crashing)
    assert (state.status, state.starts) == (RunStatus.FAILED, 4)
    assert "signal 9" in state.message
    assert finish(fine).status is RunStatus.DONE
    assert_complete(fine)
    desk.describe(crashing)
    control.resume(crashing)
    assert finish(crashing).status is RunStatus.DONE
    assert_complete(crashing)


@pytest.mark.slow
def test_a_run_that_crashes_but_gets_on_is_started_as_often_as_it_takes(desk: Desk) -> None:
    run_dir = desk.run("stumbling", 24, crash_after=9, seconds=0.005)
    control.start(run_dir)
    state = finish(run_dir)
    assert state.status is RunStatus.DONE
    assert state.starts > 4
    assert_complete(run_dir)


@pytest.mark.slow
def test_a_run_that_cannot_load_its_model_is_not_tried_again_and_the_next_one_runs(desk: Desk) -> None:
    broken, fine = desk.run("broken", 10, load_error="no such model"), desk.run("fine", 10)
    control.start(broken)
    control.start(fine)
    state = finish(broken)
    assert (state.status, state.starts, state.message) == (RunStatus.FAILED, 1, "no such model.")
    assert finish(fine).status is RunStatus.DONE


@pytest.mark.slow
def test_the_log_of_a_worker_that_ends_unexpectedly_gives_the_reason(desk: Desk) -> None:
    run_dir = desk.run("odd", 5, unknown_setting=1)
    control.start(run_dir)
    state = finish(run_dir)
    assert state.status is RunStatus.FAILED
    assert "unknown_setting" in state.message
    assert state.message.isprintable()


def test_a_second_supervisor_leaves_quietly(desk: Desk) -> None:
    run_dir = desk.run("only", 30, hold_after=3)
    control.start(run_dir)
    wait_until(has_status(run_dir, RunStatus.RUNNING))
    assert not ensure_supervisor(DEVICE)
    command = [sys.executable, "-P", "-m", "engine.runs.supervisor", DEVICE]
    second = subprocess.run(command, capture_output=True, check=True)
    assert second.stdout + second.stderr == b""
    open_gate(run_dir)
    assert finish(run_dir).status is RunStatus.DONE
    assert generated(run_dir) == 30


def test_sigterm_to_the_supervisor_interrupts_the_run_and_keeps_the_queue_for_the_next_start(desk: Desk) -> None:
    run_dir = desk.run("shutdown", 40, hold_after=3)
    control.start(run_dir)
    wait_until(reached(run_dir, 3))
    os.kill(desk.supervisor_pid(), signal.SIGTERM)
    wait_until(says(run_dir, "stopping"))
    open_gate(run_dir)
    assert finish(run_dir).status is RunStatus.INTERRUPTED
    wait_until(lambda: not desk.supervisor_pid())
    assert [entry.run_dir.path for entry in queue.entries(DEVICE)] == [run_dir.path.resolve()]
    ensure_supervisor(DEVICE)
    wait_until(has_status(run_dir, RunStatus.DONE))
    assert_complete(run_dir)


def test_a_run_whose_directory_is_gone_does_not_hold_up_the_queue(desk: Desk) -> None:
    gone, fine = RunDir(desk.folder / "gone"), desk.run("fine", 5)
    queue.enqueue(gone, DEVICE)
    control.start(fine)
    assert finish(fine).status is RunStatus.DONE


def test_a_done_run_whose_plan_grew_goes_on_when_started_again(desk: Desk) -> None:
    run_dir = desk.run("grown", 5)
    control.start(run_dir)
    assert finish(run_dir).status is RunStatus.DONE
    plan_file.append_plan(run_dir, [request("grown", number) for number in range(5, 12)])
    control.start(run_dir)
    assert finish(run_dir).status is RunStatus.DONE
    assert_complete(run_dir)
    assert generated(run_dir) == 12


def test_supervisor_and_worker_live_in_sessions_of_their_own(desk: Desk) -> None:
    run_dir = desk.run("sessions", 40, hold_after=3)
    control.start(run_dir)
    wait_until(has_status(run_dir, RunStatus.RUNNING))
    sessions = {os.getsid(0), os.getsid(desk.supervisor_pid()), os.getsid(desk.worker_pid(run_dir))}
    assert len(sessions) == 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_kills_pauses_and_cancels_in_any_order_lose_and_double_nothing(desk: Desk, seed: int) -> None:
    rng = random.Random(seed)
    runs = [desk.run(name, 50, seconds=0.02) for name in ("left", "right")]
    for run_dir in runs:
        control.start(run_dir)
    for _ in range(12):
        run_dir = rng.choice(runs)
        results = len(read_results(run_dir.results, 0)[0])
        act = rng.choice(["worker", "supervisor", "pause", "cancel", "resume", "look"])
        try:
            if act == "worker":
                kill_worker(desk, run_dir)
            elif act == "supervisor" and (pid := desk.supervisor_pid()):
                kill(pid)
            elif act == "pause":
                control.pause(run_dir)
            elif act == "cancel":
                control.cancel(run_dir)
            elif act == "resume":
                control.resume(run_dir)
            elif desk.worker_pid(run_dir):
                wait_until(lambda: reached(run_dir, results + 3)() or not desk.worker_pid(run_dir))  # noqa: B023
        except (EvaldeskError, ProcessLookupError):
            # The run had ended already, or the process had.
            continue
    for run_dir in runs:
        if states.read_state(run_dir).status is not RunStatus.DONE:
            control.resume(run_dir)
    for run_dir in runs:
        wait_until(has_status(run_dir, RunStatus.DONE))
        assert_complete(run_dir)
        assert states.read_state(run_dir).failed == 0


def test_a_worker_gives_the_terminal_app_the_processor_first(desk: Desk) -> None:
    run_dir = desk.run("polite", 10, hold_after=3)
    control.start(run_dir)
    wait_until(has_status(run_dir, RunStatus.RUNNING))
    pid = desk.worker_pid(run_dir)
    assert os.getpriority(os.PRIO_PROCESS, pid) == 19
    assert os.getsid(pid) == pid, "the only one in its session"
    autogroup = Path(f"/proc/{pid}/autogroup")
    if autogroup.exists():
        assert autogroup.read_text("ascii").split()[-1] == "10", "a session at 19 starves beside busy ones"
    open_gate(run_dir)
    assert finish(run_dir).status is RunStatus.DONE
