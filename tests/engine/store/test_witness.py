"""labels.jsonl against the database: restoring adds each label once and in its place, and no line can break it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

from engine.errors import EvaldeskError
from engine.importing.records import TraceRecord
from engine.judging.criterion import Criterion
from engine.store import criteria, labels, traces, witness
from engine.store.labels import Label, Mark
from engine.store.store import Store
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A workspace with one label on T-0 and an older copy of its database, old.duckdb, beside it."""
    workspace = Workspace(tmp_path / "ws")
    with Store(workspace) as store:
        store.call(criteria.add, Criterion("c", "?", "t", "p", "f"))
        store.call(traces.add, "s", [TraceRecord(f"T-{i}", f"q {i}", "a") for i in range(4)])
        give(store, "T-0", Mark.PASS, "the first")
    shutil.copyfile(workspace.database, tmp_path / "old.duckdb")
    return workspace


def give(store: Store, trace_id: str, mark: Mark, critique: str) -> None:
    store.call(labels.add, Label(trace_id, "c", mark, critique, "Ada", "random"))


def go_back(workspace: Workspace) -> None:
    shutil.copyfile(workspace.path.parent / "old.duckdb", workspace.database)


def counting(store: Store) -> dict[str, str]:
    return {trace_id: label.critique for trace_id, label in store.call(labels.current_of, "c").items()}


def rows(store: Store) -> int:
    return len(store.call(labels.all_rows))


def sound_line(workspace: Workspace) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(workspace.labels.read_text("utf-8").splitlines()[0])
    return line


def test_restoring_ends_and_doubles_nothing(workspace: Workspace) -> None:
    with Store(workspace) as store:
        give(store, "T-1", Mark.FAIL, "lost")
        give(store, "T-1", Mark.PASS, "lost too")
        store.call(labels.undo, "c")
        before = counting(store)
    go_back(workspace)
    with Store(workspace) as store:
        surplus = store.surplus_labels
        assert len(surplus) == 3
        assert store.call(witness.restore, surplus).count == 3
        assert store.call(witness.restore, surplus).count == 0
        store.look_at_witness()
        assert store.surplus_labels == []
        assert (rows(store), counting(store)) == (4, before)
        # The restored undo still takes back what it took back: one more step leads to the label before.
        step = store.call(labels.undo, "c")
        assert step is not None and step[0].critique == "lost"
    for _ in range(2):
        with Store(workspace) as store:
            assert (store.surplus_labels, store.unusable_lines, rows(store)) == ([], (), 5)


def test_a_restored_label_never_overrides_a_later_decision(workspace: Workspace) -> None:
    with Store(workspace) as store:
        give(store, "T-0", Mark.FAIL, "lost, of T-0")
        give(store, "T-2", Mark.FAIL, "lost, of T-2")
    go_back(workspace)
    with Store(workspace) as store:
        surplus = store.surplus_labels
        give(store, "T-0", Mark.PASS, "decided after the loss")
        assert store.call(witness.restore, surplus).count == 2
        assert counting(store) == {"T-0": "decided after the loss", "T-2": "lost, of T-2"}
        assert [step[0].critique for step in (store.call(labels.undo, "c"), store.call(labels.undo, "c")) if step] == [
            "lost, of T-2",
            "decided after the loss",
        ]
    with Store(workspace) as store:
        assert store.surplus_labels == []


BAD: list[tuple[str, object]] = [
    ("a trace that is no text", {"trace": [1]}),
    ("a time that is no text", {"at": {}}),
    ("a time that is none", {"at": "yesterday"}),
    ("a time with a zone", {"at": "2026-01-01T00:00:00+01:00"}),
    ("no version", {"trace_version": None}),
    ("a huge version", {"trace_version": 10**30}),
    ("a bool", {"undoes": True}),
    ("an unknown trace", {"trace": "T-99"}),
    ("an unknown criterion", {"criterion": "other"}),
    ("an unknown mark", {"mark": "MAYBE"}),
    ("an unknown draw", {"how_drawn": "guessed"}),
    ("half a surrogate pair", {"critique": "\ud83d"}),
    ("a verdict without a critique", {"critique": " "}),
]


