"""Runs steered through the store: also those that only wait, and those whose folder is gone."""

from __future__ import annotations

import re
import shutil

import pytest

from engine.errors import EvaldeskError
from engine.runs import control, states
from engine.runs.protocol import RunDir, RunStatus
from engine.runs.steering import steer
from engine.store import runs, waiting
from engine.store.runs import Run
from tests.engine.measuring.conftest import wait_until
from tests.engine.sweeping.conftest import Sweeper, private_state, skilled, sweeper, with_prompts

__all__ = ["private_state", "sweeper"]


def status(sweeper: Sweeper, run: Run) -> str:
    return sweeper.store.call(runs.get, run.run_id).status


def test_a_run_that_only_waits_is_cancelled_and_taken_back_in_the_store(sweeper: Sweeper) -> None:
    first, second = sweeper.start(hold_after=10), sweeper.start(hold_after=10)
    assert status(sweeper, second) == "waiting"
    assert sweeper.store.call(waiting.brought_by, second.run_id) == [first.run_id]
    for word in ("pause", "resume"):
        with pytest.raises(EvaldeskError, match=f"waits for {first.run_id}"):
            steer(sweeper.store, second.run_id, word)
    steer(sweeper.store, second.run_id, "cancel")
    steer(sweeper.store, second.run_id, "cancel")
    sweeper.ingest()
    assert status(sweeper, second) == "cancelled"
    with pytest.raises(EvaldeskError, match="cannot pause this run: it is cancelled already"):
        steer(sweeper.store, second.run_id, "pause")
    assert status(sweeper, first) != "cancelled"
    steer(sweeper.store, second.run_id, "resume")
    assert status(sweeper, second) == "waiting"
    (sweeper.folder / "gate").touch()
    sweeper.finish(first, second)
    with pytest.raises(EvaldeskError, match="done already"):
        steer(sweeper.store, second.run_id, "cancel")


def test_a_run_that_has_done_its_own_part_is_cancelled_too_and_stays_so(sweeper: Sweeper) -> None:
    first = sweeper.start(hold_after=10)
    second = sweeper.start(with_prompts(sweeper.order, *sweeper.order.prompts, *skilled(9)))
    folder = RunDir(sweeper.store.workspace.runs / second.run_id)
    # The first one holds the device, so the second one's own part is said to be done by hand.
    control.pause(folder)
    states.write_state(folder, states.RunState(RunStatus.DONE, planned=second.to_run, done=second.to_run))
    sweeper.ingest()
    assert status(sweeper, second) == "waiting"
    steer(sweeper.store, second.run_id, "cancel")
    for _ in range(2):
        sweeper.ingest()
        assert status(sweeper, second) == "cancelled"
    steer(sweeper.store, second.run_id, "resume")
    (sweeper.folder / "gate").touch()
    sweeper.finish(first, second)
    assert sweeper.results(second).complete


def test_what_another_run_brings_is_counted_as_it_comes(sweeper: Sweeper) -> None:
    first, second = sweeper.start(hold_after=20), sweeper.start(hold_after=20)
    wait_until(lambda: sweeper.ingest() or sweeper.store.call(waiting.settled).get(second.run_id, 0) >= 15)
    assert status(sweeper, second) == "waiting"
    (sweeper.folder / "gate").touch()
    sweeper.finish(first, second)
    assert sweeper.store.call(waiting.settled) == {}


def test_a_run_whose_folder_was_deleted_says_what_can_be_done(
    sweeper: Sweeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.runs.control.ensure_supervisor", lambda _: False)
    run = sweeper.start()
    shutil.rmtree(sweeper.store.workspace.runs / run.run_id)
    sweeper.ingest()
    assert status(sweeper, run) == "failed"
    said = "Start the same sweep again: nothing that has a result is generated again."
    with pytest.raises(EvaldeskError, match=re.escape(said)):
        steer(sweeper.store, run.run_id, "resume")
