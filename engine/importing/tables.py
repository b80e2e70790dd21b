"""Any readable file as a table of rows; its format is found from what it holds, not from its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from engine.errors import EvaldeskError
from engine.importing import delimited, jsonrows, parquet
from engine.importing.encoding import Encoding, from_head, utf8_or_cp1252
from engine.importing.records import Refusal
from engine.importing.rows import CODEC_ERRORS, UNDECODABLE, Row

Format = Literal["csv", "jsonl", "json", "parquet"]

_HEAD_BYTES = 1 << 16

_FOREIGN: Final = (
    (b"\x1f\x8b", "is compressed with gzip", "Unpack it first: gunzip FILE.gz"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd", "Unpack it first: unzstd FILE.zst"),
    (b"BZh", "is compressed with bzip2", "Unpack it first: bunzip2 FILE.bz2"),
    (b"\xfd7zXZ", "is compressed with xz", "Unpack it first: unxz FILE.xz"),
    (b"PK\x03\x04", "is a ZIP archive (Excel workbooks and .eval logs are such archives too)",
     "Unpack it, or save the worksheet as CSV (UTF-8)."),
    (b"\xd0\xcf\x11\xe0", "is an old Excel or Office file", "Save the worksheet as CSV (UTF-8)."),
    (b"SQLite format 3", "is an SQLite database", "Export the table as CSV or JSONL."),
    (b"%PDF", "is a PDF", "Export the rows as CSV or JSONL."),
    (b"\x89PNG", "is a picture", "Choose a file with rows."),
    (b"\xff\xd8\xff", "is a picture", "Choose a file with rows."),
)  # fmt: skip


@dataclass(frozen=True)
class Table:
    """An opened table.

    ``encoding`` is the name of the text encoding, "" for Parquet. ``problems`` are notes on the file as a whole.
    """

    format: Format
    encoding: str
    problems: tuple[str, ...] = ()
    _begin: Callable[[], Iterator[Row | Refusal]] = field(default=lambda: iter(()), repr=False, compare=False)

    @property
    def rows(self) -> Iterator[Row | Refusal]:
        """The rows from the first one on, read as they are asked for; what cannot be read comes as a `Refusal`.

        Each use begins anew. Every row of the file is given exactly once, as the one or the other.
        """
        return self._begin()


def open_table(path: str | Path) -> Table:
    """Find out the format and encoding of a file; EvaldeskError where it is no table that can be read."""
    path = Path(path)
    head = _head(path)
    if head.startswith(b"PAR1"):
        return Table("parquet", "", (), lambda: parquet.read(path))
    for magic, what, remedy in _FOREIGN:
        if head.startswith(magic):
            raise EvaldeskError(f"{what}, which cannot be read", where=path.name, remedy=remedy)
    if head[8:12] == b"DUCK":
        raise EvaldeskError(
            "is a DuckDB database, which is no table of traces",
            where=path.name,
            remedy="Export the table as Parquet.",
        )
    encoding = from_head(head)
    text = _text(head, encoding)
    if _is_binary(text):
        raise EvaldeskError(
            "is not text, and not a binary format that can be read",
            where=path.name,
            kept="Nothing was read.",
            remedy="Give a CSV, JSONL, JSON or Parquet file.",
        )
    start = text.lstrip()[:1]
    if not start and path.stat().st_size <= _HEAD_BYTES:
        raise EvaldeskError("is empty", where=path.name, remedy="Export the file again.")
    if start and start in "{[":
        return _json_table(path, encoding)
    if jsonrows.looks_like_lines(path, encoding):
        return Table("jsonl", encoding.label(), (), lambda: jsonrows.read_lines(path, encoding))
    return _delimited_table(path, encoding)


def readable_rows(path: str | Path, *, kept: str) -> Iterator[Row]:
    """The rows of a file of which every one has to be readable: EvaldeskError, which says ``kept``, at the first that is not."""
    for row in open_table(path).rows:
        if isinstance(row, Refusal):
            field = f", field {row.field!r}" if row.field else ""
            raise EvaldeskError(
                f"row {row.row:,}{field} {row.reason}",
                where=Path(path).name,
                kept=kept,
                remedy="Mend the row or take it out.",
            )
        yield row


def _json_table(path: Path, encoding: Encoding) -> Table:
    shape = jsonrows.shape(path, encoding)
    if shape.format == "jsonl":
        return Table("jsonl", encoding.label(), (), lambda: jsonrows.read_lines(path, encoding))
    problems = (f"the rows are those under {shape.key!r}",) if shape.key else ()
    return Table("json", encoding.label(), problems, lambda: jsonrows.read_elements(shape))


def _delimited_table(path: Path, encoding: Encoding) -> Table:
    if not encoding.sure:
        encoding = utf8_or_cp1252(path)
    with path.open("rb") as file:
        layout = delimited.sniff(_text(file.read(_HEAD_BYTES), encoding))
    _, notes = delimited.header(path, encoding, layout)
    return Table(
        "csv",
        encoding.label(),
        tuple(notes),
        lambda: delimited.read(path, encoding, layout),
    )


def _head(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise EvaldeskError("is a directory", where=str(path), remedy="Name one file.")
        if path.exists() and not path.is_file():
            raise EvaldeskError("is not a regular file", where=str(path), remedy="Name a file on disk.")
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except FileNotFoundError:
        raise EvaldeskError("no such file", where=str(path), remedy="Check the name.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise EvaldeskError(
            f"cannot be opened: {reason}",
            where=str(path),
            remedy="Check its name and rights.",
        ) from None
    if not head:
        raise EvaldeskError("is empty", where=path.name, remedy="Export the file again.")
    return head


def _text(head: bytes, encoding: Encoding) -> str:
    text = head[encoding.bom :].decode(encoding.codec, CODEC_ERRORS)
    # A character that the end of the head cuts in two is no fault of the file.
    return text.removesuffix(UNDECODABLE) if len(head) == _HEAD_BYTES else text


def _is_binary(text: str) -> bool:
    controls = sum(character < " " and character not in "\t\n\r\f\v" for character in text)
    return controls > 0.05 * len(text) + 3
