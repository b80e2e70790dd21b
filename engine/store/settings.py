"""What the workspace remembers about the work: the expert's name, where the reader was."""

from __future__ import annotations

from engine.store.transaction import Transaction


def read(tx: Transaction, name: str, default: str = "") -> str:
    """A remembered value."""
    row = tx.row("SELECT value FROM workspace WHERE name = ?", name)
    return str(row[0]) if row else default


def write(tx: Transaction, name: str, value: str) -> None:
    """Remember a value in place of the earlier one."""
    if tx.row("SELECT 1 FROM workspace WHERE name = ?", name):
        tx.execute("UPDATE workspace SET value = ? WHERE name = ?", value, name)
    else:
        tx.insert("workspace", name=name, value=value)
