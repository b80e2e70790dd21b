"""A done run takes little space and reads as before; a kill at any step of compacting loses nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from engine import requests, watch
from engine.backends.protocol import Request
from engine.errors import EvaldeskError
from engine.runs import compaction, plan_file
from engine.runs.compaction import compact, compacted, expand
from engine.runs.locks import try_lock
from engine.runs.protocol import RunDir, RunState, RunStatus
from engine.runs.siblings import Siblings, note_siblings
from engine.runs.spool import Spool, count_lines, newest_results, read_results, stream_results
from engine.runs.states import read_state, write_state
from engine.runs.supervisor import EXIT_ENDED
from engine.watch import Watch
from tests.engine.measuring.conftest import private_state
from tests.engine.runs.conftest import ROOT, Desk, assert_complete, generated, wait_until
from tests.engine.sweeping.conftest import Sweeper, sweeper

__all__ = ["private_state", "sweeper"]

KEYS = [f"key-{number:04d}" for number in range(200)]

KILLED = textwrap.dedent("""
    import os, signal, sys
    from pathlib import Path
    from engine.runs import compaction
    from engine.runs.protocol import RunDir
    left = int(sys.argv[2])
    def dying(function):
        def call(*arguments, **named):
            global left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **named)
        return call
    for name in ("fsync", "write", "replace", "rename", "unlink"):
        setattr(os, name, dying(getattr(os, name)))
    getattr(compaction, sys.argv[3])(RunDir(Path(sys.argv[1])))
