"""`evaldesk rank FILE`: prompts ranked by their outcomes, and how far that ranking can be trusted."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import EvaldeskError
from tui.cli.output import plain_console, print_json
from tui.presentation.ranking_view import RULES
from tui.widgets.literal import one_line

if TYPE_CHECKING:
    from rich.table import Table

    from engine.ranking.decision import Decision
    from engine.ranking.ranking import Ranking
    from stats.protocol import ReferenceRow, StabilityRow
    from stats.stability import Stability

_FIGURES_WIDTH = 58
"""What the columns beside the prompts' names take."""

_DESCRIPTION = """\
Rank prompts from a CSV, JSONL, JSON or Parquet file of outcomes, and say how far the ranking can be trusted. No
workspace is needed.

Wide form: a row an item, a column a prompt; a column called item_id, id or the like names the items. Long form: the
columns prompt, item and score, in any order. Outcomes are 0/1, true/false or numbers. A blank cell is a missing
outcome and not counted as 0; anything else refuses the file.

A condition is a seed that draws k of the items, the same for all prompts; two seeds of the same k are compared. Of
each k: what any two seeds are expected to show, from all items, and what the drawn ones did.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `rank` and its options."""
    parser = subparsers.add_parser(
        "rank",
        help="rank prompts from a file of outcomes, and see what the ranking is worth",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="CSV, JSONL, JSON or Parquet file")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="how many seeds to draw subsets with (5)")
    parser.add_argument("--k", default="50,100,200", metavar="K,K", help="subset sizes (50,100,200)")
    parser.add_argument("--top", type=int, default=3, metavar="M", help="size of the top set that is compared (3)")
    parser.add_argument("--z", type=float, default=1.0, metavar="Z", help="z of the LCB rule, mean - z s / sqrt(K) (1)")
    parser.add_argument(
        "--holdout", choices=("seed", "condition"), default="seed", help="what is held out to score a choice (seed)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the ranking; 0 when it was made. Raises EvaldeskError (exit code 2) on input that cannot be read."""
    from engine.ranking.ranking import RankingOptions, rank_file
    from engine.ranking.ranking_json import ranking_json

    options = RankingOptions(tuple(range(1, args.seeds + 1)), _sizes(args.k), args.top, args.z, args.holdout)
    ranking = rank_file(args.file, options)
    if args.json:
        print_json(ranking_json(ranking))
    else:
        _print(ranking)
    return 0


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise EvaldeskError(
            f"{text!r} is no list of subset sizes",
            where="--k",
            kept="Nothing was ranked.",
            remedy="Give whole numbers, such as --k 50,100.",
        ) from None


def _print(ranking: Ranking) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console = plain_console()
    console.print(Text(one_line(ranking.advice), style="bold"))
    console.print()
    console.print(_scores_table(ranking, console.width))
    if ranking.protocol.stability:
        console.print()
        console.print(_stability_table(ranking))
    console.print()
    for line in (*_lines(ranking), *(one_line(note) for note in ranking.notes)):
        console.print(Padding(Text(line), (0, 0, 0, 1), expand=False))


def _scores_table(ranking: Ranking, width: int) -> Table:
    from rich.text import Text

    from engine.ranking.advice import number

    table = _grid()
    table.add_column("rank", justify="right")
    table.add_column("prompt", overflow="ellipsis", no_wrap=True, max_width=max(min(40, width - _FIGURES_WIDTH), 8))
    for name in ("mean", "95 %", "items", "ranks"):
        table.add_column(name, justify="right")
    table.add_column("best?")
    possible = ranking.decision.rank_intervals if ranking.decision else {}
    ranks = {ranking.table.prompts[column]: f"{low}-{high}" for column, (low, high) in possible.items()}
    for score in ranking.best_first:
        mean = score.mean
        table.add_row(
            "-" if score.rank is None else f"{score.rank:g}",
            Text(one_line(score.prompt)),
            number(mean.mean),
            "" if mean.low is None else f"[{number(mean.low)}, {number(mean.high)}]",
            f"{mean.n:,}",
            ranks.get(score.prompt, ""),
            "may be" if score.prompt in (ranking.best_set or ()) else "",
        )
    return table


def _stability_table(ranking: Ranking) -> Table:
    table = _grid()
    table.add_column("k", justify="right")
    table.add_column("two seeds")
    for name in ("tau-b", "rho", "top 1", f"top {ranking.top}", "tied pairs", "tied top"):
        table.add_column(name, justify="right")
    for row, reference in zip(ranking.protocol.stability, ranking.protocol.reference, strict=True):
        for cells in _stability_rows(row, reference):
            table.add_row(*cells)
    return table


def _stability_rows(row: StabilityRow, reference: ReferenceRow) -> list[list[str]]:
    from engine.ranking.advice import number, percent
    from stats.protocol import FIGURES

    expected, drawn = row.expected, [row.drawn[name] for name in FIGURES]
    pairs = max(figure.pairs for figure in drawn)
    rows = [
        [
            f"{row.k:,}",
            "expected",
            *(number(getattr(expected, name).value, 2) for name in FIGURES),
            percent(expected.tied_pairs.value),
            percent(expected.tied_top.value),
        ]
        if expected
        else [f"{row.k:,}", "expected", *["-"] * (len(FIGURES) + 2)],
    ]
    for name, values in (
        (f"{pairs:,} pair" + "s" * (pairs > 1), [figure.mean for figure in drawn]),
        ("  std over pairs", [figure.std_over_pairs for figure in drawn]),
        ("  error of mean", [figure.standard_error for figure in drawn]),
        ("reference", [getattr(reference.drawn, name) for name in FIGURES]),
    ):
        if any(value is not None for value in values):
            rows.append(["", name, *(number(value, 2) for value in values), "", ""])
    return rows


def _lines(ranking: Ranking) -> list[str]:
    from engine.ranking.advice import number, percent

    lines, found = [], ranking.protocol
    if found.stability:
        sizes, references = ", ".join(f"{row.k:,}" for row in found.stability), found.reference
        lines += [
            *[_methods(row.expected) for row in found.stability[:1] if row.expected],
            "std over pairs is no error, because pairs share seeds; error of mean leaves out one seed after the other",
            f"reference = each seed against the modal ranking of the others at its k{_made_up(references)}",
            f"k = {sizes}: the same prompt is crowned by {', '.join(percent(row.drawn.top1_share) for row in references)} of "
            f"{references[0].drawn.conditions:,} seeds, ties shared; two subsets share "
            f"{', '.join(percent(row.overlap) for row in found.stability)} of their items",
        ]
    if ranking.decision:
        lines += _decision_lines(ranking.decision)
    for row in found.selection:
        held, folds = row.held_out, ranking.folds.get(row.rule)
        rule = f"LCB, z = {ranking.options.z:g}" if row.rule == "lcb" else RULES[row.rule]
        names = _names([ranking.table.prompts[winner] for winner in row.choice.winners])
        text = f"chosen over the {len(found.scores.conditions):,} conditions by {rule}: {names}"
        if held.parts:
            text += (
                f"; chosen without one {found.holdout} and scored on it: {number(held.mean)} +- {number(held.std)} over "
                f"{held.parts:,}, {held.tied:,} of them tied"
            )
        if folds:
            text += f"; chosen without the items it is scored on: {number(folds.mean)}"
        lines.append(text)
    if found.selection:
        lines.append(
            f"LCB is a heuristic, not a confidence interval. Held-out {found.holdout}s share the items, so their scores are "
            "too high for new items."
        )
    return lines


def _decision_lines(decision: Decision) -> list[str]:
    from engine.ranking.advice import number

    reliable = ", ".join(
        f"{number(value, 2)} at k = {k:,}" for k, value in decision.reliability.items() if value is not None
    )
    of = f" (from the {decision.items:,} items that all prompts have an outcome on)" if decision.left_out else ""
    lines = [f"ranks, best? = ranks that are possible, prompts that may be the best: each all at once with 95 %{of}"]
    if reliable and decision.reliable_items:
        lines.append(f"reliability of the scores: {reliable}; .90 takes {decision.reliable_items:,} items")
    if decision.winner_items and decision.top_pair:
        lines.append(
            f"new items until the leader leads again with 95 %: {decision.winner_items:,}; until it is ahead of the second: "
            f"{decision.top_pair:,} (if the means are what they look like)"
        )
    return lines


def _methods(expected: Stability) -> str:
    named = (
        ("tau-b", expected.tau_b), ("rho", expected.rho), ("top", expected.top1), ("tied pairs", expected.tied_pairs),
        ("tied top", expected.tied_top),
    )  # fmt: skip
    by_method: dict[str, list[str]] = {}
    for name, figure in named:
        by_method.setdefault(figure.method, []).append(name)
    listed = "; ".join(f"{method}: {', '.join(names)}" for method, names in by_method.items())
    return f"expected = between any two seeds, for other subsets of these items ({listed})"


def _made_up(rows: Sequence[ReferenceRow]) -> str:
    made = sum(row.drawn.per_prompt for row in rows)
    if not made:
        return ""
    tied = sum(row.drawn.ties for row in rows)
    return (
        f"; {made:,} of {sum(row.drawn.conditions for row in rows):,} have no most frequent one and take each prompt's "
        f"most frequent rank{f', {tied:,} with ties' if tied else ''}"
    )


def _names(names: Sequence[str]) -> str:
    if not names:
        return "none"
    shown = [_short(name) for name in names[:3]]
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return ", ".join(shown) + more + (" (tied)" if len(names) > 1 else "")


def _short(name: str) -> str:
    text = one_line(name)
    return text if len(text) <= 40 else text[:39] + "\N{HORIZONTAL ELLIPSIS}"


def _grid() -> Table:
    from rich.table import Table

    return Table(box=None, pad_edge=True, padding=(0, 2, 0, 1), header_style="", collapse_padding=True)
