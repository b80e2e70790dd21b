"""Runs by keys: the cursor stays on its run, a run that waits for another one, signs of life."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from engine.change import Change
from engine.judging.criterion import Criterion
from engine.runs.protocol import RunDir, RunState, RunStatus
from engine.runs.states import write_state
from engine.store import criteria, runs
from engine.store.runs import Run, RunCell
from tests.engine.measuring.conftest import private_state
from tests.engine.sweeping.conftest import Sweeper, skilled, with_prompts
from tests.tui.conftest import Desk, open_desk
from tui.screens.desk_screen import DeskScreen

__all__ = ["private_state"]


def status_of(desk: Desk, run_id: str) -> str:
    return str(desk.rows("SELECT status FROM run WHERE run_id = ?", run_id)[0][0])


@pytest.mark.slow
async def test_a_new_run_on_top_leaves_the_cursor_on_its_run_and_the_question_names_it(private_state: Path) -> None:
    async with open_desk(private_state / "ws", "runs", (100, 30)) as desk:
        sweeper = Sweeper(desk.app.desk.store, private_state)
        first = sweeper.start(hold_after=3)
        await desk.wait_for("3/90")
        second = sweeper.start(with_prompts(sweeper.order, *skilled(1, 9)), hold_after=3)
        await desk.wait_for("2 runs")
        assert f"run      {first.run_id}" in desk.text
        await desk.press("X")
        await desk.wait_for(f"Run {first.run_id}.")
        await desk.press("y")
        await desk.wait_for(lambda: status_of(desk, first.run_id) == "cancelled")
        assert status_of(desk, second.run_id) != "cancelled"
        (private_state / "gate").touch()
        await desk.wait_for(lambda: status_of(desk, second.run_id) == "done")


async def test_on_home_the_cursor_stays_on_its_criterion(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "home", (100, 30)) as desk:
        names = [row[0] for row in desk.rows("SELECT criterion_id FROM criterion ORDER BY rowid")]
        await desk.press("down")
        before = desk.app.desk.criterion_id
        assert before in names
        # As it would be if the order of the list were another one.
        standings = desk.app.screen.query_one("#criteria").rows  # type: ignore[attr-defined]
        new = replace(standings[0], criterion=Criterion("aaa", "Is it?", "task", "yes", "no"))
        desk.app.screen.query_one("#criteria").set_rows([new, *standings])  # type: ignore[attr-defined]
        assert desk.app.screen.query_one("#criteria").current.criterion.criterion_id == before  # type: ignore[attr-defined]
        desk.app.desk.store.call(criteria.add, Criterion("bbb", "Is it?", "task", "yes", "no"))
        assert isinstance(desk.app.screen, DeskScreen)
        await desk.app.screen.on_change(Change(store_changed=True))
        assert desk.app.screen.query_one("#criteria").current.criterion.criterion_id == before  # type: ignore[attr-defined]


async def test_a_waiting_run_moves_says_what_it_waits_for_and_is_cancelled_and_taken_back(private_state: Path) -> None:
    async with open_desk(private_state / "ws", "runs", (120, 30)) as desk:
        sweeper = Sweeper(desk.app.desk.store, private_state)
        first, second = sweeper.start(hold_after=20), sweeper.start(hold_after=20)
        await desk.wait_for("2 runs")
        await desk.press("home")
        await desk.wait_for(f"waits for what run {first.run_id} generates")
        await desk.wait_for(lambda: re.search(r"waiting +20/90", desk.text))
        await desk.press("space")
        await desk.wait_for("nothing left to generate itself, it waits for")
        await desk.press("X", "y")
        await desk.wait_for(lambda: status_of(desk, second.run_id) == "cancelled")
        await desk.wait_for(lambda: re.search(r"cancelled +20/90", desk.text))
        await desk.press("R")
        await desk.wait_for(lambda: status_of(desk, second.run_id) == "waiting")
        (private_state / "gate").touch()
        await desk.wait_for(lambda: status_of(desk, second.run_id) == "done")
        await desk.wait_for("90 brought by another run")


async def test_before_the_first_reply_there_is_a_sign_of_life(private_state: Path) -> None:
    async with open_desk(private_state / "ws", "sweep", (100, 30)) as desk:
        sweeper = Sweeper(desk.app.desk.store, private_state)
        sweeper.start(hold_after=0)
        await desk.wait_for("first replies are being generated")
        assert "ETA ?" not in desk.text
        await desk.press("4")
        await desk.wait_for("first replies are being generated")
        (private_state / "gate").touch()
        await desk.wait_for("done")
        await desk.wait_for("results  90 good")
        assert "tok/s" not in desk.text


async def test_what_failed_is_asked_again_by_key(private_state: Path) -> None:
    async with open_desk(private_state / "ws", "runs", (100, 30)) as desk:
        sweeper = Sweeper(desk.app.desk.store, private_state)
        run = sweeper.start(hold_after=3)
        await desk.wait_for("3/90")
        await desk.press("F")
        await desk.wait_for("this run goes on yet")
        (private_state / "gate").touch()
        await desk.wait_for(lambda: status_of(desk, run.run_id) == "done")
        await desk.press("F")
        await desk.wait_for("Started again: 90 needed, 90 cached, 0 to run")
        await desk.wait_for("2 runs")


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_tokens_cost_and_gpu_of_a_run_that_goes_fit_on_the_screen(
    private_state: Path, size: tuple[int, int]
) -> None:
    gpus = [{"name": "NVIDIA RTX 6000 Ada Generation", "used": 41 * 2**30, "total": 48 * 2**30, "load": 97}]
    state = RunState(
        RunStatus.RUNNING, planned=90, done=30, prompt_tokens=12_345_678, cached_tokens=4_938_271, completion_tokens=1_234_567,
        cost=1234.5, tokens_per_s=812.0, eta_s=600.0, updated_at=time.time(), extra={"gpus": gpus},
    )  # fmt: skip
    async with open_desk(private_state / "ws", "label", size) as desk:
        run = Run("20261130-1", "sweep", "Sweep of reviews", "", "", "m", "cuda:0", "running", 90, 0, 0)
        run_dir = RunDir(desk.app.desk.store.workspace.runs / run.run_id)
        run_dir.path.mkdir(parents=True)
        write_state(run_dir, state)
        desk.app.desk.store.call(runs.add, run, ["k"])
        desk.app.desk.store.call(runs.add_cells, run.run_id, [RunCell("p", 0, "k")])
        await desk.press("4")
        await desk.wait_for("tokens   12,345,678 prompt, 4,938,271 reused (40 %), 1,234,567 generated")
        assert "cost     1,234.50 so far, an estimated 3,703.50 for all requests of the run" in desk.text
        assert "gpu      NVIDIA RTX 6000 Ada Generation: 41.0 of 48.0 GiB in use, load 97 %" in desk.text
