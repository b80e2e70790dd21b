"""What all main screens have in common: the desk, a head line, a footer, live changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.css.query import NoMatches
from textual.message import Message
from textual.reactive import Reactive
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Static

from engine.change import Change
from engine.errors import EvaldeskError
from engine.runs import queue
from engine.runs.protocol import RunDir
from engine.store import runs, waiting
from engine.store.runs import Run
from tui.desk import Desk
from tui.presentation.run_view import queued_text, status_of
from tui.widgets.key_line import KeyLine
from tui.widgets.literal import one_line

if TYPE_CHECKING:
    from tui.app import EvaldeskApp

Answer = TypeVar("Answer")


class DeskScreen(Screen[None]):
    """A main screen. Subclasses compose their body and implement ``load``, which reads the store and shows it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "app.help", "Keys", key_display="?", tooltip="All keys of this screen", id="app.help"),
    ]
    NAME: ClassVar[str] = ""
    # Textual paints the whole screen anew whenever the focus goes elsewhere; who looks otherwise with it paints that.
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)

    @property
    def desk(self) -> Desk:
        return cast("EvaldeskApp", self.app).desk

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        yield from self.compose_body()
        yield KeyLine()

    async def _dispatch_message(self, message: Message) -> None:
        # Past this point Textual would stop the screen's messages for good.
        try:
            await super()._dispatch_message(message)
        except EvaldeskError as error:
            self.app._handle_exception(error)

    def compose_body(self) -> ComposeResult:
        """The widgets between head and footer."""
        yield from ()

    async def on_screen_resume(self) -> None:
        await self.load()

    def __init__(self) -> None:
        super().__init__()
        self._next_change: Change | None = None
        self._changing = False

    def take_change(self, change: Change) -> None:
        """Show a change as soon as the one before it is shown; of several that wait only their sum counts.

        Not awaited by the app: keys must not wait for the store.
        """
        self._next_change = change if self._next_change is None else self._next_change.then(change)
        if not self._changing:
            self._changing = True
            self.run_worker(self._show_changes(), group="change")

    async def _show_changes(self) -> None:
        try:
            while (change := self._next_change) is not None:
                self._next_change = None
                if self.is_current:
                    await self.on_change(change)
        except NoMatches:
            # The widgets may go while the store is being asked, but only on the way out.
            if not cast("EvaldeskApp", self.app).is_leaving:
                raise
        finally:
            self._changing = False

    async def load(self) -> None:
        """Read what the screen shows and show it; called whenever the screen comes up."""

    async def put_away(self) -> None:
        """Keep what is typed and not saved; called before the screen is left, however the app ends."""

    async def on_change(self, change: Change) -> None:
        """Something changed in the store or in a run; called only while the screen is up, a few times a second at most."""

    async def ask(self, dialog: ModalScreen[Answer]) -> Answer | None:
        """Open a dialog and wait for its answer; None where this screen was left meanwhile: it opens over no other.

        To be called in a worker.
        """
        if not self.is_current:
            return None
        return await self.app.push_screen_wait(dialog)

    def go(self, name: str) -> None:
        """Go to another main screen once the present message is dealt with: this one may not outlive the switch."""
        app = cast("EvaldeskApp", self.app)
        app.call_later(app.action_go, name)

    async def waiting_text(self, run: Run) -> str:
        """Why a queued run does not start yet, and which other run a waiting one needs; "" for every other."""
        if run.status == runs.WAITING:
            others = await self.desk.do(waiting.brought_by, run.run_id)
            return f"waits for what run {' and '.join(others)} generates" if others else ""
        state = self.desk.states.get(run.run_id)
        if status_of(run, state) != "queued":
            return ""
        workspace = self.desk.store.workspace
        ahead = await self.desk.later(queue.ahead_of, RunDir(workspace.runs / run.run_id), run.device)
        return queued_text(ahead.path if ahead else None, workspace.path)

    def set_head(self, left: str, right: str = "") -> None:
        """The line on top: product, screen, what it is about; counts to the right."""
        width = max(self.app.size.width - 2, 20)
        title = f"evaldesk  {self.NAME}  {one_line(left)}"
        right = one_line(right)
        room = width - len(right) - 2
        if len(title) > room:
            title = title[: max(room - 1, 0)] + "…"
        self.query_one("#head", Static).update(
            Content(f"{title}{' ' * (width - len(title) - len(right))}{right}"), layout=False
        )

    def say(self, text: str, *, problem: bool = False) -> None:
        """A short notice; problems stay longer."""
        self.notify(
            one_line(text), severity="warning" if problem else "information", timeout=8 if problem else 3, markup=False
        )

    def say_error(self, error: EvaldeskError) -> None:
        self.say(str(error), problem=True)
