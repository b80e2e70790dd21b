"""What other runs have generated counts from the moment of planning on, whatever the clock says."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from engine.runs import siblings
from engine.runs.protocol import RunDir
from engine.runs.siblings import Siblings, note_siblings
from engine.runs.spool import Spool

pytestmark = pytest.mark.usefixtures("quick_disk")


def spooled(runs: Path, run_id: str, *keys: str, error: str = "") -> RunDir:
    run_dir = RunDir(runs / run_id)
    run_dir.path.mkdir(exist_ok=True)
    spool = Spool(run_dir.results)
    spool.append([{"key": key, "error": error} for key in keys])
    spool.close()
    return run_dir


def planned(runs: Path, **ingested: int) -> RunDir:
    run_dir = RunDir(runs / "mine")
    run_dir.path.mkdir()
    note_siblings(run_dir, ingested)
    return run_dir


def size(run_dir: RunDir) -> int:
    return run_dir.results.stat().st_size


@pytest.mark.parametrize("age_s", [0, 10**7, -(10**7)])
def test_only_what_was_written_after_the_planning_counts_however_old_its_file_claims_to_be(
    tmp_path: Path, age_s: int
) -> None:
    before = spooled(tmp_path, "before", "a", "b")
    mine = planned(tmp_path, before=size(before))
    spooled(tmp_path, "before", "c")
    after = spooled(tmp_path, "after", "d", "e")
    spooled(tmp_path, "after", "f", error="it failed")
    for run_dir in (before, after):
        os.utime(run_dir.results, (time.time() - age_s, time.time() - age_s))
    assert Siblings(mine).answered(list("abcdf")) == {"c", "d"}


def test_a_spool_that_grows_is_read_on_and_keys_that_are_planned_later_are_looked_for_from_the_beginning(
    tmp_path: Path,
) -> None:
    mine = planned(tmp_path)
    other = Siblings(mine)
    assert other.answered(["a", "b", "c"]) == set()
    spooled(tmp_path, "other", "a", "z")
    assert other.answered(["a", "b", "c"]) == {"a"}
    spooled(tmp_path, "other", "b")
    assert other.answered(["b", "c"]) == {"b"}
    assert other.answered(["c", "z"]) == {"z"}


def test_results_of_a_folder_that_the_store_does_not_know_are_nobodys(tmp_path: Path) -> None:
    spooled(tmp_path, "stranger", "a")
    mine = planned(tmp_path)
    spooled(tmp_path, "stranger", "b")
    assert Siblings(mine).answered(["a", "b"]) == set()


def test_runs_that_had_ended_cost_no_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = [spooled(tmp_path, f"r{number}", f"k{number}") for number in range(20)]
    mine = planned(tmp_path, **{run_dir.run_id: size(run_dir) for run_dir in ended})
    spooled(tmp_path, "r7", "wanted")
    read: list[Path] = []
    real = siblings.read_results
    monkeypatch.setattr(siblings, "read_results", lambda path, *a, **n: read.append(path) or real(path, *a, **n))
    assert Siblings(mine).answered(["wanted"]) == {"wanted"}
    assert set(read) == {ended[7].results}


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"other": "x"}', None])
def test_without_a_note_that_can_be_read_every_spool_counts_in_full(tmp_path: Path, damage: bytes | None) -> None:
    other = spooled(tmp_path, "other", "a")
    mine = planned(tmp_path, other=size(other))
    if damage is None:
        mine.siblings.unlink()
    else:
        mine.siblings.write_bytes(damage)
    assert Siblings(mine).answered(["a"]) == {"a"}


def test_a_spool_that_cannot_be_read_stops_nobody(tmp_path: Path) -> None:
    mine = planned(tmp_path)
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "results.jsonl").mkdir()
    (tmp_path / "file").write_text("no folder")
    spooled(tmp_path, "other", "a")
    assert Siblings(mine).answered(["a"]) == {"a"}
