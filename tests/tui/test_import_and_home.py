"""Import and Home: a file of the user's own comes in by keys alone; Home says what comes next."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from engine.errors import EvaldeskError
from engine.importing.records import Refusal
from engine.intake import IntakeReport
from engine.store import labels
from engine.store.models import Model
from engine.store.store import Store
from engine.store.workspace import Workspace
from tests.tui.conftest import open_desk
from tui.app import EvaldeskApp
from tui.presentation.import_view import HOW_DRAWN, report_lines, report_sentence
from tui.presentation.lines import plain
from tui.screens.audit import AuditScreen


@pytest.fixture
def traces_file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.jsonl"
    rows = [{"uid": f"M-{n}", "frage": f"frage {n}", "antwort": f"antwort {n}", "kanal": "mail"} for n in range(5)]
    path.write_text("\n".join([*(json.dumps(row) for row in rows), "{broken"]), "utf-8")
    return path


async def test_a_file_is_looked_at_mapped_and_taken_in(demo_workspace: Path, traces_file: Path) -> None:
    async with open_desk(demo_workspace, "import", (100, 40)) as desk:
        path = desk.app.screen.query_one("#path")
        path.value = str(traces_file)
        await desk.press("enter")
        await desk.wait_for("jsonl")
        # The names of the fields are unknown, so the mapping is given.
        for field, name in (("request", "frage"), ("response", "antwort"), ("trace_id", "uid")):
            desk.app.screen.query_one(f"#field-{field}").value = name
        desk.app.screen.query_one("#field-request").focus()
        await desk.press("enter")
        await desk.wait_for("A SAMPLE CASE")
        assert "row 6" in desk.text
        await desk.press("enter")
        await desk.wait_for("5 traces added")
        stored = desk.rows(
            "SELECT trace_id, request, response, metadata FROM trace WHERE starts_with(trace_id, 'M-') ORDER BY position"
        )
        assert [row[:3] for row in stored] == [(f"M-{n}", f"frage {n}", f"antwort {n}") for n in range(5)]
        assert json.loads(stored[0][3]) == {"kanal": "mail"}
        await desk.press("1")
        await desk.wait_for("132/257")


@pytest.fixture
def labels_file(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text("id,label\nT-0407,FAIL\nT-0413,PASS\nT-0415,PASS,too many\n", "utf-8")
    return path


async def test_labels_come_in_by_what_the_screen_asks_for_at_80x24(demo_workspace: Path, labels_file: Path) -> None:
    async with open_desk(demo_workspace, "import") as desk:
        desk.app.screen.query_one("#path").value = str(labels_file)
        await desk.press("enter")
        await desk.wait_for("How were the labelled cases drawn?")
        assert "labels: how drawn" in desk.text
        for name in ("random", "by_cell", "by_judge", "by_verdict", "hand"):
            assert f"{name} " in desk.text
        assert "row 3: has 3 cells" in desk.text
        await desk.press("enter")
        await desk.wait_for("Fill in 'how drawn' on the left")
        assert "--drawn" not in desk.text
        await desk.wait_for(lambda: desk.app.focused is not None and desk.app.focused.id == "drawn")
        await desk.type("hand")
        await desk.press("enter")
        await desk.wait_for("imports it,")
        await desk.press("enter")
        await desk.wait_for("2 labels added")
        assert "1 row refused" in desk.text
        assert desk.rows(
            "SELECT trace_id, mark, how_drawn FROM label WHERE source_id <> 'sample' ORDER BY seq DESC LIMIT 2"
        ) == [
            ("T-0413", "PASS", "hand"),
            ("T-0407", "FAIL", "hand"),
        ]


async def test_values_that_need_a_meaning_are_asked_for_on_the_screen(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "import") as desk:
        desk.app.screen._show_problem(
            EvaldeskError(
                "yes and no need a meaning", where="--values", remedy="Say what they mean: --values yes=FAIL."
            )
        )
        await desk.wait_for(lambda: desk.app.focused is not None and desk.app.focused.id == "values")
        assert "labels: what the values mean" in desk.text
        assert "--values" not in desk.text


def test_counts_read_as_they_are_said() -> None:
    report = IntakeReport("f", "csv", "traces", 1, 1, 1, 2, (Refusal(15, "", "has 6 cells"),))
    assert report_sentence(report) == (
        "1 trace added, 1 was here already; 1 label added, 2 were here already; 1 row refused"
    )
    lines = report_lines(report, 40)
    assert all(len(text) <= 40 for text in plain(lines).splitlines())
    assert "row 15: has 6 cells" in plain(lines)
    assert tuple(HOW_DRAWN) == labels.HOW_DRAWN


async def test_a_missing_file_is_said_and_nothing_breaks(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "import", (100, 40)) as desk:
        desk.app.screen.query_one("#path").value = "/nowhere/at/all.csv"
        await desk.press("enter")
        await desk.wait_for("all.csv")


async def test_home_shows_the_seven_steps_and_enter_does_the_next_thing(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "home", (100, 40)) as desk:
        for part in ("1 Expert", "7 Segment", "18 PASS 18 FAIL", "sealed 96", "Build a first judge"):
            assert part in desk.text
        await desk.press("enter")
        await desk.wait_for("No judge yet")


async def test_home_draws_the_sealed_pile_first_for_a_criterion_without_one(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "home", (100, 40)) as desk:
        await desk.press("down")
        await desk.wait_for("Draw the sealed cases at random")
        await desk.press("enter")
        await desk.wait_for("How many?")
        await desk.press("enter")
        await desk.wait_for("100 cases drawn")
        assert desk.rows("SELECT count(*) FROM pile WHERE criterion_id = 'cited' AND pile = 'sealed'") == [(100,)]


@pytest.mark.parametrize("size", [pytest.param(size, marks=pytest.mark.slow) for size in ((80, 24), (200, 50))])
async def test_every_screen_opens_by_its_key_and_help_lists_its_keys(
    demo_workspace: Path, size: tuple[int, int]
) -> None:
    async with open_desk(demo_workspace, "home", size) as desk:
        for key, name in (("1", "Label"), ("2", "Judge"), ("3", "Audit"), ("4", "Runs"), ("0", "Home")):
            await desk.press(key)
            await desk.wait_for(f"evaldesk  {name}")
            await desk.press("question_mark")
            await desk.wait_for("THIS SCREEN")
            await desk.press("escape")
            await desk.wait_for(f"evaldesk  {name}")
        await desk.press("i")
        await desk.wait_for("evaldesk  Import")


async def test_the_command_palette_finds_a_screen_by_name(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "home", (100, 40)) as desk:
        await desk.press("ctrl+p")
        await desk.type("Go to Runs")
        await desk.wait_for("The same as 4")
        await desk.press("enter")
        await desk.wait_for("evaldesk  Runs")


async def test_the_command_palette_finds_what_the_screen_can_do(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "label", (100, 40)) as desk:
        await desk.press("d")
        await desk.wait_for("T-0413 ·")
        await desk.press("ctrl+p")
        await desk.type("undo")
        await desk.wait_for("The same as u")
        await desk.press("enter")
        await desk.wait_for("T-0407 ·")
        assert desk.rows("SELECT mark FROM label WHERE source_id = '' ORDER BY seq") == [("DEFERRED",), ("WITHDRAWN",)]


async def test_leaving_while_the_workspace_opens_is_quiet_and_lets_go_of_it(
    demo_workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SlowStore(Store):
        def __init__(self, *args: Any, **options: Any) -> None:
            time.sleep(0.5)
            super().__init__(*args, **options)

    monkeypatch.setattr("tui.app.Store", SlowStore)
    app = EvaldeskApp(demo_workspace)
    async with app.run_test() as pilot:
        await pilot.press("q")
    assert app.failure is None
    Store(Workspace(demo_workspace)).close()


async def test_a_dialog_opens_over_no_other_screen_than_its_own(
    demo_workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = threading.Event()

    def slow_look() -> Model:
        time.sleep(0.3)
        looked.set()
        return Model("slow", "slow", "none", "")

    monkeypatch.setattr("tui.screens.judge.embedded_model", slow_look)
    async with open_desk(demo_workspace, "judge", (100, 40)) as desk:
        await desk.press("v", "3")
        await desk.wait_for("evaldesk  Audit")
        await desk.wait_for(looked.is_set)
        await desk.pilot.pause(0.2)
        assert "New version" not in desk.text
        assert isinstance(desk.app.screen, AuditScreen)


async def test_a_number_that_is_none_is_said_and_nothing_is_drawn(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "home") as desk:
        for answer in ("²", "9" * 5000):
            await desk.press("s")
            await desk.wait_for("How many?")
            desk.app.screen.query_one("#answer").value = answer
            await desk.press("enter")
            await desk.wait_for(f"{answer[:20]} is not a number of cases.")
        assert desk.rows("SELECT count(*) FROM pile WHERE pile = 'sealed'") == [(96,)]


async def test_home_says_why_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALDESK_STATE_DIR", str(tmp_path / "state"))
    async with open_desk(tmp_path / "new", "home") as desk:
        await desk.press("s")
        await desk.wait_for("There is no criterion yet: c writes one.")
        await desk.press("v")
        await desk.wait_for("There is no criterion to edit yet: c writes one.")


async def test_without_a_free_case_none_is_offered(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "home") as desk:
        await desk.press("s")
        await desk.wait_for("How many?")
        desk.app.screen.query_one("#answer").value = "9999"
        await desk.press("enter")
        await desk.wait_for("cases drawn")
        await desk.press("s")
        await desk.wait_for("No case is free to draw")


async def test_the_criterion_form_fits_80x24_and_asks_before_it_drops_what_was_typed(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "home") as desk:
        await desk.press("c")
        await desk.wait_for("A new criterion")
        for part in ("[ ] the judge has to quote", "Save", "Esc cancels"):
            assert part in desk.text
        await desk.press("x", "escape")
        await desk.wait_for("Leave without saving?")
        await desk.press("escape")
        await desk.wait_for(lambda: "Leave without" not in desk.text)
        assert desk.app.screen.query_one("#question").value == "x"
        desk.app.screen.query_one("#quote").focus()
        await desk.press("space")
        await desk.wait_for("[x] the judge has to quote")
        for name in ("pass_when", "fail_when"):
            desk.app.screen.query_one(f"#{name}").value = name
        desk.app.screen.query_one("#criterion_id").value = "a b/c"
        desk.app.screen.query_one("#save").focus()
        await desk.press("enter")
        await desk.wait_for("A short name has letters, digits")
        await desk.press("escape")
        await desk.wait_for("Leave without saving?")
        await desk.press("enter")
        await desk.wait_for("Next")
        assert desk.rows("SELECT count(*) FROM criterion WHERE question = 'x'") == [(0,)]


@pytest.mark.slow
async def test_a_workspace_from_nothing_criterion_traces_seal_by_keys(
    tmp_path: Path, traces_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALDESK_STATE_DIR", str(tmp_path / "state"))
    async with open_desk(tmp_path / "new", "home", (100, 40)) as desk:
        await desk.wait_for("Nothing here yet")
        await desk.press("c")
        await desk.wait_for("A new criterion")
        for text in ("Is it so", "it is so", "it is not so", "", "so", "Ada"):
            if text != "Ada":
                await desk.type(text)
            await desk.press("enter")
        await desk.press("tab", "enter")
        await desk.wait_for("Import traces")
        assert desk.rows("SELECT criterion_id, question, pass_when, fail_when FROM criterion") == [
            ("so", "Is it so", "it is so", "it is not so")
        ]
        await desk.press("v")
        await desk.wait_for("a new version")
        await desk.press("x", "tab", "tab", "tab", "tab", "tab", "tab", "enter")
        await desk.wait_for(lambda: desk.rows("SELECT max(version) FROM criterion") == [(2,)])
