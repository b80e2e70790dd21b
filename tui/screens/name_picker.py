"""Choosing a name by a few letters, or giving a new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from tui.presentation.codes_view import Choice, choice_row, matching
from tui.widgets.literal import one_line
from tui.widgets.painted import RowList

if TYPE_CHECKING:
    from tui.app import EvaldeskApp


class NamePicker(ModalScreen[str]):
    """Letters find a name, Enter takes the one under the cursor; "" for Esc, and for Enter before anything was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "move(1)", "Next", tooltip="The next name", id="names.next"),
        Binding("up", "move(-1)", "Previous", tooltip="The name before", id="names.previous"),
        Binding("enter", "take", "Take", tooltip="Take the name under the cursor", id="names.take"),
        Binding("escape", "cancel", "Close", tooltip="Close, nothing is changed", id="names.close"),
    ]

    def __init__(self, title: str, choices: Sequence[Choice], enter: str) -> None:
        """``enter`` says what Enter does."""
        super().__init__()
        self._title = title
        self._choices = choices
        self._enter = enter
        self._has_moved = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content(one_line(self._title)), classes="dialog-title")
            yield Input(placeholder="a few letters, or a new name", id="name")
            yield RowList[Choice](choice_row, id="names")
            yield Static(Content(f"↓ ↑ choose    Enter {self._enter}    Esc closes"), classes="dialog-hint")

    def on_mount(self) -> None:
        box = self.query_one("#name", Input)
        box.cursor_blink = False
        box.focus()
        self._show()

    @on(Input.Changed, "#name")
    def _changed(self) -> None:
        self._show()

    @on(Input.Submitted, "#name")
    def _submitted(self) -> None:
        self.action_take()

    @on(RowList.Chosen, "#names")
    def _chosen(self) -> None:
        self._has_moved = True
        self.action_take()

    def action_move(self, step: int) -> None:
        # The first key down stands on the first name: until then nothing is chosen.
        if self._has_moved or self.query_one("#name", Input).value.strip():
            self.query_one("#names", RowList).action_move(step)
        self._has_moved = True

    def action_take(self) -> None:
        row = self.query_one("#names", RowList).current
        is_meant = self._has_moved or self.query_one("#name", Input).value.strip()
        # A paste that runs on behind its Enter must not give verdicts.
        cast("EvaldeskApp", self.app).save_by_this_key()
        self.dismiss(one_line(row.name) if isinstance(row, Choice) and is_meant else "")

    def action_cancel(self) -> None:
        self.dismiss("")

    def _show(self) -> None:
        self.query_one("#names", RowList).set_rows(matching(self._choices, self.query_one("#name", Input).value), 0)
