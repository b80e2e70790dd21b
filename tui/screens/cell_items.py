"""The items behind one cell of the score matrix, with the raw outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from engine.sweeping.items import ItemOutcome
from tui.presentation.sweep_view import item_lines, item_row
from tui.widgets.painted import Reader, RowList


class CellItems(ModalScreen[None]):
    """A list of items above, the chosen one in full below; Esc closes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Close", id="items.close"),
        Binding("space", "scroll(1)", "Scroll", show=False, id="items.scroll"),
        Binding("question_mark", "app.help", "Keys", key_display="?", show=False, id="items.help"),
    ]

    def __init__(self, title: Callable[[int], str], items: Sequence[ItemOutcome]) -> None:
        super().__init__()
        self._title = title
        self._items = items

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide"):
            yield Static(classes="dialog-title", id="items-title")
            yield RowList[ItemOutcome](item_row, id="items")
            yield Reader(id="item")
            yield Static(
                Content("j k move    space scrolls the output    ? all keys    Esc closes"), classes="dialog-hint"
            )

    def on_mount(self) -> None:
        rows = self.query_one("#items", RowList)
        rows.set_rows(self._items, 0)
        self.set_focus(rows)
        self._show()

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_title)

    def _show_title(self) -> None:
        title = self.query_one("#items-title", Static)
        title.update(Content(self._title(title.content_size.width)))

    @on(RowList.Moved, "#items")
    def _moved(self) -> None:
        self._show()

    def _show(self) -> None:
        item = self.query_one("#items", RowList).current
        if isinstance(item, ItemOutcome):
            self.query_one("#item", Reader).show(lambda width: item_lines(item, width))

    def action_scroll(self, pages: int) -> None:
        self.query_one("#item", Reader).scroll_relative(y=pages * 5, animate=False)
