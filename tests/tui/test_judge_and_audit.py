"""Judge, Audit and Runs: a version from critiques, a measurement that fills the table, disagreements into drawers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.store.models import Model
from tests.engine.measuring.conftest import BACKEND, ROOT
from tests.tui.conftest import Desk, open_desk
from tui.presentation.audit_view import disagreement_lines


@pytest.fixture
def scripted_model(demo_workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Measurements run on the scripted backend; the gate file lets a held run go on."""
    monkeypatch.setenv("EVALDESK_TEST_BACKENDS", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    gate = demo_workspace.parent / "gate"
    script = {"verdicts": True, "seconds": 0.002, "hold_after": 40, "gate": str(gate)}
    model = Model("scripted", "scripted", BACKEND, json.dumps(script))
    monkeypatch.setattr("tui.screens.judge.embedded_model", lambda: model)
    return gate


async def build_a_version(desk: Desk) -> None:
    await desk.press("v")
    await desk.wait_for("New version")
    await desk.press("enter")
    await desk.wait_for("v1")


async def start_measuring(desk: Desk) -> None:
    await desk.press("m")
    await desk.wait_for("96 needed, 0 cached, 96 to run")
    await desk.press("enter")
    await desk.wait_for("evaldesk  Audit")


async def test_a_version_has_four_parts_and_its_rendered_prompt_can_be_read(
    demo_workspace: Path, scripted_model: Path
) -> None:
    async with open_desk(demo_workspace, "judge", (100, 40)) as desk:
        assert "No judge yet" in desk.text
        await build_a_version(desk)
        await desk.wait_for("1 TASK")
        assert "2 CRITERION" in desk.text
        stored = desk.rows("SELECT number, change, examples FROM judge")
        assert stored[0][:2] == (1, "first version")
        examples = json.loads(stored[0][2])
        assert {example["verdict"] for example in examples} == {"PASS", "FAIL"}
        critiques = {
            row[0] for row in desk.rows("SELECT critique FROM label JOIN pile USING (trace_id) WHERE pile = 'build'")
        }
        assert {example["critique"] for example in examples} <= critiques
        await desk.press("r")
        await desk.wait_for("RENDERED for")
        assert "system" in desk.text


async def test_the_picker_offers_the_build_pile_only_and_insists_on_both_verdicts(
    demo_workspace: Path, scripted_model: Path
) -> None:
    async with open_desk(demo_workspace, "judge", (100, 40)) as desk:
        await desk.press("v")
        await desk.wait_for("New version")
        offered = {case.trace.trace_id for case in desk.app.screen.query_one("#examples").rows}
        assert offered == {row[0] for row in desk.rows("SELECT trace_id FROM pile WHERE pile = 'build'")}
        chosen = desk.app.screen._chosen
        desk.app.screen._chosen = chosen[:1]
        await desk.press("enter")
        await desk.wait_for("Choose two or three")
        assert desk.rows("SELECT count(*) FROM judge") == [(0,)]


async def test_at_80x24_the_picker_shows_the_chosen_first_and_the_case_under_the_cursor(
    demo_workspace: Path, scripted_model: Path
) -> None:
    async with open_desk(demo_workspace, "judge") as desk:
        await desk.press("v")
        await desk.wait_for("New version")
        picker = desk.app.screen
        assert {case.trace.trace_id for case in picker.query_one("#examples").rows[:2]} == set(picker._chosen)
        for part in ("task sentence", "what you change", "critique  ", "request  ", "response  ", "space chooses"):
            assert part in desk.text
        await desk.press("enter")
        await desk.wait_for("1 TASK")
        await desk.press("r")
        await desk.wait_for("RENDERED for")
        assert "an example)" not in desk.text
        assert "Tab next case   space PgDn PgUp scroll" in desk.text
        before = desk.app.screen.query_one("#parts").scroll_offset.y
        await desk.press("pagedown")
        assert desk.app.screen.query_one("#parts").scroll_offset.y > before


async def test_an_empty_build_pile_says_what_to_do(demo_workspace: Path, scripted_model: Path) -> None:
    async with open_desk(demo_workspace, "home") as desk:
        await desk.press("down", "2")
        await desk.wait_for("evaldesk  Judge")
        await desk.press("v")
        await desk.wait_for("build pile with x on Label.")


@pytest.mark.slow
async def test_a_round_that_is_not_complete_is_told_as_such(demo_workspace: Path, scripted_model: Path) -> None:
    async with open_desk(demo_workspace, "judge") as desk:
        await build_a_version(desk)
        await start_measuring(desk)
        await desk.wait_for(lambda: desk.rows("SELECT count(*) FROM judgement") == [(40,)])
        await desk.press("2")
        await desk.wait_for("so far 40 of 96")
        await desk.press("0")
        await desk.wait_for("so far 40 of 96 cases judged")
        assert "✓ 6 Measure" not in desk.text
        scripted_model.touch()
        await desk.wait_for("✓ 6 Measure")


async def test_the_table_fills_while_the_run_goes_and_equals_the_database(
    demo_workspace: Path, scripted_model: Path
) -> None:
    async with open_desk(demo_workspace, "judge", (100, 40)) as desk:
        await build_a_version(desk)
        await start_measuring(desk)
        # The run holds still after 40 replies (4 at a time): what is in stands in the table.
        await desk.wait_for(lambda: desk.rows("SELECT count(*) FROM judgement") == [(40,)])
        await desk.wait_for("40/96")
        await desk.wait_for("56 of 96 cases pending")
        scripted_model.touch()
        await desk.wait_for("done  96/96")
        tp, fn, fp, tn = desk.rows("SELECT tp, fn, fp, tn FROM confusion")[0]
        assert tp + fn == 34
        assert fp + tn == 62
        assert f"{tp} of 34" in desk.text
        assert f"{tn} of 62" in desk.text
        k, n, low, high = desk.rows("SELECT k, n, low, high FROM figure WHERE name = 'tpr'")[0]
        assert (k, n) == (tp, 34)
        assert f"[{100 * low:.0f}, {100 * high:.0f}]" in desk.text


async def test_disagreements_show_both_sides_and_go_into_drawers(demo_workspace: Path, scripted_model: Path) -> None:
    scripted_model.touch()
    async with open_desk(demo_workspace, "judge", (100, 40)) as desk:
        await build_a_version(desk)
        await start_measuring(desk)
        await desk.wait_for("done  96/96")
        first = desk.app.screen.query_one("#disagreements").rows[0]
        await desk.wait_for("I read the response")
        assert first.critique[:30] in desk.text
        await desk.press("p")
        await desk.wait_for("p prompt 1")
        assert desk.rows("SELECT trace_id, drawer FROM triage") == [(first.trace_id, "prompt")]
        await desk.press("home", "p")
        await desk.wait_for("p prompt 0")
        await desk.press("home", "l")
        await desk.wait_for(f"{first.trace_id} ·")


@pytest.mark.slow
async def test_at_80x24_the_reason_and_every_figure_can_be_read(demo_workspace: Path, scripted_model: Path) -> None:
    scripted_model.touch()
    async with open_desk(demo_workspace, "judge", (80, 24)) as desk:
        await build_a_version(desk)
        await start_measuring(desk)
        await desk.wait_for("done  96/96")
        await desk.wait_for("I read the response.")
        assert "TNR" in desk.text
        assert "gate TPR" not in desk.text
        await desk.press("g")
        await desk.wait_for("gate TPR")
        assert "kappa" in desk.text
        await desk.press("g")
        await desk.wait_for("TNR")
        await desk.press("t")
        await desk.wait_for(lambda: "TNR" not in desk.text)
        assert "I read the response." in desk.text
        await desk.press("t")
        await desk.wait_for("gate TPR")
        await desk.press("t")
        await desk.wait_for(lambda: "gate TPR" not in desk.text)


@pytest.mark.slow
async def test_a_long_reason_is_scrolled_by_space(demo_workspace: Path, scripted_model: Path) -> None:
    scripted_model.touch()
    async with open_desk(demo_workspace, "judge", (80, 24)) as desk:
        await build_a_version(desk)
        await start_measuring(desk)
        await desk.wait_for("done  96/96")
        screen = desk.app.screen
        item = replace(screen.query_one("#disagreements").current, reason="word " * 200 + "the end")
        screen.query_one("#reasons").show(lambda width: disagreement_lines(item, width))
        await desk.settle()
        assert "the end" not in desk.text
        await desk.press("space", "space")
        # The end may stand behind a notice for as long as that stands.
        await desk.wait_for("the end")


@pytest.mark.slow
async def test_a_drawer_pressed_again_is_taken_back_and_says_so(demo_workspace: Path, scripted_model: Path) -> None:
    scripted_model.touch()
    async with open_desk(demo_workspace, "judge", (80, 24)) as desk:
        await build_a_version(desk)
        await start_measuring(desk)
        await desk.wait_for("done  96/96")
        rows = desk.app.screen.query_one("#disagreements")
        first = rows.rows[0].trace_id
        await desk.press("w")
        await desk.wait_for("w label 1")
        await desk.press("k", "w")
        await desk.wait_for(f"{first} is unsorted again.")
        assert rows.current.trace_id == first
        assert "w label 0" in desk.text


async def test_a_run_is_paused_resumed_and_cancelled_by_key(demo_workspace: Path, scripted_model: Path) -> None:
    async with open_desk(demo_workspace, "judge", (100, 40)) as desk:
        await build_a_version(desk)
        await start_measuring(desk)
        await desk.wait_for(lambda: desk.rows("SELECT count(*) FROM judgement") == [(40,)])
        await desk.press("4")
        await desk.wait_for("running")
        assert "96 needed, 0 cached, 96 to run" in desk.text
        await desk.press("space")
        scripted_model.touch()
        await desk.wait_for("paused")
        await desk.press("space")
        await desk.wait_for(lambda: desk.rows("SELECT status FROM run") == [("done",)])
        assert desk.rows("SELECT count(*), count(DISTINCT trace_id) FROM judgement") == [(96, 96)]


async def test_a_cancelled_run_keeps_what_it_has(demo_workspace: Path, scripted_model: Path) -> None:
    async with open_desk(demo_workspace, "judge", (100, 40)) as desk:
        await build_a_version(desk)
        await start_measuring(desk)
        await desk.wait_for(lambda: desk.rows("SELECT count(*) FROM judgement") == [(40,)])
        await desk.press("4")
        await desk.wait_for("running")
        await desk.press("X")
        await desk.wait_for("Cancel resolved")
        await desk.wait_for(lambda: desk.app.screen.is_current and desk.app.screen.is_mounted)
        await desk.pilot.pause(0.3)
        await desk.press("y")
        scripted_model.touch()
        await desk.wait_for(lambda: desk.rows("SELECT status FROM run") == [("cancelled",)])
        kept = desk.rows("SELECT count(*) FROM judgement")[0][0]
        assert kept >= 40
        await desk.press("R")
        await desk.wait_for(lambda: desk.rows("SELECT status FROM run") == [("done",)])
