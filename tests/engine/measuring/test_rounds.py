"""Measuring a judge on the sealed pile: exact counts, nothing generated twice, nothing lost or doubled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from engine import requests
from engine.errors import Refused
from engine.measuring import audit, rounds
from engine.runs import control, locks, planning, queue
from engine.runs.ingest import ingest
from engine.runs.protocol import RunDir
from engine.runs.spool import read_results
from engine.runs.states import read_state
from engine.store import judgements, labels, models, piles, runs
from engine.store.labels import Label, Mark
from engine.store.store import Store
from engine.store.workspace import Workspace
from tests.engine.measuring.conftest import Bench, fill, wait_until

# 30 sealed cases, FAIL on 0, 3, ... 27; case 3 reads well (missed), 9, 19 and 29 get no verdict (9 is a FAIL).
EXPECTED = {"tp": 8, "fn": 1, "fp": 0, "tn": 18, "no_verdict_fail": 1, "no_verdict_pass": 2}


def counts(result: audit.Audit) -> dict[str, int]:
    return {name: getattr(result.confusion, name) for name in EXPECTED}


def test_a_round_gives_the_right_table_and_the_database_holds_what_it_says(bench: Bench) -> None:
    run = bench.start(bench.judge())
    assert (run.needed, run.cached, run.awaited) == (30, 0, 0)
    bench.finish(run)
    result = bench.store.call(audit.audit, run.run_id)
    assert counts(result) == EXPECTED
    assert result.pending == 0
    stored = bench.store.call(
        lambda tx: tx.rows("SELECT tp, fn, fp, tn, no_verdict_fail, no_verdict_pass, pending FROM confusion")
    )
    assert stored == [(*EXPECTED.values(), 0)]
    figures = {
        row[0]: row[1:]
        for row in bench.store.call(lambda tx: tx.rows("SELECT name, k, n, value, low, high FROM figure"))
    }
    tpr = result.rates.tpr
    assert figures["tpr"] == (8, 9, tpr.value, tpr.low, tpr.high)
    assert {d.trace_id for d in result.disagreements} == {"T-003", "T-009", "T-019", "T-029"}
    assert Counter(bench.generated()).most_common(1)[0][1] == 1
    assert len(bench.generated()) == 30


def test_measuring_again_generates_nothing_and_counts_as_a_round(bench: Bench) -> None:
    judge = bench.judge()
    first = bench.start(judge)
    bench.finish(first)
    second = bench.start(judge)
    assert (second.status, second.cached) == ("done", 30)
    assert counts(bench.store.call(audit.audit, second.run_id)) == EXPECTED
    assert len(bench.generated()) == 30
    assert bench.store.call(piles.rounds_measured, "c") == 2


def test_what_is_pending_in_another_run_is_awaited_and_not_planned_twice(bench: Bench) -> None:
    judge = bench.judge(hold_after=5)
    first, second = bench.start(judge), bench.start(judge)
    assert second.awaited == 30
    assert second.status == "waiting"
    bench.open_gate()
    bench.finish(first, second)
    assert len(bench.generated()) == 30
    assert counts(bench.store.call(audit.audit, second.run_id)) == EXPECTED


def test_a_waiting_run_plans_for_itself_what_a_cancelled_one_leaves(bench: Bench) -> None:
    judge = bench.judge(hold_after=5)
    first, second = bench.start(judge), bench.start(judge)
    wait_until(lambda: len(read_results(bench.run_dir(first).results)[0]) >= 5)
    control.cancel(bench.run_dir(first))
    bench.open_gate()
    bench.finish(second)
    assert bench.store.call(runs.get, first.run_id).status == "cancelled"
    assert counts(bench.store.call(audit.audit, second.run_id)) == EXPECTED
    assert max(Counter(bench.generated()).values()) <= 2


def test_what_a_cancelled_run_left_is_planned_though_nobody_has_looked_since(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store still believes that the run works: nobody took its state in between its cancel and the next plan."""
    judge = bench.judge(hold_after=5)
    first = bench.start(judge)
    wait_until(lambda: len(read_results(bench.run_dir(first).results)[0]) >= 5)
    bench.ingest()
    control.cancel(bench.run_dir(first))
    bench.open_gate()
    wait_until(lambda: read_state(bench.run_dir(first)).status == "cancelled")
    done = len(read_results(bench.run_dir(first).results)[0])
    assert bench.store.call(runs.get, first.run_id).status == "running"
    monkeypatch.setattr(requests, "embedded_model", lambda _: bench.store.call(models.get, judge.model_id))
    planned = requests.carry_out(bench.store, {"kind": "judge", "dry_run": True})
    assert (planned["cached"], planned["awaited"], planned["to_run"]) == (done, 0, 30 - done)
    second = bench.start(judge)
    assert (second.cached, second.awaited) == (done, 0)
    bench.finish(second)
    assert counts(bench.store.call(audit.audit, second.run_id)) == EXPECTED
    assert max(Counter(bench.generated()).values()) <= 2


