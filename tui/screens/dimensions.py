"""Dialogs about dimensions: which there are and what fills them, and which value the case at hand has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from engine.errors import EvaldeskError
from engine.judging.dimension import RULE_FORM, Dimension, Rule, parse_rule
from engine.store import dimensions
from engine.store.dimensions import Candidate, CaseValue
from tui.desk import Desk
from tui.presentation.coverage_view import candidate_row, case_value_row, dimension_row, rule_row
from tui.presentation.lines import Line, line, pad
from tui.screens.text_dialog import AskDialog, ConfirmDialog
from tui.widgets.literal import one_line, visible
from tui.widgets.painted import RowList


@dataclass(frozen=True)
class Entry:
    """A line of the list: a dimension, one of its rules, or a metadata field that could be a dimension."""

    dimension: Dimension | None = None
    rule: Rule | None = None
    candidate: Candidate | None = None

    @property
    def key(self) -> object:
        if self.dimension is None:
            return self.candidate.field if self.candidate else None
        return self.dimension.dimension_id, self.rule


class DimensionsDialog(ModalScreen[None]):
    """All dimensions in order with their rules, then the metadata fields that could be ones."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Close", id="dimensions.close"),
        Binding("n", "new", "New", tooltip="A new dimension, filled by rules or by hand", id="dimensions.new"),
        Binding("r", "rename", "Rename", tooltip="Another name for the dimension", id="dimensions.rename"),
        Binding("a", "add_rule", "Add a rule", tooltip="Let words or values give a value", id="dimensions.rule"),
        Binding("K", "move(-1)", "Up", tooltip="Dimension or rule before the other", id="dimensions.up"),
        Binding("J", "move(1)", "Down", tooltip="Dimension or rule behind the other", id="dimensions.down"),
        Binding("X", "remove", "Remove", tooltip="Take the dimension or the rule away", id="dimensions.remove"),
    ]

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._desk = desk
        self._candidates: list[Candidate] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide"):
            yield Static(Content("Dimensions: features by which requests differ"), classes="dialog-title")
            yield RowList[Entry](_entry_row, id="dimensions", key=lambda entry: entry.key)
            yield Static(
                Content(
                    "Enter takes a field in, edits a rule    n new    r rename    a add a rule    K J order    X remove    Esc closes"
                ),
                classes="dialog-hint",
            )

    async def on_mount(self) -> None:
        self.query_one(RowList).focus()
        await self._reload(look=True)

    async def _reload(self, *, look: bool = False) -> None:
        known = await self._desk.do(dimensions.everyone)
        if look:
            self._show(known)
            self._candidates = await self._desk.meanwhile(dimensions.candidates)
        self._show(known)

    def _show(self, known: list[Dimension]) -> None:
        entries = [
            entry
            for dimension in known
            for entry in (Entry(dimension), *(Entry(dimension, rule) for rule in dimension.rules))
        ]
        taken = {dimension.field for dimension in known}
        entries += [Entry(candidate=candidate) for candidate in self._candidates if candidate.field not in taken]
        self.query_one("#dimensions", RowList).set_rows(entries)

    @property
    def _current(self) -> Entry | None:
        current = self.query_one("#dimensions", RowList).current
        return current if isinstance(current, Entry) else None

    @on(RowList.Chosen, "#dimensions")
    def _chosen(self) -> None:
        entry = self._current
        if entry is None:
            return
        if entry.candidate is not None:
            self._do(self._take_in(entry.candidate))
        elif entry.dimension is not None and entry.rule is not None:
            self._do(self._edit_rule(entry.dimension, entry.rule))
        elif entry.dimension is not None:
            self._do(self._rename(entry.dimension))

    def action_new(self) -> None:
        self._do(self._new())

    def action_rename(self) -> None:
        if (entry := self._current) is not None and entry.dimension is not None:
            self._do(self._rename(entry.dimension))

    def action_add_rule(self) -> None:
        entry = self._current
        if entry is None or entry.dimension is None:
            self.notify("A rule fills a dimension: go to one first.", severity="warning", markup=False)
            return
        self._do(self._edit_rule(entry.dimension, None))

    def action_move(self, step: int) -> None:
        if (entry := self._current) is not None and entry.dimension is not None:
            self._do(self._move(entry.dimension, entry.rule, step))

    def action_remove(self) -> None:
        if (entry := self._current) is not None and entry.dimension is not None:
            self._do(self._remove(entry.dimension, entry.rule))

    def _do(self, work: object) -> None:
        self.run_worker(self._try(work), exclusive=False, group="edit")

    async def _try(self, work: object) -> None:
        try:
            await work  # type: ignore[misc]
            await self._reload()
        except EvaldeskError as error:
            self.notify(one_line(str(error)), severity="warning", timeout=8, markup=False)

    async def _take_in(self, candidate: Candidate) -> None:
        await self._desk.do(dimensions.add, candidate.field, candidate.field, self._desk.expert)

    async def _new(self) -> None:
        text = "A feature by which requests differ. A metadata field of this name fills it, else rules or hands do."
        if name := await self.app.push_screen_wait(AskDialog("New dimension", text)):
            await self._desk.do(dimensions.add, name, "", self._desk.expert)

    async def _rename(self, dimension: Dimension) -> None:
        ask = AskDialog("Rename", "Its values stay, whatever it is called.", dimension.name)
        if name := await self.app.push_screen_wait(ask):
            await self._desk.do(dimensions.rename, dimension.dimension_id, name, self._desk.expert)

    async def _edit_rule(self, dimension: Dimension, rule: Rule | None) -> None:
        text = (
            f"{RULE_FORM}. The first rule that matches counts, before metadata; a value set by hand counts before all."
        )
        typed = await self.app.push_screen_wait(
            AskDialog(f"A rule for {dimension.name}", text, rule.text if rule else "")
        )
        if not typed:
            return
        new = parse_rule(typed)
        rules = [new if one == rule else one for one in dimension.rules] if rule else [*dimension.rules, new]
        await self._desk.do(dimensions.set_rules, dimension.dimension_id, list(dict.fromkeys(rules)), self._desk.expert)

    async def _move(self, dimension: Dimension, rule: Rule | None, step: int) -> None:
        if rule is None:
            await self._desk.do(dimensions.move, dimension.dimension_id, step, self._desk.expert)
            return
        rules = list(dimension.rules)
        here = rules.index(rule)
        if 0 <= here + step < len(rules):
            rules.insert(here + step, rules.pop(here))
            await self._desk.do(dimensions.set_rules, dimension.dimension_id, rules, self._desk.expert)

    async def _remove(self, dimension: Dimension, rule: Rule | None) -> None:
        if rule is not None:
            rules = [one for one in dimension.rules if one != rule]
            await self._desk.do(dimensions.set_rules, dimension.dimension_id, rules, self._desk.expert)
            return
        text = "No screen shows it any more. Its field and the traces stay as they are; values set by hand stay in the workspace."
        if await self.app.push_screen_wait(ConfirmDialog(f"Remove {dimension.name}?", text)):
            await self._desk.do(dimensions.remove, dimension.dimension_id, self._desk.expert)


