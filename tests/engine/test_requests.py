"""Requests of other processes: whatever stands in the inbox is answered or left alone, and fails nobody else."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine import requests, watch
from engine.change import Change
from engine.store import inbox, settings
from engine.store.store import Store
from engine.store.workspace import Workspace
from engine.watch import Watch


@pytest.fixture(autouse=True)
def private_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALDESK_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(Workspace(tmp_path / "ws")) as opened:
        yield opened


BAD: list[Any] = [
    {}, [], None, 7, {"kind": None}, {"kind": "nothing"}, {"kind": "audit"}, {"kind": "import"}, {"kind": "import", "path": 7},
    {"kind": "snapshot", "path": "a\0b"}, {"kind": "seal", "count": "many"}, {"kind": "seal", "count": {}}, {"kind": "judge", "version": []},
    {"kind": ["audit"]}, {"kind": "sweep", "prompts": 3},
]  # fmt: skip


def test_a_bad_request_is_answered_and_the_next_one_carried_out(store: Store) -> None:
    folder = store.workspace.inbox
    for number, body in enumerate(BAD):
        (folder / f"{number:03d}.request.json").write_text(json.dumps(body), "utf-8")
    (folder / "deep.request.json").write_text("[" * 100_000, "utf-8")
    (folder / "bytes.request.json").write_bytes(b"\xff\xfe{}")
    (folder / "folder.request.json").mkdir()
    os.mkfifo(folder / "pipe.request.json")
    good = inbox.leave(store.workspace, {"kind": "settle"})
    requests.serve_inbox(store)
    for name in [*(f"{number:03d}" for number in range(len(BAD))), "deep", "bytes"]:
        told = inbox.take_answer(store.workspace, name)
        assert told is not None and told["error"]["what"], name
    assert inbox.take_answer(store.workspace, good) == {"adopted": []}
    assert [path.name for path in inbox_files(store)] == ["folder.request.json", "pipe.request.json"]
    assert requests.serve_inbox(store) == 0


def test_requests_are_carried_out_in_the_order_in_which_they_came_also_when_the_clock_was_set_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = []
    for moment in (3 * 10**18, 10**18, 2 * 10**18):
        monkeypatch.setattr(time, "time_ns", lambda moment=moment: moment)
        left.append(inbox.leave(store.workspace, {"kind": "settle"}))
    assert [request.request_id for request in inbox.pending(store.workspace)] == left


def test_a_request_whose_answer_the_disk_refuses_is_carried_out_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []
    monkeypatch.setitem(requests._HANDLERS, "count", lambda *_: {"count": done.append(1) or len(done)})
    request_id = inbox.leave(store.workspace, {"kind": "count"})
    other = inbox.leave(store.workspace, {"kind": "settle"})
    # A folder of that name refuses the write, as a full disk does.
    in_the_way = store.workspace.inbox / f".{request_id}.answer.json.{os.getpid()}"
    in_the_way.mkdir()
    assert requests.serve_inbox(store) == 1
    assert inbox.take_answer(store.workspace, other) == {"adopted": []}, "the others are answered all the same"
    assert requests.serve_inbox(store) == 0
    in_the_way.rmdir()
    assert requests.serve_inbox(store) == 1
    assert inbox.take_answer(store.workspace, request_id) == {"count": 1}
    assert done == [1]


def inbox_files(store: Store) -> list[Path]:
    return sorted(store.workspace.inbox.iterdir())


def test_an_answer_that_nobody_takes_is_cleared_away_however_old_its_file_claims_to_be(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox.answer(store.workspace, "old", {"done": True})
    requests.serve_inbox(store)
    inbox.answer(store.workspace, "new", {"done": True})
    long_ago = time.time() - inbox.ANSWER_KEPT_S - 1
    os.utime(store.workspace.inbox / "new.answer.json", (long_ago, long_ago))
    later = time.monotonic() + inbox.ANSWER_KEPT_S + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    requests.serve_inbox(store)
    assert [path.name for path in inbox_files(store)] == ["new.answer.json"]


def test_the_watch_goes_on_after_any_fault_and_tells_it_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "TICK_S", 0.01)
    told: list[Change] = []
    faults = iter([ValueError("odd"), ValueError("odd"), KeyError("x")])

    def serve(_: Store) -> int:
        fault = next(faults, None)
        if fault is not None:
            raise fault
        store.submit(settings.write, "alive", "1").result()
        return 0

    monkeypatch.setattr(requests, "serve_inbox", serve)
    watcher = Watch(store, told.append)
    watcher.start()
    deadline = time.monotonic() + 20
    while store.call(settings.read, "alive") != "1" and time.monotonic() < deadline:
        time.sleep(0.02)
    watcher.stop()
    assert store.call(settings.read, "alive") == "1"
    assert [change.problem.count("odd") for change in told if change.problem] == [1, 0]
