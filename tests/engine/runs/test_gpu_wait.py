"""A run waits for free GPU memory where it was told to, and stops waiting when it is told that. The driver is a stand-in."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from engine.runs import states
from engine.runs.protocol import Control, RunStatus
from engine.runs.supervisor import EXIT_ENDED, EXIT_FAILED, EXIT_INTERRUPTED
from tests.engine.runs.conftest import ROOT, Desk, assert_complete, generated, says, wait_until

WAITS = "waiting for 20.0 GiB of free GPU memory, 3.5 GiB free"

DRIVER = """
from pathlib import Path
from types import SimpleNamespace

class NVMLError(Exception):
    pass

def nvmlInit():
    pass

def nvmlDeviceGetCount():
    return 2

def nvmlDeviceGetHandleByIndex(number):
    return number

def nvmlDeviceGetMemoryInfo(handle):
    try:
        free = float(Path(__file__).with_name("free").read_text()) / 2
    except OSError:
        raise NVMLError("GPU is lost")
    return SimpleNamespace(used=int((12 - free) * 2**30), total=12 * 2**30)

def nvmlDeviceGetName(handle):
    return "A GPU"

def nvmlDeviceGetUtilizationRates(handle):
    return SimpleNamespace(gpu=97)
"""


@pytest.fixture
def free(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that says how many GiB are free on two GPUs of 12 GiB together."""
    folder = tmp_path / "driver"
    folder.mkdir()
    (folder / "pynvml.py").write_text(DRIVER)
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{ROOT}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (folder / "free").write_text("3.5")
    return folder / "free"


def test_a_run_waits_until_so_much_is_free_over_all_gpus_and_then_goes_on(desk: Desk, free: Path) -> None:
    run_dir = desk.run("waits", 8, wait_gpu_memory=20.0)
    worker = desk.worker(run_dir)
    wait_until(says(run_dir, WAITS))
    first = states.read_state(run_dir)
    assert (first.status, first.planned) == (RunStatus.LOADING, 8)
    assert generated(run_dir) == 0 and not run_dir.scratch.exists()
    wait_until(lambda: states.read_state(run_dir).updated_at > first.updated_at)
    free.write_text("21")
    assert worker.wait() == EXIT_ENDED
    assert_complete(run_dir)


@pytest.mark.parametrize(
    ("word", "status", "code"),
    [
        (Control.PAUSE, RunStatus.PAUSED, EXIT_ENDED),
        (Control.CANCEL, RunStatus.CANCELLED, EXIT_ENDED),
        (signal.SIGTERM, RunStatus.INTERRUPTED, EXIT_INTERRUPTED),
    ],
)
def test_who_waits_obeys(desk: Desk, free: Path, word: Control | signal.Signals, status: RunStatus, code: int) -> None:
    run_dir = desk.run("obeys", 8, wait_gpu_memory=20.0)
    worker = desk.worker(run_dir)
    wait_until(says(run_dir, WAITS))
    if isinstance(word, Control):
        states.write_control(run_dir, word)
    else:
        worker.send_signal(word)
    assert worker.wait() == code
    state = states.read_state(run_dir)
    assert (state.status, state.message, state.planned, generated(run_dir)) == (status, "", 8, 0)


def test_where_no_driver_tells_what_is_free_the_run_goes_on_at_once_and_notes_it(desk: Desk, free: Path) -> None:
    free.unlink()
    run_dir = desk.run("blind", 8, wait_gpu_memory=20.0)
    with run_dir.log.open("w") as log:
        assert desk.worker(run_dir, stderr=log).wait() == EXIT_ENDED
    assert_complete(run_dir)
    assert "not waiting for 20.0 GiB of free GPU memory: no NVIDIA driver tells" in run_dir.log.read_text()


def test_more_than_the_gpus_have_is_refused_rather_than_waited_for(desk: Desk, free: Path) -> None:
    run_dir = desk.run("greedy", 8, wait_gpu_memory=30.0)
    assert desk.worker(run_dir).wait() == EXIT_FAILED
    assert (
        "30.0 GiB of free GPU memory, and the GPUs that it sees have 24.0 GiB in all"
        in states.read_state(run_dir).message
    )
