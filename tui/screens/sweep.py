"""Sweep: the score matrix of prompts under conditions, filling while the run goes, and the outputs behind each cell."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from engine import requests
from engine.change import Change
from engine.errors import EvaldeskError
from engine.store import outcomes, runs
from engine.store.runs import Run
from engine.sweeping import items, results
from engine.sweeping.results import OutcomeMatrix, SweepResults
from tui.presentation.lines import Line, line
from tui.presentation.run_view import bar, speed_text, status_of
from tui.presentation.sweep_view import (
    cell_width_for,
    condition_label,
    corner_text,
    heads,
    items_title,
    legend_lines,
    protocol_text,
    score_cells,
    score_readout,
)
from tui.screens.desk_screen import DeskScreen
from tui.widgets.heatmap import HeatGrid, Heatmap
from tui.widgets.literal import one_line
from tui.widgets.painted import Reader


class SweepScreen(DeskScreen):
    """One run of a sweep: its protocol, its progress, the matrix, the prompts by number."""

    NAME = "Sweep"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "new", "new sweep", tooltip="Choose prompts, dataset, seeds and k", id="sweep.new"),
        Binding(
            "o", "older", "other run", tooltip="The sweep before this one, then the newest again", id="sweep.older"
        ),
        Binding("r", "ranking", "ranking", tooltip="How far the ranking can be trusted", id="sweep.ranking"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._runs: list[Run] = []
        self._results: SweepResults | None = None
        self._known: OutcomeMatrix | None = None
        self._cut_off: dict[str, int] = {}
        self._waiting = ""

    def compose_body(self) -> ComposeResult:
        yield Static(id="sweep-run")
        yield Static(id="sweep-protocol")
        yield HeatGrid(id="matrix")
        yield Static(id="matrix-cell")
        yield Reader(id="legend")

    async def load(self) -> None:
        await self._find_runs()
        await self._measure()
        self.set_focus(
            self.query_one("#matrix", HeatGrid).heatmap if self._results else self.query_one("#legend", Reader)
        )

    async def on_change(self, change: Change) -> None:
        if change.store_changed or change.runs_changed:
            await self._find_runs()
        if self._results is None or change.runs_changed or self.desk.sweep_run_id in change.gained:
            await self._measure()

    async def _find_runs(self) -> None:
        self._runs = [run for run in await self.desk.do(runs.everyone) if run.kind == "sweep"]
        if self._runs and all(run.run_id != self.desk.sweep_run_id for run in self._runs):
            self.desk.sweep_run_id = self._runs[0].run_id

    async def _measure(self) -> None:
        if not self._runs:
            self.set_head("nothing swept yet")
            self.query_one("#legend", Reader).show(_nothing_yet)
            self.query_one("#matrix", HeatGrid).display = False
            return
        found, self._known = await self.desk.do(results.measure, self.desk.sweep_run_id, self._known)
        self._cut_off = await self.desk.do(outcomes.cut_off, found.run.run_id)
        self._waiting = await self.waiting_text(found.run)
        self._results = found
        self._show(found)

    def _show(self, found: SweepResults) -> None:
        grid = self.query_one("#matrix", HeatGrid)
        grid.display = True
        grid.styles.max_height = len(found.matrix.conditions) + 2
        place = next((i for i, run in enumerate(self._runs) if run.run_id == found.run.run_id), 0)
        self.set_head(found.sweep.name, f"sweep {len(self._runs) - place} of {len(self._runs)}")
        self.query_one("#sweep-run", Static).update(Content(self._run_text(found)), layout=False)
        self.query_one("#sweep-protocol", Static).update(Content(one_line(protocol_text(found.sweep))), layout=False)
        count = len(found.sweep.prompts)
        width = cell_width_for(count, self.app.size.width - 4)
        labels = [condition_label(condition.seed, condition.k) for condition in found.matrix.conditions]
        corner = line((corner_text("%" if width < 4 else "% right", width), "dim"))
        grid.show(score_cells(found, width), labels, heads(count, width), corner, width)
        self._show_cell(*grid.heatmap.cursor)
        cut_off = self._cut_off
        self.query_one("#legend", Reader).show(lambda room: legend_lines(found, room, cut_off), keep_place=True)

    def _run_text(self, found: SweepResults) -> str:
        state = self.desk.states.get(found.run.run_id)
        status = status_of(found.run, state)
        text = f"{status}  {found.done}/{found.needed} {bar(found.done, found.needed, 20)}"
        if state is not None and status == state.status and (speed := speed_text(state)):
            text += f"  {speed}"
        if self._waiting:
            text += f"  {self._waiting}"
        if state is not None and state.message:
            text += f"  {one_line(state.message)}"
        return text

    @on(Heatmap.Moved)
    def _moved(self, message: Heatmap.Moved) -> None:
        self._show_cell(message.row, message.column)

    def _show_cell(self, row: int, column: int) -> None:
        if self._results is not None:
            self.query_one("#matrix-cell", Static).update(
                Content(score_readout(self._results, row, column, self.app.size.width - 2)), layout=False
            )

    @on(Heatmap.Chosen)
    def _chosen(self, message: Heatmap.Chosen) -> None:
        self.run_worker(self._open_cell(message.row, message.column), exclusive=True, group="cell")

    async def _open_cell(self, row: int, column: int) -> None:
        from tui.screens.cell_items import CellItems

        found = self._results
        if found is None:
            return
        condition = found.matrix.conditions[row]
        prompt_id = found.sweep.prompts[column][0]
        listed = await self.desk.do(items.of_cell, found.run.run_id, condition.seed, condition.k, prompt_id)
        self.app.push_screen(CellItems(lambda width: items_title(found, row, column, listed, width), listed))

    def action_ranking(self) -> None:
        self.go("ranking")

    async def action_older(self) -> None:
        if not self._runs:
            return
        place = next((i for i, run in enumerate(self._runs) if run.run_id == self.desk.sweep_run_id), -1)
        self.desk.sweep_run_id = self._runs[(place + 1) % len(self._runs)].run_id
        await self._measure()

    def action_new(self) -> None:
        self.run_worker(self._new(), exclusive=True, group="new")

    async def _new(self) -> None:
        from tui.screens.sweep_form import SweepForm

        body = await self.ask(SweepForm(self.desk))
        if body is None:
            return
        try:
            started = await self.desk.later(requests.carry_out, self.desk.store, body)
        except EvaldeskError as error:
            self.say_error(error)
            return
        self.desk.sweep_run_id = started["run"]
        self._results = None
        await self._find_runs()
        await self._measure()
        self.set_focus(self.query_one("#matrix", HeatGrid).heatmap)
        if started["to_run"]:
            self.say("Started.")
        elif started["awaited"]:
            self.say(f"Nothing of its own to generate: {started['awaited']} are pending in another run.")
        else:
            self.say("Everything was cached: nothing had to be generated.")


def _nothing_yet(_: int) -> list[Line]:
    return [
        line("Nothing is swept yet."),
        line(("n", "key"), " chooses prompts and a dataset, shows what it would take, and starts."),
    ]
