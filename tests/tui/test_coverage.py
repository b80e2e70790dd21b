"""Coverage by keys: the grid in every state, what it opens, how dimensions are made, and how a value is set while reading."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import coverage
from engine.coverage import Counts, Grid
from engine.importing.records import TraceRecord
from engine.judging.criterion import Criterion
from engine.judging.dimension import Dimension
from engine.store import criteria, dimensions, labels, traces
from engine.store.cells import CellRow
from engine.store.labels import Label, Mark
from engine.store.store import Store
from engine.store.workspace import Workspace
from tests.tui.conftest import Desk, open_desk
from tui.presentation.coverage_view import (
    all_counts,
    cells_of,
    columns_of,
    grid_text,
    readout,
    rows_of,
    said_of,
    tabs_text,
)

WHOLE = """\
 evaldesk  Coverage  Does the answer resolve …  252 traces 0 of 20 never tested
 function × scenario: traces; -- never tested
 function        ambiguous exception     found not found     total
 account                 3        13        16         4        36
 billing                 5        13        25         5        48
 product                 5         6        13         4        28
 returns                10        29        37         8        84
 tracking                6        10        25        15        56
 total                  29        71       116        36       252"""

TRANSPOSED_FAILING_IN_A_TAB = """\
 scenario × function: failures of labelled, % from 10 on; -- never tested
 persona:  all  [business]  new   regular
 scenario         account  billing  product  returns tracking    total
 ambiguous             --       --      0/1       --      0/1      0/2
 exception            0/1      1/3      0/0      0/1      0/1      1/6
 found                 --      4/5      2/2      1/5      1/2      57%
 not found             --      0/1      1/1       --      0/0      1/2
 total                0/1      5/9      3/4      1/6      1/4      42%"""


async def answer(desk: Desk, text: str) -> None:
    """Give a dialog's one line and Enter."""
    desk.app.screen.query_one("#answer").value = text  # type: ignore[attr-defined]
    await desk.press("enter")


def cell_line(desk: Desk) -> str:
    return desk.text.splitlines()[-3].strip()


async def at_grid(desk: Desk) -> None:
    await desk.wait_for(" total")


async def test_the_demo_shows_its_grid_at_once_and_every_key_changes_what_it_says(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "coverage") as desk:
        await at_grid(desk)
        assert desk.text.startswith(WHOLE)
        assert cell_line(desk) == "account × ambiguous: 3 traces, 0 of 1 labelled fail"
        await desk.press("j", "j", "j", "l", "l")
        assert cell_line(desk) == "returns × found: 37 traces, 61 % fail here, 11 of 18"
        await desk.press("f", "t")
        assert cell_line(desk).startswith("found × returns: 37 traces, 61 %")
        await desk.press("s", "tab")
        await desk.wait_for("[business]")
        assert TRANSPOSED_FAILING_IN_A_TAB in desk.text
        await desk.press("e")
        assert cell_line(desk) == "ambiguous × billing × business: never tested"
        await desk.press("e")
        assert cell_line(desk) == "ambiguous × returns × business: never tested"
        await desk.press("shift+tab", "shift+tab")
        await desk.wait_for("[regular]")
        await desk.press("s", "s")
        await desk.wait_for(lambda: "persona:" not in desk.text and "language:" not in desk.text)
        await desk.press("c")
        await desk.wait_for("scenario × persona")
        await desk.press("r")
        await desk.wait_for("language × persona")
        await desk.press("end", "pagedown")
        assert cell_line(desk) == "all traces: 252 traces, 39 % fail here, 52 of 132"


@pytest.mark.slow
async def test_what_was_chosen_is_there_again(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "coverage") as desk:
        await at_grid(desk)
        await desk.press("c")
        await desk.wait_for("function × persona")
        await desk.press("0", "7")
        await desk.wait_for("function × persona")
    async with open_desk(demo_workspace, "coverage") as desk:
        await desk.wait_for("function × persona")


