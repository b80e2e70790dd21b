"""Repeat: labelled cases read again blind, by keys alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.conftest import Desk, open_desk

EXPERT = "Ines Aerts"


async def begin(desk: Desk, wanted: str = "3") -> None:
    desk.app.desk.expert = EXPERT
    await desk.press("n")
    await desk.wait_for("How many?")
    desk.app.screen.focused.value = wanted  # type: ignore[union-attr]
    await desk.press("enter")
    await desk.wait_for(f"1 of {wanted}, your label is hidden")


@pytest.mark.parametrize("size", [(80, 24), pytest.param((200, 50), marks=pytest.mark.slow)])
async def test_a_sample_is_read_to_its_end_and_flipped_cases_stand_side_by_side(
    demo_workspace: Path, size: tuple[int, int]
) -> None:
    async with open_desk(demo_workspace, "repeat", size) as desk:
        await desk.wait_for("Nothing is repeated yet")
        await begin(desk)
        rows = desk.rows(
            "SELECT c.trace_id, l.mark, l.critique FROM blind_case c JOIN label l ON l.seq = c.label_seq ORDER BY c.position"
        )
        for number, (trace_id, mark, critique) in enumerate(rows):
            await desk.wait_for(f"{trace_id} ·")
            shown = desk.text
            assert mark not in shown.replace("pass", "") and critique[:30] not in shown
            # The first as before, the second the other way round, the third left undecided.
            other = {"PASS": "f", "FAIL": "p"}[mark]
            await desk.press(*(("d",) if number == 2 else (other if number else {"f": "p", "p": "f"}[other],)))
            if number < 2:
                await desk.wait_for("Enter saves, with or without a critique")
                await desk.type("seen [red]again[/red]")
                await desk.press("enter")
        await desk.wait_for("The same verdict twice: 1 of 2")
        assert "1 case left undecided" in desk.text and "FLIPPED" in desk.text
        await desk.wait_for("seen [red]again[/red]")
        assert f"then {rows[1][1]}" in desk.text and rows[1][0] in desk.text
        assert desk.rows("SELECT count(*) FROM label WHERE source_id = ''") == [(0,)]
        await desk.press("enter")
        await desk.wait_for("evaldesk  Label")
        assert f"{rows[1][0]} ·" in desk.text


async def test_undo_esc_and_leaving_keep_what_was_typed(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "repeat") as desk:
        await begin(desk)
        await desk.press("f")
        await desk.type("half a thought")
        await desk.press("escape", "0")
        await desk.wait_for("evaldesk  Home")
        await desk.press("b")
        await desk.wait_for("half a thought")
        assert "FAIL: Enter saves" in desk.text
        await desk.press("f", "enter")
        await desk.wait_for("2 of 3, your label is hidden")
        assert "half a thought" not in desk.text
        assert desk.rows("SELECT verdict, critique FROM blind_verdict") == [("FAIL", "half a thought")]
        await desk.press("u")
        await desk.wait_for("1 of 3, your label is hidden")
        await desk.press("u")
        await desk.wait_for("Nothing left to undo")
        await desk.press("n")
        await desk.wait_for("not read to its end")


async def test_who_gave_no_label_is_told_who_did(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "repeat") as desk:
        desk.app.desk.expert = "Somebody Else"
        await desk.press("p")
        await desk.wait_for("No sample is open")
        await desk.press("n")
        await desk.wait_for("How many?")
        await desk.press("enter")
        await desk.wait_for("no label that counts is by Somebody Else")
        assert EXPERT in desk.text
        await desk.press("n")
        await desk.wait_for("How many?")
        desk.app.screen.focused.value = "many"  # type: ignore[union-attr]
        await desk.press("enter")
        await desk.wait_for("'many' is no number of cases")
