"""The commands without a screen: what they print, what they keep, their exit codes, and that no traceback is shown."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

from engine import requests
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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["import", "/nowhere/x.csv"], "/nowhere/x.csv"),
        (["judge", "--workspace", "/nowhere/ws"], "no workspace"),
        (["runs", "pause", "--workspace", "/nowhere/ws"], "which run"),
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