async def test_enter_opens_label_with_the_cases_of_the_cell_in_its_tab(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "coverage", (120, 40)) as desk:
        await at_grid(desk)
        await desk.press("s")
        await desk.wait_for("[all]")
        await desk.press("tab", "l", "l")
        assert cell_line(desk).startswith("account × found × business: never tested")
        await desk.press("enter")
        await desk.wait_for("No case lies here")
        await desk.press("j", "enter")
        await desk.wait_for("function=billing scenario=found persona=business")
        await desk.wait_for(lambda: len(desk.app.screen.query_one("#cases").positions) == 9)  # type: ignore[attr-defined]
        # It is a search as any other: Esc ends it.
        await desk.press("escape")
        await desk.wait_for(lambda: len(desk.app.screen.query_one("#cases").positions) == 252)  # type: ignore[attr-defined]
        await desk.press("7")
        await at_grid(desk)
        await desk.press("0", "1")
        await desk.wait_for(lambda: "function=billing" not in desk.text and "RESPONSE" in desk.text)


@pytest.mark.slow
async def test_a_whole_row_is_opened_from_its_total(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "coverage", (120, 40)) as desk:
        await at_grid(desk)
        await desk.press("end", "enter")
        await desk.wait_for("function=account")
        await desk.wait_for(lambda: len(desk.app.screen.query_one("#cases").positions) == 36)  # type: ignore[attr-defined]


@pytest.mark.slow
async def test_dimensions_are_made_filled_named_ordered_and_removed_by_keys(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "coverage", (100, 30)) as desk:
        await at_grid(desk)
        await desk.press("d")
        await desk.wait_for("Dimensions: features")
        await desk.press("n")
        await answer(desk, "topic")
        await desk.wait_for("metadata topic")
        await desk.press("end", "a")
        await desk.wait_for("A rule for topic")
        await answer(desk, "money if request has refund, Erstattung")
        await desk.wait_for("rule money if request has refund, Erstattung")
        await desk.press("a")
        await answer(desk, "nothing")
        await desk.wait_for("'nothing' is no rule")
        await desk.press("home", "end", "enter")
        await desk.wait_for("A rule for topic")
        await desk.press("escape", "k", "K", "K", "K", "K")
        await desk.wait_for(lambda: next(d.name for d in desk.app.desk.store.call(dimensions.everyone)) == "topic")
        await desk.press("r")
        await desk.wait_for("Rename")
        await answer(desk, "topic [b]")
        await desk.wait_for("topic [b] ")
        await desk.press("J")
        await desk.wait_for(
            lambda: [d.name for d in desk.app.desk.store.call(dimensions.everyone)][:2] == ["function", "topic [b]"]
        )
        await desk.press("escape", "c", "c", "c")
        await desk.wait_for("function × topic [b]")
        assert "(none)" in desk.text and "money" in desk.text
        await desk.press("l", "enter")
        await desk.wait_for('"topic [b]"=""')
        await desk.press("7", "d")
        await desk.wait_for("Dimensions: features")
        await desk.press("home", "down", "down", "X")
        await desk.wait_for(lambda: "rule money" not in desk.text)
        await desk.press("up", "X")
        await desk.wait_for("Remove topic [b]?")
        await desk.press("enter")
        await desk.wait_for(lambda: "topic [b]" not in desk.text)
        await desk.press("escape")
        await desk.wait_for("function × ")


@pytest.mark.slow
async def test_a_field_is_taken_in_with_enter_where_there_is_no_dimension_yet(
    tmp_path: Path, demo_workspace: Path
) -> None:
    with Store(Workspace(tmp_path / "bare")) as store:
        store.call(traces.add, "src", [
            TraceRecord(f"T-{i}", "q", f"{i}", metadata={"city": ("Graz", "\x1b[31mWien[/b]")[i % 2], "id": f"x{i}", "n": i % 40}) for i in range(50)
        ])  # fmt: skip
    async with open_desk(tmp_path / "bare", "coverage") as desk:
        await desk.wait_for("Fields that could be ones: city.")
        for key in ("t", "f", "e", "w", "c", "s", "tab", "enter", "j"):
            await desk.press(key)
        await desk.press("d")
        await desk.wait_for("2 values: Graz 25, ␛[31mWien[/b] 25")
        await desk.press("enter")
        await desk.wait_for("metadata city")
        await desk.press("escape")
        await desk.wait_for("total")
        assert "␛[31mWien[/b]" in desk.text
        await desk.press("t")
        await desk.wait_for("One dimension has nothing to be turned.")
        await desk.press("enter")
        await desk.wait_for(lambda: len(desk.app.screen.query_one("#cases").positions) == 25)  # type: ignore[attr-defined]


