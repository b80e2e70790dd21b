"""Line-API widgets that show presentation lines: a scrolling text and a list with a cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.strip import Strip
from textual.widget import Widget

from tui.presentation.lines import STYLES, Line, fit
from tui.widgets.quiet_scrollbar import vertical_scrollbar_of

T = TypeVar("T")

KEPT_ROWS = 2
"""Rows that stay in sight behind the cursor when a list scrolls on."""


class Painted(ScrollView):
    """A scrolling widget whose rows are presentation lines; styles come from component classes ``painted--NAME``."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"painted--{name}" for name in STYLES} | {
        "painted--cursor",
        "painted--cursor-blurred",
    }
    DEFAULT_CSS = """
    Painted {
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        & .painted--dim { color: $text-muted; }
        & .painted--strong { text-style: bold; }
        & .painted--pass { color: $text-success; }
        & .painted--fail { color: $text-error; text-style: bold; }
        & .painted--warn { color: $text-warning; }
        & .painted--accent { color: $text-primary; text-style: bold; }
        & .painted--key { text-style: bold; color: $text-accent; }
        & .painted--cursor { background: $block-cursor-background; color: $block-cursor-foreground; }
        & .painted--cursor-blurred { text-style: bold; background: $block-hover-background; }
    }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._styles_by_name: dict[str, Style] = {}

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        return vertical_scrollbar_of(self)

    def _on_focus(self, event: events.Focus) -> None:
        self._take_focus(event, True)

    def _on_blur(self, event: events.Blur) -> None:
        self._take_focus(event, False)

    def _take_focus(self, event: events.Event, has_focus: bool) -> None:
        """As Widget does it, without painting everything: who looks otherwise with the focus paints that."""
        event.prevent_default()
        self.has_focus = has_focus
        if self.parent is not None:
            told = events.DescendantFocus(self) if has_focus else events.DescendantBlur(self)
            self.parent.post_message(told)

    def _set_length(self, lines: int) -> None:
        """So many lines can be scrolled through; without the layout of the whole screen that ``virtual_size`` sets off.

        The scrollbar always stands there (overflow-y: scroll), so that no other size depends on it.
        """
        size = Size(self.scrollable_content_region.width, lines)
        if size != self.virtual_size:
            self.set_reactive(Widget.virtual_size, size)
            self._scroll_update(size)

    def _refresh_changed(self, before: Sequence[object], after: Sequence[object]) -> None:
        """Repaint the lines in sight that differ; a terminal at the end of a slow line gets no more than that."""
        if not self.scrollable_content_region.width:
            # It is about to be shown, and comes up with what was painted when it was there last.
            self.refresh()
            return
        top, first = self.scroll_offset.y, -1
        for y in range(self.size.height + 1):
            index = top + y
            old = before[index] if index < len(before) else None
            new = after[index] if index < len(after) else None
            differs = y < self.size.height and old != new
            if differs and first < 0:
                first = y
            elif not differs and first >= 0:
                self.refresh(Region(0, first, self.size.width, y - first))
                first = -1

    def notify_style_update(self) -> None:
        self._styles_by_name.clear()
        super().notify_style_update()

    def _style_of(self, name: str) -> Style:
        """The look of a style name, "" for the widget's own; kept until the styles change."""
        found = self._styles_by_name.get(name)
        if found is None:
            found = self.get_component_rich_style(f"painted--{name}", partial=True) if name else self.rich_style
            self._styles_by_name[name] = found
        return found

    def paint(self, spans: Line, width: int, *, cursor: bool = False) -> Strip:
        """A strip of exactly ``width`` cells."""
        base = self._style_of("")
        over: Style | None = None
        if cursor:
            over = self._style_of("cursor" if self.has_focus else "cursor-blurred")
        segments = []
        for text, name in fit(spans, width):
            style = base + self._style_of(name)
            segments.append(Segment(text, style + over if over else style))
        return Strip(segments).adjust_cell_length(width, base + over if over else base).simplify()


