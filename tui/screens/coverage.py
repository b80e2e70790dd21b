"""Coverage: traces counted for each combination of dimensions, what was never tested, and where the system fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from engine import coverage
from engine.change import Change
from engine.coverage import Grid, Value
from engine.errors import EvaldeskError
from engine.judging.dimension import Dimension
from engine.store import case_search, cells, criteria, dimensions, settings, traces
from tui.presentation.coverage_view import (
    NEVER,
    cell_width,
    cells_of,
    columns_of,
    head_text,
    heads,
    readout,
    row_labels,
    rows_of,
    tabs_text,
    title_text,
    value_name,
)
from tui.presentation.lines import BLANK, Line, counted, line, wrapped
from tui.screens.desk_screen import DeskScreen
from tui.screens.dimensions import DimensionsDialog
from tui.screens.text_dialog import AskDialog
from tui.widgets.heatmap import HeatGrid, Heatmap
from tui.widgets.literal import visible
from tui.widgets.painted import Reader

_SETTING = "coverage"
ROWS, COLUMNS, TABS = range(3)


class CoverageScreen(DeskScreen):
    """A grid of two dimensions, a third as tabs; the cell under the cursor in words below it."""

    NAME = "Coverage"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "d", "dimensions", "dimensions", tooltip="Choose, name, order and fill dimensions", id="coverage.dimensions"
        ),
        Binding("r", "axis(0)", "rows", tooltip="Another dimension for the rows", id="coverage.rows"),
        Binding("c", "axis(1)", "columns", tooltip="Another dimension for the columns", id="coverage.columns"),
        Binding("s", "axis(2)", "third", tooltip="A third dimension as tabs, or none", id="coverage.tabs"),
        Binding(
            "tab", "tab(1)", "next tab", show=False, tooltip="The next value of the third dimension", id="coverage.tab"
        ),
        Binding("shift+tab", "tab(-1)", "tab back", show=False, tooltip="The value before", id="coverage.tab_back"),
        Binding("t", "transpose", "transpose", tooltip="Rows to columns and columns to rows", id="coverage.transpose"),
        Binding(
            "f",
            "failing",
            "failing",
            tooltip="Counts of traces, or failures of the labelled ones",
            id="coverage.failing",
        ),
        Binding("e", "next_empty", "empty", tooltip="The next cell that was never tested", id="coverage.next_empty"),
        Binding(
            "w",
            "write",
            "write list",
            tooltip="Write the cells never tested to a file, to fill in requests",
            id="coverage.write",
        ),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._known: list[Dimension] = []
        self._chosen: list[str] = ["", "", ""]
        """Ids of the dimensions of rows, columns and tabs, "" for none."""
        self._tab = 0
        self._is_failing = False
        self._question = ""
        self._grid: Grid | None = None
        self._shown: Grid | None = None
        self._problem = ""

    def compose_body(self) -> ComposeResult:
        yield Static(id="coverage-title")
        yield Static(id="coverage-tabs")
        yield HeatGrid(id="coverage-grid")
        yield Static(id="coverage-cell")
        yield Reader(id="coverage-note")

    async def load(self) -> None:
        if not any(self._chosen):
            self._remember(await self.desk.do(settings.read, _SETTING))
        await self._read()
        self._arrange()

    async def on_change(self, change: Change) -> None:
        if change.store_changed:
            await self._read()

    def on_resize(self) -> None:
        if self._grid is not None:
            self._show()

    async def _read(self) -> None:
        """Read the dimensions and count anew, beside everything else that the store is asked."""
        self._known = await self.desk.do(dimensions.everyone)
        criterion = await self.desk.do(criteria.find, self.desk.criterion_id)
        self._question = criterion.question if criterion else ""
        self._choose()
        if self._known:
            self.run_worker(self._count(self._by), exclusive=True, group="count")
        else:
            self._grid = self._shown = None
            self.set_head("no dimensions yet")
            await self._show_note()
        self._arrange()

    async def _count(self, by: list[Dimension]) -> None:
        if self._grid is None:
            self.set_head(self._question, "counting …")
        criterion_id = self.desk.criterion_id
        rows: list[cells.CellRow] = []
        for piece in coverage.pieces(await self.desk.meanwhile(traces.count)):
            rows += await self.desk.meanwhile(cells.count, criterion_id, by, piece)
        try:
            self._grid, self._problem = await self.desk.later(coverage.arrange, criterion_id, by, rows), ""
        except EvaldeskError as error:
            self._grid, self._problem = None, str(error)
            self.set_head(self._question)
        self._show()
        self._arrange()

    # -- showing --------------------------------------------------------------------------------

    @property
    def _by(self) -> list[Dimension]:
        found = {dimension.dimension_id: dimension for dimension in self._known}
        return [found[one] for one in self._chosen if one in found]

    @property
    def _heatmap(self) -> Heatmap:
        return self.query_one("#coverage-grid", HeatGrid).heatmap

    def _tab_value(self) -> Value | slice:
        """The value that the chosen tab stands for; all of them for the first one."""
        grid = self._grid
        if grid is None or len(grid.by) < 3 or not 0 < self._tab <= len(grid.axes[2]):
            return slice(None)
        return grid.axes[2][self._tab - 1]

    def _show(self) -> None:
        grid = self._grid
        if grid is None:
            self._shown = None
            return
        value, tabs = self._tab_value(), ""
        if len(grid.by) > 2:
            self._shown = grid.flat() if isinstance(value, slice) else grid.tab(value)
            tabs = tabs_text(grid.by[TABS], grid.axes[TABS], self._tab, self.app.size.width - 2)
        else:
            self._shown = grid
        shown = self._shown
        self.set_head(self._question, head_text(shown))
        self.query_one("#coverage-title", Static).update(
            Content(title_text(shown, failing=self._is_failing)), layout=False
        )
        self.query_one("#coverage-tabs", Static).update(Content(tabs), layout=False)
        found = cells_of(shown, failing=self._is_failing)
        widget = self.query_one("#coverage-grid", HeatGrid)
        # A blank at either side and the scrollbar are no room for cells.
        width = cell_width(shown, found, self.app.size.width - self._label_width - 3)
        corner = line((visible(shown.by[0].name), "accent"))
        widget.show(found, row_labels(shown), heads(shown, width), corner, width)
        self._show_cell()

    @property
    def _label_width(self) -> int:
        return 16 if self.app.size.width < 100 else 24

    def _show_cell(self) -> None:
        if self._shown is not None:
            value = self._tab_value()
            within = "" if isinstance(value, slice) else value_name(value)
            text = readout(self._shown, *self._heatmap.cursor, self.app.size.width - 2, within)
            self.query_one("#coverage-cell", Static).update(Content(text), layout=False)

    async def _show_note(self) -> None:
        found = await self.desk.meanwhile(dimensions.candidates)
        total = await self.desk.do(traces.count)

        def layout(width: int) -> list[Line]:
            if not total:
                return [line("No traces yet. Press ", ("i", "key"), " to import a file.")]
            fields = ", ".join(candidate.field for candidate in found[:12])
            said = (
                f"Fields that could be ones: {fields}."
                if fields
                else "No metadata field could be one: a rule can fill one."
            )
            return [
                *wrapped(
                    "A dimension is a feature by which requests differ: function, scenario, persona, language.", width
                ),
                BLANK,
                line(("d", "key"), " chooses dimensions. "),
                *wrapped(visible(said), width),
            ]

        self.query_one("#coverage-note", Reader).show(layout)

    def _arrange(self) -> None:
        if self._problem:
            problem = self._problem
            self.query_one("#coverage-note", Reader).show(lambda width: wrapped(visible(problem), width, "warn"))
        has_grid = bool(self._known) and not self._problem
        for name in ("title", "grid", "cell"):
            self.query_one(f"#coverage-{name}").display = has_grid
        self.query_one("#coverage-tabs").display = has_grid and bool(self._chosen[TABS])
        self.query_one("#coverage-note").display = not has_grid
        if self.is_current:
            self.set_focus(self._heatmap if has_grid else self.query_one("#coverage-note", Reader))

    @on(Heatmap.Moved)
    def _moved(self) -> None:
        self._show_cell()

    # -- choosing -------------------------------------------------------------------------------

    def _choose(self) -> None:
        """Fill what is not chosen, or is no more, with the first dimensions that are free."""
        ids = [dimension.dimension_id for dimension in self._known]
        chosen = [one if one in ids else "" for one in self._chosen]
        free = [one for one in ids if one not in chosen]
        for place in (ROWS, COLUMNS):
            if not chosen[place] and free:
                chosen[place] = free.pop(0)
        if chosen != self._chosen:
            self._chosen, self._tab = chosen, 0

    def _remember(self, kept: str) -> None:
        try:
            found = json.loads(kept) if kept else {}
            self._chosen = [str(found.get(name, "")) for name in ("rows", "columns", "tabs")]
        except (ValueError, AttributeError):
            self._chosen = ["", "", ""]

    async def _chosen_anew(self) -> None:
        self._heatmap.cursor = (0, 0)
        self._keep_choice()
        await self._read()

    def _keep_choice(self) -> None:
        kept = dict(zip(("rows", "columns", "tabs"), self._chosen, strict=True))
        self.desk.store.submit_background(settings.write, _SETTING, json.dumps(kept))

    async def action_axis(self, place: int) -> None:
        """Go to the next dimension that is nowhere else; for the tabs none is one of the choices."""
        others = [one for number, one in enumerate(self._chosen) if number != place]
        ids = [dimension.dimension_id for dimension in self._known if dimension.dimension_id not in others]
        choices = [*(["", *ids] if place == TABS else ids)]
        if len(choices) < 2:
            self.say("There is no other dimension free: d makes some.", problem=True)
            return
        here = choices.index(self._chosen[place]) if self._chosen[place] in choices else -1
        self._chosen[place], self._tab = choices[(here + 1) % len(choices)], 0
        await self._chosen_anew()

    async def action_transpose(self) -> None:
        if not self._chosen[COLUMNS]:
            self.say("One dimension has nothing to be turned.", problem=True)
            return
        row, column = self._heatmap.cursor
        counted_as_chosen = self._grid is not None and list(self._grid.by) == self._by
        self._chosen[ROWS], self._chosen[COLUMNS] = self._chosen[COLUMNS], self._chosen[ROWS]
        if self._grid is None or not counted_as_chosen:
            await self._chosen_anew()
            return
        # What is counted already is only shown the other way round; the cursor stays on its cell.
        self._keep_choice()
        self._grid = self._grid.transposed()
        self._show()
        self._heatmap.cursor = (column, row)
        self._show_cell()

    def action_tab(self, step: int) -> None:
        if self._grid is None or len(self._grid.by) < 3:
            self.say("s takes a third dimension as tabs.")
            return
        self._tab = (self._tab + step) % (len(self._grid.axes[2]) + 1)
        self._show()

    def action_failing(self) -> None:
        self._is_failing = not self._is_failing
        self._show()

    def action_next_empty(self) -> None:
        if self._shown is None:
            return
        found = cells_of(self._shown, failing=False)
        here = self._heatmap.cursor
        empty = [
            (row, column)
            for row in range(len(self._shown.axes[0]))
            for column in range(len(found[row]))
            if found[row][column].text == NEVER
        ]
        if not empty:
            self.say("Every cell has a trace.")
            return
        self._heatmap.cursor = next((place for place in empty if place > here), empty[0])
        self._show_cell()

    # -- going on -------------------------------------------------------------------------------

    @on(Heatmap.Chosen)
    def _open_cases(self, message: Heatmap.Chosen) -> None:
        shown = self._shown
        if shown is None or message.row >= len(rows_of(shown)) or message.column >= len(columns_of(shown)):
            return
        values = [rows_of(shown)[message.row], columns_of(shown)[message.column], self._tab_value()]
        if len(shown.by) < 2:
            values[COLUMNS] = slice(None)
        by = self._grid.by if self._grid is not None else ()
        wanted = [
            (dimension, value) for dimension, value in zip(by, values, strict=False) if not isinstance(value, slice)
        ]
        if not self._count_of(message.row, message.column):
            self.say("No case lies here: w writes such cells to a file, to be filled in.")
            return
        self.desk.wanted_cases = " ".join(case_search.condition(dimension.name, value) for dimension, value in wanted)
        self.go("label")

    def _count_of(self, row: int, column: int) -> int:
        shown = self._shown
        if shown is None:
            return 0
        values = [rows_of(shown)[row], columns_of(shown)[column]][: len(shown.by)]
        return shown.at(*values).traces

    def action_dimensions(self) -> None:
        self.run_worker(self._edit_dimensions(), exclusive=True, group="ask")

    async def _edit_dimensions(self) -> None:
        await self.ask(DimensionsDialog(self.desk))

    def action_write(self) -> None:
        self.run_worker(self._write(), exclusive=True, group="ask")

    async def _write(self) -> None:
        grid = self._grid
        if grid is None:
            return
        count = len(grid.thin())
        if not count:
            self.say("Every cell has a trace: there is nothing to write.")
            return
        text = (
            f"{counted(count, 'cell')} never tested, one line each, with room for a request and the system's response. The name's end says "
            "the form: .jsonl, .csv or .md. Filled in, i imports it; its cases stay apart as written for the grid."
        )
        answer = await self.ask(AskDialog("Write which file?", text, "requests-to-write.csv"))
        if not answer:
            return
        try:
            await self.desk.later(_write_list, answer, grid)
        except EvaldeskError as error:
            self.say_error(error)
            return
        self.say(f"Written: {answer}")


def _write_list(name: str, grid: Grid) -> None:
    coverage.write_work_list(Path(name).expanduser(), grid)