async def test_without_traces_it_says_what_to_do(tmp_path: Path, demo_workspace: Path) -> None:
    async with open_desk(tmp_path / "empty", "coverage") as desk:
        await desk.wait_for("No traces yet. Press i")


@pytest.mark.slow
async def test_a_dimension_of_too_many_values_says_so_and_another_one_can_be_chosen(
    tmp_path: Path, demo_workspace: Path
) -> None:
    with Store(Workspace(tmp_path / "many")) as store:
        records = [
            TraceRecord(f"T-{i}", "q", f"{i}", metadata={"id": f"x{i}", "city": "GW"[i % 2], "lang": "de"})
            for i in range(300)
        ]
        store.call(traces.add, "src", records)
        for name in ("id", "city", "lang"):
            store.call(dimensions.add, name)
    async with open_desk(tmp_path / "many", "coverage") as desk:
        await desk.wait_for("id has 300 values, and a grid takes 200.")
        await desk.press("r")
        await desk.wait_for("lang × city")
        await at_grid(desk)


@pytest.mark.slow
async def test_a_value_is_set_while_a_case_is_read_and_taken_back(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "label", (100, 30)) as desk:
        await desk.press("v")
        await desk.wait_for("T-0407: its dimensions")
        await desk.press("end", "enter")
        await desk.wait_for("language: which value?")
        await desk.press("n")
        await answer(desk, "fr")
        await desk.wait_for("set by hand")
        await desk.press("enter", "home", "enter")
        await desk.wait_for(lambda: desk.rows("SELECT value FROM dimension_value ORDER BY seq") == [("fr",), ("en",)])
        await desk.press("u", "u")
        await desk.wait_for(lambda: "set by hand" not in desk.text)
        await desk.press("u")
        await desk.wait_for("Nothing set by hand is left to undo.")
        await desk.press("enter", "escape", "escape", "j")
        await desk.wait_for("T-0408 ·")
        assert [row[0] for row in desk.rows("SELECT value FROM dimension_value ORDER BY seq")] == ["fr", "en", "fr", ""]


@pytest.mark.slow
async def test_what_comes_in_meanwhile_is_counted_and_written_cases_stand_apart(demo_workspace: Path) -> None:
    async with open_desk(demo_workspace, "coverage", (100, 30)) as desk:
        await at_grid(desk)
        written = [
            TraceRecord("W-1", "q", "a", metadata={"function": "account", "scenario": "ambiguous"}, origin="written")
        ]
        desk.app.desk.store.call(traces.add, "mine", written)
        desk.app.desk.store.call(labels.add, Label("W-1", "resolved", Mark.FAIL, "why", "Ada", "hand"))
        await desk.press("d", "escape")
        await desk.wait_for("3+1")
        assert "252 traces 1 written" in desk.text
        assert (
            cell_line(desk)
            == "account × ambiguous: 3 traces, 0 of 1 labelled fail; 1 written for the grid (1 of 1 labelled fail)"
        )
        await desk.press("enter")
        await desk.wait_for("function=account")
        await desk.press("end")
        await desk.wait_for("W-1 · written for the grid · account")
        await desk.press("0")
        await desk.wait_for("252 (100 or more), and 1 written for the coverage grid")


@pytest.mark.slow
async def test_the_list_of_requests_to_write_goes_into_a_new_file(demo_workspace: Path, tmp_path: Path) -> None:
    async with open_desk(demo_workspace, "coverage", (100, 30)) as desk:
        await at_grid(desk)
        await desk.press("w")
        await desk.wait_for("Every cell has a trace: there is nothing to write.")
        await desk.press("s")
        await desk.wait_for("[all]")
        out = tmp_path / "todo.csv"
        for name, said in (
            (out, "Written:"),
            (out, "this file is there already"),
            (tmp_path / "todo.xls", "does not say its form"),
        ):
            await desk.press("w")
            await desk.wait_for("Write which file?")
            await answer(desk, str(name))
            await desk.wait_for(said)
        assert out.read_text("utf-8").splitlines()[:2] == [
            "function,scenario,persona,request,response,origin",
            "account,ambiguous,business,,,written",
        ]


