"""What a user wants done when a run has ended is started once for each end, and told in its environment alone."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.runs import control, states
from engine.runs.finish_hook import hook_file
from engine.runs.protocol import RunStatus
from tests.engine.runs.conftest import Desk, finish, reached, wait_until

TELLS = """#!{python}
import json, os, sys
told = {{name: value for name, value in os.environ.items() if name.startswith("EVALDESK_RE") or name in (
    "EVALDESK_RUN", "EVALDESK_STATUS", "EVALDESK_TITLE", "EVALDESK_MESSAGE", "EVALDESK_WORKSPACE")}}
with open({out!r}, "a") as out:
    out.write(json.dumps([told, sys.argv[1:]]) + chr(10))
print("told")
"""


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program as the hook; the file that it writes a line to for each call."""
    monkeypatch.setenv("EVALDESK_CONFIG_DIR", str(tmp_path / "config"))
    out = tmp_path / "told"
    hook_file().parent.mkdir()
    hook_file().write_text(TELLS.format(python=sys.executable, out=str(out)))
    hook_file().chmod(0o755)
    return out


def calls(told: Path) -> list[Any]:
    return [json.loads(line) for line in told.read_text().splitlines()] if told.exists() else []


def test_the_end_of_a_run_is_told_once_with_how_it_ended(desk: Desk, told: Path) -> None:
    run_dir = desk.run("x", 5, fail_keys=["x-0001"])
    control.start(run_dir)
    assert finish(run_dir).status is RunStatus.DONE
    wait_until(lambda: calls(told))
    [[said, arguments]] = calls(told)
    assert arguments == []
    assert (said["EVALDESK_RUN"], said["EVALDESK_STATUS"], said["EVALDESK_TITLE"]) == ("x", "done", "x")
    assert (said["EVALDESK_REQUESTS_DONE"], said["EVALDESK_REQUESTS_FAILED"]) == ("4", "1")
    assert said["EVALDESK_WORKSPACE"] == str(desk.folder / "workspace")
    wait_until(lambda: b"told" in run_dir.log.read_bytes())


def test_a_run_that_fails_and_one_that_crashes_are_told_with_the_reason(desk: Desk, told: Path) -> None:
    run_dir = desk.run("bad", 5, load_error="no CUDA device")
    control.start(run_dir)
    assert finish(run_dir).status is RunStatus.FAILED
    wait_until(lambda: calls(told))
    assert [said["EVALDESK_MESSAGE"] for said, _ in calls(told)] == ["no CUDA device."]


def test_a_paused_run_has_not_ended(desk: Desk, told: Path) -> None:
    run_dir = desk.run("p", 40, hold_after=3)
    control.start(run_dir)
    wait_until(reached(run_dir, 3))
    control.pause(run_dir)
    (run_dir.path / "gate").touch()
    wait_until(lambda: states.read_state(run_dir).status is RunStatus.PAUSED)
    wait_until(lambda: not desk.worker_pid(run_dir))
    assert calls(told) == []
    control.resume(run_dir)
    assert finish(run_dir).status is RunStatus.DONE
    wait_until(lambda: calls(told))
    assert len(calls(told)) == 1


def test_a_hook_that_cannot_be_started_is_said_in_the_log_and_harms_nothing(desk: Desk, told: Path) -> None:
    hook_file().chmod(0o644)
    run_dir = desk.run("x", 3)
    control.start(run_dir)
    assert finish(run_dir).status is RunStatus.DONE
    wait_until(lambda: b"on-finish could not be started" in run_dir.log.read_bytes())
    assert calls(told) == []