@pytest.mark.parametrize("change", [change for _, change in BAD], ids=[name for name, _ in BAD])
def test_a_line_edited_by_hand_is_named_and_the_good_ones_come_back(
    workspace: Workspace, change: dict[str, object]
) -> None:
    good = sound_line(workspace) | {"trace": "T-3", "critique": "written by hand"}
    with workspace.labels.open("a", encoding="utf-8") as file:
        file.write(json.dumps(good | change) + "\n" + json.dumps(good) + "\n")
    with Store(workspace) as store:
        assert len(store.unusable_lines) == 1 and store.unusable_lines[0].startswith("line 2: ")
        assert store.call(witness.restore, [good | change, *store.surplus_labels]).count == 1
        assert counting(store) == {"T-0": "the first", "T-3": "written by hand"}


def test_no_line_whatever_keeps_the_workspace_shut(workspace: Workspace) -> None:
    with workspace.labels.open("ab") as file:
        file.write(b'{}\n[]\nnull\n1e999\n"x"\n\xff\xfe\n\x00\n' + b"[" * 100_000 + b"\n" + b'{"a":' * 100_000 + b"\n")
        file.write(b"9" * 10_000 + b"\n{torn")
    with Store(workspace) as store:
        assert store.surplus_labels == [] and len(store.unusable_lines) == 7
        give(store, "T-1", Mark.PASS, "goes on")
    with Store(workspace) as store:
        assert counting(store)["T-1"] == "goes on"


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_no_file_under_its_name_is_said_and_locks_nothing(workspace: Workspace, make: Any) -> None:
    workspace.labels.unlink()
    make(workspace.labels)
    for _ in range(2):
        with pytest.raises(EvaldeskError, match=r"no plain file.*Move it away"):
            Store(workspace)
    workspace.labels.rmdir() if workspace.labels.is_dir() else workspace.labels.unlink()
    with Store(workspace) as store:
        assert rows(store) == 1
    assert len(workspace.labels.read_text().splitlines()) == 1


def test_a_label_is_saved_though_its_line_cannot_be_written(workspace: Workspace) -> None:
    with Store(workspace) as store:
        workspace.labels.unlink()
        workspace.labels.mkdir()
        give(store, "T-1", Mark.FAIL, "saved")
        trouble = store.take_trouble()
        assert "saved in the database" in trouble and "labels.jsonl" in trouble
        assert store.take_trouble() == ""
        assert counting(store)["T-1"] == "saved"
    workspace.labels.rmdir()
    with Store(workspace):
        assert "saved" in workspace.labels.read_text()


def test_a_workspace_deleted_under_the_app_is_said_in_plain_words(workspace: Workspace) -> None:
    with Store(workspace) as store:
        shutil.rmtree(workspace.path)
        with pytest.raises(EvaldeskError, match="moved or deleted"):
            give(store, "T-1", Mark.FAIL, "not saved")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            duckdb.TransactionException("Failed to commit: Could not write file: No space left on device"),
            "disk is full",
        ),
        (duckdb.IOException('Cannot open file "x": Read-only file system'), "only be read"),
        (duckdb.IOException('Cannot open file "x": Permission denied'), "not allowed"),
        (duckdb.FatalException("database has been invalidated because of a previous fatal error"), "stopped"),
        (duckdb.CatalogException("Table with name label does not exist!"), "lacks a part"),
        (duckdb.OutOfMemoryException("Out of Memory Error"), "could not do this"),
    ],
)
def test_what_the_disk_refuses_is_a_plain_sentence(workspace: Workspace, error: Exception, words: str) -> None:
    def refused(_: Transaction) -> None:
        raise error

    with Store(workspace) as store:
        with pytest.raises(EvaldeskError, match=words):
            store.call(refused)
        give(store, "T-1", Mark.PASS, "goes on")


def test_what_the_store_writes_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o755)
    with Store(Workspace(folder)) as store:
        store.call(criteria.add, Criterion("c", "?", "t", "p", "f"))
        store.call(traces.add, "s", [TraceRecord("T-0", "q", "a")])
        give(store, "T-0", Mark.PASS, "private")
    with Store(Workspace(folder)):
        for file in ("evaldesk.duckdb", "labels.jsonl", "owner.lock"):
            assert (folder / file).stat().st_mode & 0o077 == 0, file