def test_starting_a_run_looks_at_the_state_of_the_others_itself(bench: Bench) -> None:
    judge = bench.judge(hold_after=5)
    first = bench.start(judge)
    wait_until(lambda: len(read_results(bench.run_dir(first).results)[0]) >= 5)
    control.cancel(bench.run_dir(first))
    bench.open_gate()
    wait_until(lambda: read_state(bench.run_dir(first)).status == "cancelled")
    second = bench.start(judge)
    assert second.awaited == 0 and second.cached >= 5


def test_a_cancelled_run_that_is_resumed_by_its_files_alone_brings_its_results(bench: Bench) -> None:
    judge = bench.judge(hold_after=5)
    run = bench.start(judge)
    wait_until(lambda: len(read_results(bench.run_dir(run).results)[0]) >= 5)
    control.cancel(bench.run_dir(run))
    bench.open_gate()
    wait_until(lambda: read_state(bench.run_dir(run)).status == "cancelled")
    bench.ingest()
    assert bench.store.call(runs.get, run.run_id).status == "cancelled"
    control.resume(bench.run_dir(run))
    bench.finish(run)
    assert counts(bench.store.call(audit.audit, run.run_id)) == EXPECTED


def test_a_cancelled_run_that_the_store_has_not_heard_of_is_not_queued_again(bench: Bench) -> None:
    busy, run = bench.start(bench.judge(hold_after=0)), bench.start(bench.judge(fingerprint="other"))
    run_dir = bench.run_dir(run)
    control.cancel(run_dir)
    assert bench.store.call(runs.get, run.run_id).status == "queued"
    planning.ensure_queued(run_dir, run.device)
    assert read_state(run_dir).status == "cancelled"
    assert [entry.run_dir.run_id for entry in queue.entries(run.device)] == [busy.run_id]


def test_requests_that_fail_are_no_verdict_with_the_reason(bench: Bench) -> None:
    judge = bench.judge()
    from engine.measuring.rounds import request_for
    from engine.store import traces

    trace = bench.store.call(traces.get, "T-001")
    assert trace is not None
    key = request_for(judge, trace).key
    other = bench.judge(fail_keys=[key])
    assert other.judge_id == judge.judge_id
    bench.store.call(lambda tx: tx.execute("UPDATE model SET path = ?", json.dumps(
        {"verdicts": True, "fail_keys": [key], "side_file": str(bench.folder / "generated")})))  # fmt: skip
    run = bench.start(judge)
    bench.finish(run)
    said = bench.store.call(judgements.of_run, run.run_id)["T-001"]
    assert said.verdict == "NO_VERDICT"
    assert "scripted failure" in said.problem


def test_killed_between_ingest_passes_no_row_is_doubled_or_missing(bench: Bench) -> None:
    """The reader dies with kill -9 while it takes results in, again and again."""
    run = bench.start(bench.judge())
    wait_until(lambda: read_state(bench.run_dir(run)).status == "done")
    workspace = bench.workspace
    bench.store.close()
    script = textwrap.dedent("""
        import sys
        from pathlib import Path
        from engine.runs import ingest as module
        from engine.store.store import Store
        from engine.store.workspace import Workspace
        module.BATCH_BYTES = 1500
        store = Store(Workspace(Path(sys.argv[1])))
        print("open", flush=True)
        while store.call(module.ingest, store.workspace).more:
            print("pass", flush=True)
    """)
    for passes in (1, 2, 0, 3):
        reader = subprocess.Popen(
            [sys.executable, "-c", script, str(workspace.path)], stdout=subprocess.PIPE, text=True
        )
        assert reader.stdout
        for _ in range(passes + 1):
            reader.stdout.readline()
        os.kill(reader.pid, signal.SIGKILL)
        reader.wait()
        reader.stdout.close()
    with Store(workspace) as store:
        while store.call(ingest, workspace).more:
            pass
        assert store.call(lambda tx: tx.rows("SELECT count(*), count(DISTINCT trace_id) FROM judgement")) == [(30, 30)]
        assert store.call(lambda tx: tx.rows("SELECT count(*), count(DISTINCT request_key) FROM completion")) == [
            (30, 30)
        ]
        assert counts(store.call(audit.audit, run.run_id)) == EXPECTED


