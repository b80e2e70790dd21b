"""Codes given while labelling, and hints on the critique: by key, never in the way of it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from textual import events

from engine.store import codes, labels
from engine.store.labels import Label, Mark
from tests.tui.conftest import Desk, open_desk
from tests.tui.test_label import FIRST_OPEN, NEXT_OPEN
from tui.presentation.codes_view import Choice, matching

HOSTILE = "[/x] [@click=app.quit]q[/] \x1b]0;TAKEN\x07 \u202egnp %s {0}"
GIVEN = "SELECT trace_id, code, present FROM code ORDER BY seq"


def give(desk: Desk, trace_id: str, code: str) -> None:
    desk.app.desk.store.call(codes.toggle, "resolved", trace_id, code, "Ines Aerts")


def box_text(desk: Desk) -> str:
    return str(desk.app.screen.query_one("#critique").text)


def screen_is(desk: Desk, name: str) -> bool:
    return type(desk.app.screen).__name__ == name


async def open_picker(desk: Desk, key: str = "t") -> None:
    await desk.press(key)
    await desk.wait_for(lambda: screen_is(desk, "NamePicker"))
    await desk.settle()


async def test_a_new_code_is_given_and_u_takes_it_back_before_any_label(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("d")
        await desk.wait_for(f"{NEXT_OPEN} ·")
        await open_picker(desk)
        await desk.type("wrong price")
        assert "wrong price" in desk.text and "new" in desk.text
        await desk.press("enter")
        await desk.wait_for("code wrong price")
        assert desk.rows("SELECT trace_id, code, present, expert <> '' FROM code") == [
            (NEXT_OPEN, "wrong price", True, True)
        ]
        await desk.press("u")
        await desk.wait_for(f"Taken back: {NEXT_OPEN}: wrong price taken off")
        assert "code wrong price" not in desk.text
        assert desk.rows("SELECT count(*) FROM label WHERE source_id = ''") == [(1,)]
        await desk.press("u")
        await desk.wait_for(f"Taken back: {FIRST_OPEN} DEFERRED")
        assert desk.rows(GIVEN) == [(NEXT_OPEN, "wrong price", True), (NEXT_OPEN, "wrong price", False)]


@pytest.mark.slow
async def test_f2_gives_a_code_in_the_middle_of_a_critique(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, size=(100, 30)) as desk:
        give(desk, "T-0402", "wrong price")
        give(desk, "T-0402", "no source")
        await desk.press("f")
        await desk.type("48 hours")
        await open_picker(desk, "f2")
        await desk.type("so")
        await desk.press("enter")
        await desk.wait_for("code no source")
        await desk.wait_for(lambda: desk.app.focused is desk.app.screen.query_one("#critique"))
        assert "FAIL draft: Enter saves" in desk.text
        await desk.type(" stands nowhere.")
        await desk.press("enter")
        await desk.wait_for(f"{NEXT_OPEN} ·")
        assert desk.rows("SELECT trace_id, mark, critique FROM label WHERE source_id = ''") == [
            (FIRST_OPEN, "FAIL", "48 hours stands nowhere.")
        ]
        assert desk.rows(GIVEN)[2:] == [(FIRST_OPEN, "no source", True)]
        assert "code no source" not in desk.text, "the next case has none"
        await desk.press("u")
        await desk.wait_for(f"{FIRST_OPEN} ·")
        assert "code no source" in desk.text


@pytest.mark.slow
async def test_the_picker_gives_nothing_until_something_is_chosen_and_takes_off_what_is_there(
    demo_workspace: Path,
) -> None:
    async with open_desk(demo_workspace) as desk:
        give(desk, FIRST_OPEN, "wrong price")
        give(desk, "T-0402", "no source")
        for key in ("enter", "escape"):
            await open_picker(desk)
            assert "[x] wrong price" in desk.text
            await desk.press(key)
            await desk.wait_for(lambda: screen_is(desk, "LabelScreen"))
        await open_picker(desk)
        await desk.type("no")
        await desk.press("escape")
        await desk.wait_for(lambda: screen_is(desk, "LabelScreen"))
        assert len(desk.rows(GIVEN)) == 2
        await open_picker(desk)
        await desk.press("down", "down", "up", "enter")
        await desk.wait_for("wrong price taken off")
        assert desk.rows(GIVEN)[2:] == [(FIRST_OPEN, "wrong price", False)]
        # A longer name that begins as a known one does is one key away.
        await open_picker(desk)
        await desk.type("no sour")
        await desk.press("down", "enter")
        await desk.wait_for("code no sour\n")
        await open_picker(desk)
        assert "[x] no sour " in desk.text


@pytest.mark.slow
async def test_codes_are_there_for_every_state_of_a_case_and_survive_a_relabel(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        give(desk, "T-0401", "late")
        await desk.press("home")
        await desk.wait_for("code late")
        assert "PASS by Ines Aerts imported · code late" in desk.text
        store = desk.app.desk.store
        store.call(labels.add, Label("T-0401", "resolved", Mark.FAIL, "the date is wrong", "Ines Aerts", "hand"))
        await desk.press("j", "k")
        await desk.wait_for("FAIL by Ines Aerts · code late")
        await desk.press("slash", "t")
        assert desk.app.screen.query_one("#search").value == "t", "in the search it is a letter"


@pytest.mark.slow
async def test_a_paste_running_over_from_the_picker_gives_no_verdict(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await open_picker(desk)
        now = time.monotonic()
        for key, character in (("a", "a"), ("enter", "\r"), *[("f", "f")] * 3):
            event = events.Key(key, character)
            event.time = now
            desk.app.post_message(event)
        await desk.wait_for("code a")
        await desk.settle()
        assert box_text(desk) == "" and desk.rows("SELECT count(*) FROM draft") == [(0,)]


@pytest.mark.slow
async def test_a_hostile_code_stands_there_as_text(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, size=(200, 50)) as desk:
        await open_picker(desk)
        desk.app.post_message(events.Paste(HOSTILE))
        await desk.wait_for("[@click=app.quit]q[/]")
        await desk.press("enter")
        await desk.wait_for("code [/x] [@click=app.quit]q[/] ␛]0;TAKEN␇ ⟨U+202E⟩gnp %s {0}")
        await open_picker(desk)
        assert "[x] [/x] [@click=app.quit]q[/] ␛]0;TAKEN␇" in desk.text
        assert not set("\x1b\x07\u202e") & set(desk.text)
        desk.app.post_message(events.Paste("w" * 61))
        await desk.settle()
        await desk.press("enter")
        await desk.wait_for("a code has at most 60 characters, this one has 61")
        assert screen_is(desk, "LabelScreen") and desk.rows("SELECT count(*) FROM code") == [(1,)]


@pytest.mark.slow
async def test_hints_come_while_writing_and_stop_nothing(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("f")
        await desk.type("wrong")
        await desk.wait_for("only the verdict: what decided?")
        await desk.type(" price")
        await desk.wait_for("short: what decided, and why?")
        await desk.type(", 39 EUR stands nowhere")
        await desk.wait_for(lambda: "short:" not in desk.text)
        await desk.press("ctrl+u")
        await desk.type("ok")
        await desk.wait_for("only the verdict")
        await desk.press("enter")
        await desk.wait_for(f"{NEXT_OPEN} ·")
        assert desk.rows("SELECT critique FROM label WHERE source_id = ''") == [("ok",)]
        assert "only the verdict" not in desk.text


@pytest.mark.slow
async def test_a_copied_critique_names_the_case_that_had_it(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        [(copied,)] = desk.rows("SELECT critique FROM label WHERE trace_id = 'T-0402'")
        await desk.press("f")
        desk.app.post_message(events.Paste(copied.upper()))
        await desk.wait_for("the same words as T-0402")
        # A critique that was saved a moment ago is known too.
        await desk.press("ctrl+u", "escape")
        await desk.settle()
        desk.app.desk.store.call(
            labels.add, Label("T-0409", "resolved", Mark.FAIL, "four words of mine", "Ines Aerts", "hand")
        )
        await desk.press("f", "ctrl+a")
        desk.app.screen.query_one("#critique").clear()
        await desk.type("Four words, of mine")
        await desk.wait_for("the same words as T-0409")


@pytest.mark.slow
async def test_home_gives_codes_back_that_only_the_file_holds(demo_workspace: Path) -> None:
    line = {
        "seq": 9, "act": 9, "trace": FIRST_OPEN, "trace_version": 1, "criterion": "resolved", "code": "[/x] late", "present": True,
        "expert": "Ines Aerts", "undoes": 0, "at": "2026-01-02T03:04:05",
    }  # fmt: skip
    (demo_workspace / "codes.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    async with open_desk(demo_workspace, start="home") as desk:
        await desk.wait_for("codes.jsonl holds 1 code that the database lacks. Press r to restore.")
        await desk.press("r")
        await desk.wait_for("0 labels and 1 code restored.")
        assert "codes.jsonl" not in desk.text
        await desk.press("1")
        await desk.wait_for("code [/x] late")


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", ["wrong price", "no source", "price made up", "Rude"]),
        ("pri", ["price made up", "wrong price", "pri"]),
        ("wr pr", ["wrong price", "wr pr"]),
        ("RUDE", ["Rude"]),
        ("ource", ["no source", "ource"]),
        ("  new   name ", ["new name"]),
    ],
)
def test_a_few_letters_find_the_likeliest_name_first_and_a_new_one_last(typed: str, found: list[str]) -> None:
    names = [Choice(name) for name in ("wrong price", "no source", "price made up", "Rude")]
    assert [choice.name for choice in matching(names, typed)] == found
