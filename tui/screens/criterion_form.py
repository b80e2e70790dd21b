"""Writing a criterion: the question, when an answer passes, when it fails, the edge cases that were resolved."""

from __future__ import annotations

import re
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Checkbox, Input, Static

from engine.judging.criterion import Criterion
from tui.screens.text_dialog import ConfirmDialog

_FIELDS = (
    ("question", "Question: one, fixed, about the response", "Is every number supported?"),
    ("pass_when", "PASS when", "each number in the answer stands in the context"),
    ("fail_when", "FAIL when", "a number in the answer stands nowhere in the context"),
    (
        "edge_cases",
        "Edge cases with their why, separated by |",
        "A rounded number: PASS, because nobody acts on the difference.",
    ),
    ("criterion_id", "Short name: letters, digits, - and _", "numbers"),
    ("author", "Expert: the one person who decides", ""),
)


_LONGEST_NAME = 40
_SHORT_NAME = re.compile(rf"[\w-]{{1,{_LONGEST_NAME}}}")


class TickBox(Checkbox):
    """A checkbox that tells its state by its signs: ``[x]`` and ``[ ]``, without colours too."""

    BUTTON_LEFT, BUTTON_RIGHT = "[", "]"

    @property
    def _button(self) -> Content:
        return Content("[x]" if self.value else "[ ]")


class CriterionForm(ModalScreen[Criterion | None]):
    """A new criterion, or the next version of one; Enter goes to the next field, Esc cancels and asks where something was typed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "cancel", id="criterion.cancel")]

    def __init__(self, criterion: Criterion | None, expert: str) -> None:
        super().__init__()
        self._criterion = criterion
        self._expert = expert
        self._at_first: list[str | bool] = []

    def compose(self) -> ComposeResult:
        old = self._criterion
        values = {
            "question": old.question, "pass_when": old.pass_when, "fail_when": old.fail_when,
            "edge_cases": " | ".join(old.edge_cases), "criterion_id": old.criterion_id, "author": old.author,
        } if old else {"author": self._expert}  # fmt: skip
        with VerticalScroll(classes="dialog wide form"):
            yield Static(
                Content("Edit the criterion: a new version" if old else "A new criterion"), classes="dialog-title"
            )
            for name, title, example in _FIELDS:
                yield Static(Content(title), classes="field-name")
                yield Input(
                    values.get(name, ""),
                    placeholder=example,
                    id=name,
                    compact=True,
                    classes="field",
                    disabled=bool(old) and name == "criterion_id",
                )
            yield TickBox(
                "the judge has to quote a passage of the context",
                value=bool(old and old.quote_required),
                id="quote",
                compact=True,
            )
            yield Button("Save", id="save", variant="primary", compact=True)
            yield Static(
                Content("Tab or Enter next field    Enter on Save keeps it    Esc cancels"), classes="dialog-hint"
            )

    def on_mount(self) -> None:
        for box in self.query(Input):
            box.cursor_blink = False
        self._at_first = self._given()
        self.query(Input).first().focus()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.focus_next()

    @on(Button.Pressed, "#save")
    def _save(self) -> None:
        value = {name: self.query_one(f"#{name}", Input).value.strip() for name, _, _ in _FIELDS}
        missing = [name for name in ("question", "pass_when", "fail_when") if not value[name]]
        if missing:
            self.notify("A criterion needs its question and both definitions.", severity="warning", markup=False)
            self.query_one(f"#{missing[0]}", Input).focus()
            return
        if not self._criterion and value["criterion_id"] and not _SHORT_NAME.fullmatch(value["criterion_id"]):
            self.notify(
                f"A short name has letters, digits, - and _ only, at most {_LONGEST_NAME}.",
                severity="warning",
                markup=False,
            )
            self.query_one("#criterion_id", Input).focus()
            return
        old = self._criterion
        name = value["criterion_id"] or re.sub(r"\W+", "-", value["question"].lower()).strip("-")[:24]
        self.dismiss(
            Criterion(
                criterion_id=old.criterion_id if old else name,
                question=value["question"],
                task=old.task
                if old and old.question == value["question"]
                else f"You check one thing about a response: {value['question']}",
                pass_when=value["pass_when"],
                fail_when=value["fail_when"],
                edge_cases=tuple(case.strip() for case in value["edge_cases"].split("|") if case.strip()),
                quote_required=self.query_one("#quote", TickBox).value,
                facts=old.facts if old else (),
                help_critiques=old.help_critiques if old else (),
                author=value["author"],
            )
        )

    def action_cancel(self) -> None:
        if self._given() == self._at_first:
            self.dismiss(None)
        else:
            self.run_worker(self._ask_to_leave(), exclusive=True)

    async def _ask_to_leave(self) -> None:
        text = "What was typed here is not kept. Esc goes back to it."
        if await self.app.push_screen_wait(ConfirmDialog("Leave without saving?", text)):
            self.dismiss(None)

    def _given(self) -> list[str | bool]:
        return [*(box.value for box in self.query(Input)), self.query_one("#quote", TickBox).value]
