"""A snapshot never costs a file: where it may be written, who may read it, what is left when it fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from engine import requests
from engine.errors import EvaldeskError
from engine.store import settings, snapshot
from engine.store.store import Store
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(Workspace(tmp_path / "ws")) as opened:
        opened.call(settings.write, "name", "kept")
        yield opened


def kept(store: Store) -> bool:
    return store.call(settings.read, "name") == "kept"


@pytest.mark.parametrize(
    "inside", ["evaldesk.duckdb", "labels.jsonl", "copy.duckdb", "runs/copy.duckdb", "../ws/a.duckdb"]
)
def test_nothing_inside_the_workspace_is_a_target(store: Store, inside: str) -> None:
    before = sorted(store.workspace.path.rglob("*"))
    inode = store.workspace.database.stat().st_ino
    with pytest.raises(EvaldeskError, match="workspace"):
        requests.carry_out(store, {"kind": "snapshot", "path": str(store.workspace.path / inside)})
    assert sorted(store.workspace.path.rglob("*")) == before
    assert store.workspace.database.stat().st_ino == inode and kept(store)


def test_a_link_into_the_workspace_is_no_way_in(store: Store, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(store.workspace.path)
    (tmp_path / "file.duckdb").symlink_to(store.workspace.database)
    for out in (tmp_path / "link" / "a.duckdb", tmp_path / "file.duckdb"):
        with pytest.raises(EvaldeskError):
            store.call(snapshot.write, out)
    assert kept(store)


def test_what_exists_is_not_replaced_and_folders_are_not_made(store: Store, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("mine.txt", "folder", "dangling", "missing/a.duckdb", "mine.txt/a.duckdb", "a" * 300, "a\0b"):
        with pytest.raises(EvaldeskError):
            store.call(snapshot.write, tmp_path / name)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "folder", "mine.txt", "ws"]


def test_a_snapshot_is_private_and_leaves_nothing_beside_it(store: Store, tmp_path: Path) -> None:
    for name in ("one.duckdb", "it's two.duckdb"):
        out = store.call(snapshot.write, tmp_path / name)
        assert out.stat().st_mode & 0o777 == 0o600
        with duckdb.connect(str(out), read_only=True) as copy:
            assert copy.execute("SELECT value FROM workspace WHERE name = 'name'").fetchall() == [("kept",)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["it's two.duckdb", "one.duckdb", "ws"]


def test_a_snapshot_that_fails_leaves_nothing_and_the_next_one_works(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(tx: Transaction) -> None:
        snapshot.write(tx, tmp_path / "a.duckdb")
        raise EvaldeskError("on purpose")

    with pytest.raises(EvaldeskError, match="purpose"):
        store.call(half)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", full)
        with pytest.raises(EvaldeskError, match="No space"):
            store.call(snapshot.write, tmp_path / "a.duckdb")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ws"]
    assert store.call(snapshot.write, tmp_path / "a.duckdb").exists() and kept(store)


def test_a_free_name_is_found(tmp_path: Path) -> None:
    wanted = tmp_path / "ws-snapshot.duckdb"
    assert snapshot.free_name(wanted) == wanted
    wanted.touch()
    assert snapshot.free_name(wanted).name == "ws-snapshot-2.duckdb"
