"""Audit: the confusion table of a measured judge, filling while the run goes, and every disagreement."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from engine.change import Change
from engine.measuring import audit
from engine.measuring.audit import Audit, Disagreement
from engine.store import models, triage
from engine.store.runs import Run
from tui.presentation.audit_view import audit_lines, disagreement_lines, disagreement_row, drawer_counts
from tui.presentation.lines import Line, line, plain
from tui.presentation.run_view import bar, speed_text, status_of
from tui.screens.desk_screen import DeskScreen
from tui.widgets.literal import one_line
from tui.widgets.painted import Reader, RowList

COMPACT_BELOW = 45
"""Rows of a terminal under which blank lines cost more than they help."""

MIN_FIGURES = 8
"""Rows that the sentence, the table, TPR and TNR take."""

EVEN, REASONS, FIGURES = "even", "reasons", "figures"
ROOMS = (EVEN, REASONS, FIGURES)
"""What ``t`` gives the room to, in turn."""


class AuditScreen(DeskScreen):
    """Figures above, disagreements with the judge's reason beside the expert's critique below."""

    NAME = "Audit"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "w",
            "drawer('label')",
            "wrong label",
            tooltip="Into the drawer: the label was wrong (l relabels); again: unsorted",
            id="audit.label",
        ),
        Binding(
            "p",
            "drawer('prompt')",
            "prompt",
            tooltip="Into the drawer: criterion or examples are unclear; again: unsorted",
            id="audit.prompt",
        ),
        Binding(
            "m",
            "drawer('model')",
            "model",
            tooltip="Into the drawer: the model cannot do it; again: unsorted",
            id="audit.model",
        ),
        Binding("l", "relabel", "relabel", tooltip="Open the case to give it another label", id="audit.relabel"),
        Binding("left", "older", "older run", show=False, tooltip="An earlier run of this criterion", id="audit.older"),
        Binding("right", "newer", "newer run", show=False, tooltip="A later run of this criterion", id="audit.newer"),
        Binding("space", "page('#reasons')", "reasons", tooltip="Scroll critique and reason", id="audit.reasons"),
        Binding(
            "g", "page('#figures')", "figures", tooltip="Scroll the figures: precision to gate", id="audit.figures"
        ),
        Binding(
            "t",
            "give_room",
            "room",
            tooltip="More room for the reasons, then for the figures, then as before",
            id="audit.size",
        ),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._runs: list[Run] = []
        self._audit: Audit | None = None
        self._model_name = ""
        self._waiting = ""
        self._room = EVEN

    def compose_body(self) -> ComposeResult:
        yield Static(id="audit-run")
        yield Reader(id="figures")
        yield Static(id="drawers")
        yield RowList[Disagreement](disagreement_row, id="disagreements")
        yield Reader(id="reasons")

    async def load(self) -> None:
        self._runs = await self.desk.do(audit.measured_runs, self.desk.criterion_id)
        if self._runs and all(run.run_id != self.desk.run_id for run in self._runs):
            self.desk.run_id = self._runs[0].run_id
        await self._measure()
        self.query_one("#disagreements", RowList).focus()

    async def on_change(self, change: Change) -> None:
        if change.store_changed or change.runs_changed:
            self._runs = await self.desk.do(audit.measured_runs, self.desk.criterion_id)
        if self._audit is None or change.store_changed or change.runs_changed or self.desk.run_id in change.gained:
            await self._measure()

    async def _measure(self) -> None:
        if not self._runs:
            self._audit = None
            self.set_head("nothing measured yet")
            self.query_one("#figures", Reader).show(
                lambda _: [
                    line("Nothing is measured yet. Go to ", ("2 Judge", "key"), " and press ", ("m", "key"), ".")
                ]
            )
            for name in ("#audit-run", "#drawers"):
                self.query_one(name, Static).update("")
            self._share_rows()
            return
        result = await self.desk.do(audit.audit, self.desk.run_id)
        model = await self.desk.do(models.find, result.judge.model_id)
        self._model_name = model.name if model else result.judge.model_id
        self._audit = result
        self._waiting = await self.waiting_text(result.run)
        self._show()

    def _show(self) -> None:
        result = self._audit
        if result is None:
            return
        place = next((i for i, run in enumerate(self._runs) if run.run_id == result.run.run_id), 0)
        number = len(self._runs) - place
        self.set_head(
            f"{result.run.criterion_id} judge v{result.judge.number} · {self._model_name}",
            f"sealed pile, round {number} of {len(self._runs)}",
        )
        self.query_one("#audit-run", Static).update(Content(plain([self._run_line(result)])), layout=False)
        self.query_one("#figures", Reader).show(
            lambda width: audit_lines(result, width, compact=self.app.size.height < COMPACT_BELOW), keep_place=True
        )
        self._share_rows()
        self.query_one("#drawers", Static).update(Content(plain([drawer_counts(result)])), layout=False)
        rows = self.query_one("#disagreements", RowList)
        here = rows.current.trace_id if isinstance(rows.current, Disagreement) else ""
        index = next((i for i, d in enumerate(result.disagreements) if d.trace_id == here), None)
        rows.set_rows(result.disagreements, index)
        self._show_reasons()

    def _run_line(self, result: Audit) -> Line:
        state = self.desk.states.get(result.run.run_id)
        status = status_of(result.run, state)
        judged = result.total - result.pending
        text = f"{status}  {judged}/{result.total} {bar(judged, result.total, 20)}"
        if state is not None and status == state.status and (speed := speed_text(state)):
            text += f"  {speed}"
        if self._waiting:
            return line(f"{status}  {judged}/{result.total}  {self._waiting}")
        if state is not None and state.message:
            text += f"  {one_line(state.message)}"
        return line(text)

    @on(RowList.Moved, "#disagreements")
    def _moved(self) -> None:
        self._show_reasons()

    @on(RowList.Chosen, "#disagreements")
    def _chosen(self) -> None:
        self.action_relabel()

    def _show_reasons(self) -> None:
        item = self._current
        reader = self.query_one("#reasons", Reader)
        if item is None:
            reader.show(
                lambda _: [line(("No disagreements.", "dim"))] if self._audit and not self._audit.pending else []
            )
        else:
            reader.show(lambda width: disagreement_lines(item, width))

    @property
    def _current(self) -> Disagreement | None:
        current = self.query_one("#disagreements", RowList).current
        return current if isinstance(current, Disagreement) else None

    async def action_drawer(self, drawer: str) -> None:
        item = self._current
        if item is None or self._audit is None:
            return
        is_back = item.drawer == drawer
        await self.desk.do(triage.sort_into, self._audit.run.run_id, item.trace_id, "none" if is_back else drawer)
        await self._measure()
        if is_back:
            # The cursor stays, so that one sees which one it was.
            self.say(f"{item.trace_id} is unsorted again.")
        else:
            self.query_one("#disagreements", RowList).action_move(1)

    def action_relabel(self) -> None:
        if self._current is not None:
            self.desk.trace_id = self._current.trace_id
            self.go("label")

    async def action_older(self) -> None:
        await self._go(1)

    async def action_newer(self) -> None:
        await self._go(-1)

    async def _go(self, step: int) -> None:
        place = next((i for i, run in enumerate(self._runs) if run.run_id == self.desk.run_id), 0) + step
        if 0 <= place < len(self._runs):
            self.desk.run_id = self._runs[place].run_id
            await self._measure()

    def action_give_room(self) -> None:
        self._room = ROOMS[(ROOMS.index(self._room) + 1) % len(ROOMS)]
        self._share_rows()

    def action_page(self, selector: str) -> None:
        """A page on, and from the end to the beginning again."""
        reader = self.query_one(selector, Reader)
        if reader.scroll_offset.y >= reader.max_scroll_y:
            reader.scroll_home(animate=False)
        else:
            reader.scroll_relative(y=max(reader.size.height - 1, 1), animate=False)

    def on_resize(self) -> None:
        self._share_rows()

    def _share_rows(self) -> None:
        """The figures take what they need, at most about half; the reasons take more of the rest than their list."""
        figures, reasons = self.query_one("#figures", Reader), self.query_one("#reasons", Reader)
        rows = self.query_one("#disagreements", RowList)
        free = self.app.size.height - len(("head", "run", "drawers", "footer"))
        figures.display = self._room != REASONS
        reasons.display = self._room != FIGURES
        needed = min(len(figures.lines), max(free // 2 - 3, MIN_FIGURES))
        figures.styles.height = "1fr" if self._room == FIGURES or self._audit is None else needed or MIN_FIGURES
        rows.styles.height = "2fr" if self._room != FIGURES and free >= MIN_FIGURES * 4 else 3
        reasons.styles.height = "3fr"
