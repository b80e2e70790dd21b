"""A file of traces or labels, read row by row; each row comes in or is refused with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from collections.abc import Mapping as Fields
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

from engine.errors import EvaldeskError
from engine.hashing import content_hash
from engine.importing import row_records
from engine.importing.conversation import text_of
from engine.importing.mapping import Mapping, check_paths, guess_mapping
from engine.importing.pointer import MISSING, get, paths
from engine.importing.records import LabelRecord, Refusal, TraceRecord
from engine.importing.rows import Row
from engine.importing.tables import Table, open_table
from engine.importing.verdicts import ValueReading, infer_reading, normalise

Kind = Literal["traces", "labels"]

SAMPLE_ROWS: Final = 200
"""Rows that a guess of the mapping looks at."""

SHOWN: Final = 5
"""Cases in a preview's sample."""

_MAX_VALUES = 50
_EXAMPLE_CHARS = 80


@dataclass(frozen=True)
class Preview:
    """What an import of a file would bring in.

    ``fields`` are (path, example value) of all fields that the first rows have; ``sample`` up to `SHOWN` accepted
    cases; ``accepted`` and ``refused`` are rows, together all rows that were read (the whole file unless
    ``complete`` is false). ``n_labels`` counts verdicts, ``label_values`` the values of the label column as they
    stand in the file, ``values`` how these are read ({} without a label column).
    """

    format: str
    kind: Kind
    encoding: str
    mapping: Mapping
    fields: tuple[tuple[str, str], ...] = ()
    sample: tuple[dict[str, Any], ...] = ()
    accepted: int = 0
    refused: tuple[Refusal, ...] = ()
    n_labels: int = 0
    label_values: Fields[str, int] = field(default_factory=dict)
    values: Fields[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    complete: bool = True

    def to_json(self) -> dict[str, Any]:
        """The object that ``evaldesk import FILE --dry-run --json`` prints."""
        return {
            "format": self.format,
            "kind": self.kind,
            "accepted": self.accepted,
            "refused": [{"row": r.row, "field": r.field, "reason": r.reason} for r in self.refused],
            "sample": [dict(case) for case in self.sample],
            "encoding": self.encoding,
            "mapping": self.mapping.as_dict(),
            "fields": [{"path": path, "example": example} for path, example in self.fields],
        }


def preview(
    path: str | Path,
    *,
    mapping: Mapping | None = None,
    kind: Kind | None = None,
    values: str | ValueReading | None = None,
    limit: int | None = None,
) -> Preview:
    """Read a file (its first ``limit`` rows) without keeping anything.

    What ``mapping`` does not state, and ``kind``, are guessed from the first rows. Raises EvaldeskError where
    the file is no table, a stated path leads nowhere, or the label's values need to be stated.
    """
    plan = _plan(Path(path), mapping, kind, values)
    accepted = n_labels = read = 0
    refused: list[Refusal] = []
    sample: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()
    rows = iter(plan.table.rows)
    for row in rows if limit is None else islice(rows, limit):
        read += 1
        outcome = plan.take(row)
        if isinstance(row, Row) and plan.reading is not None:
            _count(counts, get(row.fields, plan.mapping.label or ""))
        if isinstance(outcome, Refusal):
            refused.append(outcome)
            continue
        accepted += 1
        n_labels += any(isinstance(record, LabelRecord) and record.verdict != "" for record in outcome)
        if len(sample) < SHOWN:
            sample.append(_case(outcome))
    return Preview(
        format=plan.table.format,
        kind=plan.kind,
        encoding=plan.table.encoding,
        mapping=plan.mapping,
        fields=plan.fields,
        sample=tuple(sample),
        accepted=accepted,
        refused=tuple(refused),
        n_labels=n_labels,
        label_values=dict(counts.most_common(_MAX_VALUES)),
        values=plan.reading.as_dict() if plan.reading else {},
        problems=plan.table.problems,
        complete=limit is None or read < limit or next(rows, None) is None,
    )


def read_records(
    path: str | Path,
    mapping: Mapping | None = None,
    kind: Kind | None = None,
    values: str | ValueReading | None = None,
) -> Iterator[TraceRecord | LabelRecord | Refusal]:
    """Every row of a file in its order: a trace and then its label if it has one, a label, or a refusal.

    Arguments and errors as for `preview`, raised when the first record is asked for.
    """
    plan = _plan(Path(path), mapping, kind, values)
    for row in plan.table.rows:
        outcome = plan.take(row)
        if isinstance(outcome, Refusal):
            yield outcome
        else:
            yield from outcome


@dataclass
class _Plan:
    """How the rows of one file are read, and what was seen of them so far."""

    table: Table
    kind: Kind
    mapping: Mapping
    reading: ValueReading | None
    fields: tuple[tuple[str, str], ...]
    _seen: dict[tuple[str, str], tuple[int, bytes]] = field(default_factory=dict)

    def take(self, row: Row | Refusal) -> tuple[TraceRecord | LabelRecord, ...] | Refusal:
        if isinstance(row, Refusal):
            return row
        try:
            records = self._records(row)
        except row_records.RowFault as fault:
            return Refusal(row.number, fault.field, fault.reason)
        return self._repeated(row, records) or records

    def _records(self, row: Row) -> tuple[TraceRecord | LabelRecord, ...]:
        if self.kind == "labels":
            assert self.reading is not None
            return (row_records.label(row, self.mapping, self.reading),)
        trace = row_records.trace(row, self.mapping)
        if self.reading is None:
            return (trace,)
        label = row_records.label(row, self.mapping, self.reading, trace.trace_id)
        return (trace, label) if label.verdict or label.critique.strip() else (trace,)

    def _repeated(self, row: Row, records: tuple[TraceRecord | LabelRecord, ...]) -> Refusal | None:
        first = records[0]
        name = (first.trace_id, first.expert if isinstance(first, LabelRecord) else "")
        digest = bytes.fromhex(content_hash([_content(record) for record in records])[:32])
        earlier, same = self._seen.setdefault(name, (row.number, digest))
        if earlier == row.number:
            return None
        field_name = self.mapping.trace_id or ("trace_id" if isinstance(first, LabelRecord) else "")
        if same == digest:
            return Refusal(row.number, field_name, f"same as row {earlier}")
        if isinstance(first, LabelRecord):
            return Refusal(row.number, field_name, f"trace {first.trace_id!r} has another label in row {earlier}")
        if not row_records.identity(row.fields, self.mapping):
            return Refusal(row.number, field_name, f"same request, context and response as row {earlier}")
        return Refusal(row.number, field_name, f"id {first.trace_id!r} stands for another trace in row {earlier}")


def _content(record: TraceRecord | LabelRecord) -> Any:
    if isinstance(record, LabelRecord):
        return [record.trace_id, record.verdict, record.critique, record.expert]
    return [record.request, record.response, list(record.context), dict(record.facts), dict(record.metadata)]


def _plan(path: Path, mapping: Mapping | None, kind: Kind | None, values: str | ValueReading | None) -> _Plan:
    table = open_table(path)
    sample = [row.fields for row in islice(table.rows, SAMPLE_ROWS) if isinstance(row, Row)]
    fields = _available(sample)
    stated = mapping or Mapping()
    if sample:
        check_paths(stated, sample, [name for name, _ in fields])
    full = stated.over(guess_mapping(sample, stated=stated, values=values))
    if kind is None:
        texts = full.request or full.response or full.messages
        kind = "labels" if full.label and full.trace_id and not texts else "traces"
    if kind == "labels":
        for name in ("trace_id", "label") if sample else ():
            if not getattr(full, name):
                raise EvaldeskError(
                    f"no field is known to hold the {'id of the trace' if name == 'trace_id' else 'verdict'}",
                    where=path.name,
                    kept="Nothing was read.",
                    remedy=f"Name it: --map {name}=FIELD. Fields: {', '.join(name for name, _ in fields[:20])}.",
                )
        full = replace(full, request="", response="", messages="", context=(), metadata=(), facts="")
    reading = None
    if full.label or kind == "labels":
        column = full.label or "label"
        reading = infer_reading(column, (v for row in sample if (v := get(row, column)) is not MISSING), values)
    return _Plan(table, kind, full, reading, fields)


def _available(sample: list[Fields[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Every path of the sampled rows in the order of its first appearance, with the first value that is not blank."""
    found: dict[str, str] = {}
    for row in sample:
        for path in paths(row):
            if not found.get(path):
                value = get(row, path)
                text = "" if value is MISSING or value is None else " ".join(text_of(value).split())
                found[path] = text if len(text) <= _EXAMPLE_CHARS else text[: _EXAMPLE_CHARS - 1] + "\u2026"
    return tuple(found.items())


def _case(records: tuple[TraceRecord | LabelRecord, ...]) -> dict[str, Any]:
    case: dict[str, Any] = {
        "request": "", "context": [], "response": "", "label": None, "critique": "", "metadata": {}
    }  # fmt: skip
    for record in records:
        if isinstance(record, LabelRecord):
            case |= {"label": record.verdict or None, "critique": record.critique}
        else:
            case |= {
                "request": record.request,
                "context": [dict(item) for item in record.context],
                "response": record.response,
                "metadata": dict(record.metadata),
            }
    return case


def _count(counts: Counter[str], value: Any) -> None:
    text = "?" if isinstance(value, (dict, list)) else "" if value is MISSING else normalise(value)
    if text in counts or len(counts) < 10 * _MAX_VALUES:
        counts[text] += 1
