"""Opening: the first frame, while the workspace is being opened; and what is said when it cannot be."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from engine.errors import EvaldeskError, WorkspaceBusy
from tui.widgets.key_line import KeyLine
from tui.widgets.literal import visible


class OpeningScreen(Screen[None]):
    """Shown until the store is open."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def compose(self) -> ComposeResult:
        yield Static(Content(visible(f"evaldesk  opening {self._path}")), id="head")


class BlockedScreen(Screen[None]):
    """The workspace cannot be opened: who has it, what was kept, what to do."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "app.reopen", "try again", tooltip="Try to open the workspace again", id="blocked.again"),
        Binding(
            "s",
            "app.ask_snapshot",
            "snapshot",
            tooltip="Ask the owner to write a copy that opens elsewhere",
            id="blocked.snapshot",
        ),
        Binding("q", "app.quit", "quit", id="blocked.quit"),
    ]

    def __init__(self, error: EvaldeskError) -> None:
        super().__init__()
        self._error = error

    def compose(self) -> ComposeResult:
        error = self._error
        yield Static(Content("evaldesk  the workspace is not open"), id="head")
        yield Static(
            Content(visible(f"{error.where}\n\n{error.what}.\n\n{error.kept}\n{error.remedy}")), classes="blocked"
        )
        yield KeyLine()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "app.ask_snapshot":
            return isinstance(self._error, WorkspaceBusy)
        return True
