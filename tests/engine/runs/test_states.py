"""State, control and description survive damage, and a run whose worker is gone says so."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.backends.protocol import ModelSpec
from engine.errors import EvaldeskError
from engine.runs import queue
from engine.runs.locks import try_lock
from engine.runs.protocol import Control, RunDir, RunState, RunStatus
from engine.runs.states import (
    STALE_S,
    RunDescription,
    observed_state,
    read_control,
    read_description,
    read_state,
    write_control,
    write_description,
    write_state,
    write_state_at_any_cost,
)

pytestmark = pytest.mark.usefixtures("quick_disk")

FULL = RunState(
    RunStatus.RUNNING,
    planned=9,
    done=3,
    failed=1,
    in_flight=2,
    tokens_per_s=1.5,
    eta_s=7.0,
    message="half \ud800 way",
    pid=12,
    host="desk",
    starts=2,
    started_at=1.0,
    extra={"features": ["schema"]},
)


def test_a_state_comes_back_as_it_was_written(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    assert read_state(run_dir) == RunState(RunStatus.QUEUED)
    write_state(run_dir, FULL)
    assert read_state(run_dir) == FULL
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(content=st.binary(max_size=60) | st.sampled_from([b'{"status":"done","done":"x"}', b'{"status":"odd"}', b"3"]))
def test_a_damaged_state_reads_as_interrupted(tmp_path: Path, content: bytes) -> None:
    run_dir = RunDir(tmp_path)
    run_dir.state.write_bytes(content)
    state = read_state(run_dir)
    assert state.status is RunStatus.INTERRUPTED
    assert "state.json" in state.message


def test_fields_of_a_later_version_are_passed_over(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    run_dir.state.write_text('{"status": "done", "done": 4, "mood": "fine"}')
    assert read_state(run_dir) == RunState(RunStatus.DONE, done=4)


@pytest.mark.parametrize("status", [RunStatus.LOADING, RunStatus.RUNNING])
@pytest.mark.parametrize("age", [STALE_S + 60, -STALE_S - 60])
def test_a_stale_heartbeat_and_a_free_lock_mean_interrupted(tmp_path: Path, status: RunStatus, age: float) -> None:
    run_dir = RunDir(tmp_path)
    write_state(run_dir, replace(FULL, status=status, updated_at=time.time() - age))
    observed = observed_state(run_dir)
    assert (observed.status, observed.done, observed.in_flight) == (RunStatus.INTERRUPTED, 3, 0)
    lock = try_lock(run_dir.lock)
    assert lock is not None
    with lock:
        assert observed_state(run_dir).status is status, "whoever holds the lock is alive, however slow"


def test_a_run_that_a_supervisor_is_about_to_start_again_goes_on_however_old_its_heartbeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(queue.STATE_VARIABLE, str(tmp_path / "state"))
    run_dir = RunDir(tmp_path / "run")
    run_dir.path.mkdir()
    model = ModelSpec("llamacpp", "smollm2", "/models/a.gguf")
    write_description(run_dir, RunDescription("run", "", "/w", "cpu", model, "", 0.0))
    write_state(run_dir, replace(FULL, updated_at=time.time() + 3600))
    queue.enqueue(run_dir, "cpu")
    assert observed_state(run_dir).status is RunStatus.INTERRUPTED, "nobody drains the queue"
    supervising = try_lock(queue.device_lock("cpu"))
    assert supervising is not None
    with supervising:
        assert observed_state(run_dir) == read_state(run_dir)
        queue.remove(run_dir, "cpu")
        assert observed_state(run_dir).status is RunStatus.INTERRUPTED


@pytest.mark.parametrize(
    ("control", "status"), [(Control.CANCEL, RunStatus.CANCELLED), (Control.PAUSE, RunStatus.PAUSED)]
)
def test_a_worker_that_is_gone_after_it_was_told_to_stop_has_stopped(
    tmp_path: Path, control: Control, status: RunStatus
) -> None:
    run_dir = RunDir(tmp_path)
    write_state(run_dir, replace(FULL, status=RunStatus.RUNNING, updated_at=time.time() - STALE_S - 60))
    write_control(run_dir, control)
    observed = observed_state(run_dir)
    assert (observed.status, observed.done, observed.planned) == (status, FULL.done, FULL.planned)


def test_a_fresh_heartbeat_and_every_other_status_stand_as_they_are(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    write_state(run_dir, replace(FULL, updated_at=time.time()))
    assert observed_state(run_dir).status is RunStatus.RUNNING
    for status in set(RunStatus) - {RunStatus.LOADING, RunStatus.RUNNING}:
        write_state(run_dir, replace(FULL, status=status))
        assert observed_state(run_dir).status is status


def test_where_a_file_cannot_be_replaced_the_last_state_is_written_over_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = RunDir(tmp_path)
    write_state(run_dir, FULL)

    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("engine.runs.states.replace_file", full_disk)
    with pytest.raises(EvaldeskError, match="Free some space"):
        write_state(run_dir, FULL)
    assert write_state_at_any_cost(run_dir, RunState(RunStatus.FAILED, message="full"))
    assert read_state(run_dir) == RunState(RunStatus.FAILED, message="full")


def test_the_last_word_of_control_counts_and_none_means_run(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    assert read_control(run_dir) is Control.RUN
    for control in (Control.PAUSE, Control.CANCEL, Control.RUN):
        write_control(run_dir, control)
        assert read_control(run_dir) is control
    run_dir.control.write_bytes(b"\xffdance")
    assert read_control(run_dir) is Control.RUN


def test_a_description_comes_back_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    model = ModelSpec("llamacpp", "smollm2", "/models/a.gguf", 2048, 4, wait_gpu_memory=20.5)
    description = RunDescription("r1", "Judge sealed", "/w", "cpu", model, "abc", 3.5)
    write_description(run_dir, description)
    assert read_description(run_dir) == description
    for damaged in (b"", b"[]", b"{}", b'{"run_id": 1}'):
        run_dir.description.write_bytes(damaged)
        with pytest.raises(EvaldeskError, match=r"run\.json"):
            read_description(run_dir)
    run_dir.description.unlink()
    with pytest.raises(EvaldeskError, match=r"run\.json"):
        read_description(run_dir)
