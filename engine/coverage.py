"""The coverage grid: how many traces there are for each combination of dimensions, which none was ever tested on, and which fail."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Final, TypeVar

from engine.errors import EvaldeskError, Refused
from engine.judging.dimension import Dimension
from engine.store import cells, dimensions, traces
from engine.store.cells import CellRow
from engine.store.faults import disk_refused
from engine.store.store import Store

SHARE_FROM: Final = 10
"""Labels below which a share of failures is not said: with fewer the counts alone are the message."""
MOST_VALUES: Final = 200
"""Values of a dimension that a grid takes."""
AT_ONCE: Final = 100_000
"""Traces that one statement counts: half a second, between two of which everything else has its turn."""

T = TypeVar("T")
Value = str | None
"""A value of a dimension; None for a trace that has none."""


@dataclass(frozen=True)
class Counts:
    """Traces of a cell. ``real`` are from use, ``written`` were written for the grid and stand apart in everything.

    ``labelled`` are the real ones with the expert's verdict, ``failures`` those of them that fail.
    """

    real: int = 0
    written: int = 0
    labelled: int = 0
    failures: int = 0
    written_labelled: int = 0
    written_failures: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def traces(self) -> int:
        return self.real + self.written

    @property
    def share(self) -> float | None:
        """Share of failures among the labelled real traces; None below `SHARE_FROM` labels."""
        return self.failures / self.labelled if self.labelled >= SHARE_FROM else None


@dataclass(frozen=True)
class Grid:
    """Counts over up to three dimensions: rows, columns, tabs. Each trace lies in exactly one cell.

    ``axes`` holds the values of each dimension in order; None, for traces without one, comes last and only where there are
    such traces. ``cells`` has the cells that hold a trace, by their values.
    """

    criterion_id: str
    by: tuple[Dimension, ...]
    axes: tuple[tuple[Value, ...], ...]
    cells: Mapping[tuple[Value, ...], Counts] = field(default_factory=dict)

    def at(self, *values: Value | slice) -> Counts:
        """The counts of a cell; ``slice(None)`` in the place of a value sums over all values of that dimension."""
        if all(not isinstance(value, slice) for value in values):
            return self.cells.get(tuple(values), Counts())  # type: ignore[arg-type]
        fixed = [(place, value) for place, value in enumerate(values) if not isinstance(value, slice)]
        total = Counts()
        for key, counts in self.cells.items():
            if all(key[place] == value for place, value in fixed):
                total += counts
        return total

    def tab(self, value: Value) -> Grid:
        """The grid of rows and columns for one value of the third dimension; the axes stay those of all."""
        cells = {key[:2]: counts for key, counts in self.cells.items() if key[2] == value}
        return Grid(self.criterion_id, self.by[:2], self.axes[:2], cells)

    def transposed(self) -> Grid:
        """The same counts with rows and columns in each other's place."""

        def turned(three: Sequence[T]) -> tuple[T, ...]:
            return (three[1], three[0], *three[2:])

        cells = {turned(key): counts for key, counts in self.cells.items()}
        return Grid(self.criterion_id, turned(self.by), turned(self.axes), cells)

    def flat(self) -> Grid:
        """The grid of rows and columns over all values of the third dimension."""
        summed: dict[tuple[Value, ...], Counts] = {}
        for key, counts in self.cells.items():
            summed[key[:2]] = summed.get(key[:2], Counts()) + counts
        return Grid(self.criterion_id, self.by[:2], self.axes[:2], summed)

    @property
    def total(self) -> Counts:
        """All traces."""
        return sum(self.cells.values(), Counts())

    def thin(self, fewer_than: int = 1) -> list[tuple[tuple[str, ...], Counts]]:
        """Cells with fewer traces than that, written ones counted, in order; no cell of traces without a value is among them."""
        found: list[tuple[tuple[str, ...], Counts]] = []
        for key in product(*[[value for value in axis if value is not None] for axis in self.axes]):
            if (counts := self.cells.get(key, Counts())).traces < fewer_than:
                found.append((key, counts))
        return found

    @property
    def combinations(self) -> int:
        """How many cells there are, traces without a value aside."""
        return prod(sum(value is not None for value in axis) for axis in self.axes)

    def as_json(self) -> dict[str, Any]:
        """The object that ``evaldesk coverage --json`` prints, and that ``from_json`` takes."""
        return {
            "criterion": self.criterion_id,
            "dimensions": [{"id": d.dimension_id, "name": d.name, "field": d.field} for d in self.by],
            "values": [list(axis) for axis in self.axes],
            "cells": [
                {"values": list(key), **vars(counts), "share": counts.share} for key, counts in self.cells.items()
            ],
            "never_tested": [list(key) for key, _ in self.thin()],
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Grid:
        """The grid that ``as_json`` wrote, without the rules of its dimensions."""
        names = tuple(Counts.__dataclass_fields__)
        return cls(
            found["criterion"],
            tuple(Dimension(d["id"], d["name"], d["field"]) for d in found["dimensions"]),
            tuple(tuple(axis) for axis in found["values"]),
            {tuple(cell["values"]): Counts(*(cell[name] for name in names)) for cell in found["cells"]},
        )


def count(store: Store, criterion_id: str, by: Sequence[Dimension]) -> Grid:
    """The grid over these dimensions; to be called outside the store's thread, which has other things to do between two pieces.

    Raises Refused for a dimension with more than `MOST_VALUES` values.
    """
    total = store.submit_background(traces.count).result()
    rows = [
        row for piece in pieces(total) for row in store.submit_background(cells.count, criterion_id, by, piece).result()
    ]
    return arrange(criterion_id, by, rows)


def pieces(total: int) -> list[range]:
    """Positions of all traces, a statement's worth at a time."""
    return [range(start, min(start + AT_ONCE, total)) for start in range(0, total, AT_ONCE)]


def arrange(criterion_id: str, by: Sequence[Dimension], rows: Iterable[CellRow]) -> Grid:
    """The grid of counted rows; values that differ only in letter case are one, under the spelling that most traces have."""
    found: dict[tuple[str | None, ...], Counts] = {}
    spellings: list[dict[str, Counter[str]]] = [{} for _ in by]
    lacking = [False] * len(by)
    for row in rows:
        key = tuple(value[0] if value is not None else None for value in row.values)
        counts = Counts(row.real, row.written, row.labelled, row.failures, row.written_labelled, row.written_failures)
        found[key] = found.get(key, Counts()) + counts
        for number, value in enumerate(row.values):
            if value is None:
                lacking[number] = True
            else:
                spellings[number].setdefault(value[0], Counter())[value[1]] += counts.traces
    for dimension, spelt in zip(by, spellings, strict=True):
        if len(spelt) > MOST_VALUES:
            raise Refused(
                f"{dimension.name} has {len(spelt):,} values, and a grid takes {MOST_VALUES}",
                kept="Nothing was changed.", remedy="A rule can put them into fewer, or take another dimension.",
            )  # fmt: skip
    shown = [
        {folded: min(forms, key=lambda form: (-forms[form], form)) for folded, forms in spelt.items()}
        for spelt in spellings
    ]
    axes = tuple(
        (*sorted(names.values(), key=_in_order), *([None] if lacks else []))
        for names, lacks in zip(shown, lacking, strict=True)
    )

    def named(key: tuple[str | None, ...]) -> tuple[Value, ...]:
        return tuple(shown[number][part] if part is not None else None for number, part in enumerate(key))

    return Grid(criterion_id, tuple(by), axes, {named(key): counts for key, counts in found.items()})


def chosen(known: Sequence[Dimension], rows: str = "", columns: str = "", tabs: str = "") -> list[Dimension]:
    """The dimensions of these names for rows, columns and tabs; the first of the others where rows or columns are not named.

    One dimension alone makes rows. Raises Refused for a name that there is not, and for one named twice.
    """
    slots: list[Dimension | None] = []
    for name in (rows, columns, tabs):
        dimension = dimensions.named(known, name) if name else None
        if name and dimension is None:
            raise Refused(f"there is no dimension {name!r}", remedy=dimensions.what_there_is(known))
        if dimension is not None and dimension in slots:
            raise Refused(f"{dimension.name} is named twice", remedy="Name each dimension once.")
        slots.append(dimension)
    rest = [dimension for dimension in known if dimension not in slots]
    for place in (0, 1):
        if slots[place] is None and rest:
            slots[place] = rest.pop(0)
    return [dimension for dimension in slots if dimension is not None]


# -- requests to write ------------------------------------------------------------------------------

FORMATS: Final = ("jsonl", "csv", "md")


def work_list(grid: Grid, form: str, fewer_than: int = 1) -> str:
    """One line for each cell with fewer traces than that: its values, and room for a request and the system's response.

    A file of the first two forms comes back by ``evaldesk import``: its rows say that they are written, and for which cell.
    """
    thin = grid.thin(fewer_than)
    fields = [dimension.field for dimension in grid.by]
    if form == "jsonl":
        rows = (
            {"metadata": dict(zip(fields, key, strict=True)), "request": "", "response": "", "origin": traces.WRITTEN}
            for key, _ in thin
        )
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if form == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*fields, "request", "response", "origin"])
        writer.writerows([*key, "", "", traces.WRITTEN] for key, _ in thin)
        return out.getvalue()
    heads = [*(dimension.name for dimension in grid.by), "traces", "request"]
    lines = [heads, ["---"] * len(heads), *([*key, str(counts.traces), ""] for key, counts in thin)]
    return "".join(f"| {' | '.join(_in_table(text) for text in row)} |\n" for row in lines)


def write_work_list(path: Path, grid: Grid, fewer_than: int = 1) -> None:
    """Write the list to a new file, in the form that its suffix names; raises EvaldeskError, and replaces nothing."""
    form = path.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        raise EvaldeskError(
            "the file's name does not say its form", where=str(path), kept="Nothing was written.",
            remedy=f"Let it end in one of: {', '.join(f'.{name}' for name in FORMATS)}.",
        )  # fmt: skip
    try:
        with path.open("x", encoding="utf-8", errors="surrogatepass", newline="") as file:
            file.write(work_list(grid, form, fewer_than))
    except FileExistsError:
        raise EvaldeskError(
            "this file is there already", where=str(path), kept="It was not changed.", remedy="Give another name."
        ) from None
    except OSError as error:
        raise disk_refused(error, path, what="the list cannot be written", kept="Nothing else was changed.") from error


def _in_table(text: str) -> str:
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").split())


def _in_order(value: str) -> tuple[int, float, str, str]:
    """Numbers by size, before words by the alphabet."""
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    return (0, number, "", value) if number == number else (1, 0.0, value.casefold(), value)
