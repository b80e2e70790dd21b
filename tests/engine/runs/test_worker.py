"""A worker carries out a run alone: results, retries, failures that end it, and words that stop it."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pytest

from engine.runs import plan_file, queue, states
from engine.runs.protocol import Control, RunStatus
from engine.runs.spool import read_results
from engine.runs.supervisor import EXIT_BROKEN, EXIT_ENDED, EXIT_FAILED, EXIT_HELD, EXIT_INTERRUPTED
from tests.engine.runs.conftest import (
    DEVICE,
    Desk,
    assert_complete,
    generated,
    has_status,
    open_gate,
    reached,
    request,
    says,
    wait_until,
)

FULL = Path("/dev/full")


def test_a_run_is_done_with_one_result_for_each_request(desk: Desk) -> None:
    run_dir = desk.run("plain")
    assert desk.worker(run_dir).wait() == EXIT_ENDED
    assert_complete(run_dir)
    state = states.read_state(run_dir)
    assert (state.status, state.done, state.failed, state.starts) == (RunStatus.DONE, 40, 0, 1)
    line = read_results(run_dir.results, 0)[0][0]
    assert (line["backend"], line["backend_version"], line["finish"]) == ("scripted", "1.0", "stop")
    assert generated(run_dir) == 40


def test_requests_reach_the_backend_in_plan_order(desk: Desk) -> None:
    run_dir = desk.run("order", 20)
    desk.worker(run_dir).wait()
    planned = [request.key for request in plan_file.read_plan(run_dir)]
    assert (run_dir.path / "generated").read_text().split() == planned


def test_a_failing_request_is_tried_three_times_and_then_its_error_is_its_result(desk: Desk) -> None:
    run_dir = desk.run("errors", 10, fail_keys=["errors-0003"])
    assert desk.worker(run_dir).wait() == EXIT_ENDED
    assert_complete(run_dir)
    state = states.read_state(run_dir)
    assert (state.status, state.done, state.failed) == (RunStatus.DONE, 9, 1)
    errors = [line for line in read_results(run_dir.results, 0)[0] if line["error"]]
    assert [(line["key"], line["error"]) for line in errors] == [("errors-0003", "scripted failure of errors-0003")]
    assert generated(run_dir) == 12
    assert desk.worker(run_dir).wait() == EXIT_ENDED
    assert generated(run_dir) == 12, "an error is a result: a new start does not ask again"


def test_a_request_that_succeeds_when_tried_again_is_done(desk: Desk) -> None:
    run_dir = desk.run("again", 10, fail_keys=["again-0000", "again-0009"], fail_times=2)
    desk.worker(run_dir).wait()
    assert_complete(run_dir)
    assert states.read_state(run_dir).failed == 0


def test_a_request_that_the_backend_loses_ends_as_an_error_and_holds_up_nothing(desk: Desk) -> None:
    run_dir = desk.run("lost", 10, lose_keys=["lost-0004"])
    desk.worker(run_dir).wait()
    assert_complete(run_dir)
    assert states.read_state(run_dir).failed == 1


def test_another_model_than_planned_fails_the_run_before_anything_is_generated(desk: Desk) -> None:
    run_dir = desk.run("other", fingerprint="b" * 64, expected="a" * 64)
    assert desk.worker(run_dir).wait() == EXIT_FAILED
    state = states.read_state(run_dir)
    assert state.status is RunStatus.FAILED
    assert "b" * 16 in state.message
    assert "a" * 16 in state.message
    assert generated(run_dir) == 0


def test_a_model_that_cannot_be_loaded_fails_the_run_with_the_backends_own_words(desk: Desk) -> None:
    run_dir = desk.run("unloadable", load_error="no CUDA device")
    assert desk.worker(run_dir).wait() == EXIT_FAILED
    state = states.read_state(run_dir)
    assert (state.status, state.message) == (RunStatus.FAILED, "no CUDA device.")


def test_a_damaged_plan_fails_the_run_and_names_the_line(desk: Desk) -> None:
    run_dir = desk.run("damaged", 3)
    run_dir.plan.write_bytes(run_dir.plan.read_bytes() + b"{}\n")
    assert desk.worker(run_dir).wait() == EXIT_FAILED
    assert "plan.jsonl, line 4" in states.read_state(run_dir).message


def test_of_two_workers_on_one_run_the_second_leaves_at_once(desk: Desk) -> None:
    run_dir = desk.run("two", hold_after=3)
    first = desk.worker(run_dir)
    wait_until(has_status(run_dir, RunStatus.RUNNING))
    assert desk.worker(run_dir).wait() == EXIT_HELD
    open_gate(run_dir)
    assert first.wait() == EXIT_ENDED
    assert_complete(run_dir)
    assert generated(run_dir) == 40


def test_a_pause_that_is_taken_back_asks_what_was_dropped_again_in_the_same_start(desk: Desk) -> None:
    run_dir = desk.run("undone", 40, hold_after=6)
    worker = desk.worker(run_dir)
    wait_until(reached(run_dir, 6))
    states.write_control(run_dir, Control.PAUSE)
    wait_until(says(run_dir, "pausing"))
    states.write_control(run_dir, Control.RUN)
    wait_until(says(run_dir, ""))
    open_gate(run_dir)
    assert worker.wait() == EXIT_ENDED
    assert_complete(run_dir)
    state = states.read_state(run_dir)
    assert (state.status, state.starts, generated(run_dir)) == (RunStatus.DONE, 1, 40)


def test_a_pause_waits_for_what_is_generated_and_for_nothing_else(desk: Desk) -> None:
    run_dir = desk.run("pauses", 40, hold_after=6)
    worker = desk.worker(run_dir)
    wait_until(reached(run_dir, 6))
    states.write_control(run_dir, Control.PAUSE)
    wait_until(says(run_dir, "pausing"))
    open_gate(run_dir)
    assert worker.wait() == EXIT_ENDED
    state = states.read_state(run_dir)
    assert (state.status, state.done, generated(run_dir)) == (RunStatus.PAUSED, 10, 10)
    states.write_control(run_dir, Control.RUN)
    assert desk.worker(run_dir).wait() == EXIT_ENDED
    assert_complete(run_dir)
    assert generated(run_dir) == 40


def test_sigterm_interrupts_and_the_next_start_finishes(desk: Desk) -> None:
    run_dir = desk.run("term", hold_after=6)
    worker = desk.worker(run_dir)
    wait_until(reached(run_dir, 5))
    worker.send_signal(signal.SIGTERM)
    wait_until(says(run_dir, "stopping"))
    open_gate(run_dir)
    assert worker.wait() == EXIT_INTERRUPTED
    assert states.read_state(run_dir).status is RunStatus.INTERRUPTED
    assert desk.worker(run_dir).wait() == EXIT_ENDED
    assert_complete(run_dir)
    assert states.read_state(run_dir).starts == 2


def test_a_device_that_breaks_ends_the_process_and_the_next_one_finishes(desk: Desk) -> None:
    run_dir = desk.run("broken", 12, break_after=8)
    assert desk.worker(run_dir).wait() == EXIT_BROKEN
    state = states.read_state(run_dir)
    assert state.status is RunStatus.RUNNING, "it did not end: the supervisor starts another process"
    before = read_results(run_dir.results, 0)[0]
    assert 0 < len(before) < 12
    assert desk.worker(run_dir).wait() == EXIT_ENDED
    assert_complete(run_dir)
    assert read_results(run_dir.results, 0)[0][: len(before)] == before


def test_loading_is_cut_short_by_cancel_and_by_sigterm(desk: Desk) -> None:
    for name, status in (("cancel", RunStatus.CANCELLED), ("term", RunStatus.INTERRUPTED)):
        run_dir = desk.run(name, load_seconds=600.0)
        worker = desk.worker(run_dir)
        wait_until(says(run_dir, "loading scripted"))
        if name == "cancel":
            states.write_control(run_dir, Control.CANCEL)
        else:
            worker.send_signal(signal.SIGTERM)
        worker.wait()
        assert states.read_state(run_dir).status is status


def test_a_start_that_only_finds_a_cancel_keeps_the_counts_and_loads_no_model(desk: Desk) -> None:
    run_dir = desk.run("late", 40, hold_after=6)
    worker = desk.worker(run_dir)
    wait_until(reached(run_dir, 6))
    worker.kill()
    worker.wait()
    states.write_control(run_dir, Control.CANCEL)
    desk.describe(run_dir, load_error="must not be loaded")
    assert desk.worker(run_dir).wait() == EXIT_ENDED
    state = states.read_state(run_dir)
    assert (state.status, state.planned, state.done, state.message) == (RunStatus.CANCELLED, 40, 6, "")


def test_while_the_model_loads_the_state_tells_what_is_planned_and_done(desk: Desk) -> None:
    run_dir = desk.run("again", 40, hold_after=6)
    worker = desk.worker(run_dir)
    wait_until(reached(run_dir, 6))
    worker.kill()
    worker.wait()
    run_dir.state.unlink()
    desk.describe(run_dir, load_seconds=600.0)
    worker = desk.worker(run_dir)
    wait_until(says(run_dir, "loading scripted"))
    state = states.read_state(run_dir)
    assert (state.status, state.planned, state.done) == (RunStatus.LOADING, 40, 6)
    states.write_control(run_dir, Control.CANCEL)
    worker.wait()
    state = states.read_state(run_dir)
    assert (state.status, state.planned, state.done) == (RunStatus.CANCELLED, 40, 6)


def test_a_plan_that_cannot_be_read_leaves_the_counts_of_the_starts_before(desk: Desk) -> None:
    run_dir = desk.run("unreadable", 5)
    desk.worker(run_dir).wait()
    run_dir.plan.write_bytes(b"{}\n")
    assert desk.worker(run_dir).wait() == EXIT_FAILED
    state = states.read_state(run_dir)
    assert (state.status, state.planned, state.done) == (RunStatus.FAILED, 5, 5)


def test_what_a_killed_worker_leaves_behind_lies_in_its_run_and_goes_with_the_next_start(desk: Desk) -> None:
    run_dir = desk.run("leaves", 20, hold_after=6)
    worker = desk.worker(run_dir)
    wait_until(reached(run_dir, 6))
    assert len(list(run_dir.scratch.glob("*/shared.bin"))) == 1
    worker.kill()
    worker.wait()
    again = desk.worker(run_dir)
    wait_until(lambda: states.read_state(run_dir).starts == 2 and states.read_state(run_dir).status == "running")
    assert len(list(run_dir.scratch.glob("*/shared.bin"))) == 1
    open_gate(run_dir)
    assert again.wait() == EXIT_ENDED
    assert not run_dir.scratch.exists()


def test_the_heart_beats_while_nothing_finishes(desk: Desk) -> None:
    run_dir = desk.run("slow", 1, load_seconds=600.0)
    worker = desk.worker(run_dir)
    wait_until(says(run_dir, "loading scripted"))
    first = states.read_state(run_dir).updated_at
    wait_until(lambda: states.read_state(run_dir).updated_at > first)
    worker.kill()
    worker.wait()


def test_a_full_disk_fails_the_run_with_the_file_named_and_a_later_start_finishes(desk: Desk) -> None:
    run_dir = desk.run("full")
    # A limit on the size of files refuses a write in the same way as a full disk.
    limit = 4000
    worker = desk.worker(run_dir, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert worker.wait() == EXIT_FAILED
    state = states.read_state(run_dir)
    assert state.status is RunStatus.FAILED
    assert "results.jsonl: cannot write" in state.message
    kept = len(read_results(run_dir.results, 0)[0])
    assert 0 < kept < 40
    assert desk.worker(run_dir).wait() == EXIT_ENDED
    assert_complete(run_dir)


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
def test_a_full_log_does_not_hide_why_a_run_failed(desk: Desk) -> None:
    run_dir = desk.run("logless", load_error="no CUDA device")
    with FULL.open("w") as log:
        assert desk.worker(run_dir, stderr=log).wait() == EXIT_FAILED
    assert states.read_state(run_dir).message == "no CUDA device."


def test_requests_appended_while_the_worker_works_are_done_too(desk: Desk) -> None:
    run_dir = desk.run("grows", 20, hold_after=4)
    worker = desk.worker(run_dir)
    wait_until(reached(run_dir, 4))
    plan_file.append_plan(run_dir, [request("grows", number) for number in range(18, 25)])
    open_gate(run_dir)
    assert worker.wait() == EXIT_ENDED
    assert len(plan_file.read_plan(run_dir)) == 25
    assert_complete(run_dir)


def test_a_run_with_nothing_left_to_do_loads_no_model(desk: Desk) -> None:
    run_dir = desk.run("nothing", 5)
    desk.worker(run_dir).wait()
    desk.describe(run_dir, load_error="must not be loaded")
    assert desk.worker(run_dir).wait() == EXIT_ENDED
    assert states.read_state(run_dir).status is RunStatus.DONE


def test_a_damaged_result_line_is_counted_and_its_request_done_again(desk: Desk) -> None:
    run_dir = desk.run("rot", 5)
    desk.worker(run_dir).wait()
    lines = run_dir.results.read_bytes().splitlines(keepends=True)
    run_dir.results.write_bytes(b"".join([lines[0], b"\0\0 rot\n", *lines[2:]]))
    assert desk.worker(run_dir).wait() == EXIT_ENDED
    state = states.read_state(run_dir)
    assert (state.status, state.done, state.extra["refused_lines"]) == (RunStatus.DONE, 5, 1)


def test_a_torn_last_line_is_cut_at_whatever_byte_it_broke(desk: Desk) -> None:
    run_dir = desk.run("torn", 6)
    desk.worker(run_dir).wait()
    whole = run_dir.results.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for cut in (last + 1, last + (len(whole) - last) // 2, len(whole) - 1):
        run_dir.results.write_bytes(whole[:cut])
        assert desk.worker(run_dir).wait() == EXIT_ENDED
        assert_complete(run_dir)


def test_a_worker_at_its_end_starts_a_supervisor_for_the_runs_that_still_wait(desk: Desk) -> None:
    alone, waiting = desk.run("alone", 5), desk.run("waiting", 5)
    queue.enqueue(alone, DEVICE)
    queue.enqueue(waiting, DEVICE)
    assert desk.worker(alone).wait() == EXIT_ENDED
    wait_until(has_status(waiting, RunStatus.DONE))
    assert_complete(waiting)
    wait_until(lambda: not queue.entries(DEVICE))
