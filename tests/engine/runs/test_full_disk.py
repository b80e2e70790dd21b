"""A run on a real disk that fills up: it stops cleanly, says so, loses nothing, and goes on when there is room."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from engine.runs import control, queue, states
from engine.runs.protocol import RunState, RunStatus
from engine.runs.spool import read_results
from engine.runs.supervisor import EXIT_ENDED, EXIT_FAILED
from tests.engine.runs.conftest import DEVICE, WINDOW, Desk, assert_complete, finish, wait_until
from tests.engine.small_disk import SmallDisk, on_small_disk

REQUESTS = 120


def fill_and_go_on(disk: SmallDisk, leave: int, name: str) -> None:
    """A worker alone on a disk with ``leave`` bytes left, then with room."""
    desk = Desk(disk.path, [])
    run_dir = desk.run(name, REQUESTS, seconds=0.001, side_file=str(disk.beside / name))
    states.write_state(run_dir, RunState(RunStatus.QUEUED, planned=REQUESTS))
    disk.fill(leave)
    assert desk.worker(run_dir).wait() == EXIT_FAILED
    state = states.read_state(run_dir)
    assert "cannot write: No space left on device" in state.message
    assert "Free some space, then resume the run." in state.message
    assert state.status is RunStatus.FAILED
    whole, _ = read_results(run_dir.results)
    assert not any(line.get("refused") for line in whole), "nothing torn is taken for a result"
    disk.make_room()
    assert desk.worker(run_dir).wait() == EXIT_ENDED
    assert_complete(run_dir)
    lines, _ = read_results(run_dir.results)
    assert lines[: len(whole)] == whole
    asked = len((disk.beside / name).read_text().splitlines())
    assert REQUESTS <= asked <= REQUESTS + 2 * WINDOW
    shutil.rmtree(run_dir.path)
    print(leave, len(whole), asked)


def soon_full(disk: SmallDisk) -> None:
    fill_and_go_on(disk, 16 << 10, "soon")


def full_at_many_bytes(disk: SmallDisk) -> None:
    rng = random.Random(1)
    for number, leave in enumerate([0, 4 << 10, *(rng.randrange(8 << 10, 36 << 10) for _ in range(13))]):
        fill_and_go_on(disk, leave, f"r{number}")


def queue_and_run_on_one_disk(disk: SmallDisk) -> None:
    desk = Desk(disk.path, [])
    first = desk.run("first", REQUESTS, side_file=str(disk.beside / "first"))
    second = desk.run("second", 10, side_file=str(disk.beside / "second"))
    control.start(first)
    control.start(second)
    disk.fill(16 << 10)
    assert finish(first).status is RunStatus.FAILED
    # The queue goes on: to the second run, which fits or fails for the same reason, and then it is empty.
    assert finish(second).status in (RunStatus.DONE, RunStatus.FAILED)
    wait_until(lambda: not queue.entries(DEVICE))
    disk.make_room()
    for run_dir in (first, second):
        if states.observed_state(run_dir).status is not RunStatus.DONE:
            control.resume(run_dir)
        assert finish(run_dir).status is RunStatus.DONE
        assert_complete(run_dir)
    wait_until(lambda: not queue.entries(DEVICE) and not desk.supervisor_pid())


@pytest.fixture
def beside(tmp_path: Path, desk: Desk) -> Path:
    return tmp_path


def test_a_run_that_fills_the_disk_stops_says_so_and_goes_on_when_there_is_room(beside: Path) -> None:
    assert on_small_disk(soon_full, beside, 256).startswith("16384 ")


@pytest.mark.slow
def test_at_whatever_byte_the_disk_is_full_every_request_has_one_result_in_the_end(beside: Path) -> None:
    assert len(on_small_disk(full_at_many_bytes, beside, 256).splitlines()) == 15


@pytest.mark.slow
def test_a_queue_on_the_full_disk_goes_on_too(beside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(queue.STATE_VARIABLE, str(beside / "disk" / "state"))
    on_small_disk(queue_and_run_on_one_disk, beside, 512)
    monkeypatch.setenv(queue.STATE_VARIABLE, str(beside / "state"))
