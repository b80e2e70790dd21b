"""The owner of a workspace on a real disk that fills up: it says so, loses nothing committed, and goes on when there is room."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from engine.change import Change
from engine.errors import EvaldeskError
from engine.importing.records import TraceRecord
from engine.runs import control
from engine.runs.protocol import RunDir, RunStatus
from engine.runs.states import observed_state
from engine.store import labels, traces
from engine.store import store as store_module
from engine.store.labels import Label, Mark
from engine.store.store import Store
from engine.store.workspace import Workspace
from engine.watch import Watch
from tests.engine.measuring.conftest import private_state, wait_until
from tests.engine.small_disk import SmallDisk, on_small_disk
from tests.engine.store.test_durability import fill, lines
from tests.engine.sweeping.conftest import Sweeper, sums

__all__ = ["private_state"]

LOG_BYTES = 1 << 20


def label_until_it_is_full(disk: SmallDisk) -> None:
    workspace = Workspace(disk.path / "ws")
    given: list[str] = []

    def give(store: Store, critique: str) -> None:
        store.call(labels.add, Label("T-0", "c", Mark.PASS, critique, "Ada", "random"))
        given.append(critique)

    def give_many(store: Store, critique: str) -> None:
        for number in range(1000):
            give(store, f"{critique}: {number} {'x' * 150}")

    with Store(workspace) as store:
        fill(store, 1)
        for round_ in range(3):
            disk.fill(leave=12 << 10)
            with pytest.raises(EvaldeskError, match=r"the disk is full\. Everything that was saved before is kept"):
                give_many(store, str(round_))
            disk.make_room()
            give(store, f"after {round_}")
        disk.fill()
    # Opened, closed and opened again while it is full.
    for _ in range(2):
        with Store(workspace) as store:
            kept = [label.critique for label, _ in store.call(labels.all_rows)]
            assert kept[1:] == given
            assert not store.surplus_labels
    disk.make_room()
    with Store(workspace):
        assert {str(line["critique"]) for line in lines(workspace.labels)} == set(kept)


def import_until_no_checkpoint_fits(disk: SmallDisk) -> None:
    store_module.CHECKPOINT_BYTES = LOG_BYTES
    disk.fill(leave=3 << 20)
    rng = random.Random(3)
    workspace = Workspace(disk.path / "ws")
    kept = folded = 0

    def until_refused(store: Store) -> None:
        nonlocal kept, folded
        while True:
            batch = [TraceRecord(f"T-{kept + n}", rng.randbytes(10_000).hex(), "a") for n in range(5)]
            store.call(traces.add, "s", batch)
            kept += len(batch)
            # What is there can be read all the while, also just after a checkpoint that did not fit.
            assert store.call(traces.count) == kept
            folded = max(folded, workspace.database.stat().st_size)

    with Store(workspace) as store:
        for _ in range(3):
            with pytest.raises(EvaldeskError, match="the disk is full"):
                until_refused(store)
            assert store.call(traces.count) == kept
        assert folded > LOG_BYTES, "some checkpoint was begun before the disk was full"
        disk.make_room()
        store.call(traces.add, "s", [TraceRecord("last", "q", "a")])
        assert store.call(traces.count) == kept + 1
    with Store(workspace) as store:
        assert store.call(traces.count) == kept + 1


def sweep_with_everything_on_it(disk: SmallDisk) -> None:
    told: list[str] = []
    lock = threading.Lock()

    def hear(change: Change) -> None:
        with lock:
            told.extend([change.problem] if change.problem else [])

    with Store(Workspace(disk.path / "ws")) as store:
        sweeper = Sweeper(store, disk.beside)
        watch = Watch(store, hear)
        watch.start()
        run = sweeper.start(replace(sweeper.order, dataset=sums(60), items=60), seconds=0.01)
        run_dir = RunDir(store.workspace.runs / run.run_id)
        wait_until(lambda: sweeper.generated())
        disk.fill(leave=24 << 10)
        wait_until(lambda: observed_state(run_dir).status is RunStatus.FAILED)
        assert "No space left on device. Every result written before is kept." in observed_state(run_dir).message
        kept = sweeper.rows("SELECT count(*), count(DISTINCT request_key) FROM completion")
        assert kept[0][0] == kept[0][1] < run.needed
        with pytest.raises(EvaldeskError, match=r"No space left on device|disk is full"):
            sweeper.start(replace(sweeper.order, dataset=sums(90), items=90), max_tokens=7)
        assert [path.name for path in store.workspace.runs.iterdir()] == [run.run_id], (
            "a run that was not planned leaves no files"
        )
        disk.make_room()
        control.resume(run_dir)
        wait_until(lambda: sweeper.rows("SELECT status FROM run") == [("done",)])
        watch.stop()
        stored = sweeper.rows("SELECT count(*), count(DISTINCT request_key), max(error) FROM completion")
        assert stored == [(run.needed, run.needed, "")], stored
        assert sweeper.results(run).complete
        assert run.needed <= len(sweeper.generated()) <= run.needed + 8
        assert all("the disk is full" in problem or "No space left" in problem for problem in told), told


@pytest.mark.slow
def test_labels_on_a_full_disk_are_kept_or_refused_and_labelling_goes_on_with_room(tmp_path: Path) -> None:
    on_small_disk(label_until_it_is_full, tmp_path, 1024)


def test_a_checkpoint_that_meets_the_full_disk_undoes_nothing_and_the_owner_goes_on(tmp_path: Path) -> None:
    on_small_disk(import_until_no_checkpoint_fits, tmp_path, 16 << 10)


@pytest.mark.slow
def test_a_sweep_with_workspace_and_queue_on_a_disk_that_fills_is_whole_in_the_end(private_state: Path) -> None:
    on_small_disk(sweep_with_everything_on_it, private_state, 2048)
