"""labels.jsonl: every label in plain text beside the database, an independent witness.

Lines are written after the commit that holds the labels. At start missing lines are appended;
surplus ones (the database was restored from an older copy, say) are offered for restore.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import EvaldeskError
from engine.store import labels
from engine.store.labels import Label, Mark
from engine.store.transaction import Transaction


def catch_up(tx: Transaction, path: Path) -> list[Mapping[str, Any]]:
    """Append the lines that the file lacks; returns the surplus ones, which the database lacks."""
    in_store = {_identity(line): line for line in map(_line, labels.all_rows(tx))}
    in_file = {_identity(line): line for line in _read(path)}
    _append(path, [line for key, line in in_store.items() if key not in in_file])
    return [line for key, line in in_file.items() if key not in in_store]


def append_since(tx: Transaction, path: Path, seq: int) -> int:
    """Append the labels with a seq above ``seq``; returns the newest seq."""
    rows = labels.all_rows(tx, seq)
    _append(path, [_line(row) for row in rows])
    return max((label.seq for label, _ in rows), default=seq)


def restore(tx: Transaction, surplus: list[Mapping[str, Any]]) -> int:
    """Take surplus lines back into the store as new label rows, in their order; returns how many."""
    try:
        rows = [
            Label(
                trace_id=str(line["trace"]),
                criterion_id=str(line["criterion"]),
                mark=Mark(line["mark"]),
                critique=str(line["critique"]),
                expert=str(line["expert"]),
                how_drawn=str(line["how_drawn"]),
                trace_version=int(line["trace_version"]),
                criterion_version=int(line["criterion_version"]),
                source_id=str(line["source"]),
            )
            for line in surplus
        ]
    except (KeyError, ValueError) as error:
        raise EvaldeskError(
            f"a line of labels.jsonl cannot be read as a label ({error})", kept="Nothing was restored."
        ) from error
    return len(labels.add_many(tx, rows))


def _line(row: tuple[Label, str]) -> dict[str, Any]:
    label, moment = row
    return {
        "seq": label.seq, "trace": label.trace_id, "trace_version": label.trace_version, "criterion": label.criterion_id,
        "criterion_version": label.criterion_version, "mark": str(label.mark), "critique": label.critique,
        "expert": label.expert, "how_drawn": label.how_drawn, "undoes": label.undoes, "source": label.source_id, "at": moment,
    }  # fmt: skip


def _identity(line: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(line.get(name) for name in ("trace", "criterion", "mark", "critique", "expert", "at"))


def _read(path: Path) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    if not path.exists():
        return lines
    with path.open("r", encoding="utf-8", errors="replace") as file:
        for text in file:
            try:
                line = json.loads(text)
            except ValueError:  # a torn line: its label is in the store and is written again
                continue
            if isinstance(line, dict):
                lines.append(line)
    return lines


def _append(path: Path, lines: list[dict[str, Any]]) -> None:
    if not lines:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "ab") as file:
        if file.tell() and not _ends_with_newline(path):
            file.write(b"\n")
        file.write("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode("utf-8", "replace"))
        file.flush()
        os.fsync(file.fileno())


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
