"""The commands without a screen: what they print, what they keep, their exit codes, and that no traceback is shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

from engine import requests
from engine.store import criteria, traces
from engine.store.store import Store
from engine.store.workspace import Workspace
from tui.cli.main import run


@pytest.fixture(autouse=True)
def private_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALDESK_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    workspace = tmp_path / "ws"
    assert run(["demo", "--no-open", "--workspace", str(workspace)]) == 0
    capsys.readouterr()
    return workspace


def ask(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> Any:
    assert run([str(argument) for argument in arguments]) == code
    captured = capsys.readouterr()
    return json.loads(captured.out) if "--json" in arguments else captured.out + captured.err


def write(path: Path, *rows: object) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), "utf-8")
    return path


TRACES = [{"id": f"M-{n}", "request": f"q {n}", "response": f"a {n}", "city": "Graz"} for n in range(3)]


def test_the_demo_has_the_piles_that_its_readme_promises(demo: Path) -> None:
    with Store(Workspace(demo)) as store:
        from engine.store import piles, traces

        counts = store.call(piles.counts, "resolved")
        assert (counts["sealed"].passes, counts["sealed"].failures, counts["sealed"].unlabelled) == (62, 34, 0)
        assert (counts["build"].passes, counts["build"].failures, counts["build"].unlabelled) == (18, 18, 0)
        assert store.call(traces.count) == 252
        assert all(case.label.critique for case in store.call(piles.measuring_cases, "resolved"))


def test_a_dry_run_shows_what_would_come_in_and_keeps_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "t.jsonl", *TRACES, "{broken", {"id": "M-9", "request": "q", "response": ""})
    shown = ask(capsys, "import", path, "--dry-run", "--json", "--workspace", tmp_path / "ws", code=1)
    assert (shown["format"], shown["kind"], shown["accepted"]) == ("jsonl", "traces", 3)
    assert [refusal["row"] for refusal in shown["refused"]] == [4, 5]
    assert set(shown["sample"][0]) == {"request", "context", "response", "label", "critique", "metadata"}
    assert shown["sample"][0]["request"] == "q 0"
    assert not (tmp_path / "ws").exists()


def test_importing_twice_adds_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t.jsonl", *TRACES)
    first = ask(capsys, "import", path, "--json", "--workspace", tmp_path / "ws")
    second = ask(capsys, "import", path, "--json", "--workspace", tmp_path / "ws")
    assert (first["added"], second["added"], second["same"]) == (3, 0, 3)


def test_fields_are_mapped_by_name_or_pointer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t.jsonl", {"a": {"b": "frage"}, "c": "antwort", "k": 7})
    ask(
        capsys,
        "import",
        path,
        "--map",
        "request=/a/b",
        "--map",
        "response=c",
        "--map",
        "id=k",
        "--workspace",
        tmp_path / "ws",
    )
    with duckdb.connect(str(tmp_path / "ws" / "evaldesk.duckdb")) as connection:
        assert connection.execute("SELECT trace_id, request, response FROM trace").fetchall() == [
            ("7", "frage", "antwort")
        ]


def test_labels_need_their_criterion_and_their_draw_said(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(
        tmp_path / "l.jsonl",
        {"id": "T-0407", "label": "fail", "critique": "48 hours stands nowhere"},
        {"id": "T-9999", "label": "pass"},
    )
    assert "--criterion" in ask(capsys, "import", path, "--workspace", demo, code=2)
    assert "--drawn" in ask(capsys, "import", path, "--criterion", "resolved", "--workspace", demo, code=2)
    assert "no criterion 'nope'" in ask(
        capsys, "import", path, "--criterion", "nope", "--drawn", "random", "--workspace", demo, code=2
    )
    done = ask(
        capsys,
        "import",
        path,
        "--criterion",
        "resolved",
        "--drawn",
        "random",
        "--expert",
        "Ada",
        "--json",
        "--workspace",
        demo,
        code=1,
    )
    assert done["labels_added"] == 1
    assert [(r["row"], r["field"]) for r in done["refused"]] == [(2, "id")]


def test_a_dry_run_tells_of_labels_and_what_their_import_will_need(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(
        tmp_path / "l.jsonl", *({**trace, "label": "fail", "critique": "no"} for trace in TRACES[:2]), TRACES[2]
    )
    there = ("--workspace", tmp_path / "ws")
    said = ask(capsys, "import", path, "--dry-run", *there)
    assert "2 of them with a label; to import them, say --criterion ID and --drawn HOW" in said
    said = ask(capsys, "import", path, "--dry-run", "--criterion", "c", "--drawn", "hand", *there)
    assert "2 of them with a label\n" in said
    assert ask(capsys, "import", path, "--dry-run", "--json", *there)["labels"] == 2
    plain = write(tmp_path / "t.jsonl", *TRACES)
    assert "with a label" not in ask(capsys, "import", plain, "--dry-run", *there)


def test_the_ways_of_drawing_are_listed_without_an_empty_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["import", "--help"])
    assert "--drawn {random," in capsys.readouterr().out


def test_a_criterion_is_written_by_command_and_without_one_its_way_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = ("--workspace", tmp_path / "ws")
    words = ("criterion", "add", "numbers", "--question", "Is every number right?", "--pass-when", "all stand there")
    ask(capsys, "import", write(tmp_path / "t.jsonl", *TRACES), *there)
    for arguments in (("seal", "2"), ("seal", "2", "--criterion", "numbers")):
        assert "evaldesk criterion add, or c on the Home screen" in ask(capsys, *arguments, *there, code=2)
    assert "empty: fail when" in ask(capsys, *words, "--fail-when", " ", *there, code=2)
    full = (*words, "--fail-when", "one does not", "--edge-case", "rounded: PASS", "--author", "Ada", "--json", *there)
    assert ask(capsys, *full) == {"criterion": "numbers", "version": 1, "changed": True}
    assert ask(capsys, *full) == {"criterion": "numbers", "version": 1, "changed": False}
    assert ask(capsys, *full, "--quote-required")["version"] == 2
    with Store(Workspace(tmp_path / "ws"), create=False) as store:
        stored = store.call(criteria.get, "numbers")
    assert (stored.task, stored.edge_cases) == (
        "You check one thing about a response: Is every number right?",
        ("rounded: PASS",),
    )
    assert (stored.quote_required, stored.author) == (True, "Ada")
    sealed = ask(capsys, "seal", "2", "--json", *there)
    assert (sealed["criterion"], sealed["drawn"]) == ("numbers", 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["import", "/nowhere/x.csv"], "/nowhere/x.csv"),
        (["judge", "--workspace", "/nowhere/ws"], "no workspace"),
        (["runs", "pause", "--workspace", "/nowhere/ws"], "which run is to be paused is not said"),
        (["runs", "cancel", "--workspace", "/nowhere/ws"], "which run is to be cancelled is not said"),
        (["statsu"], "Did you mean: evaldesk runs? To make a workspace of that name: evaldesk ./statsu"),
        (["improt"], "Did you mean: evaldesk import?"),
        (["Audit"], "Did you mean: evaldesk audit?"),
        ([__file__], f"evaldesk import {__file__}"),
        (["runs", "pause", "zzz", "--workspace", "/nowhere/ws"], "no run begins with"),
        (["audit", "/nowhere/x.csv"], "/nowhere/x.csv"),
        ([], "needs a terminal"),
        (["demo"], "needs a terminal"),
    ],
)
def test_wrong_use_says_what_where_and_what_to_do(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize("name", ["./statsu", "my-labels", "evaldesk.d"])
def test_what_is_meant_as_a_workspace_is_taken_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "needs a terminal" in ask(capsys, name, code=2)
    (tmp_path / "judges").mkdir()
    assert "needs a terminal" in ask(capsys, "judges", code=2)


def test_a_command_that_fails_leaves_no_workspace_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask(capsys, "import", tmp_path / "nope.csv", "--workspace", tmp_path / "new", code=2)
    labels = write(tmp_path / "l.jsonl", {"id": "M-0", "label": "fail", "critique": "no"})
    ask(capsys, "import", labels, "--criterion", "c", "--drawn", "hand", "--workspace", tmp_path / "new", code=2)
    assert not (tmp_path / "new").exists()
    ask(capsys, "import", write(tmp_path / "t.jsonl", *TRACES), "--workspace", tmp_path / "new")
    ask(capsys, "import", tmp_path / "nope.csv", "--workspace", tmp_path / "new", code=2)
    with Store(Workspace(tmp_path / "new"), create=False) as store:
        assert store.call(traces.count) == 3, "a workspace that was there stays as it is"


@pytest.mark.parametrize(
    "words", [["audit", "a.csv"], ["audit", "a.csv", "--json"], ["rank", "r.csv"], ["audit", "--help"]]
)
def test_a_reader_that_goes_away_is_no_failure_and_a_full_disk_is_said_plainly(
    tmp_path: Path, words: list[str]
) -> None:
    write(tmp_path / "a.csv", "human,judge", *["fail,fail"] * 30, *["pass,pass"] * 30)
    write(tmp_path / "r.csv", "item,a,b", *["1,1,0", "2,1,1", "3,0,1"])
    script = "import sys; from tui.cli.main import main; sys.stdin.read(); main(sys.argv[1:])"
    command = [sys.executable, "-c", script, *words]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    piped = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert piped.stdout and piped.stdin and piped.stderr
    piped.stdout.close()
    piped.stdin.close()
    assert (piped.wait(), piped.stderr.read()) == (0, b"")
    piped.stderr.close()
    if not Path("/dev/full").exists() or "--help" in words:
        return
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (done.returncode, done.stderr) == (2, "evaldesk: the output cannot be written: No space left on device\n")


def test_a_run_that_is_paused_already_says_so(
    demo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.runs.control.ensure_supervisor", lambda _: False)
    run_id = ask(capsys, "judge", "--no-follow", "--json", "--workspace", demo)["run"]
    assert ask(capsys, "runs", "pause", run_id, "--workspace", demo) == f"{run_id}: pause is asked for\n"
    assert ask(capsys, "runs", "pause", run_id, "--workspace", demo) == f"{run_id} is paused already\n"
    ask(capsys, "runs", "cancel", run_id, "--workspace", demo)
    assert ask(capsys, "runs", "cancel", run_id, "--workspace", demo) == f"{run_id} is cancelled already\n"
    planned = ask(capsys, "judge", "--dry-run", "--json", "--workspace", demo)
    assert (planned["awaited"], planned["to_run"]) == (0, 96)
    ask(capsys, "runs", "resume", run_id, "--workspace", demo)
    planned = ask(capsys, "judge", "--dry-run", "--json", "--workspace", demo)
    assert (planned["awaited"], planned["to_run"]) == (96, 0)


def test_a_command_and_the_owner_of_the_workspace_work_together(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """While a process owns the workspace its inbox is how a command gets its work done, with the same answers."""
    path = write(tmp_path / "t.jsonl", *TRACES)
    done = threading.Event()
    with Store(Workspace(demo), program="evaldesk") as store:

        def serve() -> None:
            while not done.wait(0.02):
                requests.serve_inbox(store)

        owner = threading.Thread(target=serve)
        owner.start()
        try:
            assert ask(capsys, "import", path, "--json", "--workspace", demo)["added"] == 3
            assert "no criterion" in ask(capsys, "seal", "5", "--criterion", "nope", "--workspace", demo, code=2)
            ask(capsys, "snapshot", tmp_path / "copy.duckdb", "--workspace", demo)
        finally:
            done.set()
            owner.join()
    with duckdb.connect(str(tmp_path / "copy.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM trace").fetchall() == [(255,)]
    assert list((demo / "inbox").iterdir()) == []


def test_planning_a_judge_says_what_it_takes_and_starts_nothing(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planned = ask(capsys, "judge", "--dry-run", "--json", "--workspace", demo)
    assert (planned["needed"], planned["cached"], planned["to_run"], planned["criterion"]) == (96, 0, 96, "resolved")
    assert ask(capsys, "runs", "--json", "--workspace", demo) == {"runs": []}


def test_sealed_cases_are_drawn_by_command(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = ask(capsys, "seal", "40", "--criterion", "cited", "--json", "--workspace", demo)
    assert (first["criterion"], first["drawn"], first["labelled"], first["twins"]) == ("cited", 40, 0, 0)
    short = ask(capsys, "seal", "900", "--criterion", "cited", "--workspace", demo, code=1)
    assert "of the 900 wanted" in short
    assert "at least one" in ask(capsys, "seal", "0", "--criterion", "cited", "--workspace", demo, code=2)
