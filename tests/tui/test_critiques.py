"""Critiques: found by verdict, failure mode and words; codes renamed and merged by key; every step can be taken back."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from engine.store import codes, labels
from engine.store.labels import Label, Mark
from engine.store.store import Store
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace
from tests.tui.conftest import Desk, open_desk
from tests.tui.test_case_codes import HOSTILE, give, open_picker, screen_is

MODES = "SELECT code, failure_mode, undoes > 0 FROM code_merge ORDER BY seq"


async def open_critiques(desk: Desk) -> None:
    await desk.press("l")
    await desk.wait_for("evaldesk  Critiques")
    await desk.settle()


def shown(desk: Desk) -> list[str]:
    return [case.trace_id for case in desk.app.screen.query_one("#critiques").rows]


def groups(desk: Desk) -> list[tuple[str, int]]:
    return [(group.title, group.failures) for group in desk.app.screen.query_one("#modes").rows]


def fails(desk: Desk) -> list[str]:
    return [case.trace_id for case in desk.app.screen._cases if case.verdict == "FAIL"]


async def test_it_opens_on_the_case_at_hand_and_enter_and_esc_lead_back(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await desk.press("home", "j")
        await desk.wait_for("T-0402 ·")
        await open_critiques(desk)
        assert "132 of 132" in desk.text
        assert "T-0402  FAIL  label 2 · by Ines Aerts · imported · sealed" in desk.text
        await desk.press("j", "enter")
        await desk.wait_for("T-0403 ·")
        assert "evaldesk  Label" in desk.text
        await open_critiques(desk)
        await desk.press("escape")
        await desk.wait_for("T-0403 ·")


@pytest.mark.slow
async def test_v_goes_through_the_verdicts_and_search_narrows_until_esc(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await open_critiques(desk)
        await desk.press("v")
        assert "FAIL only 52 of 132" in desk.text and shown(desk) == fails(desk)
        await desk.press("v")
        assert "PASS only 80 of 132" in desk.text and not set(shown(desk)) & set(fails(desk))
        await desk.press("v", "slash")
        await desk.type("Membership")
        await desk.press("enter")
        await desk.wait_for("“Membership”")
        expected = desk.rows("SELECT trace_id FROM label WHERE critique ILIKE '%membership%'")
        assert sorted(shown(desk)) == sorted(row[0] for row in expected)
        await desk.press("slash", "ctrl+u")
        await desk.type("zzz")
        await desk.press("enter")
        await desk.wait_for("No critique has these words here: zzz")
        assert sorted(shown(desk)) == sorted(row[0] for row in expected)
        await desk.press("escape")
        assert len(shown(desk)) == 132 and "evaldesk  Critiques" in desk.text


@pytest.mark.slow
async def test_a_code_is_given_here_and_the_list_of_failure_modes_follows(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        await open_critiques(desk)
        await desk.wait_for("No failure of 52 has a code yet")
        await desk.press("v", "home")
        for key in ("no source", "wrong plan"):
            await open_picker(desk)
            await desk.type(key)
            await desk.press("enter")
            await desk.wait_for(f"{key}; u takes it back")
        await desk.press("j")
        await open_picker(desk)
        await desk.type("no")
        await desk.press("enter")
        await desk.wait_for("2 of 52 failures have a code")
        assert groups(desk) == [("all critiques", 52), ("no code", 50), ("no source", 2), ("wrong plan", 1)]
        # On the left the cursor chooses whose critiques are shown.
        await desk.press("tab", "j")
        assert len(shown(desk)) == 50 and "no code: 50 FAIL, 80 PASS" in desk.text
        await desk.press("j")
        assert shown(desk) == fails(desk)[:2]
        assert "no source: 2 of 52 failures (4 %); first label 2, last 11" in desk.text
        await desk.press("enter", "j", "enter")
        await desk.wait_for("T-0412 ·")
        assert "code no source" in desk.text


@pytest.mark.slow
async def test_modes_are_renamed_merged_taken_apart_and_all_of_it_taken_back(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        for trace_id, code in [("T-0402", "price made up"), ("T-0412", "wrong price"), ("T-0428", "no source")]:
            give(desk, trace_id, code)
        await open_critiques(desk)
        await desk.press("r")
        await desk.wait_for("Choose a failure mode on the left first")
        await desk.press("tab", "end")
        assert "wrong price: 1 of 52" in desk.text
        # r: another name
        await desk.press("r")
        await desk.wait_for("Rename the failure mode")
        await desk.press("ctrl+u")
        await desk.type("prices")
        await desk.press("enter")
        await desk.wait_for("wrong price → prices; u takes it back")
        assert "prices: 1 of 52 failures" in desk.text and "codes wrong price" in desk.text
        # m: into another one
        await desk.press("home", "j", "j")
        assert "no source: 1 of 52" in desk.text
        await desk.press("j")
        await desk.press("m")
        await desk.wait_for("Merge “price made up” into")
        await desk.type("pri")
        await desk.press("enter")
        await desk.wait_for("price made up → prices; u takes it back")
        assert groups(desk)[2:] == [("prices", 2), ("no source", 1)]
        assert shown(desk) == ["T-0402", "T-0412"], "the cursor goes with the codes"
        await desk.wait_for("price made up → prices")
        # s: out again
        await desk.press("s")
        await desk.wait_for("Take out of “prices”")
        await desk.press("down", "enter")
        await desk.wait_for("price made up → price made up")
        assert groups(desk)[2:] == [("no source", 1), ("price made up", 1), ("prices", 1)]
        await desk.press("s")
        await desk.wait_for("Nothing was merged into this failure mode")
        # u: one after the other, to the beginning
        for expected in (
            ["prices"] * 2 + ["no source"],
            ["no source", "price made up", "prices"],
            ["no source", "price made up", "wrong price"],
        ):
            await desk.press("u")
            await desk.wait_for(lambda expected=expected: sorted(_expanded(groups(desk)[2:])) == sorted(expected))
        assert [row[2] for row in desk.rows(MODES)] == [False] * 3 + [True] * 3
        assert desk.rows("SELECT count(*) FROM code") == [(3,)], "no code was touched"


def _expanded(modes: Iterable[tuple[str, int]]) -> list[str]:
    return [name for name, count in modes for _ in range(count)]


@pytest.mark.slow
async def test_esc_in_a_dialog_changes_nothing_and_u_says_when_nothing_is_left(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace) as desk:
        give(desk, "T-0402", "wrong price")
        await open_critiques(desk)
        await desk.press("tab", "end")
        for key in ("t", "r", "m"):
            await desk.press(key)
            await desk.wait_for(lambda: not screen_is(desk, "CritiquesScreen"))
            await desk.press("escape")
            await desk.wait_for(lambda: screen_is(desk, "CritiquesScreen"))
        # The same name again is no renaming.
        await desk.press("r")
        await desk.wait_for("Rename the failure mode")
        await desk.press("enter")
        await desk.wait_for(lambda: screen_is(desk, "CritiquesScreen"))
        assert desk.rows(MODES) == [] and desk.rows("SELECT count(*) FROM code") == [(1,)]
        await desk.press("r")
        await desk.wait_for("Rename the failure mode")
        await desk.type("w" * 61)
        await desk.press("enter")
        await desk.wait_for("a code has at most 60 characters")
        await desk.press("u")
        await desk.wait_for("Taken back: T-0402: wrong price taken off")
        await desk.press("u")
        await desk.wait_for("Nothing left to undo.")


async def test_without_labels_it_says_so_and_its_keys_do_no_harm(tmp_path: Path, demo_workspace: Path) -> None:
    with Store(Workspace(tmp_path / "empty")):
        pass
    async with open_desk(tmp_path / "empty", start="critiques") as desk:
        await desk.wait_for("No label counts yet")
        await desk.press("v", "t", "r", "m", "s", "u", "tab", "j", "k", "enter", "space", "v", "enter")
        assert "evaldesk  Critiques" in desk.text
        await desk.press("slash")
        await desk.type("x")
        await desk.press("enter")
        await desk.wait_for("No critique has these words")


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_hostile_codes_and_critiques_stand_there_as_text_at_every_size(
    demo_workspace: Path, size: tuple[int, int]
) -> None:
    async with open_desk(demo_workspace, size=size) as desk:
        critique = f"begin {HOSTILE} end"
        desk.app.desk.store.call(labels.add, Label("T-0402", "resolved", Mark.FAIL, critique, "[/x]\x1b[2J", "hand"))
        give(desk, "T-0402", HOSTILE)
        give(desk, "T-0412", "wrong price")
        desk.app.desk.store.call(codes.merge, "resolved", "wrong price", f"m {HOSTILE[:30]}", "Ines")
        desk.app.desk.trace_id = "T-0402"
        await open_critiques(desk)
        literal = "[/x] [@click=app.quit]q[/] ␛]0;TAKEN␇ ⟨U+202E⟩gnp %s {0}"
        assert f"begin {literal} end" in " ".join(line.strip() for line in desk.text.splitlines()[-12:])
        assert "by [/x]␛[2J" in desk.text and f"code  {literal}" in desk.text
        await desk.press("tab", "end")
        for key in ("r", "m"):
            await desk.press(key)
            await desk.wait_for("[@click=app.quit]q[/]")
            await desk.press("escape")
            await desk.wait_for(lambda: screen_is(desk, "CritiquesScreen"))
        await desk.press("u")
        await desk.wait_for("Taken back: wrong price → wrong price")
        assert not set("\x1b\x07\u202e") & set(desk.text)
        assert all(len(line) <= size[0] for line in desk.text.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_counts_and_what_they_mean_are_readable_at_every_size(
    demo_workspace: Path, size: tuple[int, int]
) -> None:
    def code_all(tx: Transaction) -> None:
        failed = [case for case in codes.cases(tx, "resolved") if case.verdict == "FAIL"]
        for place, case in enumerate(failed[:40]):
            codes.toggle(tx, "resolved", case.trace_id, "once" if place == 30 else ("a", "b")[place % 2], "Ines")

    async with open_desk(demo_workspace, size=size) as desk:
        desk.app.desk.store.call(code_all)
        await open_critiques(desk)
        said = " ".join(" ".join(desk.text.splitlines()[1:4]).split())
        assert said.startswith(
            "Newest failure mode: 9 coded failures ago. Go on until 20 bring none. About 2 % of failures drawn as these "
            "are of a kind not seen yet (Good-Turing, 1 of 40). 12 without a code."
        )
        assert groups(desk)[2:] == [("b", 20), ("a", 19), ("once", 1)]
        for part in ("all critiques", "no code", "once", "verdict", "rename", "merge", "undo", "search"):
            assert part in desk.text
        if size[0] == 200:
            assert "38 %  b" in desk.text
