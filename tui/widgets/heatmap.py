"""A grid of small numbers with a cursor, its row labels and column heads apart, so that a changed cell sends little."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.containers import Horizontal
from textual.events import Click
from textual.geometry import Region, Size, Spacing
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from tui.presentation.lines import Cell, Line
from tui.widgets.painted import Painted

STEPS = 16
"""Shades from the lowest to the highest value."""


class Heatmap(ScrollView, can_focus=True):
    """The cells alone. Digits carry the message; where the terminal has colours, a shade behind them helps."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1, 0)", "Down", show=False, id="grid.down"),
        Binding("up,k", "move(-1, 0)", "Up", show=False, id="grid.up"),
        Binding("right,l", "move(0, 1)", "Right", show=False, id="grid.right"),
        Binding("left,h", "move(0, -1)", "Left", show=False, id="grid.left"),
        Binding("home", "move(0, -9999)", "First column", show=False, id="grid.first"),
        Binding("end", "move(0, 9999)", "Last column", show=False, id="grid.last"),
        Binding("pagedown", "move(10, 0)", "Ten down", show=False, id="grid.page_down"),
        Binding("pageup", "move(-10, 0)", "Ten up", show=False, id="grid.page_up"),
        Binding("enter", "choose", "Open", show=False, id="grid.open"),
    ]

    cursor: reactive[tuple[int, int]] = reactive((0, 0), repaint=False)

    class Moved(Message):
        """The cursor stands on another cell."""

        def __init__(self, heatmap: Heatmap, row: int, column: int) -> None:
            super().__init__()
            self.heatmap, self.row, self.column = heatmap, row, column

        @property
        def control(self) -> Heatmap:
            return self.heatmap

    class Chosen(Moved):
        """Enter was pressed on a cell."""

    class Scrolled(Message):
        """Other cells are in sight."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._cells: Sequence[Sequence[Cell]] = ()
        self.cell_width = 4

    @property
    def rows(self) -> int:
        return len(self._cells)

    @property
    def columns(self) -> int:
        return len(self._cells[0]) if self._cells else 0

    def set_cells(self, cells: Sequence[Sequence[Cell]], cell_width: int) -> None:
        """Show other cells; only rows that differ are painted again."""
        before, self._cells = self._cells, cells
        wider = cell_width != self.cell_width
        self.cell_width = cell_width
        self.virtual_size = Size(self.columns * cell_width, self.rows)
        self.cursor = (min(self.cursor[0], max(self.rows - 1, 0)), min(self.cursor[1], max(self.columns - 1, 0)))
        if wider or len(before) != len(cells) or (before and len(before[0]) != self.columns):
            self.refresh()
            return
        for row, (old, new) in enumerate(zip(before, cells, strict=True)):
            if old != new:
                changed = [column for column in range(self.columns) if old[column] != new[column]]
                self._refresh_cells(row, changed[0], changed[-1])

    def watch_cursor(self, before: tuple[int, int], after: tuple[int, int]) -> None:
        for row, column in (before, after):
            self._refresh_cells(row, column, column)
        if self.size.width:
            region = Region(after[1] * self.cell_width, after[0], self.cell_width, 1)
            self.scroll_to_region(region, animate=False, force=True, immediate=True, spacing=Spacing(0, 0, 0, 0))

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_x(old_value, new_value)
        self.post_message(self.Scrolled())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Scrolled())

    def action_move(self, rows: int, columns: int) -> None:
        if not self.rows:
            return
        row = max(0, min(self.cursor[0] + rows, self.rows - 1))
        column = max(0, min(self.cursor[1] + columns, self.columns - 1))
        if (row, column) != self.cursor:
            self.cursor = (row, column)
            self.post_message(self.Moved(self, row, column))

    def action_choose(self) -> None:
        if self.rows:
            self.post_message(self.Chosen(self, *self.cursor))

    def on_click(self, event: Click) -> None:
        row, column = event.y + self.scroll_offset.y, (event.x + self.scroll_offset.x) // self.cell_width
        self.action_move(row - self.cursor[0], column - self.cursor[1])

    def on_focus(self) -> None:
        self._refresh_cells(*self.cursor, self.cursor[1])

    def on_blur(self) -> None:
        self._refresh_cells(*self.cursor, self.cursor[1])

    def render_line(self, y: int) -> Strip:
        row, width = y + self.scroll_offset.y, self.scrollable_content_region.width
        if row >= self.rows:
            return Strip.blank(width, self.rich_style)
        segments = []
        for column, cell in enumerate(self._cells[row]):
            style = self._style_of(cell.shade)
            if (row, column) == self.cursor:
                style += Style(reverse=True, bold=True) if self.has_focus else Style(bold=True, underline=True)
            segments.append(
                Segment(set_cell_size(cell.text.rjust(self.cell_width - 1), self.cell_width - 1) + " ", style)
            )
        left = self.scroll_offset.x
        return Strip(segments).simplify().crop_extend(left, left + width, self.rich_style)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self.refresh()

    def _style_of(self, shade: float | None) -> Style:
        if shade is None or self.app.no_color or self.app.theme.startswith("ansi"):
            return self.rich_style
        step = min(int(max(shade, 0.0) * STEPS), STEPS - 1)
        variables = self.app.theme_variables
        return _shade(step, variables["background"], variables["primary"], variables["foreground"])

    def _refresh_cells(self, row: int, first: int, last: int) -> None:
        y = row - self.scroll_offset.y
        if 0 <= y < self.size.height:
            x = first * self.cell_width - self.scroll_offset.x
            region = Region(x, y, (last - first + 1) * self.cell_width, 1)
            self.refresh(region.intersection(self.size.region))


@lru_cache(maxsize=256)
def _shade(step: int, low: str, high: str, text: str) -> Style:
    back = Color.parse(low).blend(Color.parse(high), 0.1 + 0.9 * step / (STEPS - 1), alpha=1.0)
    fore = back.get_contrast_text(1.0) if back.brightness > 0.45 else Color.parse(text)
    return Style(color=fore.rich_color, bgcolor=back.rich_color)


class _Labels(Painted):
    """Row labels, or the line of column heads: they move only when the cells are scrolled."""

    DEFAULT_CSS = """
    _Labels { overflow-y: hidden; scrollbar-size-vertical: 0; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: Sequence[Line] = ()
        self.top = 0
        self.left = 0

    def show(self, lines: Sequence[Line]) -> None:
        if self._lines != lines:
            self._lines = lines
            self.refresh()

    def scroll_along(self, left: int, top: int) -> None:
        if (left, top) != (self.left, self.top):
            self.left, self.top = left, top
            self.refresh()

    def render_line(self, y: int) -> Strip:
        index = y + self.top
        spans = self._lines[index] if 0 <= index < len(self._lines) else ()
        width = self.size.width
        return self.paint(spans, width + self.left).crop_extend(self.left, self.left + width, self._style_of(""))


class HeatGrid(Widget):
    """A heatmap with its row labels to the left and column heads on top."""

    DEFAULT_CSS = """
    HeatGrid { height: 1fr; layout: vertical; }
    HeatGrid .grid-head { height: 1; }
    HeatGrid .grid-corner { width: 10; height: 1; }
    HeatGrid .grid-body { height: 1fr; }
    HeatGrid .grid-labels { width: 10; height: 1fr; }
    HeatGrid Heatmap { width: 1fr; height: 1fr; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    """

    def compose(self) -> ComposeResult:
        with Horizontal(classes="grid-head"):
            yield _Labels(classes="grid-corner")
            yield _Labels(classes="grid-columns")
        with Horizontal(classes="grid-body"):
            yield _Labels(classes="grid-labels")
            yield Heatmap()

    @property
    def heatmap(self) -> Heatmap:
        return self.query_one(Heatmap)

    def show(
        self, cells: Sequence[Sequence[Cell]], rows: Sequence[Line], columns: Line, corner: Line, cell_width: int
    ) -> None:
        """Show these cells; ``columns`` is one line of heads, each as wide as a cell."""
        self.query_one(".grid-labels", _Labels).show(rows)
        self.query_one(".grid-columns", _Labels).show([columns])
        self.query_one(".grid-corner", _Labels).show([corner])
        self.heatmap.set_cells(cells, cell_width)

    def on_heatmap_scrolled(self, message: Heatmap.Scrolled) -> None:
        message.stop()
        offset = self.heatmap.scroll_offset
        self.query_one(".grid-labels", _Labels).scroll_along(0, offset.y)
        self.query_one(".grid-columns", _Labels).scroll_along(offset.x, 0)
