"""Tables as text: comma, semicolon or tab between cells, quotes around cells that need them."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO, TextIOBase
from pathlib import Path

from engine.errors import EvaldeskError
from engine.importing.encoding import Encoding, open_text
from engine.importing.records import Refusal
from engine.importing.rows import MAX_ROW_CHARS, Row, clean_text, unreadable_text

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}
_SEP_LINE = re.compile(r"sep=(.)\r?\n?", re.IGNORECASE)
_FIELD_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class Layout:
    """How a delimited file is laid out: the delimiter, and whether a first line "sep=;" states it."""

    delimiter: str
    sep_line: bool = False


def sniff(head: str) -> Layout:
    """The layout that makes the rows at the beginning of the file as wide as its header, and the header widest."""
    stated = _SEP_LINE.match(head)
    if stated and stated[1] in DELIMITERS:
        return Layout(stated[1], sep_line=True)
    best, best_score = ",", (0.0, 1)
    for delimiter in DELIMITERS:
        widths = _widths(head, delimiter)
        if not widths or widths[0] < 2:
            continue
        body = widths[1:]
        score = (
            sum(width == widths[0] for width in body) / len(body) if body else 0.5,
            widths[0],
        )
        if score > best_score:
            best, best_score = delimiter, score
    return Layout(best)


def read(path: Path, encoding: Encoding, layout: Layout) -> Iterator[Row | Refusal]:
    """Each record after the header as a row of {column name: text}, or as a refusal; blank lines are no records."""
    csv.field_size_limit(_FIELD_LIMIT)
    with open_text(path, encoding, newline="") as file:
        records = _Records(file, layout)
        names, _ = column_names(records.header(path))
        for number, record in enumerate(records, start=1):
            if isinstance(record, str):
                yield Refusal(number, "", record)
            elif len(record) != len(names):
                yield Refusal(
                    number,
                    "",
                    f"has {_cells(len(record))}, the header has {len(names)}",
                )
            else:
                fields = dict(zip(names, record, strict=True))
                bad = ((name, reason) for name, text in fields.items() if (reason := unreadable_text(text)))
                name, reason = next(bad, ("", ""))
                yield Refusal(number, name, reason) if reason else Row(number, fields)


def header(path: Path, encoding: Encoding, layout: Layout) -> tuple[list[str], list[str]]:
    """The column names and what had to be done to make each of them a name of its own."""
    csv.field_size_limit(_FIELD_LIMIT)
    with open_text(path, encoding, newline="") as file:
        return column_names(_Records(file, layout).header(path))


def column_names(cells: list[str]) -> tuple[list[str], list[str]]:
    """A distinct, non-empty name for each header cell, in order, and notes on those that were changed."""
    names: dict[str, None] = {}
    notes: list[str] = []
    for position, cell in enumerate(cells, start=1):
        name = clean_text(cell).replace("\0", "\N{REPLACEMENT CHARACTER}").strip()
        if not name:
            name = f"column {position}"
        first, count = name, 1
        while name in names:
            count += 1
            name = f"{first} ({count})"
        if count > 1:
            notes.append(f"column {position} has the name of an earlier one and is called {name!r} here")
        names[name] = None
    return list(names), notes


class _TooLong(Exception):
    pass


class _Lines:
    """Physical lines for the csv module, remembered per record so that a broken record can be begun anew after it."""

    def __init__(self, file: TextIOBase) -> None:
        self._file = file
        self._again: deque[str] = deque()
        self.record: list[str] = []
        self._size = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else self._file.readline(MAX_ROW_CHARS + 1)
        if not line:
            raise StopIteration
        self.record.append(line)
        self._size += len(line)
        if len(line) > MAX_ROW_CHARS:
            while line and not line.endswith(("\n", "\r")):
                line = self._file.readline(MAX_ROW_CHARS)
        if self._size > MAX_ROW_CHARS:
            raise _TooLong
        return line

    def begin(self) -> None:
        self.record.clear()
        self._size = 0

    def give_back(self) -> None:
        """Put all lines of the present record but its first in front again."""
        self._again.extendleft(reversed(self.record[1:]))


class _Records:
    """Records of cells; one that cannot be read is the reason why, as a text."""

    def __init__(self, file: TextIOBase, layout: Layout) -> None:
        self._lines = _Lines(file)
        if layout.sep_line:
            next(self._lines, None)
        self._reader = csv.reader(self._lines, delimiter=layout.delimiter, strict=True)

    def __iter__(self) -> Iterator[list[str] | str]:
        while True:
            self._lines.begin()
            try:
                cells = next(self._reader)
            except StopIteration:
                return
            except _TooLong:
                self._lines.give_back()
                yield f"is longer than {MAX_ROW_CHARS // 2**20} MB, or a quoted cell that begins here is never closed"
                continue
            except csv.Error as error:
                # A quote too many reaches into rows that are whole: these are read again without it.
                self._lines.give_back()
                if "unexpected end" in str(error):
                    yield "a quoted cell that begins in this line is never closed"
                else:
                    yield f"cannot be split into cells: {error}"
                continue
            if cells:
                yield cells

    def header(self, path: Path) -> list[str]:
        for record in self:
            if isinstance(record, str):
                raise EvaldeskError(
                    f"the header {record}",
                    where=path.name,
                    kept="Nothing was read.",
                    remedy="Put the column names into the first line, each in quotes if it holds a delimiter.",
                )
            return record
        raise EvaldeskError(
            "holds no header and no rows",
            where=path.name,
            remedy="Export the file again.",
        )


def _widths(head: str, delimiter: str) -> list[int]:
    widths: list[int] = []
    try:
        for cells in csv.reader(StringIO(head, newline=""), delimiter=delimiter):
            if cells:
                widths.append(len(cells))
            if len(widths) == 50:
                break
    except csv.Error:
        return widths
    # The last record may be cut off by the end of the head.
    return widths[:-1] if len(widths) > 2 else widths


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"
