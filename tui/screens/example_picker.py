"""Choosing the examples of a new judge version, out of the build pile only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from engine.judging.judge import MAX_EXAMPLES
from engine.store.piles import LabelledCase
from tui.presentation.judge_view import example_lines, example_row
from tui.presentation.lines import Line, wrapped
from tui.widgets.literal import visible
from tui.widgets.painted import Reader, RowList


@dataclass(frozen=True)
class NewVersion:
    """What was chosen: example ids in order, the task sentence, the stated change."""

    examples: tuple[str, ...]
    task: str
    change: str


class ExamplePicker(ModalScreen[NewVersion | None]):
    """The build pile with its critiques, the chosen ones first; space chooses, Enter builds the version."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "choose", "choose", id="examples.choose"),
        Binding("enter", "build", "build", id="examples.build"),
        Binding("escape", "cancel", "cancel", id="examples.cancel"),
    ]

    def __init__(self, cases: list[LabelledCase], chosen: list[str], task: str, *, first: bool) -> None:
        super().__init__()
        self._chosen = [trace_id for trace_id in chosen if any(c.trace.trace_id == trace_id for c in cases)]
        self._cases = sorted(cases, key=lambda case: case.trace.trace_id not in self._chosen)
        self._task_sentence = task
        self._first = first

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide"):
            yield Static(
                Content("New version: task, examples from the build pile, and the one change"), classes="dialog-title"
            )
            with Horizontal(classes="form-row"):
                yield Static(Content("task sentence"), classes="form-name")
                yield Input(self._task_sentence, id="task", compact=True, classes="form-field")
            yield RowList[LabelledCase](
                lambda case, _: example_row(case, case.trace.trace_id in self._chosen), id="examples"
            )
            yield Reader(id="example-case")
            with Horizontal(classes="form-row"):
                yield Static(Content("what you change"), classes="form-name")
                yield Input(
                    "first version" if self._first else "",
                    placeholder="the one thing, and why",
                    id="change",
                    compact=True,
                    classes="form-field",
                )
            yield Static(id="picked", classes="dialog-hint")

    def on_mount(self) -> None:
        for box in self.query(Input):
            box.cursor_blink = False
        rows = self.query_one("#examples", RowList)
        rows.set_rows(self._cases)
        rows.focus()
        self._show()

    @on(RowList.Moved, "#examples")
    def _moved(self) -> None:
        self._show()

    @on(RowList.Chosen, "#examples")
    def _row_chosen(self) -> None:
        self.action_build()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.action_build()

    def action_choose(self) -> None:
        case = self.query_one("#examples", RowList).current
        if not isinstance(case, LabelledCase):
            return
        trace_id = case.trace.trace_id
        if trace_id in self._chosen:
            self._chosen.remove(trace_id)
        elif len(self._chosen) < MAX_EXAMPLES:
            self._chosen.append(trace_id)
        else:
            self.notify(
                f"At most {MAX_EXAMPLES} examples: space on a chosen one takes it out.",
                severity="warning",
                markup=False,
            )
        self.query_one("#examples", RowList).refresh()
        self._show()

    def action_build(self) -> None:
        verdicts = {str(c.label.mark) for c in self._cases if c.trace.trace_id in self._chosen}
        if len(self._chosen) < 2 or verdicts != {"PASS", "FAIL"}:
            self.notify(
                "Choose two or three examples, at least one PASS and one FAIL.", severity="warning", markup=False
            )
            return
        task, change = self.query_one("#task", Input).value.strip(), self.query_one("#change", Input).value.strip()
        if not change:
            self.notify("Say in a few words what you change: one thing a round.", severity="warning", markup=False)
            self.query_one("#change", Input).focus()
            return
        self.dismiss(NewVersion(tuple(self._chosen), task or self._task_sentence, change))

    def action_cancel(self) -> None:
        self.dismiss(None)

    def _show(self) -> None:
        case = self.query_one("#examples", RowList).current
        if isinstance(case, LabelledCase):

            def layout(width: int) -> list[Line]:
                return example_lines(case, width)

            self.query_one("#example-case", Reader).show(layout)
        else:
            self.query_one("#example-case", Reader).show(
                lambda width: wrapped(
                    "The build pile has no labelled case with a critique: put cases into the build pile with x on Label.",
                    width,
                    "warn",
                )
            )
        chosen = ", ".join(self._chosen) or "none"
        self.query_one("#picked", Static).update(
            Content(visible(f"chosen: {chosen}    space chooses   Tab next field   Enter builds   Esc cancels"))
        )
