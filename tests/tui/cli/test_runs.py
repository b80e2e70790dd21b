"""evaldesk runs: the runs of the store with the live states of their folders; sweeps that have nothing to generate."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from engine import requests
from engine.runs import states
from engine.runs.protocol import RunDir, RunState, RunStatus
from engine.store.models import Model
from engine.store.store import Store
from engine.store.workspace import Workspace
from tests.engine.measuring.conftest import BACKEND, private_state, wait_until
from tests.engine.sweeping.conftest import Sweeper, skilled, sums, with_prompts
from tui.cli.follow_run import PlainLines, state_text
from tui.cli.main import run

__all__ = ["private_state"]


@pytest.fixture
def there(private_state: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The arguments of a small sweep on the scripted model in a workspace of its own."""
    script = json.dumps({"sums": True, "seconds": 0.002})
    monkeypatch.setattr(requests, "embedded_model", lambda name="": Model("scripted", "scripted", BACKEND, script))
    prompts, dataset = private_state / "prompts.jsonl", private_state / "items.jsonl"
    prompts.write_text("\n".join(json.dumps({"name": p.name, "template": p.template}) for p in skilled(2, 8)), "utf-8")
    dataset.write_text(
        "\n".join(json.dumps({"id": i.item_id, **i.fields, "sum": i.answer}) for i in sums(12).items), "utf-8"
    )
    return [
        "--prompts", str(prompts), "--dataset", str(dataset), "--answer", "sum", "--scorer", "number", "--k", "6",
        "--seeds", "2", "--workspace", str(private_state / "ws"),
    ]  # fmt: skip