class CaseValuesDialog(ModalScreen[None]):
    """The dimensions of one case with their values; Enter sets one by hand, u takes the last one back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Close", id="values.close"),
        Binding(
            "u", "undo", "Undo", tooltip="Take back the last value set by hand, any number of times", id="values.undo"
        ),
    ]

    def __init__(self, desk: Desk, trace_id: str) -> None:
        super().__init__()
        self._desk = desk
        self._trace_id = trace_id

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content(visible(f"{self._trace_id}: its dimensions")), classes="dialog-title")
            yield RowList[CaseValue](case_value_row, id="values", key=lambda found: found.dimension.dimension_id)
            yield Static(
                Content("Enter sets a value by hand    u takes the last one back    Esc closes"), classes="dialog-hint"
            )

    async def on_mount(self) -> None:
        self.query_one(RowList).focus()
        await self._reload()

    async def _reload(self) -> None:
        self.query_one("#values", RowList).set_rows(await self._desk.do(dimensions.of_case, self._trace_id))

    @on(RowList.Chosen, "#values")
    def _chosen(self) -> None:
        current = self.query_one("#values", RowList).current
        if isinstance(current, CaseValue):
            self.run_worker(self._set(current), exclusive=True)

    async def _set(self, found: CaseValue) -> None:
        known = await self._desk.meanwhile(dimensions.values_of, found.dimension.dimension_id)
        value = await self.app.push_screen_wait(ValuePicker(found, known))
        if not value:
            return
        try:
            await self._desk.do(
                dimensions.set_by_hand, found.dimension.dimension_id, self._trace_id, value, self._desk.expert
            )
        except EvaldeskError as error:
            self.notify(one_line(str(error)), severity="warning", timeout=8, markup=False)
        await self._reload()

    async def action_undo(self) -> None:
        undone = await self._desk.do(dimensions.undo, self._trace_id, self._desk.expert)
        said = f"Taken back: {undone[0].name} {undone[1]}" if undone else "Nothing set by hand is left to undo."
        self.notify(one_line(said), timeout=3, markup=False)
        await self._reload()


class ValuePicker(ModalScreen[str]):
    """The values that cases have in a dimension; Enter takes one, n types another one. "" for none taken."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "cancel", "Cancel", id="value.cancel"),
        Binding("n", "new", "New", tooltip="Type a value", id="value.new"),
    ]

    def __init__(self, found: CaseValue, known: list[tuple[str, int]]) -> None:
        super().__init__()
        self._found = found
        self._known = known

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content(visible(f"{self._found.dimension.name}: which value?")), classes="dialog-title")
            yield RowList[tuple[str, int]](_value_row, id="known")
            yield Static(Content("Enter takes it    n types another one    Esc cancels"), classes="dialog-hint")

    def on_mount(self) -> None:
        has = (self._found.value or "").casefold()
        here = next((place for place, (value, _) in enumerate(self._known) if value.casefold() == has), 0)
        rows = self.query_one("#known", RowList)
        rows.set_rows(self._known, here)
        rows.focus()

    @on(RowList.Chosen, "#known")
    def _chosen(self, message: RowList.Chosen) -> None:
        self.dismiss(self._known[message.index][0])

    def action_cancel(self) -> None:
        self.dismiss("")

    def action_new(self) -> None:
        self.run_worker(self._new(), exclusive=True)

    async def _new(self) -> None:
        typed = await self.app.push_screen_wait(AskDialog(self._found.dimension.name, "The value of this case.", ""))
        if typed:
            self.dismiss(typed)


def _entry_row(entry: Entry, width: int) -> Line:
    if entry.candidate is not None:
        return candidate_row(entry.candidate, width)
    if entry.rule is not None:
        return rule_row(entry.rule.text)
    return dimension_row(entry.dimension, width) if entry.dimension is not None else ()


def _value_row(known: tuple[str, int], width: int) -> Line:
    value, count = known
    return line(pad(one_line(value), max(width - 12, 8)), (f"{count:>10,}", "dim"))
