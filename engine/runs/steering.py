"""Pausing, resuming and cancelling a run that the store knows, also one that only waits for what another run generates."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from engine.errors import EvaldeskError
from engine.runs import control
from engine.runs.locks import wait_lock
from engine.runs.protocol import Control, RunDir, RunStatus
from engine.runs.states import read_state, write_control, write_state
from engine.store import runs, waiting
from engine.store.runs import Run
from engine.store.store import Store

_BY_FILES: Mapping[str, Callable[[RunDir], None]] = {
    "pause": control.pause,
    "resume": control.resume,
    "cancel": control.cancel,
}
_AGAIN = {"sweep": "Start the same sweep again", "judge": "Measure the same judge again"}


def steer(store: Store, run_id: str, action: str) -> None:
    """``pause``, ``resume`` or ``cancel``; raises EvaldeskError saying what can be done where this run takes no such word."""
    run = store.call(runs.get, run_id)
    run_dir = RunDir(store.workspace.runs / run.run_id)
    if run.status == runs.WAITING:
        _steer_waiting(store, run, run_dir, action)
    elif run_dir.state.exists():
        _BY_FILES[action](run_dir)
        if action == "resume":
            store.call(runs.reopen, run.run_id)
    elif run.status == RunStatus.DONE:
        raise EvaldeskError(f"cannot {action} this run: it is done already", where=run.run_id)
    elif store.call(waiting.has_own, run.run_id):
        raise EvaldeskError(
            f"cannot {action} this run: its folder was deleted",
            where=run.run_id,
            kept="Every result that it brought is kept.",
            remedy=f"{_AGAIN[run.kind]}: nothing that has a result is generated again.",
        )
    elif action == "resume":
        store.call(runs.set_status, run.run_id, runs.WAITING, finished=False)
    elif action == "pause":
        raise EvaldeskError(f"cannot pause this run: it is {run.status} already", where=run.run_id)


def _steer_waiting(store: Store, run: Run, run_dir: RunDir, action: str) -> None:
    if action != "cancel":
        others = store.call(waiting.brought_by, run.run_id)
        raise EvaldeskError(
            f"this run has nothing left to generate itself, it waits for {' and '.join(others) or 'another run'}",
            where=run.run_id,
            kept="Nothing was changed.",
            remedy="Pause or resume that one; cancelling this one leaves it alone.",
        )
    if run_dir.state.exists():
        # First the files: a run that is cancelled in the store alone would be taken for one resumed since.
        write_control(run_dir, Control.CANCEL)
        with wait_lock(run_dir.lock, wait_s=2.0):
            write_state(run_dir, replace(read_state(run_dir), status=RunStatus.CANCELLED, updated_at=time.time()))
    store.call(runs.set_status, run.run_id, str(RunStatus.CANCELLED), finished=True)
