"""The terminal app: opens the workspace, holds the screens, passes changes on, and leaves the terminal whole."""

from __future__ import annotations

import asyncio
import getpass
import importlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.events import Event, Key, Paste
from textual.filter import LineFilter
from textual.message import Message
from textual.notifications import Notify
from textual.screen import Screen
from textual.widget import Widget

from engine.change import Change
from engine.errors import EvaldeskError
from engine.store import criteria, settings, snapshot
from engine.store.store import Store
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace
from tui import terminal
from tui.desk import Desk
from tui.paste_guard import PasteGuard
from tui.screens.desk_screen import DeskScreen
from tui.screens.help import NAMES as KEY_NAMES
from tui.screens.help import help_lines
from tui.screens.opening import BlockedScreen, OpeningScreen
from tui.screens.text_dialog import TextDialog
from tui.widgets.critique_box import CritiqueBox
from tui.widgets.literal import one_line

if TYPE_CHECKING:
    from engine.watch import Watch

SCREENS = {
    "home": "0", "label": "1", "judge": "2", "audit": "3", "runs": "4", "sweep": "5", "ranking": "6", "coverage": "7", "import": "i",
    "repeat": "b on Home",
    "critiques": "l on Label",
}  # fmt: skip
_CLASSES = {
    "home": ("home", "HomeScreen"), "label": ("label", "LabelScreen"), "judge": ("judge", "JudgeScreen"),
    "audit": ("audit", "AuditScreen"), "runs": ("runs", "RunsScreen"), "sweep": ("sweep", "SweepScreen"),
    "ranking": ("ranking", "RankingScreen"), "import": ("import_file", "ImportScreen"),
    "repeat": ("repeat", "RepeatScreen"),
    "critiques": ("critiques", "CritiquesScreen"), "coverage": ("coverage", "CoverageScreen"),
}  # fmt: skip
"""Module and class of each screen; loaded when it is first gone to, so that the app is there soon."""

TURN_LIMIT_S = 1.0
"""A key that takes longer no longer keeps the next one waiting."""


def _new_screen(name: str) -> Screen[None]:
    module, class_name = _CLASSES[name]
    screen: Screen[None] = getattr(importlib.import_module(f"tui.screens.{module}"), class_name)()
    return screen