@pytest.mark.slow
def test_the_app_and_the_worker_killed_the_run_still_ends_complete(private_state: Path) -> None:
    """kill -9 of the process that planned the run, then of the worker: the supervisor finishes it."""
    script = textwrap.dedent("""
        import sys, time
        from pathlib import Path
        from engine.store.store import Store
        from engine.store.workspace import Workspace
        from tests.engine.measuring.conftest import Bench, fill
        folder = Path(sys.argv[1])
        store = Store(Workspace(folder / "ws"))
        fill(store)
        bench = Bench(store, folder)
        run = bench.start(bench.judge(seconds=0.1, parallel=2, hold_after=12))
        print(run.run_id, flush=True)
        while True:
            bench.ingest()
            time.sleep(0.05)
    """)
    app = subprocess.Popen([sys.executable, "-c", script, str(private_state)], stdout=subprocess.PIPE, text=True)
    assert app.stdout
    run_id = app.stdout.readline().strip()
    run_dir = RunDir(private_state / "ws" / "runs" / run_id)
    wait_until(lambda: len(read_results(run_dir.results)[0]) >= 4)
    os.kill(app.pid, signal.SIGKILL)
    app.wait()
    app.stdout.close()
    worker = wait_until(lambda: locks.holder(run_dir.lock)[0] if locks.is_held(run_dir.lock) else 0)
    os.kill(worker, signal.SIGKILL)
    (private_state / "gate").touch()
    wait_until(lambda: read_state(run_dir).status == "done")
    with Store(Workspace(private_state / "ws")) as store:
        while store.call(ingest, store.workspace).more:
            pass
        result = store.call(audit.audit, run_id)
    assert counts(result) == EXPECTED
    side = (private_state / "generated").read_text().splitlines()
    assert len(set(side)) == 30
    # parallel requests are in flight at the kill, and up to twice as many are handed to the backend.
    assert len(side) <= 30 + 4


def test_three_queued_runs_finish_with_nobody_watching_and_one_worker_killed(bench: Bench) -> None:
    # The first run holds still after five replies, so that its worker is surely there to be killed.
    judges = [bench.judge(fingerprint=f"scripted{n}", hold_after=5 if n == 0 else -1) for n in range(3)]
    started = [bench.start(judge) for judge in judges]
    first = bench.run_dir(started[0])
    wait_until(lambda: len(read_results(first.results)[0]) >= 3)
    os.kill(locks.holder(first.lock)[0], signal.SIGKILL)
    bench.open_gate()
    for run in started:
        wait_until(lambda run=run: read_state(bench.run_dir(run)).status == "done")
    bench.finish(*started)
    for run in started:
        assert counts(bench.store.call(audit.audit, run.run_id)) == EXPECTED


def test_a_relabelled_case_changes_the_figures_and_keeps_its_draw(bench: Bench) -> None:
    run = bench.start(bench.judge())
    bench.finish(run)
    bench.store.call(labels.add, Label("T-003", "c", Mark.PASS, "on second thought it is right", "Ada", "random"))
    result = bench.store.call(audit.audit, run.run_id)
    assert (result.confusion.fn, result.confusion.tn) == (0, 19)
    assert "T-003" not in {d.trace_id for d in result.disagreements}


def test_without_labelled_sealed_cases_there_is_nothing_to_measure(bench: Bench, tmp_path: Path) -> None:
    judge = bench.judge()
    for number in range(30):
        bench.store.call(piles.put, "c", f"T-{number:03d}", "none")
    with pytest.raises(Refused, match="no labelled case"):
        bench.store.call(rounds.start, bench.workspace, judge.judge_id)


def test_after_measuring_the_seal_holds(bench: Bench) -> None:
    bench.start(bench.judge())
    with pytest.raises(Refused, match="measured"):
        bench.store.call(piles.put, "c", "T-001", "build")


__all__ = ["fill"]
