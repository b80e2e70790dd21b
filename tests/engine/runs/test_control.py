"""Pause, resume and cancel, while a run waits, works, or has ended."""

from __future__ import annotations

import pytest

from engine.errors import EvaldeskError
from engine.runs import control, queue, states
from engine.runs.protocol import Control, RunStatus
from tests.engine.runs.conftest import (
    DEVICE,
    WINDOW,
    Desk,
    assert_complete,
    finish,
    generated,
    has_status,
    kill,
    open_gate,
    reached,
    wait_until,
)


def test_pause_finishes_what_is_in_flight_and_resume_does_the_rest(desk: Desk) -> None:
    run_dir = desk.run("paused", 40, hold_after=6)
    control.start(run_dir)
    wait_until(reached(run_dir, 6))
    control.pause(run_dir)
    control.pause(run_dir)
    open_gate(run_dir)
    state = finish(run_dir)
    assert state.status is RunStatus.PAUSED
    assert 6 < state.done <= 6 + WINDOW
    assert generated(run_dir) == state.done, "what was in flight is kept"
    wait_until(lambda: not queue.entries(DEVICE))
    control.pause(run_dir)
    control.resume(run_dir)
    control.resume(run_dir)
    assert finish(run_dir).status is RunStatus.DONE
    assert_complete(run_dir)
    assert generated(run_dir) == 40


def test_resume_at_once_after_pause_is_not_forgotten(desk: Desk) -> None:
    run_dir = desk.run("quick", 60, seconds=0.01)
    control.start(run_dir)
    for results in (5, 20):
        wait_until(reached(run_dir, results))
        control.pause(run_dir)
        control.resume(run_dir)
    wait_until(has_status(run_dir, RunStatus.DONE))
    assert_complete(run_dir)


def test_a_paused_run_lets_the_next_one_run(desk: Desk) -> None:
    first, second = desk.run("first", 40, hold_after=3), desk.run("second", 5)
    control.start(first)
    control.start(second)
    wait_until(reached(first, 3))
    control.pause(first)
    open_gate(first)
    assert finish(second).status is RunStatus.DONE
    assert states.read_state(first).status is RunStatus.PAUSED


def test_cancel_keeps_what_is_finished_and_resume_takes_it_back(desk: Desk) -> None:
    run_dir = desk.run("cancelled", 40, hold_after=6)
    control.start(run_dir)
    wait_until(reached(run_dir, 6))
    control.cancel(run_dir)
    control.cancel(run_dir)
    open_gate(run_dir)
    state = finish(run_dir)
    assert state.status is RunStatus.CANCELLED
    assert 6 <= state.done <= 6 + WINDOW
    control.cancel(run_dir)
    with pytest.raises(EvaldeskError, match="cannot pause this run: it is cancelled already"):
        control.pause(run_dir)
    control.resume(run_dir)
    assert finish(run_dir).status is RunStatus.DONE
    assert_complete(run_dir)


@pytest.mark.parametrize(("word", "status"), [("cancel", RunStatus.CANCELLED), ("pause", RunStatus.PAUSED)])
def test_a_worker_that_dies_while_it_stops_is_not_started_again_only_to_stop(
    desk: Desk, word: str, status: RunStatus
) -> None:
    """The supervisor writes what the worker could not, with the counts of plan and spool."""
    run_dir = desk.run("dies", 40, hold_after=6)
    control.start(run_dir)
    wait_until(reached(run_dir, 6))
    {"cancel": control.cancel, "pause": control.pause}[word](run_dir)
    wait_until(lambda: states.read_state(run_dir).message in ("stopping", "pausing"))
    kill(desk.worker_pid(run_dir))
    wait_until(lambda: not queue.entries(DEVICE))
    state = states.read_state(run_dir)
    assert (state.status, state.planned, state.done, state.in_flight) == (status, 40, 6, 0)
    assert (state.starts, state.message) == (1, "")
    open_gate(run_dir)
    control.resume(run_dir)
    assert finish(run_dir).status is RunStatus.DONE
    assert_complete(run_dir)


def test_a_cancelled_run_whose_model_does_not_let_go_ends_as_cancelled_at_its_first_start(desk: Desk) -> None:
    run_dir = desk.run("clings", 40, hold_after=6, close_seconds=600.0)
    control.start(run_dir)
    wait_until(reached(run_dir, 6))
    control.cancel(run_dir)
    open_gate(run_dir)
    state = finish(run_dir)
    wait_until(lambda: not queue.entries(DEVICE) and not desk.worker_pid(run_dir))
    assert state == states.read_state(run_dir)
    assert (state.status, state.planned, state.starts) == (RunStatus.CANCELLED, 40, 1)
    assert state.done >= 6


def test_a_run_whose_last_request_is_done_when_its_worker_dies_is_done_though_it_was_cancelled(desk: Desk) -> None:
    run_dir = desk.run("over", 5, close_seconds=600.0)
    control.start(run_dir)
    wait_until(reached(run_dir, 5))
    states.write_control(run_dir, Control.CANCEL)
    kill(desk.worker_pid(run_dir))
    assert finish(run_dir).status is RunStatus.DONE
    assert states.read_state(run_dir).starts == 1
    assert_complete(run_dir)


def test_a_waiting_run_can_be_paused_and_cancelled(desk: Desk) -> None:
    busy = desk.run("busy", 60, hold_after=4)
    paused, cancelled = desk.run("paused", 5), desk.run("cancelled", 5)
    for run_dir in (busy, paused, cancelled):
        control.start(run_dir)
    wait_until(reached(busy, 1))
    control.pause(paused)
    control.pause(paused)
    control.cancel(cancelled)
    assert states.read_state(paused).status is RunStatus.PAUSED
    assert states.read_state(cancelled).status is RunStatus.CANCELLED
    assert [entry.run_dir.run_id for entry in queue.entries(DEVICE)] == ["busy"]
    control.resume(paused)
    assert states.read_state(paused).status is RunStatus.QUEUED
    control.cancel(busy)
    open_gate(busy)
    assert finish(paused).status is RunStatus.DONE
    assert generated(cancelled) == 0


def test_a_run_that_has_ended_takes_no_word_that_makes_no_sense(desk: Desk) -> None:
    run_dir = desk.run("done", 3)
    control.start(run_dir)
    assert finish(run_dir).status is RunStatus.DONE
    for act, word in ((control.pause, "pause"), (control.cancel, "cancel"), (control.resume, "resume")):
        with pytest.raises(EvaldeskError, match=word):
            act(run_dir)
    assert states.read_state(run_dir).status is RunStatus.DONE


def test_a_run_without_a_description_cannot_be_started(desk: Desk) -> None:
    run_dir = desk.run("nothing")
    run_dir.description.unlink()
    with pytest.raises(EvaldeskError, match=r"run\.json"):
        control.start(run_dir)


def test_whoever_ends_while_queueing_a_run_leaves_none_that_only_calls_itself_queued(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = desk.run("queued", 5)
    control.start(run_dir)
    assert finish(run_dir).status is RunStatus.DONE

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(queue, "enqueue", killed)
    with pytest.raises(KeyboardInterrupt):
        control.start(run_dir)
    assert states.observed_state(run_dir).status is RunStatus.DONE