class EvaldeskApp(App[None]):
    """One app on one workspace."""

    CSS_PATH = ["styles/app.tcss", "styles/nocolor.tcss"]
    TITLE = "evaldesk"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (150, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (30, "-high")]
    ENABLE_COMMAND_PALETTE = True
    SCREENS: ClassVar[dict[str, Callable[[], Screen[None]]]] = {name: partial(_new_screen, name) for name in SCREENS}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("0", "go('home')", "Home", show=False, tooltip="Where each criterion stands", id="go.home"),
        Binding("1", "go('label')", "Label", show=False, tooltip="Read and label cases", id="go.label"),
        Binding("2", "go('judge')", "Judge", show=False, tooltip="Build and measure a judge", id="go.judge"),
        Binding("3", "go('audit')", "Audit", show=False, tooltip="What the judge is worth", id="go.audit"),
        Binding("4", "go('runs')", "Runs", show=False, tooltip="Progress, speed, pause, cancel", id="go.runs"),
        Binding("5", "go('sweep')", "Sweep", show=False, tooltip="Score prompts on a dataset", id="go.sweep"),
        Binding(
            "6", "go('ranking')", "Ranking", show=False, tooltip="How far a ranking can be trusted", id="go.ranking"
        ),
        Binding(
            "7",
            "go('coverage')",
            "Coverage",
            show=False,
            tooltip="What was tested, and where it fails",
            id="go.coverage",
        ),
        Binding("i", "go('import')", "Import", show=False, tooltip="Bring a file in", id="go.import"),
        Binding("q", "quit", "quit", show=False, tooltip="Leave; runs go on, drafts are kept", id="app.quit"),
        Binding(
            "f10",
            "toggle_mouse",
            "mouse on/off",
            show=False,
            tooltip="Off lets the terminal select text",
            id="app.mouse",
        ),
    ]

    class Changed(Message):
        """The watch saw something; only the newest of several counts."""

        def __init__(self, change: Change) -> None:
            super().__init__()
            self.change = change

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, EvaldeskApp.Changed) and not (
                message.change.store_changed or message.change.runs_changed or message.change.problem
            )

    class Turn(Message, bubble=True):
        """Goes the way of a key, behind it; when it is back, the key has been dealt with."""

        def __init__(self, target: Widget, *, is_second: bool = False) -> None:
            super().__init__()
            self.target = target
            self.is_second = is_second

    def __init__(self, workspace: Path, *, is_demo: bool = False, start: str = "") -> None:
        super().__init__()
        self.workspace = Workspace(workspace)
        self.desk: Desk
        self._is_demo = is_demo
        self._start = start
        self._watch: Watch | None = None
        self.is_leaving = False
        self._opening: asyncio.Future[Store] | None = None
        self.failure: BaseException | None = None
        """What ended the app, when it was not a person."""
        self.key_arrived = 0.0
        """When the key arrived whose action is being carried out (monotonic clock)."""
        self._paste_guard = PasteGuard()
        self._waiting: deque[Key | Paste] = deque()
        self._turn: EvaldeskApp.Turn | None = None
        self._mouse_on = not terminal.is_remote()
        self._last_filters = [
            terminal.make_control_filter(),
            *([terminal.make_plain_filter()] if self.no_color else []),
        ]
        self.theme = terminal.default_theme()
        self.animation_level = "none"

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), *self._last_filters]

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key | Paste) and not event.is_forwarded:
            self._waiting.append(event)
            if self._turn is None:
                await self._next_key()
            return
        if isinstance(event, Key):
            self.key_arrived = event.time
        await super().on_event(event)

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except EvaldeskError as error:
            self._handle_exception(error)

    async def _next_key(self) -> None:
        """Hand one key on; the one after it waits until this one has done all that it does.

        Otherwise what is typed ahead of a busy screen meets the screen as it was before: letters of
        a critique would be verdicts.
        """
        while self._waiting and self._turn is None:
            event = self._waiting.popleft()
            if isinstance(event, Key):
                if self._runs_over(event):
                    continue
                self.key_arrived = event.time
            target = self.focused or self.screen
            await super().on_event(event)
            self._take_turn(self.Turn(target))

    def _take_turn(self, turn: Turn) -> None:
        if turn.target.post_message(turn):
            self._turn = turn
            asyncio.get_running_loop().call_later(TURN_LIMIT_S, self._end_turn, turn)

    def _end_turn(self, turn: Turn) -> None:
        if turn is self._turn:
            self._turn = None
            self.call_later(self._next_key)

    async def on_evaldesk_app_turn(self, turn: Turn) -> None:
        if turn is not self._turn:
            return
        self._turn = None
        if not turn.is_second:
            # The first went the key's own way; this one comes after what the key has set off.
            self._take_turn(
                self.Turn(turn.target if turn.target.is_attached else self.focused or self.screen, is_second=True)
            )
        if self._turn is None:
            await self._next_key()

    def _runs_over(self, event: Key) -> bool:
        """Whether a key came in one breath with the one that saved, or with one dropped for that: it is for no one."""
        told = self._paste_guard.is_dropping
        if self._paste_guard.drops(event.time):
            if not told:
                self.notify("Keys right after a save dropped: a paste?", severity="warning", timeout=8, markup=False)
            return True
        if event.key == "enter" and isinstance(self.focused, CritiqueBox):
            self._paste_guard.save_by(event.time)
        return False

    def save_by_this_key(self) -> None:
        """The key whose action is being carried out saves; what comes in one breath with it is dropped."""
        self._paste_guard.save_by(self.key_arrived)

    def on_notify(self, event: Notify) -> None:
        # Only the newest notice stands; Textual adds it after this.
        self._notifications.clear()

    def _handle_exception(self, error: Exception) -> None:
        # A failed worker wraps what went wrong in it.
        cause = getattr(error, "error", error)
        if isinstance(cause, EvaldeskError) and hasattr(self, "desk") and not self.is_leaving:
            # The disk refused, say: what stands on the screen is worth more than leaving.
            self.notify(one_line(str(cause)), severity="warning", timeout=12, markup=False)
            return
        self.failure = self.failure or cause
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        # Textual would print a traceback with all local values, and those hold text from outside.
        self._close_messages_no_wait()

    def panic(self, *renderables: object) -> None:
        self.failure = self.failure or EvaldeskError(
            "the terminal cannot be read any more", kept="What was typed is kept as a draft."
        )
        self._close_messages_no_wait()

    # -- opening and leaving ----------------------------------------------------------------------

    def on_load(self) -> None:
        terminal.leave_on_signals(lambda code: self.exit(return_code=code))

    async def on_mount(self) -> None:
        await self.push_screen(OpeningScreen(str(self.workspace.path)))
        self.call_after_refresh(self.action_reopen)

    def action_reopen(self) -> None:
        self.run_worker(self._open(), exclusive=True)

    async def _open(self) -> None:
        self._opening = asyncio.ensure_future(asyncio.to_thread(Store, self.workspace, program="evaldesk"))
        try:
            store = await asyncio.shield(self._opening)
        except EvaldeskError as error:
            if not self._is_ending:
                await self.switch_screen(BlockedScreen(error))
            return
        if self._is_demo and not self._is_ending:
            from engine import demo

            await asyncio.to_thread(demo.fill, store)
        if self._is_ending:
            return
        self.desk = await asyncio.wrap_future(store.submit(_remembered, store))
        if self._is_ending:
            return
        screen = self._start or await asyncio.wrap_future(store.submit(settings.read, "screen", "home"))
        if self._is_ending:
            return
        await self.switch_screen(screen if screen in SCREENS else "home")
        store.submit_background(settings.write, "screen", screen)
        # What watching needs takes a moment to load, and the person is to be served first.
        self.call_after_refresh(self.run_worker, self._start_watch(store), group="watch")

    async def _start_watch(self, store: Store) -> None:
        watch = await asyncio.to_thread(_new_watch, store, self._tell)
        if not self._is_ending:
            self._watch = watch
            watch.start()

    def _tell(self, change: Change) -> None:
        """Called in the watching thread."""
        self.post_message(self.Changed(change))

    async def _shutdown(self) -> None:
        self.is_leaving = True
        # Every way out leads through here (keys, signals, a lost line, a crash), while the screens still stand.
        try:
            for screen in self._screen_stack:
                if isinstance(screen, DeskScreen):
                    await screen.put_away()
        except EvaldeskError as error:
            self.failure = self.failure or error
        finally:
            await super()._shutdown()

    async def on_unmount(self) -> None:
        """Stop the watch, close the store: in a thread, so that the loop can finish."""
        if self._opening is None:
            return
        await asyncio.wait([self._opening])
        if self._opening.exception() is None:
            await asyncio.to_thread(_leave, self._watch, self._opening.result())

    @property
    def _is_ending(self) -> bool:
        """Whether somebody has left already: no screen is to come up any more."""
        return self.is_leaving or self._exit

    async def action_ask_snapshot(self) -> None:
        from engine import requests

        folder = self.workspace.path.absolute()
        out = snapshot.free_name(folder.parent / f"{folder.name}-snapshot.duckdb")
        self.notify("Asking the owner for a snapshot …", markup=False)
        try:
            await asyncio.to_thread(requests.ask, self.workspace, {"kind": "snapshot", "path": str(out.absolute())})
        except EvaldeskError as error:
            self.notify(str(error), severity="warning", markup=False)
            return
        self.notify(f"Written: {out}. Any DuckDB tool opens it.", timeout=15, markup=False)

    # -- screens ------------------------------------------------------------------------------------

    async def action_go(self, name: str) -> None:
        if not hasattr(self, "desk") or isinstance(self.screen, BlockedScreen | OpeningScreen):
            return
        while not isinstance(self.screen, DeskScreen) and len(self.screen_stack) > 1:
            self.pop_screen()
        if type(self.screen).__name__ != _CLASSES[name][1]:
            if isinstance(self.screen, DeskScreen):
                await self.screen.put_away()
            await self.switch_screen(name)
            # At once, so that a killed app comes back here too.
            self.desk.store.submit_background(settings.write, "screen", name)

    def _act_soon(self, screen: Screen[object], action: str) -> None:
        """Carry out an action of a screen that a command stands for, once the palette is gone."""
        self.call_later(self.run_action, action, screen)

    def _go_soon(self, name: str) -> None:
        self.run_worker(self.action_go(name))

    def on_evaldesk_app_changed(self, message: Changed) -> None:
        self.desk.states = message.change.states
        if message.change.problem:
            self.notify(one_line(message.change.problem), severity="warning", timeout=12, markup=False)
        # On the way out the screens go first.
        if not self.is_leaving and self._screen_stack and isinstance(self.screen, DeskScreen):
            self.screen.take_change(message.change)

    def action_help(self) -> None:
        self.push_screen(TextDialog("Keys", help_lines(self, self.screen)))

    def action_toggle_mouse(self) -> None:
        driver = self._driver
        if driver is None:
            return
        self._mouse_on = not self._mouse_on
        # The driver writes mouse sequences only while it believes that there is a mouse.
        driver._mouse = True
        if self._mouse_on:
            driver._enable_mouse_support()  # type: ignore[attr-defined]
        else:
            driver._disable_mouse_support()  # type: ignore[attr-defined]
        driver._mouse = self._mouse_on
        self.notify(f"Mouse {'on' if self._mouse_on else 'off: the terminal selects text'}.")

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        yield from super().get_system_commands(screen)
        for binding in type(screen).BINDINGS if isinstance(screen, DeskScreen) else ():
            if isinstance(binding, Binding) and binding.tooltip:
                keys = " ".join(KEY_NAMES.get(key, key) for key in binding.key.split(","))
                yield SystemCommand(
                    f"{type(screen).__name__.removesuffix('Screen')}: {binding.description}",
                    f"{binding.tooltip}. The same as {binding.key_display or keys}",
                    partial(self._act_soon, screen, binding.action),
                )
        for name, key in SCREENS.items():
            yield SystemCommand(f"Go to {name.capitalize()}", f"The same as {key}", partial(self._go_soon, name))


def _new_watch(store: Store, on_change: Callable[[Change], None]) -> Watch:
    from engine.watch import Watch

    return Watch(store, on_change)


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "expert"


def _remembered(tx: Transaction, store: Store) -> Desk:
    known = [criterion.criterion_id for criterion in criteria.everyone(tx)]
    criterion = settings.read(tx, "criterion")
    return Desk(
        store,
        criterion_id=criterion if criterion in known else (known[0] if known else ""),
        trace_id=settings.read(tx, "trace"),
        expert=settings.read(tx, "expert") or _login_name(),
        is_demo=settings.read(tx, "demo") == "1",
    )


def _leave(watch: Watch | None, store: Store) -> None:
    if watch is not None:
        watch.stop()
    store.close()


def run(workspace: Path, *, is_demo: bool = False, start: str = "") -> int:
    """Run the app in this terminal; returns the exit code. Raises what ended the app, once the terminal is whole again."""
    terminal.check()
    terminal.harden_driver()
    terminal.keep_log_off_screen()
    app = EvaldeskApp(workspace, is_demo=is_demo, start=start)
    app.run(mouse=not terminal.is_remote())
    if app.failure is not None:
        raise app.failure
    return 2 if app.return_code is None else app.return_code
