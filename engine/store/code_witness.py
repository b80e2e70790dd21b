"""codes.jsonl: every code and every merge in plain text beside the database, as labels.jsonl is for labels.

Codes are hours of a person's work too, and a flipped bit in the database's log may drop what follows it silently. They have a file
of their own: a line of labels.jsonl is a label, for every version that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from engine.store import codes, witness
from engine.store.transaction import Transaction
from engine.store.witness import Known, Look, Restored, moment_of, read_lines, storable

_NUMBERS = ("seq", "act", "undoes")
_CODE = ("seq", "act", "trace_id", "trace_version", "criterion_id", "code", "present", "expert", "undoes", "created_at")
_MERGE = ("seq", "act", "criterion_id", "code", "failure_mode", "expert", "undoes", "created_at")


def look(tx: Transaction, path: Path) -> Look:
    """Compare the file with the database; raises EvaldeskError when something that is no plain file has its name."""
    in_store = {_identity(line): line for line in _lines(tx)}
    lines = list(read_lines(path))
    here = Known.of(tx, [line for _, line in lines])
    in_file: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    passed_over: list[str] = []
    for number, line in lines:
        if problem := _problem(line, here):
            passed_over.append(f"line {number}: {problem}")
        else:
            in_file[_identity(line)] = line
    missing = tuple(line for identity, line in in_store.items() if identity not in in_file)
    surplus = tuple(line for identity, line in in_file.items() if identity not in in_store)
    return Look(missing, surplus, tuple(passed_over))


def append_since(tx: Transaction, path: Path, seq: int) -> int:
    """Append the codes and merges with a seq above ``seq``; returns the newest seq."""
    lines = _lines(tx, seq)
    witness.append(path, lines)
    return max((line["seq"] for line in lines), default=seq)


def restore(tx: Transaction, surplus: Sequence[Mapping[str, Any]]) -> Restored:
    """Take surplus lines back into the store with the time they had; doing it again adds nothing.

    A restored line counts only where the database has no later one about the same code; others are put below what is there, as
    history. What is no code of this workspace is passed over and named.
    """
    here = Known.of(tx, surplus)
    present: Sequence[Mapping[str, Any]] = _lines(tx)
    known = {_identity(line) for line in present}
    newest: dict[tuple[Any, ...], datetime] = {}
    for line in present:
        newest[_subject(line)] = max(newest.get(_subject(line), moment_of(line["at"])), moment_of(line["at"]))
    acts = {line["act"] for line in present}
    passed_over: list[str] = []
    sound: list[Mapping[str, Any]] = []
    for number, line in enumerate(surplus, 1):
        if problem := _problem(line, here):
            passed_over.append(f"code {number}: {problem}")
        elif _identity(line) not in known:
            known.add(_identity(line))
            sound.append(line)
    sound.sort(key=lambda line: (moment_of(line["at"]), line["seq"]))
    is_later = [moment_of(line["at"]) > newest.get(_subject(line), datetime.min) for line in sound]
    lowest = min((line["seq"] for line in present), default=0)
    earlier = iter(range(min(lowest, 0) - is_later.count(False), min(lowest, 0)))
    act_now: dict[int, int] = {}
    for line, later in zip(sound, is_later, strict=True):
        seq = tx.next_seq() if later else next(earlier)
        act = act_now.setdefault(line["act"], seq)
        undone = line["undoes"]
        if undone:
            # The acts of the file may have other numbers now; what cannot be found was taken back all the same.
            undone = act_now.get(undone) or (undone if undone in acts else tx.next_seq())
        _put_back(tx, line, seq, act, undone)
    return Restored(len(sound), tuple(passed_over))


def _put_back(tx: Transaction, line: Mapping[str, Any], seq: int, act: int, undoes: int) -> None:
    shared = {
        "seq": seq, "act": act, "criterion_id": line["criterion"], "code": line["code"], "expert": line["expert"], "undoes": undoes,
        "created_at": moment_of(line["at"]),
    }  # fmt: skip
    if "trace" in line:
        tx.insert(
            "code", **shared, trace_id=line["trace"], trace_version=line["trace_version"], present=line["present"]
        )
    else:
        tx.insert("code_merge", **shared, failure_mode=line["failure_mode"])


def _lines(tx: Transaction, after_seq: int | None = None) -> list[dict[str, Any]]:
    """All rows of codes and merges (above a seq), oldest first, as lines."""
    where = "" if after_seq is None else f"WHERE seq > {int(after_seq)}"
    lines = [
        {
            "seq": seq, "act": act, "trace": trace_id, "trace_version": version, "criterion": criterion_id, "code": code,
            "present": present, "expert": expert, "undoes": undoes, "at": at.isoformat(),
        }
        for seq, act, trace_id, version, criterion_id, code, present, expert, undoes, at in tx.rows(f"SELECT {', '.join(_CODE)} FROM code {where}")
    ]  # fmt: skip
    lines += [
        {
            "seq": seq, "act": act, "criterion": criterion_id, "code": code, "failure_mode": failure_mode, "expert": expert,
            "undoes": undoes, "at": at.isoformat(),
        }
        for seq, act, criterion_id, code, failure_mode, expert, undoes, at in tx.rows(f"SELECT {', '.join(_MERGE)} FROM code_merge {where}")
    ]  # fmt: skip
    return sorted(lines, key=lambda line: line["seq"])


def _subject(line: Mapping[str, Any]) -> tuple[Any, ...]:
    """What the newest line decides about: a code of a case, or the failure mode of a code."""
    return (line.get("trace"), line["criterion"], line["code"])


def _identity(line: Mapping[str, Any]) -> tuple[Any, ...]:
    said = line["present"] if "trace" in line else line["failure_mode"]
    return (*_subject(line), said, line["expert"], moment_of(line["at"]))


def _problem(line: Any, here: Known) -> str:
    """Why a line is no code of this workspace; "" when it is one."""
    if not isinstance(line, Mapping):
        return "it is no JSON object"
    of_case = "trace" in line
    for name in ("criterion", "code", "expert", "at", "trace" if of_case else "failure_mode"):
        if not isinstance(line.get(name), str):
            return f"{name} is missing or no text"
        if not storable(line[name]):
            return f"{name} holds characters that cannot be stored"
    for name in (*_NUMBERS, *(["trace_version"] if of_case else [])):
        value = line.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            return f"{name} is missing or no number"
        if abs(value) >= (2**31 if name == "trace_version" else 2**62):
            return f"{name} is out of range"
    if of_case and not isinstance(line.get("present"), bool):
        return "present is missing or neither true nor false"
    names = [line["code"]] if of_case else [line["code"], line["failure_mode"]]
    if not line["code"].strip() or any(len(name) > codes.MAX_CODE_CHARS for name in names):
        return "its code is no short name"
    try:
        moment_of(line["at"])
    except ValueError:
        return "at is no time"
    if of_case and line["trace"] not in here.traces:
        return f"there is no trace {line['trace'][:60]} here"
    if line["criterion"] not in here.criteria:
        return f"there is no criterion {line['criterion'][:60]} here"
    return ""
