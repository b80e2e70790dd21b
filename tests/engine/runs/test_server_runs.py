"""Runs on a server, worker process and spool included: the key is nowhere, and replies of two models are not mixed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from engine.backends.protocol import ModelSpec
from engine.models.server_address import server_address
from engine.runs import states
from engine.runs.protocol import Control, RunDir, RunStatus
from engine.runs.spool import read_results
from engine.runs.supervisor import EXIT_ENDED, EXIT_FAILED
from tests.engine.backends.odd_server import HANG, MODEL, Answer, Behaviour, Call, OddServer, completion, plain, refusal
from tests.engine.runs.conftest import DEVICE, Desk, reached, wait_until

pytest.importorskip("aiohttp")

KEY = "sk-test-4cQ8vY0pTn6e"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD_KEY", KEY)


def planned(desk: Desk, server: OddServer, requests: int = 30, parallel: int = 4, **options: float) -> RunDir:
    """A run on the server, not yet started."""
    run_dir = desk.run("served", requests)
    describe(desk, run_dir, server, parallel, **options)
    return run_dir


def describe(desk: Desk, run_dir: RunDir, server: OddServer, parallel: int, **more: float) -> None:
    address = server_address(server.url, MODEL, "ODD_KEY")
    options = {"model": MODEL, "key_env": "ODD_KEY", "price_in": 1.0, **more}
    model = ModelSpec("openai_api", "odd", address.url, parallel=parallel, options=options)
    workspace, expected = str(desk.folder / "workspace"), address.fingerprint.short
    states.write_description(
        run_dir, states.RunDescription(run_dir.run_id, "served", workspace, DEVICE, model, expected, time.time())
    )


def work(desk: Desk, run_dir: RunDir) -> int:
    """Start a worker, its log beside the results, and wait for its end."""
    with run_dir.log.open("ab") as log:
        return desk.worker(run_dir, stderr=log, stdout=log).wait()


def files_that_hold(folder: Path, text: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def echo(call: Call) -> Answer:
    """Repeat the key in every place, and refuse every third request with it."""
    said = call.headers["authorization"]
    if "7" in call.body["messages"][0]["content"]:
        return refusal(f"no {said}", 400, code=said)
    return Answer(completion(f"I was sent {said}.", key=said))


def test_the_key_is_in_no_file_whatever_the_server_does_with_it(desk: Desk) -> None:
    with OddServer(echo) as server:
        run_dir = planned(desk, server)
        assert work(desk, run_dir) == EXIT_ENDED
        assert {call.headers["authorization"] for call in server.calls} == {f"Bearer {KEY}"}
        assert len(server.calls) == 30, "a refused request is not sent again"
    state = states.read_state(run_dir)
    assert (state.status, state.done, state.failed, state.prompt_tokens) == (RunStatus.DONE, 27, 3, 270)
    lines, _ = read_results(run_dir.results)
    assert {line["text"] for line in lines} == {"", "I was sent Bearer [key]."}
    assert {line["cost"] for line in lines} == {0.0, 10 / 1e6} and {line["served_by"] for line in lines} == {"", MODEL}
    assert files_that_hold(desk.folder, "[key]"), "the search sees what lies in the files"
    assert files_that_hold(desk.folder, KEY) == files_that_hold(desk.folder, KEY[:8]) == []


def dated(date: str) -> Answer:
    return Answer(completion(model=f"{MODEL}-{date}"))


def changes_after(number: int) -> Behaviour:
    return lambda call: dated("2025-01-01" if call.number < number else "2025-06-06")


def test_a_snapshot_that_changes_in_a_run_fails_it_and_a_resumed_one_remembers(desk: Desk) -> None:
    with OddServer(changes_after(6)) as server:
        run_dir = planned(desk, server, parallel=1)
        for _ in range(2):
            assert work(desk, run_dir) == EXIT_FAILED
            message = states.read_state(run_dir).message
            assert f"{MODEL}-2025-06-06" in message and f"--snapshot {MODEL}-2025-06-06" in message
            assert [line["served_by"] for line in read_results(run_dir.results)[0]] == [f"{MODEL}-2025-01-01"] * 6


def test_a_key_that_expires_fails_the_run_and_the_next_start_goes_on(desk: Desk) -> None:
    with OddServer(lambda call: plain(call) if call.number < 9 else refusal(f"expired: {KEY}", 401)) as server:
        run_dir = planned(desk, server)
        assert work(desk, run_dir) == EXIT_FAILED
        assert "refuses the key in ODD_KEY" in states.read_state(run_dir).message
        kept = len(read_results(run_dir.results)[0])
        assert 0 < kept <= 9
        server.behave = plain
        assert work(desk, run_dir) == EXIT_ENDED
    assert states.read_state(run_dir).done == 30 and files_that_hold(desk.folder, KEY[:8]) == []


def test_under_a_tight_rate_limit_a_pause_waits_for_no_turn_and_nothing_is_lost_or_asked_twice(desk: Desk) -> None:
    with OddServer() as server:
        run_dir = planned(desk, server, 12, requests_per_minute=2)
        worker = desk.worker(run_dir)
        wait_until(reached(run_dir, 1))
        states.write_control(run_dir, Control.PAUSE)
        # Less than the half minute to the next turn.
        assert worker.wait(15) == EXIT_ENDED
        state = states.read_state(run_dir)
        assert (state.status, state.done, state.failed, len(server.calls)) == (RunStatus.PAUSED, 1, 0, 1)
        describe(desk, run_dir, server, 4)
        states.write_control(run_dir, Control.RUN)
        assert work(desk, run_dir) == EXIT_ENDED
        asked = [call.body["messages"][0]["content"] for call in server.calls]
    assert len(asked) == len(set(asked)) == states.read_state(run_dir).done == 12


@pytest.mark.slow
def test_a_server_that_hangs_does_not_hold_a_cancelled_run(desk: Desk) -> None:
    with OddServer(lambda call: Answer(completion(), seconds=HANG)) as server:
        run_dir = planned(desk, server)
        worker = desk.worker(run_dir)
        wait_until(lambda: server.calls)
        states.write_control(run_dir, Control.CANCEL)
        began = time.monotonic()
        worker.wait()
        assert time.monotonic() - began < 20
    assert states.read_state(run_dir).status is RunStatus.CANCELLED
