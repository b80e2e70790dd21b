"""A run whose files are damaged or gone: said for that run, and the others go on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.runs import states
from engine.runs.ingest import ingest
from engine.runs.protocol import RunDir, RunState, RunStatus
from engine.runs.spool import Spool
from engine.store import runs
from engine.store.runs import Run
from engine.store.store import Store
from engine.store.workspace import Workspace
from tui.cli.main import run as command


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(Workspace(tmp_path / "ws")) as opened:
        yield opened


def a_run(store: Store, name: str) -> RunDir:
    run_dir = RunDir(store.workspace.runs / name)
    run_dir.path.mkdir()
    states.write_state(run_dir, RunState(RunStatus.RUNNING, planned=1))
    run = Run(name, "judge", name, "c", "j", "m", "cpu", "queued", 1, 0, 0)
    store.call(runs.add, run, [f"{name}-key"])
    store.call(runs.add_cases, name, [runs.RunCase("T", 1, f"{name}-key")])
    return run_dir


@pytest.mark.parametrize(
    "change", [{"done": 10**400}, {"done": -1}, {"eta_s": -5}, {"updated_at": 10**400}, {"failed": True}, {"pid": -3}]
)
def test_a_state_that_cannot_be_is_damaged(store: Store, change: dict[str, object]) -> None:
    run_dir = a_run(store, "r")
    value = json.loads(run_dir.state.read_text()) | change
    run_dir.state.write_text(json.dumps(value))
    state = states.observed_state(run_dir)
    assert state.status is RunStatus.INTERRUPTED and "damaged" in state.message


def test_results_that_are_a_folder_hold_up_their_own_run_only(store: Store) -> None:
    bad, good = a_run(store, "bad"), a_run(store, "good")
    bad.results.mkdir()
    spool = Spool(good.results)
    spool.append([{"key": "good-key", "text": "half \ud83d of it", "error": "\udcff"}])
    spool.close()
    found = store.call(ingest, store.workspace)
    assert set(found.problems) == {"bad"} and "results.jsonl" in found.problems["bad"]
    assert store.call(runs.get, "good").spool_offset > 0
    assert store.call(runs.get, "bad").spool_offset == 0


def test_a_run_whose_folder_is_gone_has_failed(store: Store) -> None:
    run_dir = a_run(store, "gone")
    shutil.rmtree(run_dir.path)
    assert "gone" in store.call(ingest, store.workspace).changed
    assert store.call(runs.get, "gone").status == "failed"
    assert "deleted" in states.observed_state(run_dir).message
    assert store.call(runs.unfinished) == []


def test_a_damaged_description_is_marked_in_the_list(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The test itself owns the workspace and answers nobody.
    monkeypatch.setattr("tui.cli.runs._PATIENCE_S", 0.3)
    a_run(store, "bad").description.write_text("{")
    other = a_run(store, "other")
    other.description.mkdir()
    assert command(["runs", "--json", "--workspace", str(store.workspace.path)]) == 0
    rows = {row["run"]: row for row in json.loads(capsys.readouterr().out)["runs"]}
    assert set(rows) == {"bad", "other"} and all("run.json" in row["message"] for row in rows.values())
