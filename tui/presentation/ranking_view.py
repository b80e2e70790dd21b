"""A ranking in text: scores with intervals, agreement between conditions as cells, what the selection rules choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.sweeping.results import PromptScore, SweepResults
from tui.presentation.lines import BLANK, Cell, Line, Span, line, pad, wrapped
from tui.presentation.sweep_view import digits, right_of, share
from tui.widgets.literal import one_line

if TYPE_CHECKING:
    from engine.ranking.ranking import Ranking
    from stats.protocol import RuleRow

FIGURES = {"tau_b": "tau-b", "rho": "rho", "top1": "top-1", "topm": "top-{m}"}
_FIXED = 56
RULES = {"mean": "mean", "lcb": "LCB", "borda": "Borda"}


def figure_name(figure: str, top: int) -> str:
    """What a figure of agreement is called on the screen."""
    return FIGURES[figure].format(m=top)


def score_lines(results: SweepResults, ranking: Ranking, width: int) -> list[Line]:
    """The prompts best first: rank, possible ranks, whether it may be the best, mean, interval drawn to scale."""
    ranked, decision = results.ranked, ranking.decision
    column = {prompt_id: index for index, (prompt_id, _) in enumerate(results.sweep.prompts)}
    possible = (
        {prompt_id: decision.rank_intervals.get(index) for prompt_id, index in column.items()} if decision else {}
    )
    best = {prompt_id for prompt_id, index in column.items() if decision and index in decision.best_set}
    name_width = max(min(max((len(one_line(s.name)) for s in ranked), default=4), width - _FIXED - 10), 8)
    room = max(width - name_width - _FIXED, 10)
    low = min((s.low for s in ranked if s.low is not None), default=0.0)
    high = max((s.high for s in ranked if s.high is not None), default=1.0)
    lines = [
        line((f"{'rank':>5}  {'ranks':<5} best  {pad('prompt', name_width)}  {'mean':>5}  {'95 % over items':<15} {'right':>10}  ", "dim"),
             (f"{share(low, 2)} {'':^{max(room - 9, 0)}} {share(high, 2)}", "dim"))
    ]  # fmt: skip
    for score in ranked:
        ranks = possible.get(score.prompt_id)
        place = (f"{ranks[0]}-{ranks[1]}" if ranks else "", "●" if score.prompt_id in best else "")
        lines.append(_score_line(score, place, name_width, room, low, high))
    if decision:
        legend = "● may be the best; ranks that are possible: each is right for all prompts at once with 95 %"
        left = f"; from the {decision.items:,} items that all prompts have answered" if decision.left_out else ""
        lines += [BLANK, *wrapped(legend + left, width, "dim")]
    flips = sorted((s.flip_rate, one_line(s.name)) for s in ranked if s.flip_rate is not None)
    if flips:
        (least, steady), (most, unsteady) = flips[0], flips[-1]
        said = f"Each item asked {results.sweep.repeats} times: of two replies one is right and one wrong in {share(least)} "
        lines += wrapped(
            said + (f"({steady}) to {share(most)} ({unsteady})" if most > least else "of the cases"), width, "dim"
        )
    return lines


def _score_line(
    score: PromptScore, place: tuple[str, str], name_width: int, room: int, low: float, high: float
) -> Line:
    rank = "–" if score.rank is None else f"{score.rank:g}"
    interval = f"[{share(score.low)}, {share(score.high)}]" if score.low is not None else ""
    return (
        Span(f"{rank:>5}  "),
        Span(f"{place[0]:<5}   {place[1]:<1}   ", "accent"),
        Span(pad(one_line(score.name), name_width), "strong"),
        Span(f"  {share(score.mean):>5}  "),
        Span(f"{interval:<15} ", "dim"),
        Span(f"{right_of(score.score_sum, score.n):>10}  "),
        Span(interval_bar(score.mean, score.low, score.high, low, high, room), "accent"),
    )


def interval_bar(
    mean: float | None, low: float | None, high: float | None, left: float, right: float, width: int
) -> str:
    """``├──●──┤`` on a scale from ``left`` to ``right`` in ``width`` cells."""
    if mean is None or low is None or high is None or right <= left:
        return ""

    def place(value: float) -> int:
        return max(0, min(round((value - left) / (right - left) * (width - 1)), width - 1))

    cells = [" "] * width
    for position in range(place(low), place(high) + 1):
        cells[position] = "─"
    cells[place(low)], cells[place(high)], cells[place(mean)] = "├", "┤", "●"
    return "".join(cells)


def agreement_cells(results: SweepResults, figure: str, shown: Sequence[int], cell_width: int) -> list[list[Cell]]:
    """One figure of agreement in hundredths between the conditions ``shown``; the diagonal is blank."""
    values = getattr(results.agreement, figure)
    rows = []
    for i in shown:
        row = []
        for j in shown:
            value = float(values[i, j])
            row.append(Cell("", None) if i == j else Cell(digits(value, cell_width), None if value != value else value))
        rows.append(row)
    return rows


def agreement_readout(results: SweepResults, row: int, column: int) -> str:
    """Two conditions in words, with all four figures."""
    a, b = results.matrix.conditions[row], results.matrix.conditions[column]
    if row == column:
        return f"seed {a.seed}, k {a.k}: choose two different conditions"
    agreement = results.agreement
    figures = "  ".join(
        f"{figure_name(figure, results.top)} {share(None if value != value else float(value), 2)}"
        for figure in FIGURES
        for value in [getattr(agreement, figure)[row, column]]
    )
    shared = f"{len(set(_drawn(results, row)) & set(_drawn(results, column)))} items in common"
    same = ": one seed, so the smaller subset lies in the larger" if a.seed == b.seed else ""
    return f"seed {a.seed} k {a.k} – seed {b.seed} k {b.k}: {figures}\n{shared}{same}"


def selection_lines(ranking: Ranking, width: int) -> list[Line]:
    """What each rule chooses, and what its choices scored on seeds, and on items, that they were not made on."""
    rows, z = ranking.protocol.selection, ranking.options.z
    if not rows:
        return [line("No condition to choose on.")]
    lines: list[Line] = []
    for row in rows:
        lines += _rule_lines(ranking, row, width)
    notes = [
        f"LCB z={z:g} = mean - z s / sqrt(K), s the standard deviation (K - 1) over the K conditions: a heuristic, not a confidence interval.",
        "Held-out seeds draw from the same items, so their scores are optimistic for new ones; held-out items are not.",
    ]
    if len({row.choice.winners for row in rows}) > 1:
        notes.insert(0, "The rules disagree.")
    for note in notes:
        lines += wrapped(note, width, "dim")
    return lines


def _rule_lines(ranking: Ranking, row: RuleRow, width: int) -> list[Line]:
    names = ", ".join(one_line(ranking.table.prompts[winner]) for winner in row.choice.winners) or "nothing yet"
    rule = f"LCB z={ranking.options.z:g}" if row.rule == "lcb" else RULES[row.rule]
    held, folds = row.held_out, ranking.folds.get(row.rule)
    scored = (
        f"held-out {held.parts} {ranking.options.holdout}s: {share(held.mean)} ± {share(held.std)}"
        if held.mean is not None
        else "nothing to hold out yet"
    )
    if folds is not None and folds.mean is not None:
        scored += f", items: {share(folds.mean)} ± {share(folds.standard_error)}"
    tied = " (tied)" if len(row.choice.winners) > 1 else ""
    # What was chosen may be many names: the figures stand below them, never cut off.
    return [*wrapped(f"{rule}: {names}{tied}", width, "strong"), *wrapped(f"  {scored}", width, "dim")]


def _drawn(results: SweepResults, row: int) -> list[int]:
    from stats.subsets import draw

    condition = results.matrix.conditions[row]
    return [int(index) for index in draw(condition.seed, results.sweep.pool, condition.k)]
