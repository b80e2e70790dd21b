"""codes.jsonl against the database: every code is in it, what was lost comes back once, and no line can break it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from engine.importing.records import TraceRecord
from engine.judging.criterion import Criterion
from engine.store import code_witness, codes, criteria, traces
from engine.store.store import Store
from engine.store.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A workspace with one code on T-0 and an older copy of its database, old.duckdb, beside it."""
    workspace = Workspace(tmp_path / "ws")
    with Store(workspace) as store:
        store.call(criteria.add, Criterion("c", "?", "t", "p", "f"))
        store.call(traces.add, "s", [TraceRecord(f"T-{i}", f"q {i}", "a") for i in range(4)])
        give(store, "T-0", "first")
    shutil.copyfile(workspace.database, tmp_path / "old.duckdb")
    return workspace


def give(store: Store, trace_id: str, code: str) -> None:
    store.call(codes.toggle, "c", trace_id, code, "Ada")


def go_back(workspace: Workspace) -> None:
    shutil.copyfile(workspace.path.parent / "old.duckdb", workspace.database)


def lines(workspace: Workspace) -> list[dict[str, Any]]:
    return [json.loads(line) for line in workspace.codes.read_text("utf-8").splitlines()]


def standing(store: Store) -> tuple[dict[str, str], list[tuple[str, ...]]]:
    return store.call(codes.modes, "c"), [store.call(codes.of_case, "c", f"T-{i}") for i in range(4)]


def test_every_code_and_merge_stands_in_the_file_and_nothing_in_that_of_the_labels(workspace: Workspace) -> None:
    with Store(workspace) as store:
        give(store, "T-1", "[/x] \u202e")
        store.call(codes.merge, "c", "first", "prices", "Ada")
    assert [(line.get("trace"), line["code"], line.get("failure_mode")) for line in lines(workspace)] == [
        ("T-0", "first", None),
        ("T-1", "[/x] \u202e", None),
        (None, "first", "prices"),
    ]
    assert workspace.codes.stat().st_mode & 0o777 == 0o600
    assert not workspace.labels.exists()


def test_missing_lines_are_written_at_the_next_start(workspace: Workspace) -> None:
    workspace.codes.unlink()
    with Store(workspace) as store:
        assert store.surplus_codes == []
    assert [line["code"] for line in lines(workspace)] == ["first"]


def test_what_the_database_lost_comes_back_once_with_merges_and_undo(workspace: Workspace) -> None:
    with Store(workspace) as store:
        give(store, "T-1", "second")
        store.call(codes.merge, "c", "second", "first", "Ada")
        store.call(codes.merge, "c", "first", "prices", "Ada")
        store.call(codes.undo, "c", "Ada")
        give(store, "T-2", "third")
        give(store, "T-2", "third")
        before = standing(store)
    go_back(workspace)
    with Store(workspace) as store:
        assert standing(store) != before
        surplus = store.surplus_codes
        assert len(surplus) == 8
        assert store.call(code_witness.restore, surplus).count == 8
        assert store.call(code_witness.restore, surplus).count == 0
        store.look_at_witness()
        assert store.surplus_codes == [] and standing(store) == before
        # What was taken back stays taken back: the next step undoes what came before it.
        for _ in range(2):
            store.call(codes.undo, "c", "Ada")
        undone = store.call(codes.undo, "c", "Ada")
        assert undone is not None and (undone.codes, undone.failure_mode) == (("second",), "second")
    with Store(workspace) as store:
        assert (store.surplus_codes, store.unusable_lines) == ([], ())


def test_a_restored_code_does_not_overrule_a_later_one(workspace: Workspace) -> None:
    with Store(workspace) as store:
        give(store, "T-1", "lost")
    go_back(workspace)
    with Store(workspace) as store:
        surplus = store.surplus_codes
        give(store, "T-1", "lost")
        give(store, "T-1", "lost")
        assert store.call(code_witness.restore, surplus).count == 1
        assert store.call(codes.of_case, "c", "T-1") == ()


def test_lines_that_are_no_codes_here_are_named_and_passed_over(workspace: Workspace) -> None:
    [good] = lines(workspace)
    bad = [
        7,
        good | {"trace": "T-9"},
        good | {"criterion": "other"},
        good | {"code": " "},
        good | {"code": "w" * 61},
        good | {"present": "yes"},
        good | {"at": "tomorrow"},
        good | {"seq": "1"},
        good | {"code": "\ud800"},
        {name: value for name, value in good.items() if name not in ("trace", "present")} | {"failure_mode": 3},
    ]
    with workspace.codes.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(line) + "\n" for line in bad) + '{"torn": ')
    with Store(workspace) as store:
        assert store.surplus_codes == [] and len(store.unusable_lines) == len(bad)
        assert store.unusable_lines[0] == "codes.jsonl, line 2: it is no JSON object"
        assert store.call(code_witness.restore, bad).count == 0
        give(store, "T-3", "after")
    assert lines_that_are_whole(workspace)[-1]["code"] == "after"


def lines_that_are_whole(workspace: Workspace) -> list[Any]:
    whole = []
    for line in workspace.codes.read_text("utf-8").splitlines():
        try:
            whole.append(json.loads(line))
        except ValueError:
            continue
    return whole


def test_a_file_that_cannot_be_written_costs_no_code(workspace: Workspace) -> None:
    with Store(workspace) as store:
        workspace.codes.unlink()
        workspace.codes.mkdir()
        give(store, "T-1", "kept")
        trouble = store.take_trouble()
        assert "The code is saved in the database" in trouble and "codes.jsonl" in trouble
        assert store.call(codes.of_case, "c", "T-1") == ("kept",)
        workspace.codes.rmdir()
    with Store(workspace):
        pass
    assert [line["code"] for line in lines(workspace)] == ["first", "kept"]
