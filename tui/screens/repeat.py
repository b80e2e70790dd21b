"""Repeat: labelled cases read again blind, and how far the expert agrees with themselves."""

from __future__ import annotations

import asyncio
import random
import time
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.errors import EvaldeskError
from engine.judging.trace import Trace
from engine.measuring.consistency import DEFAULT_SAMPLE, Consistency, consistency
from engine.store import blind_repeats, criteria, traces
from engine.store.blind_repeats import Repeat, Sample
from tui.presentation.case_view import case_lines, case_title
from tui.presentation.consistency_view import consistency_lines, repeat_lines, repeat_row
from tui.presentation.lines import whole_number
from tui.screens.desk_screen import DeskScreen
from tui.screens.text_dialog import AskDialog
from tui.widgets.critique_box import CritiqueBox
from tui.widgets.literal import one_line
from tui.widgets.painted import Reader, RowList

DRAFT_PAUSE_S = 0.4


class RepeatScreen(DeskScreen):
    """A case without its label while a sample is open; else the figures, and the flipped cases side by side."""

    NAME = "Repeat"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "verdict('PASS')", "pass", tooltip="Say PASS; a critique is welcome, Enter saves", id="repeat.pass"),
        Binding("f", "verdict('FAIL')", "fail", tooltip="Say FAIL; a critique is welcome, Enter saves", id="repeat.fail"),
        Binding("d", "verdict('UNDECIDED')", "undecided", tooltip="Leave this case undecided", id="repeat.undecided"),
        Binding("u", "undo", "undo", tooltip="Take the last verdict of this sample back", id="repeat.undo"),
        Binding("n", "new_sample", "new sample", tooltip="Draw labelled cases to be read again", id="repeat.new"),
        Binding("space", "scroll", "scroll", show=False, tooltip="Scroll the case down", id="repeat.scroll"),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._sample: Sample | None = None
        self._trace: Trace | None = None
        self._verdict = ""
        self._opened_at = time.monotonic()
        self._draft_timer: asyncio.TimerHandle | None = None

    def compose_body(self) -> ComposeResult:
        with Vertical(id="repeat-case"):
            yield Static(id="repeat-title")
            yield Reader(id="repeat-text")
            yield Static(id="repeat-line")
            yield CritiqueBox(id="repeat-critique")
        with Vertical(id="repeat-figures"):
            yield Reader(id="repeat-words")
            yield RowList[Repeat](repeat_row, id="flipped", key=lambda repeat: repeat.trace_id)
            yield Reader(id="flip")

    async def put_away(self) -> None:
        await self._keep_draft()

    async def load(self) -> None:
        self._cancel_draft_timer()
        self._verdict = ""
        self._sample = await self.desk.do(blind_repeats.open_sample, self.desk.criterion_id)
        self._trace = await self.desk.do(traces.at, self._sample.left[0]) if self._sample else None
        criterion = await self.desk.do(criteria.find, self.desk.criterion_id)
        question = criterion.question if criterion else "no criterion yet"
        self.query_one("#repeat-case").display = self._trace is not None
        self.query_one("#repeat-figures").display = self._trace is None
        if self._sample is not None and self._trace is not None:
            done = self._sample.total - len(self._sample.left)
            self.set_head(question, f"{done + 1} of {self._sample.total}, your label is hidden")
            self._verdict, text = await self.desk.do(blind_repeats.draft, self._sample.sample_id, self._trace.trace_id)
            self._show_case(self._trace, text)
        else:
            found = await self.desk.do(consistency, self.desk.criterion_id)
            self.set_head(question, f"{len(found.repeats)} repeated")
            self._show_figures(found)

    def _show_case(self, trace: Trace, text: str) -> None:
        self._opened_at = time.monotonic()
        # The pile would tell whether it is an example that the expert knows by heart.
        self.query_one("#repeat-title", Static).update(Content(case_title(trace, "")), layout=False)
        self.query_one("#repeat-text", Reader).show(lambda width: case_lines(trace, width))
        self.query_one(CritiqueBox).set_text(text)
        self._show_line()
        self.set_focus(self.query_one("#repeat-text"))

    def _show_figures(self, found: Consistency) -> None:
        self.query_one("#repeat-words", Reader).show(lambda width: consistency_lines(found, width))
        flipped = self.query_one("#flipped", RowList)
        flipped.set_rows(list(found.flipped))
        flipped.display = self.query_one("#flip").display = bool(found.flipped)
        self._show_flip()
        self.set_focus(flipped if found.flipped else self.query_one("#repeat-words"))

    @on(RowList.Moved, "#flipped")
    def _show_flip(self) -> None:
        current = self.query_one("#flipped", RowList).current
        self.query_one("#flip", Reader).show(
            lambda width: repeat_lines(current, width) if isinstance(current, Repeat) else []
        )

    @on(RowList.Chosen, "#flipped")
    def _open_flipped(self) -> None:
        current = self.query_one("#flipped", RowList).current
        if isinstance(current, Repeat):
            self.desk.trace_id = current.trace_id
            self.go("label")

    def _show_line(self) -> None:
        text = (
            f"{self._verdict}: Enter saves, with or without a critique; Esc goes back to the case"
            if self._verdict
            else "p or f; d leaves it undecided"
        )
        shown = self.query_one("#repeat-line", Static)
        shown.update(Content(text), layout=False)
        shown.set_class(self._verdict == "PASS", "pass")
        shown.set_class(self._verdict == "FAIL", "fail")

    async def action_verdict(self, verdict: str) -> None:
        if self._trace is None:
            self.say("No sample is open: n draws one.")
            return
        if verdict == "UNDECIDED":
            await self._keep(verdict)
            return
        self._verdict = verdict
        self.set_focus(self.query_one(CritiqueBox))
        self._show_line()

    @on(CritiqueBox.Saved)
    async def _saved(self) -> None:
        if self._verdict:
            await self._keep(self._verdict)
        else:
            self.say("PASS or FAIL? Esc, then p or f.", problem=True)
            self.set_focus(self.query_one(CritiqueBox))

    @on(CritiqueBox.Left)
    async def _left(self) -> None:
        await self._keep_draft()
        self.set_focus(self.query_one("#repeat-text"))

    @on(CritiqueBox.Typed)
    def _typed(self) -> None:
        # Not put off by further typing: a kill loses no more than this long.
        if self._draft_timer is None:
            self._draft_timer = asyncio.get_running_loop().call_later(
                DRAFT_PAUSE_S, lambda: self.run_worker(self._keep_draft(), exclusive=False)
            )

    async def _keep_draft(self) -> None:
        self._cancel_draft_timer()
        if self._sample is not None and self._trace is not None:
            kept = self._verdict, self.query_one(CritiqueBox).text
            await self.desk.do(blind_repeats.keep_draft, self._sample.sample_id, self._trace.trace_id, *kept)

    def _cancel_draft_timer(self) -> None:
        if self._draft_timer is not None:
            self._draft_timer.cancel()
            self._draft_timer = None

    async def _keep(self, verdict: str) -> None:
        if self._sample is None or self._trace is None:
            return
        self._cancel_draft_timer()
        text, seconds = self.query_one(CritiqueBox).text.strip(), round(time.monotonic() - self._opened_at, 1)
        await self.desk.do(blind_repeats.decide, self._sample.sample_id, self._trace.trace_id, verdict, text, seconds)
        await self.load()

    async def action_undo(self) -> None:
        if self._sample is None:
            self.say("This sample is read to its end.")
            return
        taken = await self.desk.do(blind_repeats.take_back, self._sample.sample_id)
        self.say(f"Taken back: {one_line(taken)}" if taken else "Nothing left to undo.")
        await self.load()

    def action_scroll(self) -> None:
        self.query_one("#repeat-text", Reader).scroll_relative(y=8, animate=False)

    def action_new_sample(self) -> None:
        self.run_worker(self._draw(), exclusive=True, group="ask")

    async def _draw(self) -> None:
        if self._sample is not None:
            self.say("This sample is not read to its end; d leaves a case undecided.", problem=True)
            return
        text = "Cases that you have labelled are shown again, in random order and without your label. How many?"
        answer = await self.ask(AskDialog("Read again blind", text, str(DEFAULT_SAMPLE)))
        if not answer:
            return
        wanted = whole_number(answer)
        if not wanted:
            self.say(f"{answer!r} is no number of cases.", problem=True)
            return
        try:
            await self.desk.do(
                blind_repeats.draw, self.desk.criterion_id, self.desk.expert, wanted, random.randrange(2**31)
            )
        except EvaldeskError as error:
            self.say_error(error)
            return
        await self.load()
