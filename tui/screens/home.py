"""Home: where each criterion stands, and the next thing to do."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from engine.change import Change
from engine.errors import EvaldeskError
from engine.judging.criterion import Criterion
from engine.measuring.overview import Standing, standings
from engine.store import code_witness, criteria, piles, runs, settings, waiting, witness
from engine.store.store import Store
from engine.sweeping.overview import SweepStanding, sweep_standings
from tui.presentation.home_view import standing_lines
from tui.presentation.lines import BLANK, Line, counted, line, pad, whole_number, wrapped
from tui.presentation.run_view import run_row
from tui.presentation.sweep_view import standing_line
from tui.screens.criterion_form import CriterionForm
from tui.screens.desk_screen import DeskScreen
from tui.screens.text_dialog import AskDialog
from tui.widgets.literal import one_line
from tui.widgets.painted import Reader, RowList

DEFAULT_DRAW = 100


class HomeScreen(DeskScreen):
    """Each criterion's place in the seven steps, live runs, the next thing."""

    NAME = "Home"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "enter", "next_thing", "do the next thing", tooltip="Go to where the next step is done", id="home.next"
        ),
        Binding(
            "s",
            "seal",
            "draw sealed",
            tooltip="Draw sealed cases at random, before anything is labelled",
            id="home.seal",
        ),
        Binding(
            "r",
            "restore",
            "restore labels",
            show=False,
            tooltip="Take back what labels.jsonl and codes.jsonl hold and the database lacks",
            id="home.restore",
        ),
        Binding(
            "c",
            "new_criterion",
            "new criterion",
            tooltip="Write a criterion: one question with its PASS and FAIL",
            id="home.criterion",
        ),
        Binding("v", "edit_criterion", "edit", tooltip="A new version of this criterion", id="home.edit"),
        Binding(
            "b",
            "repeat",
            "read again",
            show=False,
            tooltip="Blind repeats: how far you agree with yourself",
            id="home.repeat",
        ),
        Binding("e", "expert", "expert's name", tooltip="Who gives the labels", id="home.expert"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._standings: list[Standing] = []

    def compose_body(self) -> ComposeResult:
        yield RowList[Standing](_criterion_row, id="criteria", key=lambda standing: standing.criterion.criterion_id)
        yield Reader(id="standing")
        yield Static(id="home-notice")

    async def load(self) -> None:
        self._standings = await self.desk.do(standings)
        index = next(
            (i for i, s in enumerate(self._standings) if s.criterion.criterion_id == self.desk.criterion_id), 0
        )
        criteria_list = self.query_one("#criteria", RowList)
        criteria_list.set_rows(self._standings, index)
        criteria_list.styles.height = max(len(self._standings), 1)
        await self._show()
        notice = self.query_one("#home-notice", Static)
        text = _witness_notice(self.desk.store)
        notice.display = bool(text)
        notice.update(Content(text))
        criteria_list.focus()

    async def on_change(self, change: Change) -> None:
        self._standings = await self.desk.do(standings)
        self.query_one("#criteria", RowList).set_rows(self._standings)
        await self._show()

    @on(RowList.Moved, "#criteria")
    async def _moved(self) -> None:
        if self._current is not None:
            await self.desk.do(settings.write, "criterion", self._current.criterion.criterion_id)
            self.desk.criterion_id = self._current.criterion.criterion_id
        await self._show()

    @on(RowList.Chosen, "#criteria")
    async def _chosen(self) -> None:
        await self.action_next_thing()

    @property
    def _current(self) -> Standing | None:
        current = self.query_one("#criteria", RowList).current
        return current if isinstance(current, Standing) else None

    async def _show(self) -> None:
        standing = self._current
        live = [run for run in await self.desk.do(runs.everyone) if run.finished_at is None][:4]
        swept = await self.desk.do(sweep_standings)
        states, settled = self.desk.states, await self.desk.do(waiting.settled)
        reasons = [await self.waiting_text(run) for run in live]
        self.set_head(str(self.desk.store.workspace.path), f"expert {self.desk.expert}" if self.desk.expert else "")

        def layout(width: int) -> list[Line]:
            if standing is None:
                return [
                    line("Nothing here yet. ", ("c", "key"), " writes a criterion: one question about a response."),
                    line("Then ", ("i", "key"), " imports traces."),
                    line("Prompts are swept over a dataset on ", ("5 Sweep", "key"), "."),
                    *_sweep_lines(swept, width),
                ]
            lines = [line((one_line(standing.criterion.question), "strong")), BLANK, *standing_lines(standing, width)]
            if live:
                lines += [BLANK, line(("RUNS", "key"))]
            for run, why in zip(live, reasons, strict=True):
                row = run_row(run, states.get(run.run_id), width, settled.get(run.run_id, 0))
                lines += [row, *(wrapped(why, width, "warn") if why else [])]
            return lines + _sweep_lines(swept, width)

        self.query_one("#standing", Reader).show(layout, keep_place=True)

    async def action_next_thing(self) -> None:
        if self._current is None:
            self.action_new_criterion()
            return
        self.desk.criterion_id = self._current.criterion.criterion_id
        if self._current.next_screen == "seal":
            self.action_seal()
        else:
            self.go(self._current.next_screen)

    def action_repeat(self) -> None:
        if self._current is None:
            self.say("There is no criterion yet: c writes one.", problem=True)
            return
        self.desk.criterion_id = self._current.criterion.criterion_id
        self.go("repeat")

    def action_seal(self) -> None:
        self.run_worker(self._seal(), exclusive=True)

    async def _seal(self) -> None:
        if self._current is None:
            self.say("There is no criterion yet: c writes one.", problem=True)
            return
        criterion_id = self._current.criterion.criterion_id
        text = (
            "Sealed cases measure the judge and are never shown to it. They are drawn at random from the traces in no pile, "
            "so that their mix of PASS and FAIL is the natural one. How many?"
        )
        free = await self.desk.do(piles.free, criterion_id)
        if not free:
            self.say("No case is free to draw: all lie in a pile, or none is here. i imports more.", problem=True)
            return
        answer = await self.ask(AskDialog("Draw sealed cases", text, str(min(DEFAULT_DRAW, max(free * 2 // 3, 1)))))
        if not answer:
            return
        wanted = whole_number(answer)
        if not wanted:
            self.say(f"{answer[:20]} is not a number of cases.", problem=True)
            return
        try:
            drawn = await self.desk.do(piles.draw_sealed, criterion_id, wanted, 1)
        except EvaldeskError as error:
            self.say_error(error)
            return
        self.say(f"Sealed pile: {drawn.sentence}.", problem=drawn.is_short)
        await self.load()

    def action_new_criterion(self) -> None:
        self.run_worker(self._write_criterion(None), exclusive=True)

    def action_edit_criterion(self) -> None:
        if self._current is None:
            self.say("There is no criterion to edit yet: c writes one.", problem=True)
            return
        self.run_worker(self._write_criterion(self._current.criterion), exclusive=True)

    async def _write_criterion(self, old: Criterion | None) -> None:
        written = await self.ask(CriterionForm(old, self.desk.expert))
        if written is None:
            return
        known = {standing.criterion.criterion_id for standing in self._standings}
        if old is None and written.criterion_id in known:
            self.say(f"There is a criterion {written.criterion_id} already: v edits it.", problem=True)
            return
        stored = await self.desk.do(criteria.add, written)
        self.desk.criterion_id = stored.criterion_id
        await self.desk.do(settings.write, "criterion", stored.criterion_id)
        self.say(f"{stored.criterion_id}, version {stored.version}")
        await self.load()

    def action_expert(self) -> None:
        self.run_worker(self._expert(), exclusive=True)

    async def _expert(self) -> None:
        answer = await self.ask(
            AskDialog("Who gives the labels?", "One person decides; each label carries this name.", self.desk.expert)
        )
        if answer:
            self.desk.expert = answer
            await self.desk.do(settings.write, "expert", answer)
            await self._show()

    async def action_restore(self) -> None:
        store = self.desk.store
        if not store.surplus_labels and not store.surplus_codes:
            return
        try:
            restored = await self.desk.do(witness.restore, store.surplus_labels)
            of_codes = await self.desk.do(code_witness.restore, store.surplus_codes)
            await self.desk.later(store.look_at_witness)
        except EvaldeskError as error:
            self.say_error(error)
            return
        left = (*restored.passed_over, *of_codes.passed_over)
        passed_over = f" Passed over: {'; '.join(left[:3])}" if left else ""
        and_codes = f" and {counted(of_codes.count, 'code')}" if of_codes.count else ""
        self.say(f"{counted(restored.count, 'label')}{and_codes} restored.{passed_over}", problem=bool(passed_over))
        await self.load()


def _witness_notice(store: Store) -> str:
    """What Home says about labels.jsonl and codes.jsonl, "" when they and the database agree."""
    parts = []
    if lost := len(store.surplus_labels):
        parts.append(f"labels.jsonl holds {lost} labels that the database lacks. Press r to restore them.")
    if lost := len(store.surplus_codes):
        parts.append(f"codes.jsonl holds {counted(lost, 'code')} that the database lacks. Press r to restore.")
    if unusable := store.unusable_lines:
        more = f" and {len(unusable) - 1} more" if len(unusable) > 1 else ""
        parts.append(f"labels.jsonl or codes.jsonl has lines that are nothing here: {one_line(unusable[0])}{more}.")
    return " ".join(parts)


def _criterion_row(standing: Standing, width: int) -> Line:
    progress = standing.progress
    return line(
        (pad(one_line(standing.criterion.criterion_id), 14), "strong"),
        f"{progress.labelled:>4} labelled   {standing.judge_versions} judge version{'' if standing.judge_versions == 1 else 's'}   ",
        (standing.next_thing, "accent"),
    )


def _sweep_lines(swept: list[SweepStanding], width: int) -> list[Line]:
    return [BLANK, line(("SWEEPS", "key")), *(standing_line(standing, width) for standing in swept)] if swept else []
