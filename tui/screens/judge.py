"""Judge: the versions of a criterion's judge, their four parts, and the way to a measurement."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from engine.change import Change
from engine.errors import EvaldeskError
from engine.judging.judge import Judge
from engine.judging.trace import Trace
from engine.measuring import audit, building, rounds
from engine.requests import embedded_model
from engine.runs.estimate import estimate_json
from engine.store import criteria, figures, judges, models, piles
from engine.store.runs import Run
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace
from tui.presentation.judge_view import Version, parts_lines, rendered_lines, version_row
from tui.presentation.lines import BLANK, Line, line, wrapped
from tui.presentation.run_view import estimate_text, plan_text
from tui.screens.desk_screen import DeskScreen
from tui.screens.example_picker import ExamplePicker
from tui.screens.text_dialog import ConfirmDialog
from tui.widgets.painted import Reader, RowList


class VersionList(RowList[Version]):
    """The versions; a page up or down is one of the text below, which is what is long here."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(b for b in RowList.BINDINGS if not str(getattr(b, "key", "")).startswith("page")),
        Binding("pagedown", "screen.scroll(1)", "Page down", show=False, id="versions.page_down"),
        Binding("pageup", "screen.scroll(-1)", "Page up", show=False, id="versions.page_up"),
    ]


