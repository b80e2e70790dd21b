"""A file of outcomes as one matrix: what each prompt scored on each item.

Wide form: a row an item, a column a prompt, and perhaps a column that names the items. Long form: a row an outcome,
with its prompt, item and score. Outcomes are 0/1, true/false or numbers; a blank cell is a missing outcome and is
never counted as 0. Everything else in a cell refuses the file, by row and column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from engine.errors import EvaldeskError
from engine.importing.rows import Row
from engine.importing.tables import open_table, readable_rows

_KEPT: Final = "Nothing was ranked."

_PROMPT: Final = ("prompt", "prompt_id", "prompt_name", "prompt_template", "template")
_ITEM: Final = (
    "item", "item_id", "id", "idx", "index", "qid", "question_id", "example_id", "sample_id", "case_id", "doc_id",
    "task_id", "problem_id", "row_id", "unnamed:_0",
)  # fmt: skip
_SCORE: Final = ("score", "outcome", "correct", "is_correct", "value", "result", "acc", "accuracy", "exact_match")
"""Names of columns, as `_plain` writes them; an earlier one wins over a later one."""

_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_FLAGS: Final = {"true": 1.0, "false": 0.0}
_NAMES_OF_NOTHING: Final = frozenset({"nan", "na", "n/a", "none", "null", "-", "inf", "-inf", "infinity"})
_LISTED: Final = 5
_LARGEST: Final = 1e12
"""No score is larger, and sums of squares of these are still numbers."""


@dataclass(frozen=True)
class OutcomeTable:
    """Outcomes of M prompts on N items; ``values`` is [N, M], nan where an outcome is missing.

    Prompts and items stand in the order of the file. ``notes`` say in plain words how the file was read.
    """

    file: str
    form: Literal["wide", "long"]
    prompts: tuple[str, ...]
    items: tuple[str, ...]
    values: NDArray[np.float64]
    notes: tuple[str, ...] = ()


def read_outcomes(path: str | Path) -> OutcomeTable:
    """Read a CSV, JSONL, JSON or Parquet file of outcomes.

    Raises EvaldeskError on a row that cannot be read, a cell that is no outcome, an item or an outcome that comes
    twice, and a file without prompts, items or outcomes.
    """
    path = Path(path)
    rows = list(readable_rows(path, kept=_KEPT))
    columns = list(dict.fromkeys(name for row in rows for name in row.fields))
    if not rows or not columns:
        raise _error(
            path.name,
            "has no rows" if not rows else "has no columns",
            "Give a row for each item and a column for each prompt.",
        )
    found = _long_columns(path.name, rows, columns)
    table = _wide(path.name, rows, columns) if found is None else _long(path.name, rows, columns, found)
    if np.isnan(table.values).all():
        raise _error(path.name, "holds no outcome: every cell is blank", "Fill in what the prompts scored.")
    problems = open_table(path).problems
    return OutcomeTable(
        table.file, table.form, table.prompts, table.items, table.values, (*problems, *table.notes, *_gaps(table))
    )


def outcome(value: Any) -> float:
    """A cell as a number, nan for a blank one. Raises ValueError with the reason for anything else."""
    if value is None:
        return math.nan
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        text = value.strip()
        if not text:
            return math.nan
        if text.casefold() in _FLAGS:
            return _FLAGS[text.casefold()]
        if text.casefold() in _NAMES_OF_NOTHING:
            raise ValueError(f"holds {text!r}, which is no number (a missing outcome is a blank cell)")
        if not _NUMBER.fullmatch(text):
            raise ValueError(f"holds {_short(text)}, which is no number")
        value = float(text)
    if isinstance(value, (int, float)):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number) or abs(number) > _LARGEST:
            raise ValueError("holds a number that is too large")
        return number
    raise ValueError(f"holds {'an object' if isinstance(value, Mapping) else 'a list'}, not a number")


def _wide(file: str, rows: Sequence[Row], columns: Sequence[str]) -> OutcomeTable:
    named_by = _item_column(rows, columns)
    prompts = [name for name in columns if name != named_by]
    if not prompts:
        raise _error(file, "has no column of outcomes", "Give a row for each item and a column for each prompt.")
    values = np.full((len(rows), len(prompts)), np.nan)
    faults: list[str] = []
    for at, row in enumerate(rows):
        for column, prompt in enumerate(prompts):
            try:
                values[at, column] = outcome(row.fields.get(prompt))
            except ValueError as error:
                faults.append(f"row {row.number:,}, column {_short(prompt)} {error}")
    _refuse(file, faults, "If the column is no prompt, take it out; one that names the items is called item_id.")
    items = [_name(row.fields.get(named_by)) if named_by else "" for row in rows]
    seen: dict[str, int] = {}
    for item, row in zip(items, rows, strict=True):
        if item and item in seen:
            raise _error(
                file,
                f"item {_short(item)} stands in row {seen[item]:,} and again in row {row.number:,}, column {_short(named_by or '')}",
                "Give each item one row; average an item's repeats before, or name them apart.",
            )
        seen[item] = row.number
    notes = [f"rows are items, named by the column {named_by!r}" if named_by else "rows are items without a name"]
    names = tuple(item or f"row {row.number}" for item, row in zip(items, rows, strict=True))
    return OutcomeTable(file, "wide", tuple(prompts), names, values, tuple(notes))


def _long(file: str, rows: Sequence[Row], columns: Sequence[str], found: tuple[str, str, str]) -> OutcomeTable:
    prompt_at, item_at, score_at = found
    faults: list[str] = []
    cells: dict[tuple[str, str], tuple[float, int]] = {}
    prompts: dict[str, int] = {}
    items: dict[str, int] = {}
    for row in rows:
        prompt, item = _name(row.fields.get(prompt_at)), _name(row.fields.get(item_at))
        faults += [
            f"row {row.number:,}, column {_short(column)} is blank"
            for column, name in ((prompt_at, prompt), (item_at, item))
            if not name
        ]
        try:
            value = outcome(row.fields.get(score_at))
        except ValueError as error:
            faults.append(f"row {row.number:,}, column {_short(score_at)} {error}")
            continue
        if not prompt or not item:
            continue
        if (prompt, item) in cells:
            raise _error(
                file,
                f"prompt {_short(prompt)} has an outcome on item {_short(item)} in row {cells[prompt, item][1]:,} "
                f"and again in row {row.number:,}",
                "Give one outcome for each prompt and item; average repeats before.",
            )
        cells[prompt, item] = value, row.number
        prompts.setdefault(prompt, len(prompts))
        items.setdefault(item, len(items))
    _refuse(file, faults, "Mend the rows or take them out.")
    values = np.full((len(items), len(prompts)), np.nan)
    for (prompt, item), (value, _) in cells.items():
        values[items[item], prompts[prompt]] = value
    notes = [f"rows are outcomes: prompt {prompt_at!r}, item {item_at!r}, score {score_at!r}"]
    unused = [_short(name) for name in columns if name not in found]
    if unused:
        more = f" and {len(unused) - _LISTED:,} more" if len(unused) > _LISTED else ""
        notes.append(f"not used: {', '.join(unused[:_LISTED])}{more}")
    return OutcomeTable(file, "long", tuple(prompts), tuple(items), values, tuple(notes))


def _long_columns(file: str, rows: Sequence[Row], columns: Sequence[str]) -> tuple[str, str, str] | None:
    """The columns of prompt, item and score; None where the file is in wide form."""
    prompt, item, score = (_first(columns, names) for names in (_PROMPT, _ITEM, _SCORE))
    if prompt and item and score:
        return prompt, item, score
    # A column "prompt" that holds names is no prompt's outcomes, so the rest cannot be a wide table.
    if prompt and not any(_is_outcome(row.fields.get(prompt)) for row in rows):
        lacking = "an item" if not item else "a score"
        names = (_ITEM if not item else _SCORE)[:3]
        raise _error(
            file,
            f"row {rows[0].number:,}, column {_short(prompt)} names a prompt, but no column was recognised as {lacking}",
            f"Call it {', '.join(names[:-1])} or {names[-1]}, or give a row for each item and a column for each prompt.",
        )
    return None


def _item_column(rows: Sequence[Row], columns: Sequence[str]) -> str | None:
    """The column that names the items: by its own name, or the first one if it holds only texts or just counts up."""
    named = _first(columns, _ITEM)
    if named:
        return named
    first = columns[0]
    filled = [value for row in rows if (value := row.fields.get(first)) is not None and str(value).strip()]
    if filled and not any(_is_outcome(value) for value in filled):
        simple = all(isinstance(value, str) for value in filled)
        return first if simple else None
    if len(filled) == len(rows) > 2:
        try:
            numbers = [outcome(value) for value in filled]
        except ValueError:
            return None
        if all(later - earlier == 1.0 for earlier, later in pairwise(numbers)):
            return first
    return None


def _gaps(table: OutcomeTable) -> Iterator[str]:
    missing: NDArray[np.bool_] = np.isnan(table.values)
    count = int(missing.sum())
    if count:
        yield (
            f"{count:,} of {missing.size:,} outcomes are missing: they are not counted as 0, and prompts are compared on "
            f"the items that each has"
        )
    empty = [_short(name) for name, gone in zip(table.prompts, np.asarray(missing.all(axis=0)), strict=True) if gone]
    if empty:
        yield f"without any outcome, and not ranked: {', '.join(empty[:_LISTED])}" + (
            f" and {len(empty) - _LISTED:,} more" if len(empty) > _LISTED else ""
        )


def _is_outcome(value: Any) -> bool:
    try:
        return not math.isnan(outcome(value))
    except ValueError:
        return False


def _first(columns: Sequence[str], names: Sequence[str]) -> str | None:
    plain = {_plain(column): column for column in reversed(columns)}
    return next((plain[name] for name in names if name in plain), None)


def _plain(column: str) -> str:
    return re.sub(r"[\s-]+", "_", column.strip().casefold())


def _name(value: Any) -> str:
    """A prompt's or item's name as a text; "" for a blank. The text "nan" is a name."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def _refuse(file: str, faults: Sequence[str], remedy: str) -> None:
    if faults:
        more = f"; and {len(faults) - _LISTED:,} more cells" if len(faults) > _LISTED else ""
        raise _error(file, "; ".join(faults[:_LISTED]) + more, remedy)


def _error(file: str, what: str, remedy: str) -> EvaldeskError:
    return EvaldeskError(what, where=file, kept=_KEPT, remedy=remedy)


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:39] + "\N{HORIZONTAL ELLIPSIS}")
