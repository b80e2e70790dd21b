"""Label: one case after the other, by keyboard."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from engine.change import Change
from engine.errors import EvaldeskError
from engine.store import case_search, cases, codes, criteria, dimensions, drafts, labels, piles, settings, traces
from engine.store.case_search import CaseQuery
from engine.store.cases import Case, CaseRow
from engine.store.drafts import Draft
from engine.store.labels import Label, Mark
from engine.store.transaction import Transaction
from tui.presentation.case_view import case_lines, case_title, label_line, progress_text
from tui.presentation.codes_view import act_text
from tui.presentation.lines import line, plain
from tui.screens.case_codes import CaseNotes, ask_code
from tui.screens.desk_screen import DeskScreen
from tui.widgets.case_list import CaseList
from tui.widgets.critique_box import CritiqueBox
from tui.widgets.literal import one_line
from tui.widgets.painted import Reader, RowList

if TYPE_CHECKING:
    from tui.app import EvaldeskApp

_DRAFT_PAUSE_S = 0.4
_SEARCHED_AT_ONCE = 50_000
_SEARCH_HINT = "words, an id, is:fail is:open in:build language=de; Enter finds, Esc ends"

_SAID = {Mark.DEFERRED: "deferred", Mark.NOT_APPLICABLE: "not applicable", Mark.DEFECT: "is a defect"}


class LabelScreen(DeskScreen):
    """The expert's desk: a case, the critique box under it, the list of cases beside it."""

    NAME = "Label"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "verdict('PASS')", "pass", tooltip="Say PASS and write the critique", id="label.pass"),
        Binding("f", "verdict('FAIL')", "fail", tooltip="Say FAIL and write the critique", id="label.fail"),
        Binding("d", "mark('DEFERRED')", "defer", tooltip="Decide later", id="label.defer"),
        Binding(
            "n",
            "mark('NOT_APPLICABLE')",
            "n/a",
            tooltip="The criterion has nothing to check here",
            id="label.not_applicable",
        ),
        Binding(
            "b",
            "mark('DEFECT')",
            "defect",
            tooltip="A plain defect of the system: fix it instead of judging it",
            id="label.defect",
        ),
        Binding(
            "t,f2",
            "code",
            "code",
            tooltip="Give the case a short code, or take it off; F2 also while writing",
            id="label.code",
        ),
        Binding(
            "l",
            "critiques",
            "critiques",
            show=False,
            tooltip="All critiques, by verdict and failure mode",
            id="label.critiques",
        ),
        Binding("x", "pile", "pile", tooltip="Build pile, sealed pile, none", id="label.pile"),
        Binding(
            "u", "undo", "undo", tooltip="Take the last label, code or pile back, any number of times", id="label.undo"
        ),
        Binding(
            "slash", "search", "search", key_display="/", tooltip="Cases in which some words stand", id="label.search"
        ),
        Binding("j", "step(1)", "next", show=False, tooltip="Next case", id="label.next"),
        Binding("k", "step(-1)", "previous", show=False, tooltip="Previous case", id="label.previous"),
        Binding(
            "o", "next_open", "next open", show=False, tooltip="Next case without a decision", id="label.next_open"
        ),
        Binding("c", "write", "critique", show=False, tooltip="Go on writing the critique", id="label.write"),
        Binding(
            "h",
            "model_critiques",
            "model critiques",
            show=False,
            tooltip="What good critiques look like",
            id="label.examples",
        ),
        Binding(
            "v", "values", "values", show=False, tooltip="The dimensions of this case, and set one", id="label.values"
        ),
        Binding("space", "scroll(1)", "scroll", show=False, tooltip="Scroll the case down", id="label.scroll_down"),
        Binding(
            "escape", "leave", "list", show=False, tooltip="Leave the critique box or end the search", id="label.leave"
        ),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._total = 0
        self._criterion_version = 1
        self._question = ""
        self._case: Case | None = None
        self._verdict = ""
        self._opened_at = time.monotonic()
        self._label_line = ""
        self._found: list[int] | None = None
        self._ahead: dict[int, Case] = {}
        self._generation = 0
        self._draft_timer: asyncio.TimerHandle | None = None
        self._position = 0
        self._last_move: tuple[str, str, str] | None = None
        """(criterion, case, pile that it came from) when moving it was the last thing done."""
        self._notes = CaseNotes(self, self._show_label_line)
        self._codes_last = 0
        """How many codes were given here since anything else was done."""
        self._back_to_box = False

    def compose_body(self) -> ComposeResult:
        with Horizontal(id="label-body"):
            yield CaseList(self._read_rows, self._move_to, id="cases")
            with Vertical(id="case"):
                yield Static(id="case-title")
                yield Reader(id="case-text")
        yield Input(placeholder=_SEARCH_HINT, id="search")
        yield Static(id="label-line")
        yield CritiqueBox(id="critique")

    async def load(self) -> None:
        self.query_one("#search", Input).display = False
        self._position = await self._first_position()
        await self._load_rows()
        if not self._total:
            self.set_head("no cases yet", "")
            self.query_one("#case-text", Reader).show(
                lambda _: [line("No traces yet. Press ", ("i", "key"), " to import a file.")]
            )
            return
        await self._open(self._position)
        if self._back_to_box:
            self._back_to_box = False
            self.action_write()
        else:
            self.set_focus(self._rows)
        if self.desk.wanted_cases:
            self._show_wanted()

    async def put_away(self) -> None:
        self._codes_last = 0
        await self._keep_draft()

    async def on_change(self, change: Change) -> None:
        if change.store_changed:
            await self._load_rows()

    # -- moving ---------------------------------------------------------------------------------

    async def action_step(self, step: int) -> None:
        positions = self._rows.positions
        if positions:
            await self._open(positions[max(0, min(self._rows.cursor + step, len(positions) - 1))])

    def _move_to(self, index: int) -> None:
        self.call_next(self._open, self._rows.positions[index])

    async def action_next_open(self) -> None:
        await self._open(await self._next_open())

    @on(RowList.Chosen, "#cases")
    def _chosen(self) -> None:
        self.action_write()

    def action_scroll(self, pages: int) -> None:
        self.query_one("#case-text", Reader).scroll_relative(y=pages * 8, animate=False)

    # -- deciding -------------------------------------------------------------------------------

    async def action_verdict(self, verdict: str) -> None:
        if self._case is None:
            return
        before = self._verdict or _given_verdict(self._case)
        self._verdict = verdict
        # Before anything is waited for: what is typed on belongs into the box.
        self.action_write()
        self._show_label_line()
        if before not in ("", verdict) and self._box.text.strip():
            self.say(f"{before} is now {verdict}; the text stays.")
        await self._keep_draft()

    def action_write(self) -> None:
        if self._case is None:
            return
        label = self._case.label
        if not self._verdict and label is not None and label.mark.is_verdict:
            self._verdict = str(label.mark)
        self.set_focus(self._box)
        self._show_label_line()

    async def action_mark(self, mark: str) -> None:
        if self._case is None:
            return
        given = self._case.label.critique if self._case.label else ""
        text = self._box.text.strip()
        trace_id = self._case.trace.trace_id
        if await self._save(Mark(mark), "" if self._box.holds(given) else text):
            self.say(f"{trace_id} {_SAID[Mark(mark)]}; u takes it back")

    async def action_undo(self) -> None:
        if self._codes_last and await self._take_code_back():
            return
        if self._last_move is not None:
            await self._move_back(*self._last_move)
            return
        undone = await self.desk.do(labels.undo, self.desk.criterion_id)
        if undone is None:
            self.say("Nothing left to undo.")
            return
        taken, now = undone
        if taken.critique and now is None:
            # What was written is never lost: it goes back into the draft.
            await self.desk.do(
                drafts.save,
                Draft(
                    taken.trace_id, taken.criterion_id, str(taken.mark) if taken.mark.is_verdict else "", taken.critique
                ),
            )
        await self._load_rows()
        await self._open_trace(taken.trace_id)
        self.say(f"Taken back: {taken.trace_id} {taken.mark}" + (f", now {now.mark} again" if now else ""))

    async def action_pile(self) -> None:
        if self._case is None:
            return
        following = {piles.NONE: piles.BUILD, piles.BUILD: piles.SEALED, piles.SEALED: piles.NONE}[self._case.pile]
        trace_id = self._case.trace.trace_id
        try:
            moved = await self.desk.do(piles.put, self.desk.criterion_id, trace_id, following)
        except EvaldeskError as error:
            self.say_error(error)
            return
        self._last_move = (self.desk.criterion_id, trace_id, self._case.pile)
        self._codes_last = 0
        await self._load_rows()
        await self._open(self._position)
        with_group = f" (with {len(moved) - 1} of the same request)" if len(moved) > 1 else ""
        self.say(f"{trace_id}: {'no pile' if following == piles.NONE else following + ' pile'}{with_group}")

    async def _move_back(self, criterion_id: str, trace_id: str, pile: str) -> None:
        self._last_move = None
        try:
            await self.desk.do(piles.put, criterion_id, trace_id, pile)
        except EvaldeskError as error:
            self.say_error(error)
            return
        await self._load_rows()
        await self._open_trace(trace_id)
        self.say(f"Taken back: {trace_id}, {'no pile' if pile == piles.NONE else pile + ' pile'} again")

    async def action_code(self) -> None:
        if self._case is None:
            return
        # Coming back reads the case anew: what is typed has to be there by then.
        await self._keep_draft()
        self._back_to_box = self.focused is self._box
        self.run_worker(self._code(self._case.trace.trace_id), exclusive=True, group="ask")

    async def _code(self, trace_id: str) -> None:
        try:
            act = await ask_code(self, trace_id)
        except EvaldeskError as error:
            self.say_error(error)
            return
        if act is None:
            return
        self._last_move = None
        self._codes_last += 1
        await self._show_codes(trace_id)
        self.say(f"{act_text(act)}; u takes it back")

    async def _take_code_back(self) -> bool:
        self._codes_last -= 1
        act = await self.desk.do(codes.undo, self.desk.criterion_id, self.desk.expert)
        if act is None:
            return False
        await self._show_codes(act.trace_id)
        self.say(f"Taken back: {act_text(act)}")
        return True

    async def _show_codes(self, trace_id: str) -> None:
        self._generation += 1
        self._ahead.clear()
        given = await self.desk.do(codes.of_case, self.desk.criterion_id, trace_id)
        if self._case is not None and self._case.trace.trace_id == trace_id:
            self._case = replace(self._case, codes=given)
            self._notes.opened(trace_id, given)
            self._show_label_line()

    def action_critiques(self) -> None:
        self.go("critiques")

    @on(CritiqueBox.Saved)
    async def _critique_saved(self) -> None:
        if self._case is None:
            return
        text = self._box.text.strip()
        if not self._verdict:
            self.set_focus(self._box)
            self.say("PASS or FAIL? Esc, then p or f. The text is kept as a draft.", problem=True)
            await self._keep_draft()
            return
        if not text:
            self.set_focus(self._box)
            self.say(
                "A label counts once it has a critique: say what decided. The verdict is kept as a draft.", problem=True
            )
            await self._keep_draft()
            return
        if self._is_unchanged():
            self._verdict = ""
            self.say("Nothing was changed.")
            self._show_label_line()
            self.set_focus(self._rows)
            return
        await self._save(Mark(self._verdict), text)

    @on(CritiqueBox.Typed)
    def _typed(self) -> None:
        self._notes.typed(lambda: self._box.text)
        # Not put off by further typing: a kill loses no more than this long.
        if self._draft_timer is None:
            self._draft_timer = asyncio.get_running_loop().call_later(
                _DRAFT_PAUSE_S, lambda: self.run_worker(self._keep_draft(), exclusive=False)
            )

    @on(CritiqueBox.Left)
    async def _left(self) -> None:
        if self._case is not None and not self._box.text.strip():
            # A verdict alone is no draft to come back to.
            self._verdict = ""
            self._box.set_text(_given_critique(self._case))
        await self._keep_draft()
        self.set_focus(self._rows)
        self._show_label_line()

    async def _save(self, mark: Mark, critique: str) -> bool:
        """Save and go on to the next open case; whether it was saved."""
        assert self._case is not None
        case, trace = self._case, self._case.trace
        label = Label(
            trace_id=trace.trace_id,
            criterion_id=self.desk.criterion_id,
            mark=mark,
            critique=critique,
            expert=self.desk.expert,
            how_drawn="random" if case.was_drawn else "hand",
            trace_version=trace.version,
            criterion_version=self._criterion_version,
            seconds=round(time.monotonic() - self._opened_at, 1),
        )
        cast("EvaldeskApp", self.app).save_by_this_key()
        self._last_move = None
        self._codes_last = 0
        self._cancel_draft_timer()
        try:
            await self.desk.do(_save_label, label)
        except EvaldeskError as error:
            self.say_error(error)
            return False
        self._verdict = ""
        self._box.set_text("")
        self._case = None
        following = await self._next_open()
        await self._load_rows()
        await self._open(following)
        self.set_focus(self._rows)
        return True

    # -- searching ------------------------------------------------------------------------------

    def action_search(self) -> None:
        box = self.query_one("#search", Input)
        box.display = True
        self.set_focus(box)

    @on(Input.Submitted, "#search")
    def _search(self, event: Input.Submitted) -> None:
        self.run_worker(self._find(event.value.strip()), exclusive=True, group="search")

    def _show_wanted(self) -> None:
        """Come up with the search that another screen has asked for."""
        box = self.query_one("#search", Input)
        box.display, box.value, self.desk.wanted_cases = True, self.desk.wanted_cases, ""
        self.run_worker(self._find(box.value), exclusive=True, group="search")

    async def _find(self, typed: str) -> None:
        if (position := await self.desk.do(traces.position_of, typed)) is not None:
            self._end_search()
            self.set_focus(self._rows)
            await self._open(position)
            return
        try:
            found = await self._search_through(case_search.parse(typed)) if typed else None
        except EvaldeskError as error:
            self.say_error(error)
            return
        if found == []:
            self.say(f"No case is like this: {typed}", problem=True)
            return
        self._found = found
        self.query_one("#search", Input).display = bool(typed)
        self._show_rows()
        self.set_focus(self._rows)
        if self._rows.positions:
            await self._open(self._rows.positions[self._rows.cursor])

    async def _search_through(self, query: CaseQuery) -> list[int]:
        """The cases that are like this, a piece of the workspace at a time: between two of them everything else has its turn."""
        found: list[int] = []
        for start in range(0, self._total, _SEARCHED_AT_ONCE):
            piece = range(start, min(start + _SEARCHED_AT_ONCE, self._total))
            if start:
                self.say(f"Searching, {100 * start // self._total} %: {len(found)} found so far")
            found += await self.desk.meanwhile(case_search.find, self.desk.criterion_id, query, piece)
        return found

    async def action_leave(self) -> None:
        self.workers.cancel_group(self, "search")
        self._end_search()
        self.set_focus(self._rows)

    def _end_search(self) -> None:
        box = self.query_one("#search", Input)
        if box.display:
            box.display = False
            box.value = ""
            self._found = None
            self._show_rows()

    def action_values(self) -> None:
        self.run_worker(self._show_values(), exclusive=True, group="ask")

    async def _show_values(self) -> None:
        from tui.screens.dimensions import CaseValuesDialog

        if self._case is None:
            return
        if not await self.desk.do(dimensions.everyone):
            self.say("There are no dimensions yet: 7 goes to Coverage, d there makes some.", problem=True)
            return
        await self.ask(CaseValuesDialog(self.desk, self._case.trace.trace_id))

    def action_model_critiques(self) -> None:
        self.run_worker(self._show_model_critiques(), exclusive=True, group="ask")

    async def _show_model_critiques(self) -> None:
        from tui.screens.text_dialog import TextDialog

        criterion = await self.desk.do(criteria.get, self.desk.criterion_id)
        parts = [
            criterion.question,
            f"PASS when {criterion.pass_when}",
            f"FAIL when {criterion.fail_when}",
            *(f"Edge case: {e}" for e in criterion.edge_cases),
        ]
        parts += [f"{h.verdict}: {h.critique}" for h in criterion.help_critiques]
        await self.ask(TextDialog("The criterion, and what good critiques look like", "\n\n".join(parts)))

    # -- showing --------------------------------------------------------------------------------

    @property
    def _rows(self) -> CaseList:
        return self.query_one("#cases", CaseList)

    @property
    def _box(self) -> CritiqueBox:
        return self.query_one("#critique", CritiqueBox)

    async def _load_rows(self) -> None:
        """Read again what is in sight, and the counts."""
        self._generation += 1
        self._ahead.clear()
        criterion = await self.desk.do(criteria.find, self.desk.criterion_id)
        self._criterion_version = criterion.version if criterion else 1
        self._question = criterion.question if criterion else "no criterion yet"
        progress = await self.desk.do(cases.progress, self.desk.criterion_id)
        self._total = progress.total
        self.set_head(self._question, progress_text(progress))
        self._show_rows()

    def _show_rows(self) -> None:
        self._rows.show(range(self._total) if self._found is None else self._found, self._position)

    async def _read_rows(self, positions: Sequence[int]) -> list[CaseRow]:
        return await self.desk.meanwhile(cases.page, self.desk.criterion_id, positions)

    async def _open_trace(self, trace_id: str) -> None:
        if (position := await self.desk.do(traces.position_of, trace_id)) is not None:
            await self._open(position)

    async def _open(self, position: int) -> None:
        if self._case is not None and self._case.trace.position != position:
            await self._keep_draft()
        case = self._ahead.pop(position, None) or await self.desk.do(cases.at, position, self.desk.criterion_id)
        if case is None:
            return
        self._case, self._position = case, position
        self._notes.opened(case.trace.trace_id, case.codes)
        self._opened_at = time.monotonic()
        self._verdict = case.draft.verdict if case.draft else ""
        self._box.set_text(case.draft.critique if case.draft else _given_critique(case))
        if (index := self._rows.place_of(position)) is not None:
            self._rows.cursor = index
        self.query_one("#case-title", Static).update(Content(case_title(case.trace, case.pile)), layout=False)
        self.query_one("#case-text", Reader).show(lambda width: case_lines(case.trace, width))
        self._show_label_line()
        self._read_ahead()
        if self.desk.trace_id != case.trace.trace_id:
            self.desk.trace_id = case.trace.trace_id
            self.desk.store.submit_background(settings.write, "trace", case.trace.trace_id)

    def _read_ahead(self) -> None:
        """Read the cases above and below, so that the next key finds them here; anything that changes a case empties it."""
        self._ahead.clear()
        positions, here = self._rows.positions, self._rows.cursor
        for index in (here + 1, here - 1):
            if 0 <= index < len(positions):
                self.run_worker(self._read_one(positions[index], self._generation), group="ahead")

    async def _read_one(self, position: int, generation: int) -> None:
        case = await self.desk.meanwhile(cases.at, position, self.desk.criterion_id)
        if case is not None and generation == self._generation:
            self._ahead[position] = case

    def _show_label_line(self) -> None:
        if self._case is None:
            return
        if self._verdict:
            keys = "Enter saves, Esc leaves it" if self.focused is self._box else "c goes on writing"
            text = f"{self._verdict} draft: {keys}"
        elif self._case.draft is not None:
            text = "draft without a verdict: p or f gives it one"
        else:
            text = plain([label_line(self._case.label)])
        text = self._notes.behind(text, max(self.app.size.width - 2, 20))
        if text == self._label_line:
            return
        self._label_line = text
        label_line_shown = self.query_one("#label-line", Static)
        label_line_shown.update(Content(one_line(text)), layout=False)
        label_line_shown.set_class(self._verdict == "PASS", "pass")
        label_line_shown.set_class(self._verdict == "FAIL", "fail")

    def on_descendant_focus(self) -> None:
        self._show_label_line()

    def on_descendant_blur(self) -> None:
        self._show_label_line()

    async def _keep_draft(self) -> None:
        self._cancel_draft_timer()
        case = self._case
        if case is None:
            return
        before = case.draft or Draft(case.trace.trace_id, self.desk.criterion_id, "", "")
        draft = Draft(case.trace.trace_id, self.desk.criterion_id, self._verdict, self._box.text)
        if self._is_unchanged():
            draft = Draft(case.trace.trace_id, self.desk.criterion_id, "", "")
        if draft == before:
            return
        await self.desk.do(drafts.save, draft)
        if self._case is case:
            self._case = replace(case, draft=draft if draft.verdict or draft.critique else None)
        await self._load_rows()

    def _is_unchanged(self) -> bool:
        """Whether verdict and text are those of the label that counts (or of no label at all)."""
        if self._case is None:
            return True
        return self._verdict in ("", _given_verdict(self._case)) and self._box.holds(_given_critique(self._case))

    def _cancel_draft_timer(self) -> None:
        if self._draft_timer is not None:
            self._draft_timer.cancel()
            self._draft_timer = None

    async def _first_position(self) -> int:
        """Where to begin: at the case that was open last, else at the first that is still to be decided."""
        if self.desk.trace_id and (known := await self.desk.do(traces.position_of, self.desk.trace_id)) is not None:
            return known
        total = await self.desk.do(traces.count)
        return await self.desk.do(cases.next_open, self.desk.criterion_id, -1, range(total)) or 0

    async def _next_open(self) -> int:
        """The next case of the list that is still to be decided; where there is none, simply the next one."""
        positions = self._rows.positions or range(self._total)
        found = await self.desk.do(cases.next_open, self.desk.criterion_id, self._position, positions)
        if found is not None:
            return found
        here = bisect_right(positions, self._position)
        return positions[here] if here < len(positions) else positions[0]


def _given_verdict(case: Case) -> str:
    return str(case.label.mark) if case.label is not None and case.label.mark.is_verdict else ""


def _given_critique(case: Case) -> str:
    return case.label.critique if case.label is not None and case.label.mark != Mark.WITHDRAWN else ""


def _save_label(tx: Transaction, label: Label) -> None:
    labels.add(tx, label)
    drafts.drop(tx, label.trace_id, label.criterion_id)
