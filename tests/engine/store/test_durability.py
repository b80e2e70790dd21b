"""What survives: the witness of labels, snapshots, migrations, kill -9, requests between processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import duckdb
import pytest

from engine.errors import EvaldeskError, WorkspaceBusy
from engine.importing.records import TraceRecord
from engine.judging.criterion import Criterion
from engine.store import criteria, inbox, labels, snapshot, traces, witness
from engine.store.labels import Label, Mark
from engine.store.store import Store
from engine.store.workspace import Workspace


def fill(store: Store, count: int = 3) -> None:
    store.call(criteria.add, Criterion("c", "?", "t", "p", "f"))
    store.call(traces.add, "s", [TraceRecord(f"T-{i}", f"q {i}", "a") for i in range(count)])
    for i in range(count):
        store.call(
            labels.add, Label(f"T-{i}", "c", Mark.PASS, f"critique {i} with \x1b[31m and \u202e", "Ada", "random")
        )


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_every_label_stands_in_plain_text_beside_the_database(tmp_path: Path) -> None:
    with Store(Workspace(tmp_path)) as store:
        fill(store)
        assert [line["trace"] for line in lines(tmp_path / "labels.jsonl")] == ["T-0", "T-1", "T-2"]
        store.call(labels.undo, "c")
    assert lines(tmp_path / "labels.jsonl")[-1]["mark"] == "WITHDRAWN"
    assert oct((tmp_path / "labels.jsonl").stat().st_mode & 0o777) == "0o600"


def test_missing_lines_are_written_again_and_a_torn_one_does_not_disturb(tmp_path: Path) -> None:
    with Store(Workspace(tmp_path)) as store:
        fill(store)
    path = tmp_path / "labels.jsonl"
    text = path.read_text("utf-8")
    path.write_text(text[: len(text) - 40], "utf-8")
    with Store(Workspace(tmp_path)) as store:
        assert store.surplus_labels == []
    whole = [line for line in path.read_text("utf-8").splitlines() if line.endswith("}")]
    assert {json.loads(line)["trace"] for line in whole} == {"T-0", "T-1", "T-2"}


def test_labels_that_the_database_lost_are_offered_and_come_back(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "ws")
    with Store(workspace) as store:
        fill(store)
        store.call(snapshot.write, tmp_path / "old.duckdb")
        store.call(labels.add, Label("T-0", "c", Mark.FAIL, "a later thought", "Ada", "random"))
    os.replace(tmp_path / "old.duckdb", workspace.database)
    with Store(workspace) as store:
        assert [line["critique"] for line in store.surplus_labels] == ["a later thought"]
        assert store.call(witness.restore, store.surplus_labels).count == 1
        current = store.call(labels.current, "T-0", "c")
        assert current is not None and current.mark is Mark.FAIL


def test_a_snapshot_of_a_busy_workspace_opens_and_holds_everything(tmp_path: Path) -> None:
    with Store(Workspace(tmp_path / "ws")) as store:
        fill(store)
        out = store.call(snapshot.write, tmp_path / "it's a copy.duckdb")
        copy = duckdb.connect(str(out), read_only=True)
        assert copy.execute("SELECT count(*) FROM label").fetchall() == [(3,)]
        copy.close()


def test_a_newer_workspace_is_refused_and_left_alone(tmp_path: Path) -> None:
    with Store(Workspace(tmp_path)):
        pass
    connection = duckdb.connect(str(tmp_path / "evaldesk.duckdb"))
    connection.execute("INSERT INTO schema_migrations VALUES (9999, 'future', now())")
    connection.close()
    with pytest.raises(EvaldeskError, match="newer"):
        Store(Workspace(tmp_path))


def test_a_file_that_is_no_database_is_named_and_kept(tmp_path: Path) -> None:
    (tmp_path / "evaldesk.duckdb").write_bytes(b"not a database at all" * 500)
    with pytest.raises(EvaldeskError, match=r"evaldesk\.duckdb"):
        Store(Workspace(tmp_path))
    assert (tmp_path / "evaldesk.duckdb").read_bytes().startswith(b"not a database")


def test_another_program_holding_the_file_is_named_by_its_process(tmp_path: Path) -> None:
    with Store(Workspace(tmp_path)):
        pass
    script = "import duckdb,sys; c=duckdb.connect(sys.argv[1]); print('open',flush=True); sys.stdin.read()"
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "evaldesk.duckdb")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout and other.stdin
    other.stdout.readline()
    with pytest.raises(WorkspaceBusy) as caught:
        Store(Workspace(tmp_path))
    assert caught.value.pid == other.pid
    other.stdin.close()
    other.wait()
    other.stdout.close()


def test_acknowledged_labels_survive_kill_9(tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import sys
        from pathlib import Path
        from engine.store import labels
        from engine.store.labels import Label, Mark
        from engine.store.store import Store
        from engine.store.workspace import Workspace
        store = Store(Workspace(Path(sys.argv[1])))
        for i in range(100000):
            store.call(labels.add, Label("T-0", "c", Mark.PASS, f"n{i}", "Ada", "random"))
            print(i, flush=True)
    """)
    with Store(Workspace(tmp_path)) as store:
        fill(store, 1)
    writer = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout
    for line in writer.stdout:
        if int(line) == 37:
            os.kill(writer.pid, signal.SIGKILL)
            break
    acknowledged = [37, *(int(line) for line in writer.stdout if line.strip())][-1]
    writer.wait()
    writer.stdout.close()
    with Store(Workspace(tmp_path)) as store:
        critiques = {label.critique for label, _ in store.call(labels.all_rows)}
    assert {f"n{i}" for i in range(acknowledged + 1)} <= critiques
    assert {str(line["critique"]) for line in lines(tmp_path / "labels.jsonl")} == critiques


def test_inbox_requests_are_answered_once_and_a_broken_one_with_its_reason(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.create()
    first = inbox.leave(workspace, {"kind": "a"})
    (workspace.inbox / "000-bad.request.json").write_text("{", "utf-8")
    assert [request.request_id for request in inbox.pending(workspace)] == [first]
    bad = inbox.take_answer(workspace, "000-bad")
    assert bad is not None and "error" in bad
    inbox.answer(workspace, first, {"done": True})
    assert inbox.pending(workspace) == []
    assert inbox.take_answer(workspace, first) == {"done": True}
    assert inbox.take_answer(workspace, first) is None
    assert not inbox.withdraw(workspace, first)
