"""Runs: progress, speed, cache hits, the log; pause, resume, cancel."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from engine import requests
from engine.change import Change
from engine.errors import EvaldeskError
from engine.runs import steering
from engine.runs.protocol import RunDir, RunState
from engine.runs.states import read_state
from engine.store import runs, waiting
from engine.store.runs import Run
from tui.presentation.lines import line, shortened
from tui.presentation.run_view import plan_text, run_lines, run_row, status_of
from tui.screens.desk_screen import DeskScreen
from tui.screens.text_dialog import ConfirmDialog
from tui.widgets.literal import one_line
from tui.widgets.painted import Reader, RowList

_LOG_BYTES = 4096
_LOG_LINES = 8


Row = tuple[Run, RunState | None, int]
"""A run, its live state, and how many of its requests have a result in the store."""


class RunsScreen(DeskScreen):
    """The queue and its history above, one run in full below."""

    NAME = "Runs"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "space",
            "pause",
            "pause/resume",
            tooltip="Pause a run that goes, resume one that is paused",
            id="runs.pause",
        ),
        Binding(
            "R,r",
            "resume",
            "resume",
            tooltip="Go on with a paused, failed, cancelled or interrupted run",
            id="runs.resume",
        ),
        Binding("X", "cancel", "cancel", tooltip="Stop the run; what it has generated is kept", id="runs.cancel"),
        Binding("F", "again", "failed again", tooltip="Ask again what failed in this run", id="runs.again"),
        Binding(
            "a", "open_figures", "figures", tooltip="The audit of this run, or its score matrix", id="runs.figures"
        ),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._runs: list[Run] = []
        self._read: dict[tuple[str, datetime | None], RunState] = {}
        self._settled: dict[str, int] = {}

    def compose_body(self) -> ComposeResult:
        yield RowList[Row](
            lambda row, width: run_row(row[0], row[1], width, row[2]), id="runs", key=lambda row: row[0].run_id
        )
        yield Reader(id="run")

    async def load(self) -> None:
        await self._reload()
        self.query_one("#runs", RowList).focus()

    async def on_change(self, change: Change) -> None:
        await self._reload()

    async def _reload(self) -> None:
        self._runs = await self.desk.do(runs.everyone)
        self._settled = await self.desk.do(waiting.settled)
        active = sum(run.is_active for run in self._runs)
        self.set_head(f"{len(self._runs)} run{'' if len(self._runs) == 1 else 's'}", f"{active} active")
        self.query_one("#runs", RowList).set_rows(
            [(run, self._state(run), self._settled.get(run.run_id, 0)) for run in self._runs]
        )
        await self._show()

    @on(RowList.Moved, "#runs")
    async def _moved(self) -> None:
        await self._show()

    @on(RowList.Chosen, "#runs")
    def _chosen(self) -> None:
        self.action_open_figures()

    @property
    def _current(self) -> Run | None:
        current = self.query_one("#runs", RowList).current
        return current[0] if isinstance(current, tuple) else None

    def _state(self, run: Run) -> RunState | None:
        # The last live state of a run that has ended may be older than its end.
        live = self.desk.states.get(run.run_id) if run.finished_at is None else None
        return live or self._read.get((run.run_id, run.finished_at))

    def _run_dir(self, run: Run) -> RunDir:
        return RunDir(self.desk.store.workspace.runs / run.run_id)

    async def _show(self) -> None:
        run = self._current
        reader = self.query_one("#run", Reader)
        if run is None:
            reader.show(
                lambda _: [
                    line(
                        "No runs yet. Measuring a judge starts one: ", ("2 Judge", "key"), ", then ", ("m", "key"), "."
                    )
                ]
            )
            return
        run_dir = self._run_dir(run)
        has_state = run_dir.state.exists() or run.status == "failed"  # of a deleted folder it says so
        known = self._state(run)
        # The store may know that a run has ended a moment before its worker has said so.
        if has_state and (known is None or (run.finished_at is not None and known.status.is_active)):
            self._read[run.run_id, run.finished_at] = await self.desk.later(read_state, run_dir)
        tail = await self.desk.later(log_tail, run_dir.log)
        state = self._state(run)
        why, settled = await self.waiting_text(run), self._settled.get(run.run_id, 0)
        reader.show(lambda width: run_lines(run, state, tail, width, why, settled), keep_place=True)

    async def action_pause(self) -> None:
        run = self._current
        if run is None:
            return
        if status_of(run, self._state(run)) in ("paused", "interrupted"):
            await self.action_resume()
        else:
            await self._control(run, "pause")

    async def action_resume(self) -> None:
        if self._current is not None:
            await self._control(self._current, "resume")

    async def action_again(self) -> None:
        run = self._current
        if run is None:
            return
        try:
            started = await self.desk.later(requests.carry_out, self.desk.store, {"kind": "again", "run": run.run_id})
        except EvaldeskError as error:
            self.say_error(error)
            return
        self.say(f"Started again: {plan_text(started['needed'], started['cached'], started['awaited'])}.")
        if self.is_current:
            await self._reload()

    def action_cancel(self) -> None:
        self.run_worker(self._cancel(), exclusive=True)

    async def _cancel(self) -> None:
        run = self._current
        if run is None:
            return
        text = "What it has generated stays and is never generated again. R goes on with it later."
        title = f"Cancel {shortened(one_line(run.title), 56)}?"
        if await self.ask(ConfirmDialog(title, f"Run {run.run_id}. {text}")):
            await self._control(run, "cancel")

    async def _control(self, run: Run, what: str) -> None:
        try:
            await self.desk.later(steering.steer, self.desk.store, run.run_id, what)
            self._read.pop((run.run_id, run.finished_at), None)
        except EvaldeskError as error:
            self.say_error(error)
            return
        self.say(
            {
                "pause": "Pausing: what is being generated is finished first.",
                "resume": "Queued again.",
                "cancel": "Cancelling.",
            }[what]
        )
        if self.is_current:
            await self._reload()

    def action_open_figures(self) -> None:
        run = self._current
        if run is not None and run.kind == "sweep":
            self.desk.sweep_run_id = run.run_id
            self.go("sweep")
        elif run is not None:
            self.desk.run_id = run.run_id
            self.desk.criterion_id = run.criterion_id
            self.go("audit")


def log_tail(path: Path) -> list[str]:
    """The last lines of a worker's log; none when there is no log."""
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - _LOG_BYTES, 0))
            return file.read().decode("utf-8", "replace").splitlines()[-_LOG_LINES:]
    except OSError:
        return []