""")


def ended(folder: Path, status: RunStatus = RunStatus.DONE, *, size: int = 100) -> RunDir:
    run_dir = RunDir(folder / "run")
    run_dir.path.mkdir()
    plan_file.write_plan(
        run_dir, [Request(key, ({"role": "user", "content": f"Read this: {key * size}"},), {}) for key in KEYS]
    )
    spool = Spool(run_dir.results)
    spool.append([{"key": key, "text": f"It says {key}."} for key in KEYS])
    spool.close()
    write_state(run_dir, RunState(status))
    return run_dir


def names(run_dir: RunDir) -> set[str]:
    return {path.name for path in run_dir.path.iterdir()} - {"lock", "state.json"}


PLAIN, PACKED = {"plan.jsonl", "results.jsonl"}, {"plan.jsonl.gz", "results.jsonl.gz"}


def test_a_compacted_run_reads_as_before_from_every_offset_and_is_small(tmp_path: Path) -> None:
    run_dir = ended(tmp_path)
    plan, (lines, end) = plan_file.read_plan(run_dir), read_results(run_dir.results)
    newest = newest_results(run_dir.results, 1000)
    assert 0 < len(newest) < 200
    ends = [0]
    for line in run_dir.results.read_bytes().splitlines(keepends=True):
        ends.append(ends[-1] + len(line))
    size = sum((run_dir.path / name).stat().st_size for name in PLAIN)
    assert compact(run_dir)
    assert names(run_dir) == PACKED
    assert sum((run_dir.path / name).stat().st_size for name in PACKED) < size / 8
    assert plan_file.read_plan(run_dir) == plan
    assert list(stream_results(run_dir.results)) == lines
    assert newest_results(run_dir.results, 1000) == newest
    assert (count_lines(run_dir.results), compaction.plain_size(run_dir.results)) == (200, end)
    for number in (0, 1, 77, 199, 200):
        assert read_results(run_dir.results, ends[number]) == (lines[number:], end)
    assert read_results(run_dir.results, end + 1) == (lines, end), "an offset beyond the end begins anew, as ever"
    assert compact(run_dir), "and once more is harmless"
    assert names(run_dir) == PACKED


@pytest.mark.parametrize("status", sorted(set(RunStatus) - {RunStatus.DONE}))
def test_a_run_that_may_go_on_is_left_alone(tmp_path: Path, status: RunStatus) -> None:
    run_dir = ended(tmp_path, status)
    assert not compact(run_dir)
    assert names(run_dir) == PLAIN


def test_a_run_that_somebody_works_on_has_its_turn_later(tmp_path: Path) -> None:
    run_dir = ended(tmp_path)
    lock = try_lock(run_dir.lock)
    assert lock is not None
    with lock:
        assert not compact(run_dir)
    assert not compact(run_dir, lambda: True)
    assert names(run_dir) == PLAIN, "what was begun leaves nothing"
    assert compact(run_dir)


@pytest.mark.parametrize("step", ["compact", "expand"])
def test_a_kill_at_any_step_loses_nothing_and_the_next_time_finishes(tmp_path: Path, step: str) -> None:
    run_dir = ended(tmp_path)
    plan, results = plan_file.read_plan(run_dir), read_results(run_dir.results)
    kills = 0
    while True:
        (expand if step == "compact" else compact)(run_dir)
        command = [sys.executable, "-c", KILLED, str(run_dir.path), str(kills), step]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        assert (plan_file.read_plan(run_dir), read_results(run_dir.results)) == (plan, results)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        kills += 1
        (compact if step == "compact" else expand)(run_dir)
        assert names(run_dir) == (PACKED if step == "compact" else PLAIN)
        assert (plan_file.read_plan(run_dir), read_results(run_dir.results)) == (plan, results)
    assert kills >= 6


def test_a_worker_that_starts_on_a_compacted_run_finds_everything_done(desk: Desk) -> None:
    run_dir = desk.run("again", 30)
    assert desk.worker(run_dir).wait() == EXIT_ENDED
    assert compact(run_dir)
    desk.describe(run_dir, load_error="must not be loaded")
    assert desk.worker(run_dir).wait() == EXIT_ENDED
    assert_complete(run_dir)
    assert (generated(run_dir), read_state(run_dir).status) == (30, RunStatus.DONE)


def test_another_run_finds_what_a_compacted_one_has_brought_since_it_was_planned(tmp_path: Path) -> None:
    other = ended(tmp_path)
    mine = RunDir(tmp_path / "mine")
    mine.path.mkdir()
    _, offset = read_results(other.results, limit=1000)
    note_siblings(mine, {"run": offset})
    compact(other)
    before = len(read_results(other.results)[0]) - len(read_results(other.results, offset)[0])
    assert 0 < before < 200
    siblings = Siblings(mine)
    assert siblings.answered(KEYS) == set(KEYS[before:])
    assert siblings.answered(KEYS[50:]) == set(KEYS[max(before, 50) :])


def test_a_damaged_compacted_file_is_named_and_kept(tmp_path: Path) -> None:
    run_dir = ended(tmp_path)
    compact(run_dir)
    packed = compacted(run_dir.results)
    whole = packed.read_bytes()
    for damaged in (whole[:-20], whole[:100] + b"\0" * 50 + whole[150:], b"no gzip"):
        packed.write_bytes(damaged)
        with pytest.raises(EvaldeskError, match=r"results\.jsonl: the results of this run cannot be read"):
            read_results(run_dir.results)
        with pytest.raises(EvaldeskError, match=r"results\.jsonl\.gz: this compacted file is damaged"):
            expand(run_dir)
        assert packed.read_bytes() == damaged
        assert not run_dir.results.exists()


def test_an_open_workspace_compacts_what_is_done_and_everything_works_as_before(
    sweeper: Sweeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_CARE_S", 0.05)
    run = sweeper.start()
    run_dir = RunDir(sweeper.store.workspace.runs / run.run_id)
    wait_until(lambda: read_state(run_dir).status is RunStatus.DONE)
    # Compacted before a line of it was taken in, as where the database is restored from an older copy.
    wait_until(lambda: compact(run_dir))
    watcher = Watch(sweeper.store, lambda _: None)
    watcher.start()
    wait_until(lambda: sweeper.rows("SELECT status FROM run") == [("done",)])
    assert sweeper.results(run).complete
    second = sweeper.start(max_tokens=7)
    assert second.to_run == 0, "the same sweep generates nothing"
    assert requests.carry_out(sweeper.store, {"kind": "again", "run": run.run_id})["to_run"] == 0
    third = sweeper.start(replace(sweeper.order, prompts=sweeper.order.prompts[:1], items=40, seeds=(), ks=()))
    third_dir = RunDir(sweeper.store.workspace.runs / third.run_id)
    wait_until(lambda: compacted(third_dir.results).exists() and not third_dir.results.exists())
    watcher.stop()
    assert len(read_results(third_dir.results)[0]) == third.to_run
    with pytest.raises(EvaldeskError, match="done"):
        requests.carry_out(sweeper.store, {"kind": "runs", "action": "resume", "run": third.run_id})
