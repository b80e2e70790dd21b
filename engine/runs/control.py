"""What a user does with a run: start, pause, resume, cancel. Each may be said twice, and from any process."""

from __future__ import annotations

import time
from dataclasses import replace

from engine.errors import EvaldeskError
from engine.runs import queue
from engine.runs.durable import cannot_write
from engine.runs.locks import FileLock, try_lock
from engine.runs.protocol import Control, RunDir, RunStatus
from engine.runs.states import observed_state, read_control, read_description, read_state, write_control, write_state
from engine.runs.supervisor import ensure_supervisor


def start(run_dir: RunDir) -> None:
    """Put a planned run (or one whose plan has grown) into its device's queue and see to a supervisor.

    Raises EvaldeskError when run.json is missing or the disk refuses.
    """
    device = read_description(run_dir).device
    write_control(run_dir, Control.RUN)
    # Long enough for a worker that has just written its last state to let go.
    lock = _lock(run_dir, 0.5)
    if lock is None:
        queue.enqueue(run_dir, device)
    else:
        with lock:
            # In this order: whoever is killed between the two leaves no run that calls itself queued and stands in no queue.
            queue.enqueue(run_dir, device)
            _write(run_dir, RunStatus.QUEUED)
    ensure_supervisor(device)


def pause(run_dir: RunDir) -> None:
    """Let what is being generated finish, then free the model; what has not started is dropped, a waiting run leaves the queue.

    Raises EvaldeskError for a run that has ended.
    """
    _stop(run_dir, Control.PAUSE, RunStatus.PAUSED, "pause")


def cancel(run_dir: RunDir) -> None:
    """Stop now and keep what is finished. Raises EvaldeskError for a run that is done or failed."""
    _stop(run_dir, Control.CANCEL, RunStatus.CANCELLED, "cancel")


def resume(run_dir: RunDir) -> None:
    """Let a paused, failed, cancelled or interrupted run go on; what is finished is not done again.

    Raises EvaldeskError for a run that is done.
    """
    state = observed_state(run_dir)
    if state.status is RunStatus.DONE:
        raise EvaldeskError(
            "this run is done, there is nothing to resume", where=run_dir.run_id, kept="Nothing was changed."
        )
    device = read_description(run_dir).device
    going_on = state.status.is_active and read_control(run_dir) is Control.RUN
    if going_on and queue.ticket_of(run_dir, device):
        ensure_supervisor(device)
        return
    start(run_dir)


def _stop(run_dir: RunDir, control: Control, status: RunStatus, verb: str) -> None:
    lock = _lock(run_dir, 0.05)
    if lock is None:
        # A worker has it: the word is enough, it looks several times a second.
        _refuse_ended(run_dir, read_state(run_dir).status, status, verb)
        write_control(run_dir, control)
        return
    with lock:
        before = read_state(run_dir).status
        _refuse_ended(run_dir, before, status, verb)
        write_control(run_dir, control)
        queue.remove(run_dir, read_description(run_dir).device)
        if before is not status:
            _write(run_dir, status)


def _refuse_ended(run_dir: RunDir, now: RunStatus, wanted: RunStatus, verb: str) -> None:
    ended = {RunStatus.DONE, RunStatus.FAILED}
    if wanted is RunStatus.PAUSED:
        ended.add(RunStatus.CANCELLED)
    if now in ended:
        raise EvaldeskError(
            f"cannot {verb} this run: it is {now} already", where=run_dir.run_id, kept="Nothing was changed."
        )


def _write(run_dir: RunDir, status: RunStatus) -> None:
    state = replace(read_state(run_dir), status=status, message="", in_flight=0, tokens_per_s=0.0, eta_s=None)
    write_state(run_dir, replace(state, updated_at=time.time()))


def _lock(run_dir: RunDir, wait_s: float) -> FileLock | None:
    try:
        return try_lock(run_dir.lock, wait_s=wait_s)
    except OSError as error:
        raise cannot_write(run_dir.lock, error) from error
