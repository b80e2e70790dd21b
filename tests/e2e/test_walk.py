"""The main job as a person does it, in a real terminal, on the real model: label, import, build, measure, audit."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from engine.runs import locks
from engine.runs.protocol import RunDir
from engine.runs.spool import read_results
from engine.runs.states import read_state
from engine.store import piles
from engine.store.store import Store
from engine.store.transaction import Transaction, now
from engine.store.workspace import Workspace
from tests.e2e.conftest import Terminals
from tests.e2e.realterm import TmuxApp

MODEL_LIMIT_S = 1500.0
"""Long enough for the full sealed pile on a busy machine."""
FEW_SEALED = 6


def query(workspace: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = duckdb.connect(str(workspace / "evaldesk.duckdb"), read_only=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def wait_until(look: Callable[[], Any], limit: float = MODEL_LIMIT_S) -> Any:
    deadline = time.monotonic() + limit
    while not (value := look()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
    return value


@pytest.fixture
def small_workspace(workspace: Path) -> Path:
    """The demo with all but a few sealed cases taken out of the pile again, so that a round takes seconds."""

    def keep_few(tx: Transaction) -> None:
        sealed = [case for case in piles.measuring_cases(tx, "resolved") if len(str(case.trace)) < 900]
        failures = [case for case in sealed if case.label.mark == "FAIL"][: FEW_SEALED // 2]
        passes = [case for case in sealed if case.label.mark == "PASS"][: FEW_SEALED // 2]
        kept = {case.trace.trace_id for case in (*failures, *passes)}
        for trace_id, pile in piles.of_criterion(tx, "resolved").items():
            if pile == piles.SEALED and trace_id not in kept:
                # The product does not let a drawn case go; this fixture makes another workspace of it.
                tx.insert(
                    "pile", seq=tx.next_seq(), trace_id=trace_id, criterion_id="resolved", pile=piles.NONE, how="hand",
                    created_at=now(),
                )  # fmt: skip

    with Store(Workspace(workspace)) as store:
        store.call(keep_few)
    return workspace


@pytest.fixture(autouse=True)
def no_process_left(tmp_path: Path) -> Iterator[None]:
    """Whatever model is still at work when a test ends is ended with it."""
    yield
    for lock in [*tmp_path.glob("home/evaldesk-state/devices/*/lock"), *tmp_path.glob("**/runs/*/lock")]:
        deadline = time.monotonic() + 20
        while locks.is_held(lock) and time.monotonic() < deadline:
            pid = locks.holder(lock)[0]
            if pid > 1 and pid != os.getpid():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    break
            time.sleep(0.1)


def own_file(folder: Path) -> Path:
    path = folder / "my traces.csv"
    path.write_text(
        "id;question;answer;channel\nA-1;Where is it?;On its way.;mail\nA-2;And now?;Still on its way.;chat\nA-3;;\n",
        "utf-8",
    )
    return path


def label(app: TmuxApp, key: str, critique: str) -> str:
    """Label the case in sight; returns its id."""
    shown = re.search(r"│ (T-\d+) ·", app.text)
    assert shown
    app.send(key)
    app.wait_for("draft: Enter saves")
    app.type(critique)
    app.wait_for(critique[-20:])
    app.send("Enter")
    app.wait_for(lambda text: "draft: Enter saves" not in text and f"│ {shown[1]} ·" not in text)
    return shown[1]


def walk(app: TmuxApp, folder: Path, workspace: Path, sealed: int) -> None:
    """Every step by keys; at the end the database holds exactly what the screen said."""
    app.send("1")
    app.wait_for("REQUEST")
    first = label(app, "p", "Says what is known and what comes next")
    second = label(app, "f", "Promises a date that stands nowhere")
    app.send("i")
    app.wait_for("evaldesk  Import")
    app.type(str(own_file(folder)))
    app.send("Enter")
    app.wait_for("A SAMPLE CASE")
    app.send("Enter")
    app.wait_for("2 traces added")
    app.send("2")
    app.wait_for("No judge yet")
    app.send("v")
    app.wait_for("New version")
    app.send("Enter")
    app.wait_for("1 TASK")
    app.send("r")
    app.wait_for("RENDERED for")
    app.send("m")
    app.wait_for(f"{sealed} needed, 0 cached, {sealed} to run")
    app.send("Enter")
    app.wait_for("evaldesk  Audit")
    app.send("4")
    app.wait_for("tok/s")
    app.send("3")
    shown = app.wait_for(f"done  {sealed}/{sealed}", MODEL_LIMIT_S)
    app.send("q")
    assert app.wait_exit() == 0

    [(tp, fn, fp, tn, no_fail, no_pass, pending)] = query(
        workspace, "SELECT tp, fn, fp, tn, no_verdict_fail, no_verdict_pass, pending FROM confusion"
    )
    assert pending == 0
    assert tp + fn + fp + tn + no_fail + no_pass == sealed
    table = [
        re.findall(r"\d+", text.split("expert")[1])
        for text in shown.splitlines()
        if re.match(r"\s*expert (FAIL|PASS) +\d", text)
    ]
    assert table == [
        [str(n) for n in (tp, fn, no_fail, tp + fn + no_fail)],
        [str(n) for n in (fp, tn, no_pass, fp + tn + no_pass)],
    ]
    for name, shown_name in (("tpr", "TPR"), ("tnr", "TNR")):
        [(k, n, value, low, high)] = query(
            workspace, f"SELECT k, n, value, low, high FROM figure WHERE name = '{name}'"
        )
        row = next(text for text in shown.splitlines() if text.strip().startswith(f"{shown_name} "))
        assert f"{k} of {n}" in row
        if n:
            assert f"{100 * value:.0f} %" in row
            assert f"[{100 * low:.0f}, {100 * high:.0f}]" in row
    given = query(workspace, "SELECT trace_id, mark, critique FROM label WHERE source_id = '' ORDER BY seq")
    assert given == [
        (first, "PASS", "Says what is known and what comes next"),
        (second, "FAIL", "Promises a date that stands nowhere"),
    ]
    assert query(workspace, "SELECT trace_id, response FROM trace WHERE starts_with(trace_id, 'A-') ORDER BY 1") == [
        ("A-1", "On its way."), ("A-2", "Still on its way."),
    ]  # fmt: skip
    assert query(workspace, "SELECT count(*), count(DISTINCT trace_id) FROM judgement") == [(sealed, sealed)]


@pytest.mark.slow
def test_the_walk_on_a_few_sealed_cases(terminals: Terminals, small_workspace: Path, tmp_path: Path) -> None:
    app = terminals.tmux(small_workspace, columns=100, rows=34)
    app.wait_for("6 Measure")
    walk(app, tmp_path, small_workspace, FEW_SEALED)


@pytest.mark.slow
def test_the_walk_from_the_demo_command_on_the_whole_sealed_pile(terminals: Terminals, tmp_path: Path) -> None:
    workspace = tmp_path / "demo"
    app = terminals.tmux("demo", "--workspace", workspace, columns=100, rows=34)
    app.wait_for("REQUEST")
    walk(app, tmp_path, workspace, 96)


def start_measuring(app: TmuxApp) -> None:
    app.wait_for("6 Measure")
    app.send("2")
    app.wait_for("No judge yet")
    app.send("v")
    app.wait_for("New version")
    app.send("Enter")
    app.wait_for("1 TASK")
    app.send("m")
    app.wait_for(f"{FEW_SEALED} needed")
    app.send("Enter")
    app.wait_for("evaldesk  Audit")


@pytest.mark.slow
def test_the_app_and_the_worker_are_killed_and_the_round_ends_complete(
    terminals: Terminals, small_workspace: Path
) -> None:
    app = terminals.tmux(small_workspace, columns=100, rows=34)
    start_measuring(app)
    [run_path] = wait_until(lambda: list((small_workspace / "runs").iterdir()))
    run_dir = RunDir(run_path)
    wait_until(lambda: read_state(run_dir).status == "running")
    os.kill(app.pid, signal.SIGKILL)
    wait_until(lambda: len(read_results(run_dir.results)[0]) >= 1)
    os.kill(locks.holder(run_dir.lock)[0], signal.SIGKILL)
    wait_until(lambda: read_state(run_dir).status == "done")
    assert read_state(run_dir).starts == 2
    again = terminals.tmux(small_workspace, columns=100, rows=34)
    again.wait_for(lambda text: "evaldesk  Home" in text or "evaldesk  Audit" in text)
    again.send("3")
    again.wait_for(f"done  {FEW_SEALED}/{FEW_SEALED}")
    again.send("q")
    again.wait_exit()
    assert query(small_workspace, "SELECT count(*), count(DISTINCT trace_id) FROM judgement") == [
        (FEW_SEALED, FEW_SEALED)
    ]
    assert query(small_workspace, "SELECT count(*), count(DISTINCT request_key) FROM completion") == [
        (FEW_SEALED, FEW_SEALED)
    ]


@pytest.mark.slow
def test_a_headless_judge_while_the_app_is_open_and_the_reverse(terminals: Terminals, small_workspace: Path) -> None:
    app = terminals.tmux(small_workspace, columns=100, rows=34)
    app.wait_for("6 Measure")
    headless = terminals.run("judge", "--workspace", small_workspace, "--no-follow", "--json")
    planned = json.loads(headless.stdout)
    assert (headless.returncode, planned["needed"]) == (0, FEW_SEALED)
    app.send("3")
    app.wait_for(f"done  {FEW_SEALED}/{FEW_SEALED}", MODEL_LIMIT_S)
    # The app is still open: the same judge again comes from the cache, through its inbox.
    measured = terminals.run("judge", "--workspace", small_workspace, "--json")
    assert json.loads(measured.stdout)["cached"] == FEW_SEALED
    app.send("q")
    app.wait_exit()
    # And the reverse: a round starts without the app, which is opened in the middle of it.
    started = terminals.run(
        "judge", "--workspace", small_workspace, "--new", "--criterion", "resolved", "--no-follow", "--json"
    )
    assert started.returncode == 0
    again = terminals.tmux(small_workspace, columns=100, rows=34)
    again.wait_for("evaldesk")
    again.send("3")
    again.wait_for(f"done  {FEW_SEALED}/{FEW_SEALED}", MODEL_LIMIT_S)
    again.send("q")
    again.wait_exit()
    assert query(small_workspace, "SELECT count(*) FROM run") == [(3,)]
