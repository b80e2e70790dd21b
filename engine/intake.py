"""Intake: a file of traces or labels goes into the store; what can be read comes in, what cannot is named."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.errors import EvaldeskError
from engine.hashing import content_hash
from engine.importing.mapping import ORIGINS
from engine.importing.mapping import Mapping as FieldMapping
from engine.importing.reading import Kind, preview, read_records
from engine.importing.records import LabelRecord, Refusal, TraceRecord
from engine.store import criteria, dimensions, labels, sources, traces
from engine.store.labels import Label, Mark
from engine.store.transaction import Transaction

_DECISIONS = (Mark.PASS, Mark.FAIL, Mark.NOT_APPLICABLE, Mark.DEFECT)


@dataclass(frozen=True)
class IntakeOrder:
    """What to import and how: a mapping of None is guessed; the last three are needed where the file has labels."""

    path: Path
    mapping: FieldMapping | None = None
    kind: Kind | None = None
    values: str | None = None
    criterion_id: str = ""
    expert: str = ""
    how_drawn: str = ""
    origin: str = ""
    """Of the traces that do not say it themselves: real (also for "") or written."""


@dataclass(frozen=True)
class FileContent:
    """A file as read, before it enters the store."""

    order: IntakeOrder
    source_id: str
    format: str
    kind: str
    mapping: Mapping[str, Any]
    traces: tuple[TraceRecord, ...]
    labels: tuple[LabelRecord, ...]
    refused: tuple[Refusal, ...]


@dataclass(frozen=True)
class IntakeReport:
    """What came of an import. ``same`` and ``labels_same`` were here already, with equal content."""

    path: str
    format: str
    kind: str
    added: int
    same: int
    labels_added: int
    labels_same: int
    refused: tuple[Refusal, ...] = field(default_factory=tuple)
    written: int = 0
    """How many of ``added`` were written for the coverage grid."""

    @property
    def accepted(self) -> int:
        return self.added + self.same if self.kind == "traces" else self.labels_added + self.labels_same

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "accepted": self.accepted, "refused": [asdict(r) for r in self.refused]}


def read_file(order: IntakeOrder) -> FileContent:
    """Read and check a whole file outside the store's thread; raises EvaldeskError when it is not readable as a table."""
    if order.origin and order.origin not in ORIGINS:
        raise EvaldeskError(
            f"{order.origin!r} is no origin of requests",
            kept="Nothing was imported.",
            remedy=f"One of: {', '.join(ORIGINS)}.",
        )
    look = preview(order.path, mapping=order.mapping, kind=order.kind, values=order.values, limit=200)
    found_traces: list[TraceRecord] = []
    found_labels: list[LabelRecord] = []
    refused: list[Refusal] = []
    for record in read_records(order.path, look.mapping, look.kind, order.values):
        if isinstance(record, TraceRecord):
            found_traces.append(record)
        elif isinstance(record, LabelRecord):
            found_labels.append(record)
        else:
            refused.append(record)
    with_verdict = [label for label in found_labels if label.verdict]
    if with_verdict and not order.criterion_id:
        raise EvaldeskError(
            f"the file has {len(with_verdict)} labels, and it is not said which criterion they answer",
            where=str(order.path), kept="Nothing was imported.", remedy="Say it with --criterion ID.",
        )  # fmt: skip
    if with_verdict and order.how_drawn not in labels.HOW_DRAWN:
        raise EvaldeskError(
            f"the file has {len(with_verdict)} labels, and it is not said how these cases were drawn",
            where=str(order.path), kept="Nothing was imported.",
            remedy=f"Say it with --drawn, one of: {', '.join(labels.HOW_DRAWN)}.",
        )  # fmt: skip
    mapping = look.mapping.as_dict()
    digest = hashlib.sha256(order.path.read_bytes()).hexdigest()
    # What the values mean is part of the mapping: a file read the wrong way round can be read again.
    values = [order.values] if order.values else []
    values += [order.origin] if order.origin not in ("", traces.REAL) else []
    source_id = content_hash([digest, mapping, order.criterion_id, *values])[:16]
    return FileContent(
        order, source_id, look.format, look.kind, mapping, tuple(found_traces), tuple(with_verdict), tuple(refused)
    )


def keep(tx: Transaction, content: FileContent) -> IntakeReport:
    """Put a file's rows into the store in one transaction; importing it again adds nothing and replaces nothing.

    Of a file that is known only those labels come in whose trace was missing the last time. A decision
    made here (a verdict, not applicable, a defect) is never replaced by an import.
    """
    order = content.order
    criterion = criteria.get(tx, order.criterion_id) if content.labels else None
    written_before = traces.count_written(tx)
    added, same, refused = traces.add(tx, content.source_id, content.traces, origin=order.origin or traces.REAL)
    if written := traces.count_written(tx) - written_before:
        dimensions.keep_cells(tx, content.source_id, order.expert or "imported")
    blocked = {refusal.row for refusal in refused}
    new_labels: list[Label] = []
    labels_same = 0
    if criterion is not None:
        known = dict(tx.rows("SELECT trace_id, max(version) FROM trace GROUP BY trace_id"))
        current = labels.current_of(tx, criterion.criterion_id)
        decided = sources.settled_traces(tx, content.source_id)
        for record in content.labels:
            if record.row in blocked:
                continue
            if record.trace_id not in known:
                refused.append(Refusal(record.row, "id", f"there is no trace {record.trace_id} in this workspace"))
                continue
            label = Label(
                trace_id=record.trace_id, criterion_id=criterion.criterion_id, mark=Mark(record.verdict),
                critique=record.critique, expert=record.expert or order.expert or "imported", how_drawn=order.how_drawn,
                trace_version=known[record.trace_id], criterion_version=criterion.version,
                source_id=content.source_id, source_row=record.row,
            )  # fmt: skip
            before = current.get(record.trace_id)
            if record.trace_id in decided or (
                before is not None
                and (before.mark, before.critique, before.expert)
                == (
                    label.mark,
                    label.critique,
                    label.expert,
                )
            ):
                labels_same += 1
            elif before is not None and before.mark in _DECISIONS and not before.source_id:
                refused.append(
                    Refusal(
                        record.row, "label", f"{record.trace_id} was labelled here; an import does not replace that"
                    )
                )
            else:
                new_labels.append(label)
                current[record.trace_id] = replace(label, seq=0)
    labels.add_many(tx, new_labels)
    everything = tuple(sorted((*content.refused, *refused), key=lambda r: r.row))
    report = IntakeReport(
        str(order.path), content.format, content.kind, added, same, len(new_labels), labels_same, everything, written
    )
    if added or new_labels or not sources.is_known(tx, content.source_id):
        sources.add(
            tx, content.source_id, path=str(order.path), kind=content.kind, format=content.format, mapping=content.mapping,
            accepted=report.accepted, refused=len(everything),
        )  # fmt: skip
    return report
