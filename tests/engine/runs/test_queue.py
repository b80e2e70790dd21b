"""A device's queue: first come, first served, each run once, whatever devices and directories are called."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import EvaldeskError
from engine.runs import queue
from engine.runs.protocol import RunDir

pytestmark = pytest.mark.usefixtures("quick_disk")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(queue.STATE_VARIABLE, str(tmp_path / "deep" / "state"))
    return tmp_path / "deep" / "state"


def names(device: str = "cpu") -> list[str]:
    return [entry.run_dir.run_id for entry in queue.entries(device)]


def test_runs_stand_in_the_order_in_which_they_came_each_once(tmp_path: Path) -> None:
    for name in ("c", "a", "b", "a"):
        queue.enqueue(RunDir(tmp_path / name), "cpu")
    assert names() == ["c", "a", "b"]
    assert queue.remove(RunDir(tmp_path / "c"), "cpu")
    assert not queue.remove(RunDir(tmp_path / "c"), "cpu")
    queue.enqueue(RunDir(tmp_path / "c"), "cpu")
    assert names() == ["a", "b", "c"]
    assert all(entry.run_dir.path.is_absolute() for entry in queue.entries("cpu"))


def test_a_waiting_run_knows_which_one_goes_first(tmp_path: Path) -> None:
    first, second, third = (RunDir(tmp_path / name) for name in ("first", "second", "third"))
    for run_dir in (first, second):
        queue.enqueue(run_dir, "cpu")
    assert queue.ahead_of(second, "cpu") == queue.absolute(first)
    assert queue.ahead_of(first, "cpu") is None
    assert queue.ahead_of(third, "cpu") is None


def test_relative_and_linked_paths_are_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    for path in (Path("run"), tmp_path / "run", tmp_path / "link"):
        queue.enqueue(RunDir(path), "cpu")
    assert names() == ["run"]


def test_a_run_asked_for_again_stays_when_its_earlier_start_leaves(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path / "run")
    queue.enqueue(run_dir, "cpu")
    ticket = queue.ticket_of(run_dir, "cpu")
    queue.enqueue(run_dir, "cpu")
    assert not queue.remove(run_dir, "cpu", ticket=ticket)
    assert names() == ["run"]
    assert queue.remove(run_dir, "cpu", ticket=queue.ticket_of(run_dir, "cpu"))
    assert queue.ticket_of(run_dir, "cpu") == ""


def test_many_at_once_all_get_a_place_of_their_own(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: queue.enqueue(RunDir(tmp_path / str(number % 10)), "cpu"), range(20)))
    entries = queue.entries("cpu")
    assert sorted(names()) == sorted(str(number) for number in range(10))
    assert len({entry.place for entry in entries}) == 10


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20, deadline=None)
@given(device=st.text(min_size=1, max_size=8) | st.sampled_from([".", "..", "../x", "cuda:0", "/", "%2E", "a\0b"]))
def test_no_device_name_leaves_the_folder_of_devices(tmp_path: Path, state: Path, device: str) -> None:
    queue.enqueue(RunDir(tmp_path / "run"), device)
    folder = queue.device_dir(device)
    assert folder.resolve().parent == (state / "devices").resolve()
    assert names(device) == ["run"]
    assert device in queue.waiting_devices()
    queue.remove(RunDir(tmp_path / "run"), device)
    assert device not in queue.waiting_devices()


@pytest.mark.parametrize("device", ["", "x" * 300])
def test_a_device_without_a_usable_name_is_refused(tmp_path: Path, device: str) -> None:
    with pytest.raises(EvaldeskError, match="name"):
        queue.enqueue(RunDir(tmp_path / "run"), device)


def test_hostile_run_directories_are_data_only(tmp_path: Path) -> None:
    strange = [tmp_path / "a b\n{x}\x1b[0m", tmp_path / os.fsdecode(b"\xff\xfe"), tmp_path / "--flag"]
    for path in strange:
        queue.enqueue(RunDir(path), "cpu")
    assert [entry.run_dir.path for entry in queue.entries("cpu")] == [path.resolve() for path in strange]
    assert all(entry.file.name.isascii() for entry in queue.entries("cpu"))


def test_files_that_are_no_entries_hold_up_nothing(tmp_path: Path) -> None:
    queue.enqueue(RunDir(tmp_path / "run"), "cpu")
    folder = queue.device_dir("cpu") / "queue"
    (folder / "notes.txt").write_text("hello")
    (folder / f"{0:012d}-{'0' * 16}.json").write_text("{")
    (folder / f"{0:012d}-{'1' * 16}.json").write_text('{"run_dir": "relative", "ticket": "x"}')
    assert names() == ["run"]


def test_the_state_folder_is_private(tmp_path: Path, state: Path) -> None:
    queue.enqueue(RunDir(tmp_path / "run"), "cpu")
    for folder in (state, state / "devices", state / "devices" / "cpu", state / "devices" / "cpu" / "queue"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(queue.entries("cpu")[0].file.stat().st_mode) == 0o600