def ask(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    assert run(list(arguments)) == code
    captured = capsys.readouterr()
    return json.loads(captured.out) if "--json" in arguments else captured.out + captured.err


def test_a_sweep_that_is_fully_cached_is_listed_and_not_said_to_go_on(
    there: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no earlier run of this model here" in ask(capsys, "sweep", "--dry-run", *there)
    first = ask(capsys, "sweep", "--json", *there)
    more = ["--items", "12", "--dry-run", "--repeats", "2", "--temperature", "0.5"]
    assert f"from {first['needed']} requests of run {first['run']}" in ask(capsys, "sweep", *more, *there)
    said = ask(capsys, "sweep", "--no-follow", *there)
    assert "background" not in said
    again = re.search(r"run (\S+) is done: everything was cached", said)
    assert again
    rows = ask(capsys, "runs", "--json", *there[-2:])["runs"]
    needed = first["needed"]
    assert [(row["run"], row["status"], row["finished"], row["needed"]) for row in rows] == [
        (again[1], "done", needed, needed),
        (first["run"], "done", needed, needed),
    ]
    assert ask(capsys, "runs", "follow", again[1], *there[-2:]).startswith(f"{again[1]}  done")
    assert "done already" in ask(capsys, "runs", "cancel", again[1], *there[-2:], code=2)


def test_a_run_that_only_waits_is_listed_with_the_apps_counts_and_cancelled_by_its_id(
    private_state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ("--workspace", str(private_state / "ws"))
    with Store(Workspace(private_state / "ws")) as store:
        sweeper = Sweeper(store, private_state)
        first = sweeper.start(hold_after=20)
        second = sweeper.start(hold_after=20)
        third = sweeper.start(with_prompts(sweeper.order, *sweeper.order.prompts, *skilled(9)), hold_after=20)
        wait_until(lambda: sweeper.ingest() or sweeper.results(first).done >= 20)
    rows = {row["run"]: row for row in ask(capsys, "runs", "--json", *place)["runs"]}
    assert [(rows[r.run_id]["status"], rows[r.run_id]["finished"], rows[r.run_id]["needed"]) for r in (second, third)] == [
        ("waiting", 20, 90), ("queued", 20, 120),
    ]  # fmt: skip
    assert f"waits for {first.run_id}" in ask(capsys, "runs", *place)
    assert "it waits for" in ask(capsys, "runs", "pause", second.run_id, *place, code=2)
    assert ask(capsys, "runs", "cancel", second.run_id, *place) == f"{second.run_id}: cancel is asked for\n"
    assert ask(capsys, "runs", "cancel", second.run_id, *place) == f"{second.run_id} is cancelled already\n"
    ask(capsys, "runs", "resume", second.run_id, *place)
    (private_state / "gate").touch()
    assert "done" in ask(capsys, "runs", "follow", second.run_id, *place)


def test_where_the_workspace_cannot_be_asked_the_folders_are_listed(
    private_state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.cli.runs._PATIENCE_S", 0.1)
    with Store(Workspace(private_state / "ws"), program="evaldesk") as store:
        started = Sweeper(store, private_state).start(hold_after=3)
        [row] = ask(capsys, "runs", "--json", "--workspace", str(private_state / "ws"))["runs"]
        assert (row["run"], row["planned"]) == (started.run_id, 90)


@pytest.mark.parametrize("option", ["--seeds", "--items", "--limit", "--max-tokens"])
@pytest.mark.parametrize("number", ["0", "-1"])
def test_numbers_below_one_are_refused(
    there: list[str], capsys: pytest.CaptureFixture[str], option: str, number: str
) -> None:
    assert f"{option}: {number} does not lie" in ask(capsys, "sweep", *there, option, number, code=2)


def test_a_reply_of_a_million_tokens_is_refused(there: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    said = ask(capsys, "sweep", *there, "--max-tokens", "1000000", code=2)
    assert "--max-tokens: 1000000 does not lie between 1 and 32768" in said


def test_without_a_terminal_a_line_comes_only_when_something_has_changed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = PlainLines()
    for state in (
        RunState(RunStatus.LOADING, planned=3),
        RunState(RunStatus.RUNNING, planned=3, updated_at=1.0),
        RunState(RunStatus.RUNNING, planned=3, updated_at=2.0),
        RunState(RunStatus.RUNNING, planned=3, done=1, tokens_per_s=9.0, eta_s=8.0, updated_at=3.0),
        RunState(RunStatus.RUNNING, planned=3, done=1, tokens_per_s=8.0, eta_s=9.0, updated_at=4.0),
        RunState(RunStatus.DONE, planned=3, done=3, updated_at=5.0),
    ):
        lines.show(state_text(state), state)
    assert capsys.readouterr().out.splitlines() == [
        "loading 0/3 the model is being loaded",
        "running 0/3 first replies are being generated",
        "running 1/3 9 tok/s ETA 8 s",
        "done 3/3",
    ]


def test_tokens_cost_and_gpus_of_a_run_are_listed(private_state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ws = Workspace(private_state / "ws")
    Store(ws).close()
    run_dir = RunDir(ws.runs / "20261130-1")
    run_dir.path.mkdir(parents=True)
    gpu = {"name": "A GPU", "used": 3 * 2**30, "total": 8 * 2**30, "load": 97}
    state = RunState(
        RunStatus.RUNNING, planned=4, done=1, prompt_tokens=1200, cached_tokens=300, completion_tokens=50, cost=2.5,
        updated_at=time.time(), extra={"gpus": [gpu]},
    )  # fmt: skip
    states.write_state(run_dir, state)
    place = ("--workspace", str(ws.path))
    assert (
        "\n    1,200 prompt, 300 reused (25 %), 50 generated; cost 2.50; A GPU: 3.0 of 8.0 GiB in use, load 97 %\n"
    ) in ask(capsys, "runs", *place)
    [row] = ask(capsys, "runs", "--json", *place)["runs"]
    assert (row["cost"], row["prefix_reuse"], row["gpus"]) == (2.5, 0.25, [gpu])
    states.write_state(run_dir, RunState(RunStatus.QUEUED, planned=4))
    assert len(ask(capsys, "runs", *place).splitlines()) == 1
    [row] = ask(capsys, "runs", "--json", *place)["runs"]
    assert (row["cost"], row["prefix_reuse"], row["gpus"]) == (0.0, None, [])
