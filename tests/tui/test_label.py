"""Label: keys alone, every state, nothing typed is lost."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from textual import events

from tests.tui.conftest import Desk, open_desk
from tui.widgets.key_line import KeyLine

FIRST_OPEN = "T-0407"
NEXT_OPEN = "T-0413"


async def test_a_label_with_its_critique_is_saved_and_the_next_open_case_comes_up(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        assert FIRST_OPEN in desk.text
        await desk.press("f")
        assert "FAIL draft" in desk.text
        await desk.type("48 hours stands nowhere.")
        await desk.press("enter")
        await desk.wait_for(f"{NEXT_OPEN} ·")
        assert desk.rows(
            "SELECT trace_id, mark, critique, how_drawn, judge_visible FROM label WHERE source_id = ''"
        ) == [(FIRST_OPEN, "FAIL", "48 hours stands nowhere.", "hand", False)]
        assert "133/252" in desk.text


@pytest.mark.parametrize(("key", "mark"), [("d", "DEFERRED"), ("n", "NOT_APPLICABLE"), ("b", "DEFECT")])
async def test_one_key_marks_and_goes_on(demo_workspace: Path, key: str, mark: str) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press(key)
        await desk.wait_for(f"{NEXT_OPEN} ·")
        assert desk.rows("SELECT trace_id, mark FROM label WHERE source_id = ''") == [(FIRST_OPEN, mark)]


async def test_a_verdict_without_a_critique_stays_a_draft(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("p", "enter")
        await desk.wait_for("A label counts")
        assert desk.rows("SELECT count(*) FROM label WHERE source_id = ''") == [(0,)]
        assert desk.rows("SELECT trace_id, verdict FROM draft") == [(FIRST_OPEN, "PASS")]


async def test_esc_keeps_the_draft_and_leaving_and_coming_back_shows_it(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("p")
        await desk.type("half a thought")
        await desk.press("escape", "j")
        await desk.wait_for("T-0408 ·")
        assert desk.rows("SELECT verdict, critique FROM draft") == [("PASS", "half a thought")]
        assert "✎" in desk.text
    async with open_desk(demo_workspace) as desk:
        await desk.press("k")
        await desk.wait_for(f"{FIRST_OPEN} ·")
        assert "half a thought" in desk.text
        await desk.press("c", "enter")
        await desk.wait_for(f"{NEXT_OPEN} ·")
        assert desk.rows("SELECT mark, critique FROM label WHERE source_id = ''") == [("PASS", "half a thought")]
        assert desk.rows("SELECT count(*) FROM draft") == [(0,)]


@pytest.mark.slow
async def test_the_app_comes_back_to_the_same_case(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("j", "j", "j")
        await desk.wait_for("T-0410 ·")
    async with open_desk(demo_workspace) as desk:
        assert "T-0410 ·" in desk.text


async def test_undo_goes_back_over_cases_and_gives_the_critique_back(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("p")
        await desk.type("one")
        await desk.press("enter")
        await desk.wait_for(f"{NEXT_OPEN} ·")
        await desk.press("d")
        await desk.wait_for("T-0415 ·")
        await desk.press("u")
        await desk.wait_for(f"{NEXT_OPEN} ·")
        await desk.press("u")
        await desk.wait_for(f"{FIRST_OPEN} ·")
        assert "one" in desk.text
        assert desk.rows("SELECT verdict, critique FROM draft") == [("PASS", "one")]
        assert "132/252" in desk.text
        await desk.press("u")
        await desk.wait_for("Nothing left to undo")


async def test_a_paste_running_over_after_a_save_labels_nothing_more(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("p")
        await desk.type("done")
        # No pause between these keys: they arrive as a terminal hands over pasted text.
        for key, character in (("enter", "\r"), *[("f", "f")] * 3):
            desk.app.post_message(events.Key(key, character))
        await desk.wait_for(f"{NEXT_OPEN} ·")
        await desk.settle()
        assert desk.rows("SELECT trace_id, mark FROM label WHERE source_id = ''") == [(FIRST_OPEN, "PASS")]
        assert desk.rows("SELECT count(*) FROM draft") == [(0,)]


def arriving(desk: Desk, saved: float, *keys: tuple[float, str]) -> None:
    """Enter arrived at ``saved``, the others so many seconds after it; all of them wait already."""
    for after, character in ((0.0, "\r"), *keys):
        key = events.Key("enter" if character == "\r" else character, character)
        key.time = saved + after
        desk.app.post_message(key)


async def test_a_quick_hand_gives_the_next_verdict_while_the_save_still_runs(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("p")
        await desk.type("done")
        desk.app.desk.store.submit(lambda _: time.sleep(0.3))
        arriving(desk, time.monotonic(), (0.1, "p"), (0.2, "n"), (0.25, "i"))
        await desk.wait_for(f"{NEXT_OPEN} ·")
        await desk.wait_for("PASS draft")
        await desk.wait_for(lambda: desk.app.screen.query_one("#critique").text == "ni")
        assert desk.rows("SELECT trace_id, mark FROM label WHERE source_id = ''") == [(FIRST_OPEN, "PASS")]


async def test_once_a_key_after_a_save_is_dropped_nothing_that_follows_it_is_a_command(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("p")
        await desk.type("done")
        saved = time.monotonic()
        typed = [(0.02, "p"), *[(0.2 * place, letter) for place, letter in enumerate("Rightdroom", 1)]]
        arriving(desk, saved, *typed)
        await desk.wait_for(f"{NEXT_OPEN} ·")
        await desk.wait_for("Keys right after a save dropped")
        await desk.settle()
        assert "evaldesk  Label" in desk.text
        assert desk.rows("SELECT trace_id, mark FROM label WHERE source_id = ''") == [(FIRST_OPEN, "PASS")]
        assert desk.rows("SELECT count(*) FROM draft") == [(0,)]
        late = events.Key("d", "d")
        late.time = saved + typed[-1][0] + 0.4
        desk.app.post_message(late)
        await desk.wait_for("T-0415 ·")


async def test_an_emptied_draft_left_with_esc_is_gone(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("f")
        await desk.type("ab")
        await desk.press("backspace", "backspace", "escape")
        await desk.wait_for("not labelled yet")
        assert desk.rows("SELECT * FROM draft") == []
        assert "✎" not in desk.text


async def test_the_line_under_the_case_says_which_keys_hold_now(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("f")
        await desk.type("text")
        await desk.wait_for("FAIL draft: Enter saves, Esc leaves it")
        await desk.press("escape")
        await desk.wait_for("FAIL draft: c goes on writing")
        await desk.press("j", "k")
        await desk.wait_for("FAIL draft: c goes on writing")
        await desk.press("c")
        await desk.wait_for("FAIL draft: Enter saves, Esc leaves it")


async def test_the_keys_at_the_bottom_are_those_that_hold_where_the_cursor_is(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        line = desk.app.screen.query_one(KeyLine)
        assert "p pass" in line.text and "/ search" in line.text
        await desk.press("f")
        await desk.wait_for(lambda: "save and next" in line.text)
        assert "p pass" not in line.text and "/" not in line.text
        await desk.press("escape")
        await desk.wait_for(lambda: "p pass" in line.text and "save and next" not in line.text)


async def test_another_verdict_on_a_draft_is_said_and_keeps_the_text(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("p")
        await desk.type("text")
        await desk.press("escape", "f")
        await desk.wait_for("PASS is now FAIL; the text stays.")
        assert desk.app.screen.query_one("#critique").text == "text"
        await desk.wait_for(lambda: desk.rows("SELECT verdict, critique FROM draft") == [("FAIL", "text")])


async def test_only_the_newest_notice_stands_and_it_leaves_the_critique_free(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("d")
        await desk.wait_for(f"{FIRST_OPEN} deferred; u takes it back")
        await desk.press("n")
        await desk.wait_for(f"{NEXT_OPEN} not applicable; u takes it back")
        assert "deferred; u" not in desk.text
        rows = desk.text.splitlines()
        assert next(place for place, row in enumerate(rows) if "takes it back" in row) == len(rows) - 7


async def test_search_shows_the_cases_with_these_words_and_esc_ends_it(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("slash")
        await desk.type("kettle")
        await desk.press("enter")
        await desk.wait_for(lambda: len(desk.app.screen.query_one("#cases").rows) < 60)
        found = list(desk.app.screen.query_one("#cases").positions)
        expected = desk.rows(
            "SELECT position FROM trace WHERE lower(request || response || context || trace_id) LIKE '%kettle%' ORDER BY 1"
        )
        assert found == [row[0] for row in expected]
        await desk.press("escape")
        assert len(desk.app.screen.query_one("#cases").rows) == 252


async def test_an_id_jumps_to_its_case_in_the_whole_list(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("slash")
        await desk.type("T-0420")
        await desk.press("enter")
        await desk.wait_for("T-0420 ·")
        cases = desk.app.screen.query_one("#cases")
        assert len(cases.rows) == 252 and cases.has_focus and not desk.app.screen.query_one("#search").display
        await desk.press("slash")
        await desk.type("is:fail in:sealed")
        await desk.press("enter")
        await desk.wait_for(lambda: len(cases.rows) == 34)
        await desk.press("slash")
        await desk.type(" is:nothing")
        await desk.press("enter")
        await desk.wait_for("no case is is:nothing")


async def test_the_pile_key_goes_round_and_the_seal_is_explained(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("x")
        await desk.wait_for("build pile")
        await desk.press("x")
        await desk.wait_for("sealed")
        assert desk.rows("SELECT pile FROM pile WHERE trace_id = ? ORDER BY seq", FIRST_OPEN) == [
            ("build",),
            ("sealed",),
        ]


async def test_relabelling_starts_from_the_old_critique(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("home", "enter")
        await desk.wait_for("draft")
        old = desk.rows("SELECT critique FROM label WHERE trace_id = 'T-0401'")[0][0]
        box = desk.app.screen.query_one("#critique")
        assert box.text == old


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (200, 50)])
async def test_the_case_is_readable_at_every_size(demo_workspace: Path, size: tuple[int, int]) -> None:
    async with open_desk(demo_workspace, size=size) as desk:
        for part in ("REQUEST", "FACTS", "CONTEXT", "plan: Basic", "pass", "fail"):
            assert part in desk.text
        assert all(len(line) <= size[0] for line in desk.text.splitlines())


async def test_a_refused_disk_is_said_and_the_app_stays(demo_workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.errors import EvaldeskError
    from engine.store import drafts

    def full(*_: object) -> None:
        raise EvaldeskError("the disk is full")

    async with open_desk(demo_workspace) as desk:
        with monkeypatch.context() as patched:
            patched.setattr(drafts, "save", full)
            await desk.press("p")
            await desk.wait_for("the disk is full")
        await desk.press("escape")
        await desk.press("j")
        assert desk.app.is_running and desk.app.failure is None


async def test_undo_takes_a_move_between_piles_back(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("x")
        await desk.wait_for("build pile")
        await desk.press("u")
        await desk.wait_for("no pile again")
        assert desk.rows("SELECT pile FROM pile WHERE trace_id = ? ORDER BY seq", FIRST_OPEN) == [("build",), ("none",)]
