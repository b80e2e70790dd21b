"""Ranking: the prompts with intervals, agreement between conditions, and what mean and LCB would choose."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from engine.change import Change
from engine.store import runs
from engine.sweeping import ranked, results
from engine.sweeping.results import OutcomeMatrix, SweepResults
from tui.presentation.lines import line, wrapped
from tui.presentation.ranking_view import (
    agreement_cells,
    agreement_readout,
    figure_name,
    score_lines,
    selection_lines,
)
from tui.presentation.sweep_view import FULL, ROW_LABEL, cell_width_for, condition_label, heads
from tui.screens.desk_screen import DeskScreen
from tui.screens.text_dialog import AskDialog
from tui.widgets.heatmap import HeatGrid, Heatmap
from tui.widgets.literal import visible
from tui.widgets.painted import Reader

if TYPE_CHECKING:
    from engine.ranking.ranking import Ranking

VIEWS = ("scores", "agreement", "selection")
ALL_VIEWS_FROM = 40
"""Rows of a terminal from which all three views stand below each other."""
RANKED_IN_A_RUN = 50
MAX_Z = 100.0
ADVICE_ROWS = 9
"""The longest sentence at 80 columns, so that none has to be scrolled."""


class RankingScreen(DeskScreen):
    """One sentence on top; scores, agreement and selection below it, one at a time where there is little room."""

    NAME = "Ranking"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "view(1)", "view", tooltip="Scores, agreement between conditions, selection", id="ranking.view"),
        Binding("shift+tab", "view(-1)", "view back", show=False, tooltip="The view before", id="ranking.view_back"),
        Binding("t", "figure('tau_b')", "tau-b", tooltip="Kendall's tau-b between conditions", id="ranking.tau_b"),
        Binding("r", "figure('rho')", "rho", tooltip="Spearman's rho between conditions", id="ranking.rho"),
        Binding("o", "figure('top1')", "top-1", tooltip="Do both crown the same prompt?", id="ranking.top1"),
        Binding("m", "figure('topm')", "top-m", tooltip="What the first m have in common", id="ranking.topm"),
        Binding("s", "subset", "k", tooltip="All subset sizes, or one k after the other", id="ranking.subset"),
        Binding("z", "z", "z", tooltip="How strongly LCB punishes a spread over conditions", id="ranking.z"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._results: SweepResults | None = None
        self._known: OutcomeMatrix | None = None
        self._ranking: Ranking | None = None
        self._ranked: SweepResults | None = None
        self._view = 0
        self._advice_rows = 2
        self._figure = "tau_b"
        self._k = 0
        self._z = results.DEFAULT_Z

    def compose_body(self) -> ComposeResult:
        yield Reader(id="advice")
        yield Reader(id="scores")
        with Vertical(id="agreement"):
            yield Static(id="agreement-title")
            yield HeatGrid(id="agreement-grid")
            yield Static(id="agreement-cell")
        yield Reader(id="selection")

    async def load(self) -> None:
        swept = [run for run in await self.desk.do(runs.everyone) if run.kind == "sweep"]
        if swept and all(run.run_id != self.desk.sweep_run_id for run in swept):
            self.desk.sweep_run_id = swept[0].run_id
        await self._measure()
        self._arrange()

    async def on_change(self, change: Change) -> None:
        if change.runs_changed or self.desk.sweep_run_id in change.gained:
            await self._measure()

    def on_resize(self) -> None:
        if self._results is not None:
            self._show()
            self._arrange()

    async def _measure(self) -> None:
        if not self.desk.sweep_run_id:
            self.set_head("nothing swept yet")
            self.query_one("#advice", Reader).show(
                lambda _: [line("Nothing is swept yet. Go to ", ("5 Sweep", "key"), " and press ", ("n", "key"), ".")]
            )
            return
        found, self._known = await self.desk.do(results.measure, self.desk.sweep_run_id, self._known)
        if self._k not in found.sweep.ks:
            self._k = 0
        if self._is_worth_ranking(found):
            self._ranking = await self.desk.later(ranked.rank_sweep, found, self._z)
            self._ranked = found
        self._results = found
        self._show()

    def _is_worth_ranking(self, found: SweepResults) -> bool:
        """Ranking takes a moment of the processor that a run needs: while one goes, some fifty times are enough."""
        before, ranking = self._ranked, self._ranking
        if before is None or ranking is None or before.run.run_id != found.run.run_id or ranking.options.z != self._z:
            return True
        return found.complete or found.done - before.done >= found.needed / RANKED_IN_A_RUN

    def _show(self) -> None:
        found, ranking = self._results, self._ranking
        if found is None or ranking is None:
            return
        sentence = visible(ranked.sentence(self._ranked or found, ranking))
        self.set_head(found.sweep.name, f"{found.done}/{found.needed}")
        advice = self.query_one("#advice", Reader)
        advice.show(lambda width: wrapped(sentence, width, "strong"))
        # Only where it differs: a new height lays the whole screen out.
        if (rows := max(2, min(len(advice.lines), ADVICE_ROWS))) != self._advice_rows:
            self._advice_rows = advice.styles.height = rows
        self.query_one("#scores", Reader).show(lambda width: score_lines(found, ranking, width), keep_place=True)
        self.query_one("#selection", Reader).show(lambda width: selection_lines(ranking, width), keep_place=True)
        shown = self._shown(found)
        width = cell_width_for(len(shown), self.app.size.width - 4)
        labels = [condition_label(found.matrix.conditions[i].seed, found.matrix.conditions[i].k) for i in shown]
        grid = self.query_one("#agreement-grid", HeatGrid)
        corner = line((figure_name(self._figure, found.top).ljust(ROW_LABEL), "accent"))
        grid.show(agreement_cells(found, self._figure, shown, width), labels, heads(len(shown), width), corner, width)
        which = f"k = {self._k}" if self._k else "all k"
        if (hidden := len(found.matrix.conditions) - len(found.agreement.tau_b)) > 0:
            which += f"; the last {hidden} of {len(found.matrix.conditions)} conditions are not compared"
        if width < 4:
            which += f"; {FULL} = 100, <0 below 0"
        self.query_one("#agreement-title", Static).update(
            Content(f"agreement between conditions, {figure_name(self._figure, found.top)} in hundredths, {which}"),
            layout=False,
        )
        self._show_cell(*grid.heatmap.cursor)

    def _shown(self, found: SweepResults) -> list[int]:
        compared = found.matrix.conditions[: len(found.agreement.tau_b)]
        return [i for i, condition in enumerate(compared) if not self._k or condition.k == self._k]

    def _arrange(self) -> None:
        everything = self.app.size.height >= ALL_VIEWS_FROM
        for name, part in (("#scores", 0.4), ("#selection", 0.2)):
            reader = self.query_one(name, Reader)
            most = int(part * self.app.size.height)
            reader.styles.height = max(min(len(reader.lines) + 1, most), 3) if everything else "1fr"
        for number, name in enumerate(VIEWS):
            self.query_one(f"#{name}").display = self._results is not None and (everything or number == self._view)
        if self._results is None:
            self.set_focus(self.query_one("#advice", Reader))
        elif everything or VIEWS[self._view] == "agreement":
            self.set_focus(self.query_one("#agreement-grid", HeatGrid).heatmap)
        else:
            self.set_focus(self.query_one(f"#{VIEWS[self._view]}", Reader))

    @on(Heatmap.Moved)
    def _moved(self, message: Heatmap.Moved) -> None:
        self._show_cell(message.row, message.column)

    def _show_cell(self, row: int, column: int) -> None:
        found = self._results
        if found is None:
            return
        shown = self._shown(found)
        there = row < len(shown) and column < len(shown)
        text = agreement_readout(found, shown[row], shown[column]) if there else ""
        self.query_one("#agreement-cell", Static).update(Content(text), layout=False)

    def action_view(self, step: int) -> None:
        self._view = (self._view + step) % len(VIEWS)
        self._arrange()

    def action_figure(self, figure: str) -> None:
        self._figure = figure
        if VIEWS[self._view] != "agreement":
            self._view = VIEWS.index("agreement")
            self._arrange()
        self._show()

    def action_subset(self) -> None:
        if self._results is not None:
            ks = [0, *self._results.sweep.ks]
            self._k = ks[(ks.index(self._k) + 1) % len(ks)] if self._k in ks else 0
            self._show()

    def action_z(self) -> None:
        self.run_worker(self._ask_z(), exclusive=True, group="z")

    async def _ask_z(self) -> None:
        text = (
            "LCB chooses the highest mean - z s / sqrt(K). 0 is the mean rule. A heuristic, not a confidence interval."
        )
        answer = await self.ask(AskDialog("z", text, f"{self._z:g}"))
        if not answer:
            return
        plain = answer.replace(",", ".")
        z = float(plain) if re.fullmatch(r"(?=.)[0-9]{0,6}(\.[0-9]{1,9})?", plain) else -1.0
        if not 0.0 <= z <= MAX_Z:
            self.say(f"{answer[:20]} is no z: give a number from 0 to {MAX_Z:g}.", problem=True)
            return
        self._z = z
        await self._measure()
