"""A judge measured against an expert from files: one that holds both verdicts, or two joined by an id.

Positive = the judge reports a failure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from engine.auditing.columns import (
    Role,
    VerdictColumn,
    candidates,
    holds,
    not_found,
    reading_for,
    refuse_one_reading_for_opposites,
)
from engine.auditing.figures import figures_json
from engine.auditing.joining import Cell, JoinCounts, case_id, join
from engine.auditing.sentence import plain_sentence
from engine.errors import EvaldeskError
from engine.importing.pointer import MISSING, get, pointer
from engine.importing.rows import Row
from engine.importing.tables import readable_rows
from engine.importing.verdicts import ValueReading, Verdict, normalise, parse_values
from stats.confusion import Confusion

_HEAD_ROWS: Final = 2000
_LISTED: Final = 5


@dataclass(frozen=True)
class FileAudit:
    """What the files say. ``notes`` name everything that was left out or read as no verdict, in plain words."""

    confusion: Confusion
    human: VerdictColumn
    judge: VerdictColumn
    join: JoinCounts | None = None
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The audit in one sentence of plain words."""
        return plain_sentence(self.confusion)

    def as_json(self) -> dict[str, Any]:
        """`figures_json`, and how the files were read.

        ``values`` is {"human": {value: verdict}, "judge": {...}}, ``columns`` names file and field of each side,
        ``join`` is {matched, human_only, judge_only} or null.
        """
        figures = figures_json(self.confusion)
        sides = {"human": self.human, "judge": self.judge}
        return {
            "sentence": figures.pop("sentence"),
            "positive": figures.pop("positive"),
            "values": {role: column.values() for role, column in sides.items()},
            "columns": {role: {"file": column.file, "field": column.path} for role, column in sides.items()},
            **figures,
            "join": asdict(self.join) if self.join else None,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class _Source:
    """A file with its first rows; ``rows`` gives all of them and refuses the file at the first that is unreadable."""

    path: Path
    head: tuple[Row, ...]

    @property
    def name(self) -> str:
        return self.path.name

    def rows(self) -> Iterator[Row]:
        return _readable(self.path)


def audit_file(
    file: str | Path,
    other: str | Path | None = None,
    *,
    on: str | None = None,
    human: str | None = None,
    judge: str | None = None,
    values: str | None = None,
    values_judge: str | None = None,
) -> FileAudit:
    """Measure the judge of a file, or of two files joined by the id field ``on``.

    ``human`` and ``judge`` name the verdict fields (column name, dotted path or JSON Pointer); without them they are
    recognised by name where only one fits. ``values`` ("1=FAIL,0=PASS") states what the values of both fields mean,
    ``values_judge`` those of the judge's alone. Of two files, the human verdicts are looked for in the first and the
    judge's in the second, and the other way round where that is not where they are.

    Blank human values count as unlabelled; blank and unknown judge values beside a human label as no verdict. Of a
    join, judge rows without a human row count as unlabelled too; human labels without a judge row are in no figure
    and are named in the notes.

    Raises EvaldeskError on an unreadable row, an unknown human value, fields that are missing or ambiguous, yes/no
    values in a field named like a failure, and ids that are doubled or never match.
    """
    if (other is None) != (on is None):
        raise EvaldeskError(
            "two files and --on ID go together",
            kept="Nothing was measured.",
            remedy="Give FILE FILE2 --on ID, or one file that holds both verdicts.",
        )
    stated = parse_values(values) if values else None
    stated_judge = parse_values(values_judge) if values_judge else stated
    first = _open(Path(file))
    second = _open(Path(other)) if other is not None else first
    human_at, human_path = _locate((first, second), "human", human, stated)
    judge_at, judge_path = _locate((second, first), "judge", judge, stated_judge)
    _refuse_one_for_both(human_at, human_path, judge_at, judge_path, joined=other is not None)
    if human_at is judge_at:
        human_cells, judge_cells = _cells(human_at, {"human": human_path, "judge": judge_path}, on)
    else:
        (human_cells,) = _cells(human_at, {"human": human_path}, on)
        (judge_cells,) = _cells(judge_at, {"judge": judge_path}, on)
    human_reading, human_column = _read_side(human_at, human_path, human_cells, stated, "--values")
    judge_reading, judge_column = _read_side(judge_at, judge_path, judge_cells, stated_judge, "--values-judge")
    if stated and not values_judge:
        refuse_one_reading_for_opposites(human_column, judge_column, stated, (human_at.head, judge_at.head))
    verdicts = _human_verdicts(human_cells, human_reading, human_at.name, human_path)
    if on is None:
        pairs = [(verdicts[h.row], j.value) for h, j in zip(human_cells, judge_cells, strict=True)]
        extra_unlabelled, counts, notes = 0, None, []
    else:
        joined = join(human_cells, judge_cells, human_at.name, judge_at.name)
        pairs = [(verdicts[h.row], j.value) for h, j in joined.pairs]
        extra_unlabelled, counts = len(joined.judge_only), joined.counts
        notes = _join_notes(
            counts,
            sum(verdicts[cell.row] is not None for cell in joined.human_only),
            human_at.name,
            judge_at.name,
        )
    confusion, unknown = _count(pairs, judge_reading, extra_unlabelled)
    return FileAudit(
        confusion,
        human_column,
        judge_column,
        counts,
        (*notes, *_unknown_note(unknown, judge_path)),
    )


def _open(path: Path) -> _Source:
    return _Source(path, tuple(islice(_readable(path), _HEAD_ROWS)))


def _readable(path: Path) -> Iterator[Row]:
    return readable_rows(path, kept="Nothing was measured, because figures without this row could be wrong.")


def _locate(
    sources: Sequence[_Source], role: Role, path: str | None, stated: ValueReading | None
) -> tuple[_Source, str]:
    """The file and field of one side; of the sources the first that fits."""
    if path is not None:
        return next((source for source in sources if holds(source.head, path)), sources[0]), path
    for source in sources:
        found = candidates(source.head, role, stated)
        if len(found) == 1:
            return source, found[0]
        if found:
            raise not_found(source.head, source.name, role, None, found)
    raise not_found(sources[0].head, sources[0].name, role, None)


def _refuse_one_for_both(human_at: _Source, human: str, judge_at: _Source, judge: str, *, joined: bool) -> None:
    if human_at is not judge_at:
        return
    fields = human_at.head[0].fields if human_at.head else {}
    if pointer(fields, human) == pointer(fields, judge):
        raise EvaldeskError(
            f"the same field, {human!r}, was named for the expert and the judge",
            where=human_at.name,
            kept="Nothing was measured.",
            remedy="Name two fields with --human and --judge.",
        )
    if joined:
        raise EvaldeskError(
            f"both verdicts were found in {human_at.name}, none in the other file",
            where="--on",
            kept="Nothing was measured.",
            remedy="Name the fields with --human and --judge, or give that file alone.",
        )


def _cells(source: _Source, wanted: Mapping[Role, str], on: str | None) -> list[list[Cell]]:
    """The cells of each wanted field, row by row, in the order of ``wanted``."""
    cells: dict[Role, list[Cell]] = {role: [] for role in wanted}
    found: set[str] = set()
    for row in source.rows():
        case = MISSING if on is None else get(row.fields, on)
        if case is not MISSING:
            found.add("--on")
        for role, path in wanted.items():
            value = get(row.fields, path)
            if value is not MISSING:
                found.add(role)
            cells[role].append(Cell(row.number, case_id(case), _scalar(value, row.number, source, role, path)))
    for role, path in wanted.items():
        if role not in found:
            raise not_found(source.head, source.name, role, path)
    if on is not None and "--on" not in found:
        error = not_found(source.head, source.name, next(iter(wanted)), on)
        remedy = "Name a field of both files with --on."
        raise EvaldeskError(error.what, where=error.where, kept=error.kept, remedy=remedy)
    return list(cells.values())


def _scalar(value: Any, row: int, source: _Source, role: Role, path: str) -> Any:
    if isinstance(value, (dict, list, tuple)) and value:
        kind = "an object" if isinstance(value, dict) else "a list"
        raise EvaldeskError(
            f"row {row:,} holds {kind} in {path!r}, not a verdict",
            where=source.name,
            kept="Nothing was measured.",
            remedy=f"Name the field inside it with --{role}, as a JSON Pointer such as /judges/a/verdict.",
        )
    return None if value is MISSING or value in ({}, [], ()) else value


def _read_side(
    source: _Source, path: str, cells: Sequence[Cell], stated: ValueReading | None, option: str
) -> tuple[ValueReading, VerdictColumn]:
    values = [cell.value for cell in cells]
    reading = reading_for(source.head, path, values, stated, option)
    return reading, VerdictColumn(source.name, path, reading, frozenset(map(normalise, values)))


def _human_verdicts(cells: Sequence[Cell], reading: ValueReading, file: str, path: str) -> dict[int, Verdict | None]:
    verdicts: dict[int, Verdict | None] = {}
    refused: list[str] = []
    for cell in cells:
        try:
            verdicts[cell.row] = reading.read(cell.value)
        except ValueError as error:
            refused.append(f"row {cell.row:,}: {error}")
    if refused:
        more = f"; and {len(refused) - _LISTED:,} more rows" if len(refused) > _LISTED else ""
        raise EvaldeskError(
            f"unknown human verdicts in {path!r}: {'; '.join(refused[:_LISTED])}{more}",
            where=file,
            kept="Nothing was measured.",
            remedy="Correct the rows, leave them blank (not labelled), or say what the values mean: "
            "--values VALUE=PASS,VALUE=FAIL.",
        )
    return verdicts


def _count(
    pairs: Sequence[tuple[Verdict | None, Any]], reading: ValueReading, unlabelled: int
) -> tuple[Confusion, Counter[str]]:
    """The confusion table of (human verdict, judge's raw value), and the judge's unknown values beside a label."""
    table: Counter[tuple[Verdict | None, Verdict | None]] = Counter()
    unknown: Counter[str] = Counter()
    for human, raw in pairs:
        if human is None:
            unlabelled += 1
            continue
        try:
            judge = reading.read(raw)
        except ValueError:
            judge = None
            unknown[_short(raw)] += 1
        table[human, judge] += 1
    return (
        Confusion(
            tp=table["FAIL", "FAIL"],
            fn=table["FAIL", "PASS"],
            fp=table["PASS", "FAIL"],
            tn=table["PASS", "PASS"],
            no_verdict_fail=table["FAIL", None],
            no_verdict_pass=table["PASS", None],
            unlabelled=unlabelled,
        ),
        unknown,
    )


def _join_notes(counts: JoinCounts, labelled_only: int, human_file: str, judge_file: str) -> list[str]:
    notes = [f"{counts.matched:,} cases stand in both files"]
    if counts.human_only:
        notes.append(
            f"{counts.human_only:,} rows of {human_file} have no partner in {judge_file}; "
            f"the {labelled_only:,} labelled ones among them are in no figure"
        )
    if counts.judge_only:
        notes.append(
            f"{counts.judge_only:,} rows of {judge_file} have no partner in {human_file} and count as not labelled"
        )
    return notes


def _unknown_note(unknown: Counter[str], path: str) -> list[str]:
    if not unknown:
        return []
    shown = ", ".join(f"{value!r} ({count:,})" for value, count in unknown.most_common(_LISTED))
    more = f" and {len(unknown) - _LISTED:,} others" if len(unknown) > _LISTED else ""
    note = f"values of {path} that are no known verdict count as no verdict: {shown}{more}"
    return [f"{note}; --values-judge says what they mean, if they mean something"]


def _short(value: Any) -> str:
    text = str(value).strip()
    return text if len(text) <= 40 else text[:39] + "\N{HORIZONTAL ELLIPSIS}"
