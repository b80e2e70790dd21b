"""Critiques: all of them by verdict and failure mode; codes are given, renamed and merged here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Input, Static

from engine.change import Change
from engine.errors import EvaldeskError
from engine.judging.critique_hints import KnownCritiques, critique_hint
from engine.measuring import failure_modes
from engine.measuring.failure_modes import FailureMode, FailureModes
from engine.store import codes, criteria
from engine.store.codes import Act, CodedCase
from tui.presentation.codes_view import (
    Choice,
    Group,
    act_text,
    critique_lines,
    critique_row,
    group_row,
    group_text,
    groups,
)
from tui.presentation.lines import Line, counted, shortened, wrapped
from tui.screens.case_codes import ask_code
from tui.screens.desk_screen import DeskScreen
from tui.screens.name_picker import NamePicker
from tui.screens.text_dialog import AskDialog
from tui.widgets.literal import one_line
from tui.widgets.painted import Reader, RowList

_VERDICTS = {"": "FAIL", "FAIL": "PASS", "PASS": ""}


class CritiquesScreen(DeskScreen):
    """Failure modes on the left, the critiques of the one under the cursor on the right, the chosen critique below."""

    NAME = "Critiques"
    AUTO_FOCUS = "#critiques"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "other_list", "other list", tooltip="From the failure modes to the critiques, and back", id="critiques.other"),
        Binding("v", "verdict", "verdict", tooltip="Only FAIL, only PASS, both", id="critiques.verdict"),
        Binding("t", "code", "code", tooltip="Give the case a code, or take it off", id="critiques.code"),
        Binding("r", "rename", "rename", tooltip="Give the failure mode on the left another name", id="critiques.rename"),
        Binding("m", "merge", "merge", tooltip="Merge the failure mode on the left into another one", id="critiques.merge"),
        Binding("s", "split", "split", show=False, tooltip="Take a code out of the failure mode on the left", id="critiques.split"),
        Binding("u", "undo", "undo", tooltip="Take the last code, name or merge back", id="critiques.undo"),
        Binding("slash", "search", "search", key_display="/", tooltip="Critiques in which some words stand", id="critiques.search"),
        Binding("space", "scroll(1)", "scroll", show=False, tooltip="Scroll the critique down", id="critiques.scroll"),
        Binding("escape", "leave", "back", show=False, tooltip="End the search, or go back to Label", id="critiques.leave"),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._cases: list[CodedCase] = []
        self._found: FailureModes = failure_modes.failure_modes([])
        self._known = KnownCritiques()
        self._verdict = ""
        self._words = ""
        self._question = ""

    def compose_body(self) -> ComposeResult:
        yield Static(id="saturation")
        with Horizontal(id="critiques-body"):
            yield RowList[Group](
                lambda group, width: group_row(group, self._found.failures, width),
                id="modes",
                key=lambda group: (group.title, group.mode is None),
            )
            yield RowList[CodedCase](critique_row, id="critiques", key=lambda case: case.trace_id)
        yield Input(placeholder="words to search for, Enter to find, Esc to end", id="search")
        yield Static(id="mode-line")
        yield Reader(id="critique-text")

    async def load(self) -> None:
        self.query_one("#search", Input).display = False
        self.query_one("#search", Input).cursor_blink = False
        await self._read()
        if self.focused is None or self.focused is self.query_one("#search"):
            self.set_focus(self._critiques)
        here = next((i for i, case in enumerate(self._critiques.rows) if case.trace_id == self.desk.trace_id), None)
        if here is not None:
            self._critiques.cursor = here
            self._show_critique()

    async def on_change(self, change: Change) -> None:
        if change.store_changed:
            await self._read()

    # -- moving -------------------------------------------------------------------------------------

    def action_other_list(self) -> None:
        self.set_focus(self._critiques if self.focused is self._groups else self._groups)

    @on(RowList.Moved, "#modes")
    def _group_moved(self) -> None:
        self._show_critiques(first=True)

    @on(RowList.Chosen, "#modes")
    def _group_chosen(self) -> None:
        self.set_focus(self._critiques)

    @on(RowList.Moved, "#critiques")
    def _critique_moved(self) -> None:
        self._show_critique()

    @on(RowList.Chosen, "#critiques")
    def _critique_chosen(self) -> None:
        case = self._critiques.current
        if case is not None:
            self.desk.trace_id = case.trace_id
            self.go("label")

    def action_scroll(self, pages: int) -> None:
        self.query_one("#critique-text", Reader).scroll_relative(y=pages * 4, animate=False)

    def action_verdict(self) -> None:
        self._verdict = _VERDICTS[self._verdict]
        self._show_critiques()

    def action_search(self) -> None:
        box = self.query_one("#search", Input)
        box.display = True
        self.set_focus(box)

    @on(Input.Submitted, "#search")
    def _search(self, event: Input.Submitted) -> None:
        before, self._words = self._words, " ".join(event.value.split())
        if self._words and not any(map(self._is_shown, self._cases)):
            self.say(f"No critique has these words here: {self._words}", problem=True)
            self._words = before
            return
        if not self._words:
            event.input.display = False
        self._show_critiques(first=True)
        self.set_focus(self._critiques)

    def action_leave(self) -> None:
        box = self.query_one("#search", Input)
        if box.display:
            box.display = False
            box.value = self._words = ""
            self._show_critiques()
            self.set_focus(self._critiques)
        else:
            self.go("label")

    # -- codes --------------------------------------------------------------------------------------

    def action_code(self) -> None:
        case = self._critiques.current
        if case is None:
            self.say("There is no critique under the cursor.", problem=True)
            return
        self._start(lambda: ask_code(self, case.trace_id))

    def action_rename(self) -> None:
        if (mode := self._chosen_mode()) is not None:
            self._start(lambda: self._rename(mode))

    async def _rename(self, mode: FailureMode) -> Act | None:
        answer = await self.ask(
            AskDialog(
                "Rename the failure mode",
                f"{_written_as(mode)}. The name of another failure mode merges the two.",
                one_line(mode.name),
            )
        )
        name = one_line(answer or "")
        return await self._merge_into(mode, name) if name and name != mode.name else None

    def action_merge(self) -> None:
        if (mode := self._chosen_mode()) is not None:
            self._start(lambda: self._merge(mode))

    async def _merge(self, mode: FailureMode) -> Act | None:
        others = [other for other in self._found.modes if other.name != mode.name]
        choices = [Choice(other.name, counted(other.failures + other.passes, "case")) for other in others]
        name = await self.ask(NamePicker(f"Merge “{mode.name}” into", choices, "merges"))
        return await self._merge_into(mode, name) if name else None

    async def _merge_into(self, mode: FailureMode, name: str) -> Act:
        return await self.desk.do(codes.merge, self.desk.criterion_id, mode.name, name, self.desk.expert)

    def action_split(self) -> None:
        mode = self._chosen_mode()
        if mode is None:
            return
        others = [code for code in mode.codes if code != mode.name]
        if not others:
            self.say("Nothing was merged into this failure mode.", problem=True)
            return
        self._start(lambda: self._split(mode, others))

    async def _split(self, mode: FailureMode, others: list[str]) -> Act | None:
        picker = NamePicker(f"Take out of “{mode.name}”", [Choice(code) for code in others], "takes it out")
        code = await self.ask(picker)
        if not code or code not in others:
            return None
        return await self.desk.do(codes.split, self.desk.criterion_id, code, self.desk.expert)

    async def action_undo(self) -> None:
        act = await self.desk.do(codes.undo, self.desk.criterion_id, self.desk.expert)
        await self._read()
        self.say(f"Taken back: {act_text(act)}" if act is not None else "Nothing left to undo.")

    def _chosen_mode(self) -> FailureMode | None:
        """The failure mode under the cursor of the left list; says so where there is none."""
        group = self._groups.current
        if group is None or group.mode is None:
            self.say("Choose a failure mode on the left first (Tab).", problem=True)
            return None
        return group.mode

    def _start(self, ask: Callable[[], Awaitable[Act | None]]) -> None:
        self.run_worker(self._carry_out(ask), exclusive=True, group="ask")

    async def _carry_out(self, ask: Callable[[], Awaitable[Act | None]]) -> None:
        try:
            act = await ask()
        except EvaldeskError as error:
            self.say_error(error)
            return
        if act is not None:
            await self._read(follow=act.failure_mode)
            self.say(f"{act_text(act)}; u takes it back")

    # -- showing ------------------------------------------------------------------------------------

    @property
    def _groups(self) -> RowList[Group]:
        return self.query_one("#modes", RowList)

    @property
    def _critiques(self) -> RowList[CodedCase]:
        return self.query_one("#critiques", RowList)

    async def _read(self, *, follow: str = "") -> None:
        """Read everything anew; the cursor on the left stays, or goes to the failure mode ``follow``."""
        criterion = await self.desk.do(criteria.find, self.desk.criterion_id)
        self._question = criterion.question if criterion else "no criterion yet"
        self._cases, self._found = await self.desk.do(failure_modes.read, self.desk.criterion_id)
        self._known = await self.desk.later(KnownCritiques, [(case.trace_id, case.critique) for case in self._cases])
        rows = groups(self._found, len(self._cases))
        followed = next(
            (i for i, group in enumerate(rows) if group.mode is not None and group.mode.name == follow), None
        )
        self._groups.set_rows(rows, followed)
        self._groups.refresh()
        self.query_one("#saturation", Static).update(Content(self._found.sentence))
        self._show_critiques()

    def _show_critiques(self, *, first: bool = False) -> None:
        shown = [case for case in self._cases if self._is_shown(case)]
        self._critiques.set_rows(shown, 0 if first else None)
        parts = [f"{self._verdict} only" if self._verdict else "", f"“{self._words}”" if self._words else ""]
        self.set_head(self._question, "  ".join([*filter(None, parts), f"{len(shown)} of {len(self._cases)}"]))
        text = group_text(self._groups.current, self._found.failures)
        self.query_one("#mode-line", Static).update(Content(shortened(text, self.app.size.width - 2)), layout=False)
        self._show_critique()

    def _is_shown(self, case: CodedCase) -> bool:
        if self._verdict not in ("", case.verdict):
            return False
        group = self._groups.current
        if group is not None and not group.holds(case):
            return False
        text = " ".join([case.trace_id, case.critique, *case.codes, *case.modes]).casefold() if self._words else ""
        return not self._words or self._words.casefold() in " ".join(text.split())

    def _show_critique(self) -> None:
        case = self._critiques.current
        hint = critique_hint(case.critique, self._known, case.trace_id) if case is not None else None
        empty = "No label counts yet under this criterion. Esc goes back to Label."

        def layout(width: int) -> list[Line]:
            return critique_lines(case, hint, width) if self._cases else wrapped(empty, width, "dim")

        self.query_one("#critique-text", Reader).show(layout)


def _written_as(mode: FailureMode) -> str:
    shown = ", ".join(one_line(code) for code in mode.codes[:4])
    return f"Written as {shown}{' and others' if len(mode.codes) > 4 else ''}; that stays in the rows"
