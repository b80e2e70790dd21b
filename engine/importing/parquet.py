"""Parquet tables, read through DuckDB in a memory-only database of their own."""

from __future__ import annotations

import datetime
import glob
import math
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from engine.errors import EvaldeskError
from engine.importing.records import Refusal
from engine.importing.rows import MAX_DEPTH, Row

_BATCH = 500


def read(path: Path) -> Iterator[Row | Refusal]:
    """Each row of the file with its values as JSON would hold them: times as ISO 8601 text, decimals as numbers."""
    import duckdb

    try:
        with duckdb.connect(":memory:") as connection:
            connection.execute("SET enable_progress_bar = false")
            connection.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
            # A name with * ? [ in it is this one file, never a pattern.
            file = [glob.escape(str(path.absolute()))]
            columns = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", file).fetchall()
            quoted = [(str(name).replace('"', '""'), str(kind)) for name, kind, *_ in columns]
            picked = ", ".join(_column(name, kind) for name, kind in quoted)
            rows = connection.execute(f"SELECT {picked} FROM read_parquet(?)", file)
            names = [str(name) for name, *_ in columns]
            number = 0
            while batch := rows.fetchmany(_BATCH):
                for values in batch:
                    number += 1
                    yield _row(number, names, values)
    except duckdb.Error as error:
        raise EvaldeskError(
            f"cannot be read as Parquet: {str(error).splitlines()[0]}",
            where=path.name,
            remedy="Write the file again, or export it as CSV or JSONL.",
        ) from None


def _column(quoted: str, kind: str) -> str:
    # Times with a zone need a further package to become Python objects; as text they do not.
    if kind == "TIMESTAMP WITH TIME ZONE":
        return f'"{quoted}"::VARCHAR'
    return f'to_json("{quoted}")::VARCHAR' if "WITH TIME ZONE" in kind else f'"{quoted}"'


def _row(number: int, names: list[str], values: tuple[Any, ...]) -> Row | Refusal:
    fields: dict[str, Any] = {}
    for name, value in zip(names, values, strict=True):
        try:
            fields[name] = _plain(value, 0)
        except ValueError as error:
            return Refusal(number, name, str(error))
    return Row(number, fields)


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError("holds bytes that are not text") from None
    if isinstance(value, (dict, list, tuple)):
        if depth >= MAX_DEPTH:
            raise ValueError(f"is nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, dict):
            return {str(name): _plain(inner, depth + 1) for name, inner in value.items()}
        return [_plain(inner, depth + 1) for inner in value]
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (datetime.timedelta, uuid.UUID)):
        return str(value)
    raise ValueError(f"holds a value of the type {type(value).__name__}, which cannot be read")
