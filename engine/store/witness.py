"""labels.jsonl: every label in plain text beside the database, an independent witness.

Lines are written after the commit that holds the labels. At start missing lines are appended;
surplus ones (the database was restored from an older copy, say) are offered for restore. The file
may have been edited by hand: what is no label is named and passed over.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from engine.errors import EvaldeskError
from engine.plain_files import open_plain
from engine.store import labels
from engine.store.faults import disk_refused
from engine.store.labels import HOW_DRAWN, Label, Mark
from engine.store.transaction import Transaction

_TEXTS = ("trace", "criterion", "mark", "critique", "expert", "how_drawn", "source")
_NUMBERS = ("seq", "trace_version", "criterion_version", "undoes")
_MARKS = frozenset(Mark)
_IDENTITY = ("trace", "criterion", "mark", "critique", "expert", "at")


@dataclass(frozen=True)
class Look:
    """What comparing labels.jsonl with the database found."""

    missing: tuple[Mapping[str, Any], ...]
    """Labels of the database that the file lacks, as lines."""
    surplus: tuple[Mapping[str, Any], ...]
    """Sound lines that the database lacks, in the order of the file."""
    passed_over: tuple[str, ...]
    """Lines that cannot be labels here, each named with its reason."""


@dataclass(frozen=True)
class Restored:
    """What came of a restore."""

    count: int
    passed_over: tuple[str, ...] = ()


def look(tx: Transaction, path: Path) -> Look:
    """Compare the file with the database; raises EvaldeskError when something that is no plain file has its name."""
    in_store = {_identity(line): line for line in map(_line, labels.all_rows(tx))}
    lines = list(read_lines(path))
    here = Known.of(tx, [line for _, line in lines])
    in_file: set[tuple[Any, ...]] = set()
    surplus: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    passed_over: list[str] = []
    for number, line in lines:
        problem = _problem(line, here)
        if problem:
            passed_over.append(f"line {number}: {problem}")
            continue
        identity = _identity(line)
        in_file.add(identity)
        if identity not in in_store:
            surplus[identity] = line
    missing = [line for identity, line in in_store.items() if identity not in in_file]
    return Look(tuple(missing), tuple(surplus.values()), tuple(passed_over))


def append(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Append lines and sync; raises EvaldeskError when the disk refuses."""
    if not lines:
        return
    text = "".join(json.dumps(dict(line), ensure_ascii=False) + "\n" for line in lines)
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o600)
        with os.fdopen(descriptor, "ab", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _no_plain_file(path)
            os.fchmod(descriptor, 0o600)
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            data = memoryview((b"\n" if torn else b"") + text.encode("utf-8", "replace"))
            try:
                while data:
                    data = data[file.write(data) :]
                os.fsync(descriptor)
            except OSError:
                # Every line stays one that other tools can read; what is missing is written at the next start.
                os.ftruncate(descriptor, size)
                raise
    except OSError as error:
        raise disk_refused(
            error, path, what=f"{path.name} cannot be written", kept="What it lacks is in the database all the same."
        ) from error


def append_since(tx: Transaction, path: Path, seq: int) -> int:
    """Append the labels with a seq above ``seq``; returns the newest seq."""
    rows = labels.all_rows(tx, seq)
    append(path, [_line(row) for row in rows])
    return max((label.seq for label, _ in rows), default=seq)


def restore(tx: Transaction, surplus: Sequence[Mapping[str, Any]]) -> Restored:
    """Take surplus lines back into the store with the time they had; doing it again adds nothing.

    A restored label counts only where the database has no later one of the same case: others are put
    below what is there, as history. A line that is no label, or whose trace or criterion is not here,
    is passed over and named.
    """
    here = Known.of(tx, surplus)
    known = {_identity(line) for line in map(_line, labels.all_rows(tx))}
    newest = {
        (row[0], row[1]): row[2]
        for row in tx.rows("SELECT trace_id, criterion_id, max(created_at) FROM label GROUP BY ALL")
    }
    lowest = min(int(tx.value("SELECT coalesce(min(seq), 0) FROM label")), 0)
    passed_over: list[str] = []
    sound: list[tuple[datetime, int, Mapping[str, Any]]] = []
    for number, line in enumerate(surplus, 1):
        problem = _problem(line, here)
        if problem:
            passed_over.append(f"label {number}: {problem}")
        elif _identity(line) not in known:
            known.add(_identity(line))
            sound.append((moment_of(line["at"]), line["seq"], line))
    sound.sort(key=lambda entry: entry[:2])
    cases = [(line["trace"], line["criterion"]) for _, _, line in sound]
    is_later = [case not in newest or moment > newest[case] for case, (moment, _, _) in zip(cases, sound, strict=True)]
    earlier = iter(range(lowest - is_later.count(False), lowest))
    seq_now: dict[tuple[str, str, int], int] = {}
    rows: list[Label] = []
    for (_, old_seq, line), case, later in zip(sound, cases, is_later, strict=True):
        undoes = 0
        if line["undoes"]:
            # The seqs of the file may have been given anew since; what cannot be found was taken back all the same.
            found = seq_now.get((*case, line["undoes"])) or _same_row(tx, *case, line["undoes"])
            undoes = found or tx.next_seq()
        seq = tx.next_seq() if later else next(earlier)
        seq_now[*case, old_seq] = seq
        rows.append(
            Label(
                trace_id=line["trace"], criterion_id=line["criterion"], mark=Mark(line["mark"]), critique=line["critique"],
                expert=line["expert"], how_drawn=line["how_drawn"], trace_version=line["trace_version"],
                criterion_version=line["criterion_version"], source_id=line["source"], undoes=undoes, seq=seq,
            )
        )  # fmt: skip
    labels.put_back(tx, [(label, moment) for label, (moment, _, _) in zip(rows, sound, strict=True)])
    return Restored(len(rows), tuple(passed_over))


@dataclass(frozen=True)
class Known:
    """What a line may be about."""

    traces: frozenset[str]
    criteria: frozenset[str]

    @classmethod
    def of(cls, tx: Transaction, lines: Sequence[Any]) -> Known:
        """Which of the traces that these lines name are here, and all criteria."""
        named = [line.get("trace") for line in lines if isinstance(line, Mapping)]
        traces = list({name for name in named if isinstance(name, str) and storable(name)})
        found = tx.rows("SELECT DISTINCT trace_id FROM trace WHERE trace_id IN (SELECT unnest(?::VARCHAR[]))", traces)
        return cls(
            frozenset(row[0] for row in found),
            frozenset(row[0] for row in tx.rows("SELECT DISTINCT criterion_id FROM criterion")),
        )


def _problem(line: Any, here: Known) -> str:
    """Why a line is no label of this workspace; "" when it is one."""
    if not isinstance(line, Mapping):
        return "it is no JSON object"
    for name in (*_TEXTS, "at"):
        if not isinstance(line.get(name), str):
            return f"{name} is missing or no text"
        if not storable(line[name]):
            return f"{name} holds characters that cannot be stored"
    for name in _NUMBERS:
        value = line.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            return f"{name} is missing or no number"
        limit = 2**31 if name.endswith("version") else 2**62
        if abs(value) >= limit:
            return f"{name} is out of range"
    if line["mark"] not in _MARKS:
        return "its mark is none that there is"
    if line["how_drawn"] not in HOW_DRAWN:
        return "how_drawn is no way of drawing cases"
    try:
        moment_of(line["at"])
    except ValueError:
        return "at is no time"
    if line["trace"] not in here.traces:
        return f"there is no trace {line['trace'][:60]} here"
    if line["criterion"] not in here.criteria:
        return f"there is no criterion {line['criterion'][:60]} here"
    if line["mark"] in ("PASS", "FAIL") and not line["source"] and not line["critique"].strip():
        return "a verdict without a critique"
    return ""


def storable(text: str) -> bool:
    """Whether the database takes the text."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def moment_of(text: str) -> datetime:
    """The time of a line; raises ValueError for what is no time in UTC without a zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError("a time with a zone")
    return moment


def _same_row(tx: Transaction, trace_id: str, criterion_id: str, seq: int) -> int:
    row = tx.row(
        "SELECT seq FROM label WHERE seq = ? AND trace_id = ? AND criterion_id = ?", seq, trace_id, criterion_id
    )
    return int(row[0]) if row else 0


def _line(row: tuple[Label, str]) -> dict[str, Any]:
    label, moment = row
    return {
        "seq": label.seq, "trace": label.trace_id, "trace_version": label.trace_version, "criterion": label.criterion_id,
        "criterion_version": label.criterion_version, "mark": str(label.mark), "critique": label.critique,
        "expert": label.expert, "how_drawn": label.how_drawn, "undoes": label.undoes, "source": label.source_id, "at": moment,
    }  # fmt: skip


def _identity(line: Mapping[str, Any]) -> tuple[Any, ...]:
    moment = moment_of(line["at"])  # one and the same time can be written in several ways
    return (*(line[name] for name in _IDENTITY[:-1]), moment)


def read_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """(number, value) of every line that is JSON; a torn one is left out: its label is in the store and is written again."""
    try:
        file = open_plain(path)
    except FileNotFoundError:
        return
    except IsADirectoryError:
        raise _no_plain_file(path) from None
    except OSError as error:
        if path.exists() and not path.is_file():
            raise _no_plain_file(path) from None
        raise disk_refused(
            error, path, what=f"{path.name} cannot be read", kept="The database was not changed."
        ) from error
    with file:
        for number, text in enumerate(file, 1):
            try:
                yield number, json.loads(text)
            except ValueError:
                continue
            except RecursionError:
                yield number, None


def _no_plain_file(path: Path) -> EvaldeskError:
    return EvaldeskError(
        f"something that is no plain file has the name of {path.name}", where=str(path),
        kept="The database was not changed.", remedy="Move it away; the file is written anew from the database.",
    )  # fmt: skip
