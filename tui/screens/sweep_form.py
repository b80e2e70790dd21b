"""A new sweep: prompts, dataset, scorer, items, seeds and k; what it would take stands there before it starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

import sample_data
from engine import requests
from engine.errors import EvaldeskError
from engine.store import settings
from engine.sweeping.scoring import SCORERS
from engine.sweeping.sweep import DEFAULT_SEEDS, MAX_TEMPERATURE, check_number
from tui.desk import Desk
from tui.presentation.lines import whole_number
from tui.presentation.sweep_view import order_text
from tui.widgets.literal import one_line

FIELDS = (
    ("prompts", "prompts", "a file of prompts, or several with ; between"),
    ("dataset", "dataset", "a file of items with a reference answer"),
    ("answer", "answer column", "found by itself"),
    ("scorer", "scorer", f"{SCORERS[0]}; or {', '.join(SCORERS[1:])}"),
    ("limit", "prompts at most", "all"),
    ("items", "items to draw from", "all"),
    ("seeds", "seeds", "5"),
    ("ks", "k", "50,100,200 where there are so many items"),
    ("max_tokens", "tokens a reply", "32; 512 for numbers"),
    ("temperature", "temperature", "0, greedy"),
    ("repeats", "repeats", "1; more need a temperature"),
    ("model", "model", "the embedded one"),
)
_TITLES = {name: title for name, title, _ in FIELDS}
_REMEMBERED = "sweep_form"


class SweepForm(ModalScreen[dict[str, Any] | None]):
    """Enter shows what the sweep would take; Enter on the same values starts it. Esc cancels."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "cancel", id="sweepform.cancel")]

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._desk = desk
        self._planned: dict[str, Any] | None = None

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog wide narrow-form"):
            yield Static(Content("A new sweep"), classes="dialog-title")
            for name, title, example in FIELDS:
                with Horizontal(classes="form-row"):
                    yield Static(Content(title), classes="form-name")
                    yield Input(placeholder=example, id=f"sweep-{name}", compact=True, classes="form-field")
            yield Static(id="sweep-plan")
            yield Static(
                Content("Tab next field    Enter shows what it takes, Enter again starts it    Esc cancels"),
                classes="dialog-hint",
            )

    async def on_mount(self) -> None:
        for box in self.query(Input):
            box.cursor_blink = False
        self.set_focus(self.query(Input).first())
        kept = await self._desk.do(settings.read, _REMEMBERED)
        values = json.loads(kept) if kept else demo_values() if self._desk.is_demo else {}
        for name, _, _ in FIELDS:
            box = self.query_one(f"#sweep-{name}", Input)
            if not box.value:
                box.value = str(values.get(name, ""))
                box.cursor_position = len(box.value)

    @on(Input.Submitted)
    async def _submitted(self) -> None:
        values = self._values()
        try:
            body = order_of(values)
            if body == self._planned:
                await self._desk.do(settings.write, _REMEMBERED, json.dumps(values))
                self.dismiss(body)
                return
            self._say("Reading …")
            planned = await self._desk.later(requests.carry_out, self._desk.store, body | {"dry_run": True})
        except EvaldeskError as error:
            self._planned = None
            self._say(str(error), problem=True)
            return
        if values == self._values():
            self._planned = body
            self._say(order_text(planned) + "\nEnter starts it.")

    @on(Input.Changed)
    def _changed(self) -> None:
        # What stands below is about the values as they were.
        self._planned = None
        self._say("")

    def _values(self) -> dict[str, str]:
        return {name: self.query_one(f"#sweep-{name}", Input).value.strip() for name, _, _ in FIELDS}

    def _say(self, text: str, *, problem: bool = False) -> None:
        plan = self.query_one("#sweep-plan", Static)
        plan.set_class(problem, "problem")
        plan.update(Content("\n".join(one_line(part) for part in text.split("\n"))))

    def action_cancel(self) -> None:
        self.dismiss(None)


def demo_values() -> dict[str, str]:
    """What the demo sweeps: eight prompts on sixty one-line reviews."""
    return {
        "prompts": str(sample_data.path("reviews_prompts.jsonl")), "dataset": str(sample_data.path("reviews_items.jsonl")),
        "scorer": "exact", "limit": "8", "items": "60", "seeds": "5", "ks": "20,40", "max_tokens": "24",
    }  # fmt: skip


def order_of(values: dict[str, str]) -> dict[str, Any]:
    """The request that these fields come to; raises EvaldeskError naming the field that cannot be read."""
    if not values["prompts"] or not values["dataset"]:
        raise EvaldeskError("a sweep needs a file of prompts and a dataset", remedy="Give both paths.")
    return {
        "kind": "sweep",
        "prompts": [str(Path(part.strip()).expanduser()) for part in values["prompts"].split(";") if part.strip()],
        "dataset": str(Path(values["dataset"]).expanduser()),
        "answer": values["answer"],
        "scorer": values["scorer"] or SCORERS[0],
        "limit": _number(values, "limit"),
        "items": _number(values, "items"),
        "seeds": list(range(1, (_number(values, "seeds") or len(DEFAULT_SEEDS)) + 1)),
        "ks": [_whole("ks", part) for part in values["ks"].replace(",", " ").split()],
        "max_tokens": _number(values, "max_tokens"),
        "temperature": _temperature(values["temperature"]),
        "repeats": _number(values, "repeats"),
        "model": values["model"],
    }


def _temperature(text: str) -> float:
    try:
        value = float(text or 0)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= MAX_TEMPERATURE:
        raise EvaldeskError(
            f"temperature: {text!r} is no number between 0 and {MAX_TEMPERATURE:g}",
            remedy="Leave it empty for 0, greedy.",
        )
    return value


def _number(values: dict[str, str], name: str) -> int:
    return _whole(name, values[name]) if values[name] else 0


def _whole(name: str, text: str) -> int:
    number = whole_number(text)
    if not number:
        raise EvaldeskError(
            f"{_TITLES[name]}: {text!r} is not a whole number from 1 on", remedy="Leave it empty for the default."
        )
    check_number(name, number, _TITLES[name])
    return number