class Reader(Painted, can_focus=True):
    """Text to scroll through, laid out for the width that it has."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pagedown,space", "page_down", "Page down", show=False, id="read.page_down"),
        Binding("pageup", "page_up", "Page up", show=False, id="read.page_up"),
    ]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._layout: Callable[[int], list[Line]] = lambda _: []
        self._lines: list[Line] = []
        self._laid_out_for = -1

    def show(self, layout: Callable[[int], list[Line]], *, keep_place: bool = False) -> None:
        """Show what ``layout(width)`` gives; it is called again when the width changes."""
        self._layout = layout
        self._laid_out_for = -1
        before = self._lines
        self._lay_out()
        if not keep_place:
            self.scroll_to(0, 0, animate=False)
        self._refresh_changed(before, self._lines)
        if self._laid_out_for < 0:
            # It has no place yet. When it gets one it may be told of none, since asking for its place makes Textual know it.
            self.call_after_refresh(self.on_resize)

    @property
    def lines(self) -> list[Line]:
        return self._lines

    def on_resize(self) -> None:
        self._lay_out()
        self.refresh()

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        if width and width != self._laid_out_for:
            self._laid_out_for = width
            self._lines = self._layout(width)
            self._set_length(len(self._lines))

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        index = y + self.scroll_offset.y
        return self.paint(self._lines[index] if 0 <= index < len(self._lines) else (), width)


class RowList(Painted, Generic[T], can_focus=True):
    """A list of any length with a cursor; only the rows in sight are laid out."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Next", show=False, id="list.next"),
        Binding("up,k", "move(-1)", "Previous", show=False, id="list.previous"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="list.page_down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="list.page_up"),
        Binding("home", "go(0)", "First", show=False, id="list.first"),
        Binding("end", "go(-1)", "Last", show=False, id="list.last"),
        Binding("enter", "choose", "Open", show=False, id="list.open"),
    ]

    cursor: reactive[int] = reactive(0, repaint=False)

    class Moved(Message):
        """The cursor stands on another row."""

        def __init__(self, row_list: RowList[object], index: int) -> None:
            super().__init__()
            self.row_list = row_list
            self.index = index

        @property
        def control(self) -> RowList[object]:
            return self.row_list

    class Chosen(Moved):
        """Enter was pressed on a row."""

    def __init__(
        self,
        present: Callable[[T, int], Line],
        *,
        id: str | None = None,
        key: Callable[[T], object] | None = None,
    ) -> None:
        super().__init__(id=id)
        self._present = present
        self._key = key
        self._rows: Sequence[T] = ()

    @property
    def rows(self) -> Sequence[T]:
        return self._rows

    @property
    def current(self) -> T | None:
        """The row under the cursor."""
        return self._rows[self.cursor] if 0 <= self.cursor < len(self._rows) else None

    def set_rows(self, rows: Sequence[T], cursor: int | None = None) -> None:
        """Show other rows; unless an index is given, the cursor stays on its row, known by its key, wherever that is now."""
        if cursor is None:
            cursor = self._place_of_current(rows)
        if self._rows == rows and (cursor is None or cursor == self.cursor):
            return
        before, self._rows = self._rows, rows
        self._set_length(len(rows))
        self.cursor = max(0, min(self.cursor if cursor is None else cursor, len(rows) - 1))
        self._follow()
        self._refresh_changed(before, rows)

    def _place_of_current(self, rows: Sequence[T]) -> int | None:
        """Where the row under the cursor stands among ``rows``; None for one that is gone, and without keys."""
        current = self.current
        if self._key is None or current is None:
            return None
        wanted = self._key(current)
        return next((index for index, row in enumerate(rows) if self._key(row) == wanted), None)

    def validate_cursor(self, value: int) -> int:
        return max(0, min(value, len(self._rows) - 1)) if self._rows else 0

    def watch_cursor(self, before: int, after: int) -> None:
        for index in (before, after):
            self._refresh_row(index)
        self._follow()

    def action_move(self, step: int) -> None:
        before = self.cursor
        self.cursor += step
        if self.cursor != before:
            self.post_message(self.Moved(self, self.cursor))  # type: ignore[arg-type]

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(self.size.height - 1, 1))

    def action_go(self, index: int) -> None:
        self.action_move((len(self._rows) - 1 if index < 0 else index) - self.cursor)

    def action_choose(self) -> None:
        if self._rows:
            self.post_message(self.Chosen(self, self.cursor))  # type: ignore[arg-type]

    def on_focus(self) -> None:
        self._refresh_row(self.cursor)

    def on_blur(self) -> None:
        self._refresh_row(self.cursor)

    def on_click(self, event: object) -> None:
        y = getattr(event, "y", 0)
        index = int(y) + self.scroll_offset.y
        if 0 <= index < len(self._rows):
            self.action_go(index) if index else self.action_move(-self.cursor)

    def on_resize(self) -> None:
        self._set_length(len(self._rows))
        self._follow()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        index = y + self.scroll_offset.y
        if not 0 <= index < len(self._rows):
            return self.paint((), width)
        return self.paint(self._present(self._rows[index], width), width, cursor=index == self.cursor)

    def _refresh_row(self, index: int) -> None:
        y = index - self.scroll_offset.y
        if 0 <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def _follow(self) -> None:
        height = self.scrollable_content_region.height
        top = self.scroll_offset.y
        if height and not top <= self.cursor < top + height:
            # A page at a time: scrolling line by line would send the whole list again with every key.
            target = self.cursor - height + 1 + KEPT_ROWS if self.cursor < top else self.cursor - KEPT_ROWS
            self.scroll_to(y=max(target, 0), animate=False, immediate=True)
