"""A snapshot: a copy of the database written by its owner, that opens anywhere."""

from __future__ import annotations

import os
from pathlib import Path

from engine.errors import EvaldeskError
from engine.store.transaction import Transaction


def write(tx: Transaction, out: Path) -> Path:
    """Write a consistent copy to ``out`` (replacing an earlier one there); a plain file copy of a busy database may not open."""
    temporary = out.with_name(f".{out.name}.{os.getpid()}.part")
    name = str(tx.value("SELECT current_database()")).replace('"', '""')
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        target = str(temporary).replace("'", "''")
        tx.execute(f"ATTACH '{target}' AS snapshot_out (STORAGE_VERSION 'v1.0.0')")
        tx.execute(f'COPY FROM DATABASE "{name}" TO snapshot_out')
        tx.after_commit(lambda: _finish(tx, temporary, out))
    except OSError as error:
        raise EvaldeskError(f"the snapshot cannot be written: {error.strerror}", where=str(out)) from error
    return out


def _finish(tx: Transaction, temporary: Path, out: Path) -> None:
    tx.execute("DETACH snapshot_out")
    os.replace(temporary, out)
