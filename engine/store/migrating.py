"""Numbered migrations, run forward on open, after a copy of the file was set aside."""

from __future__ import annotations

import importlib.resources
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import EvaldeskError
from engine.store.faults import disk_refused
from engine.store.transaction import now

if TYPE_CHECKING:
    import duckdb


def available() -> list[tuple[int, str, str]]:
    """(number, name, SQL) of every migration that this version knows, in order."""
    folder = importlib.resources.files("engine.store") / "migrations"
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(int(name[:4]), name, (folder / name).read_text("utf-8")) for name in files]


def migrate(connection: duckdb.DuckDBPyConnection, database: Path, backups: Path) -> None:
    """Bring the database to this version's schema, each step in a transaction of its own.

    Raises EvaldeskError when the file was written by a newer version.
    """
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations (number INTEGER NOT NULL, name VARCHAR NOT NULL, applied_at TIMESTAMP NOT NULL)"
    )
    done = {int(number) for (number,) in connection.execute("SELECT number FROM schema_migrations").fetchall()}
    steps = available()
    unknown = done - {number for number, _, _ in steps}
    if unknown:
        raise EvaldeskError(
            f"the workspace was written by a newer evaldesk (its schema has step {max(unknown)})",
            where=str(database),
            kept="Nothing was changed.",
            remedy="Install the newer version, or work in another workspace.",
        )
    missing = [step for step in steps if step[0] not in done]
    if missing and done:
        connection.execute("CHECKPOINT")
        _set_aside(database, backups, f"before-{missing[0][1].removesuffix('.sql')}.duckdb")
    for number, name, sql in missing:
        connection.begin()
        connection.execute(sql)
        connection.execute("INSERT INTO schema_migrations VALUES (?, ?, ?)", [number, name, now()])
        connection.commit()


def _set_aside(database: Path, backups: Path, name: str) -> None:
    """Copy the database into backups/, readable by its owner only."""
    copy = backups / name
    try:
        backups.mkdir(mode=0o700, exist_ok=True)
        copy.unlink(missing_ok=True)
        with (
            open(copy, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as out,
            database.open("rb") as file,
        ):
            shutil.copyfileobj(file, out)
    except OSError as error:
        raise disk_refused(
            error,
            copy,
            what="the database cannot be copied before it is brought up to date",
            kept="Nothing was changed.",
        ) from error