@pytest.mark.parametrize(
    ("size", "plain"),
    [
        ((80, 24), True),
        pytest.param((80, 24), False, marks=pytest.mark.slow),
        pytest.param((200, 50), True, marks=pytest.mark.slow),
        pytest.param((200, 50), False, marks=pytest.mark.slow),
    ],
)
async def test_a_grid_of_twenty_by_thirty_scrolls_to_its_last_cell(
    demo_workspace: Path, tmp_path: Path, size: tuple[int, int], plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if plain:
        monkeypatch.setenv("NO_COLOR", "1")
    rng = random.Random(1)
    with Store(Workspace(tmp_path / "wide")) as store:
        store.call(criteria.add, Criterion("numbers", "Is it?", "task", "yes", "no"))
        store.call(traces.add, "src", [
            TraceRecord(f"T-{i}", "q", f"{i}", metadata={"row": f"row {rng.randrange(20):02d}", "column": f"column {rng.randrange(30):02d}"})
            for i in range(1_000)
        ])  # fmt: skip
        for name in ("row", "column"):
            store.call(dimensions.add, name)
    async with open_desk(tmp_path / "wide", "coverage", size) as desk:
        await desk.wait_for("row 00")
        assert "of 600 never tested" in desk.text and "--" in desk.text
        await desk.press("end", "pagedown", "pagedown", "pagedown")
        await desk.wait_for("all traces: 1,000 traces")
        shown = desk.text.splitlines()
        assert next(text for text in shown if text.startswith(" total")).rstrip("▁▂▃▄▅▆▇█ ").endswith(" 1000")
        assert shown[2].endswith("column 29     total") and shown[2].startswith(" row ")
        assert all(len(text) <= size[0] for text in shown) and len(shown) <= size[1]


VALUES = st.one_of(st.none(), st.sampled_from("abB").map(lambda v: (v.lower(), v)))
ROWS = st.builds(CellRow, st.tuples(VALUES, VALUES), *[st.integers(0, 5)] * 2, *[st.integers(0, 3)] * 4)
BY = (Dimension("1", "one", "one"), Dimension("2", "two", "two"))


@given(st.lists(ROWS, max_size=10), st.integers(1, 2))
def test_every_cell_shows_the_counts_that_the_grid_has(rows: list[CellRow], count: int) -> None:
    grid = coverage.arrange(
        "c", BY[:count], [CellRow(row.values[:count], *list(vars(row).values())[1:]) for row in rows]
    )
    shown = all_counts(grid)
    assert len(shown) == len(rows_of(grid)) and {len(row) for row in shown} == {len(columns_of(grid))}
    for r, row in enumerate(rows_of(grid)):
        for c, column in enumerate(columns_of(grid)):
            assert shown[r][c] == grid.at(row, *([column] if count > 1 else []))
            assert readout(grid, r, c, 60).endswith(
                said_of(shown[r][c], is_possible=row is not None and column is not None)
            )
    for failing in (False, True):
        assert len(cells_of(grid, failing=failing)) == len(shown)
        assert len(grid_text(grid, failing=failing)) == len(shown) + 2


def test_a_cell_in_words_says_counts_and_a_share_only_from_enough_labels_on() -> None:
    assert said_of(Counts()) == "never tested" and said_of(Counts(), is_possible=False) == "no traces"
    assert said_of(Counts(real=14, labelled=12, failures=9)) == "14 traces, 75 % fail here, 9 of 12"
    assert (
        said_of(Counts(real=1, labelled=1)) == "1 trace, 0 of 1 labelled fail" and said_of(Counts(real=3)) == "3 traces"
    )
    assert said_of(Counts(written=2)) == "never in real use; 2 written for the grid"


@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=40), st.data())
def test_the_chosen_tab_is_always_in_sight(values: list[str], data: st.DataObject) -> None:
    chosen = data.draw(st.integers(0, len(values)))
    shown = tabs_text(BY[0], values, chosen, 80)
    assert "[" in shown and shown.startswith("one: ")


def test_an_empty_grid_has_totals_alone() -> None:
    grid = Grid("c", BY, ((), ()))
    assert [[cell.text for cell in row] for row in cells_of(grid, failing=False)] == [["--"]]