class JudgeScreen(DeskScreen):
    """Versions above, the chosen one's parts or its rendered prompt below."""

    NAME = "Judge"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "v", "new_version", "new version", tooltip="Build a version from criterion and critiques", id="judge.new"
        ),
        Binding("m", "measure", "measure", tooltip="Measure this version on the sealed pile", id="judge.measure"),
        Binding(
            "r",
            "rendered",
            "rendered prompt",
            tooltip="The prompt as the model gets it, for one case of the build pile",
            id="judge.rendered",
        ),
        Binding(
            "tab",
            "other_case",
            "next build case",
            show=False,
            tooltip="Render another case of the build pile",
            id="judge.case",
        ),
        Binding("space", "scroll(1)", "scroll", show=False, tooltip="Scroll the text", id="judge.scroll"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._versions: list[Version] = []
        self._model_names: dict[str, str] = {}
        self._build: list[Trace] = []
        self._rendered = False
        self._case_index = 0

    def compose_body(self) -> ComposeResult:
        yield VersionList(lambda row, _: version_row(row), id="versions", key=lambda version: version.judge.judge_id)
        yield Reader(id="parts")

    async def load(self) -> None:
        criterion = await self.desk.do(criteria.find, self.desk.criterion_id)
        self.set_head(criterion.question if criterion else "no criterion yet")
        before = len(self._versions)
        self._versions, self._model_names = await self.desk.do(_versions, self.desk.criterion_id)
        self._build = [case.trace for case in await self.desk.do(piles.build_cases, self.desk.criterion_id)]
        versions = self.query_one("#versions", RowList)
        versions.set_rows(self._versions, len(self._versions) - 1 if len(self._versions) != before else None)
        versions.styles.height = max(min(len(self._versions), 6), 1)
        self._show()
        versions.focus()

    async def on_change(self, change: Change) -> None:
        self._versions, self._model_names = await self.desk.do(_versions, self.desk.criterion_id)
        self.query_one("#versions", RowList).set_rows(self._versions)

    @on(RowList.Moved, "#versions")
    def _moved(self) -> None:
        self._show()

    @on(RowList.Chosen, "#versions")
    async def _chosen(self) -> None:
        await self.action_measure()

    @property
    def _judge(self) -> Judge | None:
        current = self.query_one("#versions", RowList).current
        return current.judge if isinstance(current, Version) else None

    def _show(self) -> None:
        judge = self._judge
        reader = self.query_one("#parts", Reader)
        if judge is None:
            reader.show(_nothing_yet)
            return
        if self._rendered and self._build:
            shown = {example.trace_id for example in judge.examples}
            # First a case that is asked about and not shown already.
            order = sorted(self._build, key=lambda trace: trace.trace_id in shown)
            trace = order[self._case_index % len(order)]
            reader.show(lambda width: rendered_lines(judge, trace, width))
            return
        parent = next((other.judge for other in self._versions if other.judge.judge_id == judge.parent_id), None)
        name = self._model_names.get(judge.model_id, judge.model_id)
        reader.show(lambda width: parts_lines(judge, parent, name, width))

    def action_rendered(self) -> None:
        if self._judge is not None and not self._build:
            self.say("The build pile is empty, so there is no case to render.", problem=True)
            return
        self._rendered = not self._rendered
        self._show()

    def action_other_case(self) -> None:
        self._case_index += 1
        self._show()

    def action_scroll(self, pages: int) -> None:
        reader = self.query_one("#parts", Reader)
        reader.scroll_relative(y=pages * max(reader.size.height - 2, 1), animate=False)

    def action_new_version(self) -> None:
        self.run_worker(self._new_version(), exclusive=True)

    async def _new_version(self) -> None:
        parent = self._judge
        try:
            criterion = await self.desk.do(criteria.get, self.desk.criterion_id)
            cases = await self.desk.do(piles.build_cases, self.desk.criterion_id)
            proposed = await self.desk.do(building.propose_examples, self.desk.criterion_id)
            model = await self.desk.later(embedded_model)
        except EvaldeskError as error:
            self.say_error(error)
            return
        chosen = [e.trace_id for e in parent.examples] if parent else [case.trace.trace_id for case in proposed]
        answer = await self.ask(
            ExamplePicker(cases, chosen, parent.task if parent else criterion.task, first=parent is None)
        )
        if answer is None:
            return
        try:
            judge = await self.desk.do(
                building.build, self.desk.criterion_id, model, answer.examples, task=answer.task, change=answer.change,
                parent_id=parent.judge_id if parent else "",
            )  # fmt: skip
        except EvaldeskError as error:
            self.say_error(error)
            return
        self.say(f"Version v{judge.number} is ready: r shows the rendered prompt, m measures it.")
        await self.load()

    async def action_measure(self) -> None:
        self.run_worker(self._measure(), exclusive=True)

    async def _measure(self) -> None:
        judge = self._judge
        if judge is None:
            self.say("There is no version yet: v builds one.", problem=True)
            return
        try:
            plan = await self.desk.do(rounds.plan, judge.judge_id)
            spent = await self.desk.do(piles.rounds_measured, judge.criterion_id)
            takes = await self.desk.do(_estimated, self.desk.store.workspace, judge.model_id, plan.to_run)
        except EvaldeskError as error:
            self.say_error(error)
            return
        text = (
            f"{plan_text(plan.needed, plan.cached, plan.awaited)}{estimate_text(takes | {'to_run': plan.to_run})}.\n\n"
            f"{spent} round{'s' if spent != 1 else ''} measured on this sealed pile so far. Each one spends some of its secrecy, "
            "and after the first nothing leaves the pile any more."
        )
        if not await self.ask(ConfirmDialog(f"Measure v{judge.number} on the sealed pile?", text)):
            return
        try:
            run = await self.desk.do(rounds.start, self.desk.store.workspace, judge.judge_id)
        except EvaldeskError as error:
            self.say_error(error)
            return
        self.desk.run_id = run.run_id
        self.go("audit")


def _versions(tx: Transaction, criterion_id: str) -> tuple[list[Version], dict[str, str]]:
    found: list[Version] = []
    names: dict[str, str] = {}
    newest: dict[str, Run] = {}
    for run in audit.measured_runs(tx, criterion_id):
        newest.setdefault(run.judge_id, run)
    for judge in judges.versions(tx, criterion_id):
        measured = newest.get(judge.judge_id)
        found.append(Version(judge, *figures.count(tx, measured.run_id)) if measured else Version(judge))
        model = models.find(tx, judge.model_id)
        names[judge.model_id] = model.name if model else judge.model_id
    return found, names


def _estimated(tx: Transaction, workspace: Workspace, model_id: str, to_run: int) -> dict[str, Any]:
    return estimate_json(tx, workspace, models.get(tx, model_id), "judge", to_run)


def _nothing_yet(width: int) -> list[Line]:
    return [
        line(("No judge yet.", "strong")),
        BLANK,
        *wrapped(
            "A judge is built from the criterion and two or three of your critiques, word for word, from the build pile. "
            "It never sees a sealed case before it is measured on it.",
            width,
        ),
        BLANK,
        line(("v", "key"), " builds the first version."),
    ]
