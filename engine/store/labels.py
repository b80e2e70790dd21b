"""Labels: append-only rows, the newest one of a (trace, criterion) counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from engine.errors import Refused
from engine.store.transaction import Transaction, now


class Mark(StrEnum):
    """What a label row says. Only PASS and FAIL are verdicts; WITHDRAWN takes an earlier row back."""

    PASS = "PASS"
    FAIL = "FAIL"
    NOT_APPLICABLE = "NOT_APPLICABLE"
    DEFECT = "DEFECT"
    DEFERRED = "DEFERRED"
    WITHDRAWN = "WITHDRAWN"

    @property
    def is_verdict(self) -> bool:
        return self in (Mark.PASS, Mark.FAIL)


HOW_DRAWN = ("random", "by_cell", "by_judge", "by_verdict", "hand")


@dataclass(frozen=True)
class Label:
    """One label row. ``source_id`` is "" for a label given in the app; ``undoes`` names the row it takes back."""

    trace_id: str
    criterion_id: str
    mark: Mark
    critique: str
    expert: str
    how_drawn: str
    trace_version: int = 1
    criterion_version: int = 1
    judge_visible: bool = False
    seconds: float | None = None
    source_id: str = ""
    source_row: int = 0
    undoes: int = 0
    seq: int = 0


_COLUMNS = (
    "seq", "trace_id", "trace_version", "criterion_id", "criterion_version", "mark", "critique", "expert", "how_drawn",
    "judge_visible", "seconds", "source_id", "source_row", "undoes", "created_at",
)  # fmt: skip
_FIELDS = (
    "trace_id, criterion_id, mark, critique, expert, how_drawn, trace_version, criterion_version, judge_visible, seconds, "
    "source_id, source_row, undoes, seq"
)
# The newest row of each (trace, criterion), and what counts: a verdict, with a critique where it was given here.
CURRENT = "(SELECT * FROM label QUALIFY seq = max(seq) OVER (PARTITION BY trace_id, criterion_id))"
COUNTING = (
    "(SELECT * FROM label QUALIFY seq = max(seq) OVER (PARTITION BY trace_id, criterion_id) "
    "AND mark IN ('PASS', 'FAIL') AND (source_id <> '' OR critique <> ''))"
)


def add(tx: Transaction, label: Label) -> Label:
    """Append one label given by a person here and return it with its seq.

    Raises Refused for a verdict without a critique (that is a draft) and for an unknown ``how_drawn``.
    """
    if label.mark.is_verdict and not label.source_id and not label.critique.strip():
        raise Refused("a label without a critique is a draft and is not saved as a label")
    return add_many(tx, [label])[0]


def add_many(tx: Transaction, labels: Iterable[Label]) -> list[Label]:
    """Append label rows, in order; returns them with their seqs."""
    moment = now()
    stored = [replace(label, seq=tx.next_seq()) for label in labels]
    put_back(tx, [(label, moment) for label in stored])
    return stored


def put_back(tx: Transaction, rows: Sequence[tuple[Label, datetime]]) -> None:
    """Write label rows with the seq and the time that they have: for those that were here before."""
    for label, _ in rows:
        if label.how_drawn not in HOW_DRAWN:
            raise Refused(f"{label.how_drawn!r} is no way of drawing cases; one of: {', '.join(HOW_DRAWN)}")
    tx.append(
        "label",
        _COLUMNS,
        [
            (label.seq, label.trace_id, label.trace_version, label.criterion_id, label.criterion_version, str(label.mark),
             label.critique, label.expert, label.how_drawn, label.judge_visible, label.seconds, label.source_id,
             label.source_row, label.undoes, moment)
            for label, moment in rows
        ],
    )  # fmt: skip


def current(tx: Transaction, trace_id: str, criterion_id: str) -> Label | None:
    """The newest row for one case, or None when it was never labelled."""
    row = tx.row(
        f"SELECT {_FIELDS} FROM label WHERE trace_id = ? AND criterion_id = ? ORDER BY seq DESC LIMIT 1",
        trace_id, criterion_id,
    )  # fmt: skip
    return _from_row(row) if row else None


def current_of(tx: Transaction, criterion_id: str) -> dict[str, Label]:
    """The newest row of every case of a criterion, by trace id."""
    rows = tx.rows(f"SELECT {_FIELDS} FROM {CURRENT} WHERE criterion_id = ?", criterion_id)
    return {row[0]: _from_row(row) for row in rows}


def undo(tx: Transaction, criterion_id: str) -> tuple[Label, Label | None] | None:
    """Take back the newest label given here that still counts, any number of times.

    Appends the state before it (or WITHDRAWN). A label that something newer has replaced (an import, a
    restored row) is passed over: what is newer would be lost with it. Returns (what was taken back,
    what counts now), or None when nothing is left to undo.
    """
    row = tx.row(
        "WITH standing AS (SELECT * FROM label WHERE criterion_id = ? AND undoes = 0 "
        "AND seq NOT IN (SELECT undoes FROM label WHERE criterion_id = ?)) "
        f"SELECT {_FIELDS} FROM standing WHERE source_id = '' AND NOT EXISTS "
        "(SELECT 1 FROM standing newer WHERE newer.trace_id = standing.trace_id AND newer.seq > standing.seq AND newer.source_id <> '') "
        "ORDER BY seq DESC LIMIT 1",
        criterion_id, criterion_id,
    )  # fmt: skip
    if row is None:
        return None
    taken = _from_row(row)
    before_row = tx.row(
        f"SELECT {_FIELDS} FROM label WHERE trace_id = ? AND criterion_id = ? AND seq < ? ORDER BY seq DESC LIMIT 1",
        taken.trace_id, criterion_id, taken.seq,
    )  # fmt: skip
    before = _from_row(before_row) if before_row else None
    restored = add_many(
        tx,
        [
            Label(
                trace_id=taken.trace_id,
                criterion_id=criterion_id,
                mark=before.mark if before else Mark.WITHDRAWN,
                critique=before.critique if before else "",
                expert=before.expert if before else taken.expert,
                how_drawn=before.how_drawn if before else taken.how_drawn,
                trace_version=before.trace_version if before else taken.trace_version,
                criterion_version=before.criterion_version if before else taken.criterion_version,
                source_id=before.source_id if before else "",
                source_row=before.source_row if before else 0,
                undoes=taken.seq,
            )
        ],
    )[0]
    return taken, None if restored.mark is Mark.WITHDRAWN else restored


def all_rows(tx: Transaction, after_seq: int | None = None) -> list[tuple[Label, str]]:
    """Every row (with a seq above ``after_seq``), oldest first, each with its time in ISO form."""
    where = "" if after_seq is None else f"WHERE seq > {int(after_seq)}"
    rows = tx.rows(f"SELECT {_FIELDS}, created_at FROM label {where} ORDER BY seq")
    return [(_from_row(row[:-1]), row[-1].isoformat()) for row in rows]


def newest_seq(tx: Transaction) -> int:
    """The seq of the newest label, 0 when there is none."""
    return int(tx.value("SELECT coalesce(max(seq), 0) FROM label"))


def _from_row(row: Sequence[Any]) -> Label:
    return Label(row[0], row[1], Mark(row[2]), *row[3:])


def critiques_since(tx: Transaction, criterion_id: str, seq: int) -> tuple[int, list[tuple[str, str]]]:
    """(newest seq, [(trace id, critique)]) of the cases labelled after ``seq``; "" where no verdict counts any more."""
    rows = tx.rows(
        "SELECT trace_id, CASE WHEN mark IN ('PASS', 'FAIL') THEN critique ELSE '' END, seq FROM label WHERE criterion_id = ? AND seq > ? "
        "QUALIFY seq = max(seq) OVER (PARTITION BY trace_id) ORDER BY seq",
        criterion_id, seq,
    )  # fmt: skip
    return (int(rows[-1][2]) if rows else seq), [(trace_id, critique) for trace_id, critique, _ in rows]
