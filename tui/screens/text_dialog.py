"""Dialogs: a text to read, a question to answer."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from tui.presentation.lines import Line, wrapped
from tui.widgets.literal import visible
from tui.widgets.painted import Reader


class TextDialog(ModalScreen[None]):
    """A text to read; Esc, Enter or q closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q,question_mark", "dismiss", "Close", id="dialog.close"),
        Binding("j", "scroll(1)", "Down", show=False, id="dialog.down"),
        Binding("k", "scroll(-1)", "Up", show=False, id="dialog.up"),
    ]

    def __init__(self, title: str, body: str | list[Line]) -> None:
        super().__init__()
        self._title = title
        self._body = body

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content(visible(self._title)), classes="dialog-title")
            yield Reader(id="dialog-text")
            yield Static(Content("j k scroll    space a page    Esc closes"), classes="dialog-hint")

    def on_mount(self) -> None:
        body = self._body
        reader = self.query_one(Reader)
        reader.show((lambda width: wrapped(visible(body), width)) if isinstance(body, str) else (lambda _: body))
        reader.focus()

    def action_scroll(self, step: int) -> None:
        self.query_one(Reader).scroll_relative(y=step, animate=False)


class ConfirmDialog(ModalScreen[bool]):
    """A question: Enter (or y) says yes, Esc (or n) says no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,y", "answer(True)", "Yes", id="confirm.yes"),
        Binding("escape,n", "answer(False)", "No", id="confirm.no"),
    ]

    def __init__(self, title: str, body: str) -> None:
        super().__init__()
        self._title = title
        self._body = body

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog small"):
            yield Static(Content(visible(self._title)), classes="dialog-title")
            yield Static(Content(visible(self._body)), classes="dialog-body")
            yield Static(Content("Enter yes    Esc no"), classes="dialog-hint")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class AskDialog(ModalScreen[str]):
    """A question with a one-line answer; Esc gives ""."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "Cancel", id="ask.cancel")]

    def __init__(self, title: str, body: str, value: str = "") -> None:
        super().__init__()
        self._title = title
        self._body = body
        self._value = value

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog small"):
            yield Static(Content(visible(self._title)), classes="dialog-title")
            yield Static(Content(visible(self._body)), classes="dialog-body")
            yield Input(self._value, id="answer")
            yield Static(Content("Enter takes it    Esc cancels"), classes="dialog-hint")

    def on_mount(self) -> None:
        box = self.query_one(Input)
        box.cursor_blink = False
        box.focus()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())

    def action_cancel(self) -> None:
        self.dismiss("")
