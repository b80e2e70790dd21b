"""The coverage grid in text: cells, totals, the cell under the cursor in words."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from engine.coverage import SHARE_FROM, Counts, Grid, Value
from engine.judging.dimension import Dimension
from engine.store.dimensions import Candidate, CaseValue
from tui.presentation.lines import Cell, Line, Span, counted, line, pad, shortened
from tui.widgets.literal import one_line

NEVER = "--"
"""A cell that was never tested."""
NO_VALUE = "(none)"
TOTAL = "total"
LEAST_CELL, WIDEST_CELL = 6, 13
ALL = slice(None)


def value_name(value: Value) -> str:
    """A value as it is shown: literally, on one line; traces without one have a name of their own."""
    return one_line(value) if value is not None else NO_VALUE


def rows_of(grid: Grid) -> list[Value | slice]:
    """What the rows stand for: the values of the first dimension, then all of them together."""
    return [*grid.axes[0], ALL]


def columns_of(grid: Grid) -> list[Value | slice]:
    """The same of the second dimension; with only one there are the totals alone."""
    return [*grid.axes[1], ALL] if len(grid.by) > 1 else [ALL]


def counts_at(grid: Grid, row: int, column: int) -> Counts:
    """The counts of a cell of the screen, totals included."""
    return grid.at(rows_of(grid)[row], *((columns_of(grid)[column],) if len(grid.by) > 1 else ()))


def all_counts(grid: Grid) -> list[list[Counts]]:
    """The counts of all cells of the screen, in one pass over the grid."""
    places = [{value: place for place, value in enumerate(axis)} for axis in grid.axes]
    height, width = len(grid.axes[0]) + 1, len(columns_of(grid))
    sums = [[[0] * 6 for _ in range(width)] for _ in range(height)]
    for key, counts in grid.cells.items():
        row = places[0][key[0]]
        column = places[1][key[1]] if len(grid.by) > 1 else width - 1
        parts = (
            counts.real,
            counts.written,
            counts.labelled,
            counts.failures,
            counts.written_labelled,
            counts.written_failures,
        )
        for r, c in {(row, column), (row, width - 1), (height - 1, column), (height - 1, width - 1)}:
            for place, part in enumerate(parts):
                sums[r][c][place] += part
    return [[Counts(*cell) for cell in row] for row in sums]


def count_text(counts: Counts, *, is_possible: bool = True) -> str:
    """``12``, with those written for the grid ``12+3``; ``--`` for never tested, ``·`` where traces have no value anyway."""
    if not counts.traces:
        return NEVER if is_possible else "·"
    return f"{counts.real}+{counts.written}" if counts.written else str(counts.real)


def failing_text(counts: Counts, *, is_possible: bool = True) -> str:
    """``75%`` of the labelled traces fail; too few of them stand as ``2/4``, none as ``0/0``."""
    if not counts.traces:
        return NEVER if is_possible else "·"
    return f"{counts.share:.0%}" if counts.share is not None else f"{counts.failures}/{counts.labelled}"


def cells_of(grid: Grid, *, failing: bool) -> list[list[Cell]]:
    """All cells with the totals; darker means more traces, or a larger share of failures. Totals are not shaded."""
    found = all_counts(grid)
    columns = columns_of(grid)
    most = max((counts.real for row in found[:-1] for counts in (row[:-1] or row)), default=0) or 1
    shown = []
    for value, row in zip(rows_of(grid), found, strict=True):
        cells = []
        for column, counts in zip(columns, row, strict=True):
            text = (failing_text if failing else count_text)(
                counts, is_possible=value is not None and column is not None
            )
            is_total = isinstance(value, slice) or (isinstance(column, slice) and len(columns) > 1)
            shade = (counts.share if failing else counts.real / most) if counts.traces else None
            cells.append(Cell(text, None if is_total else shade))
        shown.append(cells)
    return shown


def cell_width(grid: Grid, cells: Sequence[Sequence[Cell]], room: int) -> int:
    """The same for all columns: no less than the longest number takes, heads in full where all fit into ``room``.

    Where not, they are shortened as long as each can be told from the others: the rest is scrolled to.
    """
    names = [_head(value) for value in columns_of(grid)]
    least = max([LEAST_CELL, *(len(cell.text) + 1 for row in cells for cell in row)])
    widest = max([least, *(min(cell_len(name) + 1, WIDEST_CELL) for name in names)])
    telling = next(
        (width for width in range(least, widest) if len({shortened(name, width - 1) for name in names}) == len(names)),
        widest,
    )
    return max(telling, min(widest, room // max(len(names), 1)))


def heads(grid: Grid, width: int) -> Line:
    """The values of the columns, each over its cells."""
    return line(("".join(_right(_head(value), width - 1) + " " for value in columns_of(grid)), "dim"))


def row_labels(grid: Grid) -> list[Line]:
    """The values of the rows."""
    return [line((TOTAL, "dim") if isinstance(value, slice) else value_name(value)) for value in rows_of(grid)]


def readout(grid: Grid, row: int, column: int, width: int, within: str = "") -> str:
    """The cell under the cursor in words; long names give way to the figures. ``within`` names the tab."""
    rows, columns = rows_of(grid), columns_of(grid)
    if row >= len(rows) or column >= len(columns):
        return ""
    names = [value_name(value) for value in (rows[row], columns[column]) if not isinstance(value, slice)]
    names += [within] if within else []
    said = said_of(counts_at(grid, row, column), is_possible=rows[row] is not None and columns[column] is not None)
    where = " × ".join(names) or "all traces"
    return f"{shortened(where, max(width - cell_len(said) - 2, 8))}: {said}"


def said_of(counts: Counts, *, is_possible: bool = True) -> str:
    """Counts in words: ``12 traces, 75 % fail here, 9 of 12``."""
    if not counts.traces:
        return "never tested" if is_possible else "no traces"
    labels = _labels_said(counts.failures, counts.labelled, counts.share)
    parts = (
        [counted(counts.real, "trace") + (f", {labels}" if labels else "")] if counts.real else ["never in real use"]
    )
    if counts.written:
        labels = _labels_said(counts.written_failures, counts.written_labelled, None)
        parts.append(f"{counts.written} written for the grid" + (f" ({labels})" if labels else ""))
    return "; ".join(parts)


def _labels_said(failures: int, labelled: int, share: float | None) -> str:
    if not labelled:
        return ""
    if share is None:
        return f"{failures} of {labelled} labelled fail"
    return f"{100 * share:.0f} % fail here, {failures} of {labelled}"


def tabs_text(dimension: Dimension, values: Sequence[Value], chosen: int, width: int) -> str:
    """``language: [all]  de  en``: the third dimension, the chosen value in brackets and always in sight; 0 is all."""
    names = ["all", *(value_name(value) for value in values)]
    shown = [
        f"[{name}]" if number == chosen else f" {name} " for number, name in enumerate(shortened(n, 24) for n in names)
    ]
    head = f"{one_line(dimension.name)}: "
    first, last = chosen, chosen + 1
    while True:
        for wider in ((first, last + 1), (first - 1, last)):
            a, b = wider
            if a < 0 or b > len(shown) or cell_len(head + " ".join(shown[a:b])) > width - 4:
                continue
            first, last = wider
            break
        else:
            break
    return head + ("… " if first else "") + " ".join(shown[first:last]) + (" …" if last < len(shown) else "")


def title_text(grid: Grid, *, failing: bool) -> str:
    """What the numbers are."""
    axes = " × ".join(one_line(dimension.name) for dimension in grid.by)
    if failing:
        return f"{axes}: failures of labelled, % from {SHARE_FROM} on; {NEVER} never tested"
    written = " (+ written for the grid)" if grid.total.written else ""
    return f"{axes}: traces{written}; {NEVER} never tested"


def head_text(grid: Grid) -> str:
    """Counts for the head line."""
    thin = len(grid.thin())
    written = f"  {grid.total.written} written" if grid.total.written else ""
    return f"{grid.total.real:,} traces{written}  {thin:,} of {grid.combinations:,} never tested"


def grid_text(grid: Grid, *, failing: bool) -> list[str]:
    """The grid as lines of plain text, one grid for each value of a third dimension."""
    if len(grid.by) > 2:
        found = [title_text(grid, failing=failing)]
        for value in grid.axes[2]:
            part = grid.tab(value)
            found += ["", f"{one_line(grid.by[2].name)}: {value_name(value)}", *_plain_grid(part, failing)]
        return found
    return [title_text(grid, failing=failing), *_plain_grid(grid, failing)]


def _plain_grid(grid: Grid, failing: bool) -> list[str]:
    cells = cells_of(grid, failing=failing)
    width = cell_width(grid, cells, 10_000)
    names = ["".join(span.text for span in spans) for spans in row_labels(grid)]
    label = min(max(map(cell_len, names)), 32) + 1
    lines = [" " * label + "".join(span.text for span in heads(grid, width))]
    for name, row in zip(names, cells, strict=True):
        lines.append(pad(name, label) + "".join(f"{cell.text:>{width - 1}} " for cell in row))
    return [text.rstrip() for text in lines]


def _head(value: Value | slice) -> str:
    return TOTAL if isinstance(value, slice) else value_name(value)


def _right(text: str, width: int) -> str:
    cut = shortened(text, width)
    return " " * (width - cell_len(cut)) + cut


# -- dimensions -------------------------------------------------------------------------------------


def dimension_row(dimension: Dimension, width: int) -> Line:
    """A dimension in the list of them."""
    source = f"metadata {one_line(dimension.field)}"
    source += f", {counted(len(dimension.rules), 'rule')}" if dimension.rules else ""
    return line((pad(one_line(dimension.name), max(min(width // 3, 30), 8)), "strong"), " ", (source, "dim"))


def rule_row(text: str) -> Line:
    """A rule under its dimension."""
    return line(("    rule ", "dim"), one_line(text))


def candidate_row(candidate: Candidate, width: int) -> Line:
    """A metadata field that could be a dimension, with its most frequent values."""
    some = ", ".join(f"{one_line(value)} {count}" for value, count in candidate.values[:6])
    filled = "" if candidate.filled == candidate.looked_at else f", in {candidate.filled} of {candidate.looked_at}"
    return (
        Span("  + ", "accent"),
        Span(pad(one_line(candidate.field), max(min(width // 4, 24), 8))),
        Span(f" {len(candidate.values)} values{filled}: {some}", "dim"),
    )


def case_value_row(found: CaseValue, width: int) -> Line:
    """A dimension of a case, its value, and what gives it."""
    source = {
        "hand": "set by hand",
        "rule": "by a rule",
        "metadata": f"metadata {one_line(found.dimension.field)}",
    }.get(found.source, "")
    return line(
        (pad(one_line(found.dimension.name), max(min(width // 3, 24), 8)), "strong"),
        " ",
        (pad(value_name(found.value), max(width // 3, 8)), "plain" if found.value is not None else "dim"),
        " ",
        (source, "dim"),
    )
