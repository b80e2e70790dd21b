"""Import: a file from the disk, what was detected in it, a sample case, the field mapping, and in it comes."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Static

from engine import intake
from engine.errors import EvaldeskError
from engine.importing.mapping import Mapping, parse_map_options
from engine.importing.reading import Preview, preview
from engine.intake import IntakeOrder
from tui.presentation.import_view import how_drawn_lines, preview_lines, report_lines, report_sentence
from tui.presentation.lines import BLANK, Line, line, wrapped
from tui.screens.desk_screen import DeskScreen
from tui.widgets.literal import visible
from tui.widgets.painted import Reader

LABEL_FIELDS = (
    ("drawn", "how drawn", "random, by_cell, hand …"),
    ("criterion", "criterion", ""),
    ("expert", "who gave them", ""),
    ("values", "what the values mean", "1=FAIL,0=PASS"),
)
FIELDS = ("trace_id", "request", "context", "response", "facts", "origin", "label", "critique")
_QUICK_ROWS = 200

_ON_SCREEN = {
    "--drawn": ("#drawn", "Fill in 'how drawn' on the left, then Enter."),
    "--criterion": ("#criterion", "Fill in 'criterion' on the left, then Enter."),
    "--values": ("#values", "Fill in 'what the values mean' on the left, for example 1=FAIL,0=PASS, then Enter."),
    "--map": ("#field-request", "Fill in the fields on the left, then Enter."),
}
"""What a remedy that names an option of the command means on this screen: a field, and how to say it."""


class ImportScreen(DeskScreen):
    """Path on top, mapping to the left, what would come in to the right."""

    NAME = "Import"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape",
            "leave",
            "leave the field",
            tooltip="Leave the field, so that single keys work again",
            id="import.leave",
        ),
        Binding("enter", "take_in", "import", tooltip="Take the file in as shown", id="import.take_in"),
        Binding("e", "edit", "edit fields", tooltip="Go to the field mapping", id="import.edit"),
        Binding("o", "other", "other file", tooltip="Go to the path", id="import.other"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._preview: Preview | None = None
        self._path = ""
        self._has_labels = False

    def compose_body(self) -> ComposeResult:
        yield Input(placeholder="path of a CSV, JSONL, JSON or Parquet file, then Enter", id="path")
        with Horizontal(id="import-body"):
            with VerticalScroll(id="mapping", can_focus=False):
                # Above the rest: without them labels do not come in.
                with Vertical(id="label-fields"):
                    for name, title, hint in LABEL_FIELDS:
                        yield Static(Content(f"labels: {title}"), classes="field-name")
                        yield Input(placeholder=hint, id=name, compact=True, classes="field")
                for name in FIELDS:
                    yield Static(Content(name), classes="field-name")
                    yield Input(placeholder="–", id=f"field-{name}", compact=True, classes="field")
                yield Button("Look again", id="again", compact=True)
                yield Button("Import", id="take-in", compact=True, variant="primary")
            yield Reader(id="found")

    def _show_label_fields(self, shown: bool) -> None:
        self._has_labels = shown
        self.query_one("#label-fields").display = shown

    async def load(self) -> None:
        self._show_label_fields(self._has_labels)
        self.set_head("a file of traces, labels, or both")
        for box in self.query(Input):
            box.cursor_blink = False
        if not self.query_one("#criterion", Input).value:
            self.query_one("#criterion", Input).value = self.desk.criterion_id
        if self._preview is None:
            self.query_one("#found", Reader).show(_introduction)
            self.query_one("#path", Input).focus()

    @on(Input.Submitted, "#path")
    async def _path_given(self, event: Input.Submitted) -> None:
        self._path = event.value.strip()
        if self._path:
            await self._look(None)

    @on(Input.Submitted, ".field")
    @on(Button.Pressed, "#again")
    async def _look_again(self) -> None:
        try:
            mapping = self._mapping()
        except EvaldeskError as error:
            self._show_problem(error)
            return
        await self._look(mapping)

    @on(Button.Pressed, "#take-in")
    async def _take_in_pressed(self) -> None:
        await self.action_take_in()

    def action_leave(self) -> None:
        self.query_one("#found", Reader).focus()

    def action_edit(self) -> None:
        self.query_one("#drawn" if self._has_labels else "#field-request", Input).focus()

    def action_other(self) -> None:
        self.query_one("#path", Input).focus()

    async def action_take_in(self) -> None:
        if self._preview is None:
            return
        order = IntakeOrder(
            path=self._file,
            mapping=self._preview.mapping,
            kind=self._preview.kind,
            criterion_id=self.query_one("#criterion", Input).value.strip(),
            expert=self.query_one("#expert", Input).value.strip(),
            how_drawn=self.query_one("#drawn", Input).value.strip(),
            values=self._values,
        )
        try:
            content = await self.desk.later(intake.read_file, order)
            report = await self.desk.do(intake.keep, content)
        except EvaldeskError as error:
            self._show_problem(error)
            return
        self._preview = None
        self.query_one("#found", Reader).show(
            lambda width: [
                *report_lines(report, width),
                BLANK,
                line(("1", "key"), " goes to Label, ", ("o", "key"), " to another file."),
            ]
        )
        self.query_one("#found", Reader).focus()
        self.say(report_sentence(report), problem=bool(report.refused))

    async def _look(self, mapping: Mapping | None) -> None:
        path, values = self._file, self._values
        try:
            found = await self.desk.later(lambda: preview(path, mapping=mapping, values=values, limit=_QUICK_ROWS))
        except EvaldeskError as error:
            self._show_problem(error)
            return
        self._preview = found
        shown = found.mapping.as_dict()
        for name in FIELDS:
            value = shown.get(name)
            self.query_one(f"#field-{name}", Input).value = ",".join(value) if isinstance(value, list) else value or ""
        self._show_label_fields(bool(found.n_labels))
        self.query_one("#found", Reader).show(
            lambda width: [
                line(("Enter", "key"), " imports it, ", ("e", "key"), " edits the fields."),
                *preview_lines(found, width),
            ]
        )
        self.query_one("#found", Reader).focus()

    @property
    def _file(self) -> Path:
        return Path(self._path).expanduser()

    @property
    def _values(self) -> str | None:
        return self.query_one("#values", Input).value.strip() or None

    def _mapping(self) -> Mapping:
        options = [
            f"{name}={value}" for name in FIELDS if (value := self.query_one(f"#field-{name}", Input).value.strip())
        ]
        return parse_map_options(options)

    def _show_problem(self, error: EvaldeskError) -> None:
        text = str(error)
        for option, (field, remedy) in _ON_SCREEN.items():
            if option in f"{error.where} {error.remedy}":
                where = "" if error.where.startswith("--") else error.where
                text = str(EvaldeskError(error.what, where=where, kept=error.kept, remedy=remedy))
                self._show_label_fields(self._has_labels or not field.startswith("#field"))
                # The field may have come up just now.
                self.call_after_refresh(self.query_one(field, Input).focus)
                break
        drawn = how_drawn_lines if "'how drawn'" in text else lambda _: []
        self.query_one("#found", Reader).show(lambda width: [*wrapped(visible(text), width, "warn"), *drawn(width)])


def _introduction(width: int) -> list[Line]:
    return [
        *wrapped(
            "CSV (comma, semicolon, tab; UTF-8, UTF-16, cp1252), JSONL, JSON or Parquet. The form is found by content.",
            width,
        ),
        BLANK,
        *wrapped(
            "A trace is a request, what the system retrieved or did, and a response. Everything else becomes metadata.",
            width,
        ),
        *wrapped(
            "Rows that cannot be read are named one by one; the rest comes in. Importing a file twice adds nothing.",
            width,
        ),
    ]
