"""One transaction on the store, handed to the functions that read and write its entities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb


class Transaction:
    """Reads and writes inside one DuckDB transaction; used only in the store's thread."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._after_commit: list[Callable[[], None]] = []
        self._after_rollback: list[Callable[[], None]] = []
        self.touched: set[str] = set()
        """Names of the entities that were changed, for those who follow them."""

    def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        return self._connection.execute(sql, list(parameters)).fetchall()

    def row(self, sql: str, *parameters: Any) -> tuple[Any, ...] | None:
        """The first row of a query, or None."""
        rows = self.rows(sql, *parameters)
        return rows[0] if rows else None

    def value(self, sql: str, *parameters: Any) -> Any:
        """The first column of the first row; the query is one that always gives a row."""
        row = self.row(sql, *parameters)
        assert row is not None
        return row[0]

    def execute(self, sql: str, *parameters: Any) -> None:
        """A statement without a result."""
        self._connection.execute(sql, list(parameters))

    def insert(self, table: str, **columns: Any) -> None:
        """One row; ``table`` and the column names come from this code, never from outside."""
        names = ", ".join(columns)
        marks = ", ".join("?" for _ in columns)
        self.touched.add(table)
        self.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", *columns.values())

    def append(self, table: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
        """Many rows at once, column by column (row by row costs a hundred times as much); returns how many."""
        columns = list(zip(*rows, strict=True))
        if not columns:
            return 0
        self.touched.add(table)
        types = dict(
            self.rows("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = ?", table)
        )
        lists = ", ".join(f"unnest(?::{types[name]}[])" for name in names)
        self.execute(f"INSERT INTO {table} ({', '.join(names)}) SELECT {lists}", *[list(column) for column in columns])
        return len(columns[0])

    def next_seq(self) -> int:
        """The next event number: later events have larger ones."""
        return int(self.value("SELECT nextval('event_seq')"))

    def next_seqs(self, count: int) -> list[int]:
        """So many event numbers at once, in order."""
        return sorted(int(row[0]) for row in self.rows("SELECT nextval('event_seq') FROM range(?)", count))

    def after_commit(self, action: Callable[[], None]) -> None:
        """Run ``action`` in the store's thread once this transaction is durable."""
        self._after_commit.append(action)

    def after_rollback(self, action: Callable[[], None]) -> None:
        """Run ``action`` in the store's thread once this transaction was taken back; it must not raise."""
        self._after_rollback.append(action)

    def run_after_rollback(self) -> None:
        """Called by the store when the work or the commit failed."""
        for action in self._after_rollback:
            action()

    def run_after_commit(self) -> None:
        """Called by the store when the commit succeeded."""
        for action in self._after_commit:
            action()


def now() -> datetime:
    """The present in UTC, without a zone, as the tables hold it."""
    return datetime.now(UTC).replace(tzinfo=None)
