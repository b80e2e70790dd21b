"""evaldesk coverage: the grid as text and as JSON, requests to write and their way back, beside an open app."""

from __future__ import annotations

import csv
import io
import json
import threading
from pathlib import Path

import pytest

from engine import requests
from engine.store.store import Store
from engine.store.workspace import Workspace
from tests.tui.cli.test_commands import ask, demo, private_state, write

__all__ = ["demo", "private_state"]

PERSONA_BY_SCENARIO = """\
persona × scenario: failures of labelled, % from 10 on; -- never tested
         ambiguous exception     found not found     total
business       0/2       1/6       57%       1/2       42%
new            0/2       4/8       40%       40%       40%
regular        23%       25%       52%       2/4       38%
total          18%       29%       50%       43%       39%
"""


def test_the_grid_as_text_and_as_json(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ask(capsys, "coverage", "--rows", "persona", "--columns", "Scenario", "--failing", "--workspace", demo)
    assert text == PERSONA_BY_SCENARIO
    found = ask(capsys, "coverage", "--json", "--tabs", "persona", "--workspace", demo)
    assert [d["name"] for d in found["dimensions"]] == ["function", "scenario", "persona"] and found[
        "criterion"
    ] == "resolved"
    assert sum(cell["real"] for cell in found["cells"]) == 252 and len(found["never_tested"]) == 7
    assert ["account", "ambiguous", "business"] in found["never_tested"]
    assert sum(cell["failures"] for cell in found["cells"]) == 52


def test_what_was_never_tested_is_a_finding(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ask(capsys, "coverage", "--empty", "--workspace", demo)
    assert text == "0 of 20 cells with no trace: function × scenario\n"
    text = ask(capsys, "coverage", "--empty", "--tabs", "persona", "--workspace", demo, code=1)
    assert "account  ambiguous  business\n" in text and "7 of 60 cells with no trace" in text
    found = ask(capsys, "coverage", "--empty", "--fewer-than", "4", "--json", "--workspace", demo, code=1)
    assert found["cells"] == [{"values": ["account", "ambiguous"], "traces": 3}]


def test_requests_written_for_empty_cells_come_back_into_them(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by = ("--tabs", "persona", "--workspace", demo)
    rows = list(csv.DictReader(io.StringIO(ask(capsys, "coverage", "--empty", "--csv", *by, code=1))))
    assert list(rows[0]) == ["function", "scenario", "persona", "request", "response", "origin"] and len(rows) == 7
    lines = ask(capsys, "coverage", "--empty", "--jsonl", *by, code=1).splitlines()
    filled = write(
        tmp_path / "w.jsonl",
        *[{**json.loads(line), "request": f"Ask {i}", "response": "r"} for i, line in enumerate(lines)],
    )
    assert "7 traces added (7 written for the coverage grid)" in ask(capsys, "import", filled, "--workspace", demo)
    found = ask(capsys, "coverage", "--json", *by)
    assert (
        not found["never_tested"]
        and sum(c["written"] for c in found["cells"]) == 7
        and sum(c["real"] for c in found["cells"]) == 252
    )
    assert "+1" in ask(capsys, "coverage", "--workspace", demo)
    # None of them is drawn.
    sealed = ask(capsys, "seal", "300", "--criterion", "cited", "--json", "--workspace", demo, code=1)
    assert sealed["drawn"] <= 252
    with Store(Workspace(demo)) as store:
        drawn = "SELECT count(*) FROM pile JOIN trace USING (trace_id) WHERE origin = 'written' AND pile = 'sealed'"
        assert store.call(lambda tx: tx.value(drawn)) == 0


def test_the_origin_is_said_for_a_whole_file_or_by_a_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, workspace = (
        write(tmp_path / "t.jsonl", {"id": "a", "request": "q", "response": "r", "how": "written"}),
        tmp_path / "ws",
    )
    said = ask(capsys, "import", file, "--as", "traces", "--origin", "written", "--json", "--workspace", workspace)
    assert (said["added"], said["written"]) == (1, 1)
    other = tmp_path / "other"
    assert ask(capsys, "import", file, "--map", "origin=how", "--json", "--workspace", other)["written"] == 1
    assert ask(capsys, "import", file, "--json", "--workspace", tmp_path / "third")["written"] == 0


def test_dimensions_and_rules_are_made_by_the_command(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ask(
        capsys, "coverage", "--dimension", "topic", "--rule", "topic: money if request has refund, Erstattung", "--rows", "topic",
        "--columns", "language", "--workspace", demo,
    )  # fmt: skip
    assert text.startswith("topic × language: traces; -- never tested\n") and "\nmoney " in text and "\n(none) " in text


WRONG = {
    ("--rows", "colour"): "there is no dimension 'colour'. Dimensions in this workspace: function, scenario",
    ("--rows", "function", "--columns", "function"): "function is named twice",
    ("--csv",): "Say --empty --csv",
    ("--empty", "--fewer-than", "0"): "Give --fewer-than 1 or more",
    ("--rule", "function: nothing"): "'nothing' is no rule",
    ("--rule", "function: x if request matches (a"): "no regular expression",
    ("--rule", "colour: x if request has a"): "there is no dimension 'colour'",
    ("--criterion", "nope"): "there is no criterion 'nope'",
}


def test_wrong_use_says_what_to_do(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in WRONG.items():
        assert said in ask(capsys, "coverage", *arguments, "--workspace", demo, code=2)


def test_it_works_beside_an_open_app(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store(Workspace(demo), program="evaldesk") as store:
        over = threading.Event()

        def own() -> None:
            while not over.is_set():
                requests.serve_inbox(store)
                over.wait(0.05)

        owner = threading.Thread(target=own)
        owner.start()
        try:
            # As another process would: the lock is held, so the request goes through the inbox.
            text = ask(
                capsys, "coverage", "--rows", "persona", "--columns", "scenario", "--failing", "--workspace", demo
            )
        finally:
            over.set()
            owner.join()
    assert text == PERSONA_BY_SCENARIO
