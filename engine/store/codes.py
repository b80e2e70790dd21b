"""Open codes of cases, and the failure modes into which they are merged.

A code is a short name for what decided a case ("wrong price"). It belongs to (trace, criterion), not to one label, so it
outlives a relabel. A merge says that a code belongs to a failure mode; the code itself stays in its rows. Both are
append-only: the newest row counts, and undo appends the state before.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from engine.errors import Refused
from engine.store import labels, piles
from engine.store.transaction import Transaction, now

MAX_CODE_CHARS = 60
"""A code is a name, not a critique."""

# The codes that cases have now, and the failure modes of codes that were merged.
CURRENT = "(SELECT * FROM code QUALIFY seq = max(seq) OVER (PARTITION BY trace_id, criterion_id, code) AND present)"
MERGED = (
    "(SELECT * FROM code_merge QUALIFY seq = max(seq) OVER (PARTITION BY criterion_id, code) AND failure_mode <> '')"
)


@dataclass(frozen=True)
class UsedCode:
    """A code of a criterion: the failure mode that it belongs to (itself, where it was not merged), cases that have it."""

    code: str
    failure_mode: str
    cases: int


@dataclass(frozen=True)
class CodedCase:
    """A case whose label counts, with its codes.

    ``number`` counts the labelled cases of the criterion in the order of their first verdict, from 1: a relabel keeps it.
    """

    trace_id: str
    number: int
    verdict: str
    critique: str
    expert: str
    how_drawn: str
    is_imported: bool
    pile: str
    codes: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    """The failure mode of each code."""

    @property
    def failure_modes(self) -> tuple[str, ...]:
        """Those of its codes, each once, in the order of the codes."""
        return tuple(dict.fromkeys(self.modes))


@dataclass(frozen=True)
class Act:
    """What one key did: a code given to a case or taken off it (``trace_id`` is set), or codes that changed their failure mode."""

    codes: tuple[str, ...]
    trace_id: str = ""
    present: bool = False
    failure_mode: str = ""
    """Where the codes belong now, where that is what changed."""


@dataclass(frozen=True)
class _Row:
    code: str
    trace_id: str = ""
    present: bool = False
    failure_mode: str = ""
    trace_version: int = 1


def clean(text: str) -> str:
    """A code as it is stored: on one line, composed characters. Raises Refused for an empty one and for a long one."""
    code = " ".join(unicodedata.normalize("NFC", text).split())
    if not code:
        raise Refused("a code needs a name")
    if len(code) > MAX_CODE_CHARS:
        raise Refused(
            f"a code has at most {MAX_CODE_CHARS} characters, this one has {len(code)}",
            kept="Nothing was changed.",
            remedy="Name the failure mode in a few words; the critique has room for the rest.",
        )
    return code


def toggle(tx: Transaction, criterion_id: str, trace_id: str, text: str, expert: str) -> Act:
    """Give a case a code, or take it off where the case has it.

    A code that differs from a known one in capitals only is that one. Raises Refused as `clean` does.
    """
    code = _spelling(tx, criterion_id, clean(text))
    act = Act((code,), trace_id, present=code not in of_case(tx, criterion_id, trace_id))
    version = tx.value("SELECT coalesce(max(version), 1) FROM trace WHERE trace_id = ?", trace_id)
    _append(tx, criterion_id, [_Row(code, trace_id, act.present, trace_version=version)], expert)
    return act


def merge(tx: Transaction, criterion_id: str, failure_mode: str, into: str, expert: str) -> Act:
    """Give all codes of a failure mode another one: an existing one merges the two, a new name renames it.

    The name of a code that was merged itself stands for the failure mode that it is in. Raises Refused as `clean` does,
    when there is no such failure mode, and when nothing would change.
    """
    wanted = clean(into)
    moved = [code for code, mode in modes(tx, criterion_id).items() if mode == failure_mode]
    if not moved:
        raise Refused(f"there is no failure mode {failure_mode}", kept="Nothing was changed.")
    if wanted.casefold() != failure_mode.casefold():
        wanted = _spelling(tx, criterion_id, wanted)
        if wanted not in moved:
            wanted = modes(tx, criterion_id).get(wanted, wanted)
    if wanted == failure_mode:
        raise Refused(f"it is called {wanted} already", kept="Nothing was changed.")
    _append(tx, criterion_id, [_Row(code, failure_mode=wanted) for code in moved], expert)
    return Act(tuple(moved), failure_mode=wanted)


def split(tx: Transaction, criterion_id: str, code: str, expert: str) -> Act:
    """Let a merged code stand for itself again. Raises Refused when it does already."""
    if modes(tx, criterion_id).get(code, code) == code:
        raise Refused(
            f"the failure mode is called {code} itself",
            kept="Nothing was changed.",
            remedy="Take the others out of it, or rename it first.",
        )
    _append(tx, criterion_id, [_Row(code)], expert)
    return Act((code,), failure_mode=code)


def undo(tx: Transaction, criterion_id: str, expert: str) -> Act | None:
    """Take back the newest act (a code given or taken off, a merge, a split), any number of times.

    Appends the state before it and returns what holds now; None when nothing is left to take back.
    """
    both = "(SELECT act, criterion_id, undoes FROM code UNION ALL SELECT act, criterion_id, undoes FROM code_merge)"
    newest = tx.value(
        f"SELECT coalesce(max(act), 0) FROM {both} WHERE criterion_id = $1 AND undoes = 0 "
        f"AND act NOT IN (SELECT undoes FROM {both} WHERE criterion_id = $1)",
        criterion_id,
    )
    given = tx.rows("SELECT trace_id, code, trace_version, seq FROM code WHERE act = ? ORDER BY seq", newest)
    merged = tx.rows("SELECT code, seq FROM code_merge WHERE act = ? ORDER BY seq", newest)
    before = [
        _Row(code, trace_id, _was_present(tx, criterion_id, trace_id, code, seq), trace_version=version)
        for trace_id, code, version, seq in given
    ]
    before += [_Row(code, failure_mode=_was_in(tx, criterion_id, code, seq)) for code, seq in merged]
    if not before:
        return None
    _append(tx, criterion_id, before, expert, undoes=newest)
    first = before[0]
    codes = tuple(row.code for row in before)
    if first.trace_id:
        return Act(codes, first.trace_id, first.present)
    return Act(codes, failure_mode=modes(tx, criterion_id)[first.code])


def of_case(tx: Transaction, criterion_id: str, trace_id: str) -> tuple[str, ...]:
    """The codes that a case has, in the order in which they were given."""
    rows = tx.rows(
        f"SELECT code FROM {CURRENT} WHERE criterion_id = ? AND trace_id = ? ORDER BY seq", criterion_id, trace_id
    )
    return tuple(row[0] for row in rows)


def used(tx: Transaction, criterion_id: str) -> list[UsedCode]:
    """The codes that cases have under a criterion, those of most cases first."""
    rows = tx.rows(
        "SELECT c.code, coalesce(any_value(m.failure_mode), c.code), count(*) AS cases "
        f"FROM {CURRENT} c LEFT JOIN {MERGED} m ON m.criterion_id = c.criterion_id AND m.code = c.code "
        "WHERE c.criterion_id = ? GROUP BY c.code ORDER BY cases DESC, c.code",
        criterion_id,
    )
    return [UsedCode(*row) for row in rows]


def modes(tx: Transaction, criterion_id: str) -> dict[str, str]:
    """The failure mode of every code that was ever given under a criterion, by code, in order of name."""
    rows = tx.rows(
        "SELECT DISTINCT c.code, coalesce(m.failure_mode, c.code) "
        f"FROM code c LEFT JOIN {MERGED} m ON m.criterion_id = c.criterion_id AND m.code = c.code "
        "WHERE c.criterion_id = ? ORDER BY c.code",
        criterion_id,
    )
    return dict(rows)


def cases(tx: Transaction, criterion_id: str) -> list[CodedCase]:
    """Every case whose label counts, in the order of first labelling, with its critique and codes."""
    mode_of = modes(tx, criterion_id)
    found = tx.rows(
        "SELECT l.trace_id, row_number() OVER (ORDER BY f.first_seq), l.mark, l.critique, l.expert, l.how_drawn, l.source_id <> '', "
        "coalesce(p.pile, 'none'), coalesce(c.codes, []) "
        f"FROM {labels.COUNTING} l "
        "JOIN (SELECT trace_id, min(seq) AS first_seq FROM label WHERE criterion_id = $1 AND mark IN ('PASS', 'FAIL') GROUP BY trace_id) f "
        "ON f.trace_id = l.trace_id "
        f"LEFT JOIN (SELECT * FROM {piles.CURRENT} WHERE criterion_id = $1) p ON p.trace_id = l.trace_id "
        f"LEFT JOIN (SELECT trace_id, list(code ORDER BY seq) AS codes FROM {CURRENT} WHERE criterion_id = $1 GROUP BY trace_id) c "
        "ON c.trace_id = l.trace_id WHERE l.criterion_id = $1 ORDER BY f.first_seq",
        criterion_id,
    )
    return [
        CodedCase(
            trace_id, number, verdict, critique, expert, how_drawn, is_imported, pile,
            tuple(given), tuple(mode_of[code] for code in given),
        )
        for trace_id, number, verdict, critique, expert, how_drawn, is_imported, pile, given in found
    ]  # fmt: skip


def newest_seq(tx: Transaction) -> int:
    """The seq of the newest code or merge, 0 when there is none."""
    return int(
        tx.value(
            "SELECT greatest((SELECT coalesce(max(seq), 0) FROM code), (SELECT coalesce(max(seq), 0) FROM code_merge))"
        )
    )


def _append(tx: Transaction, criterion_id: str, rows: Iterable[_Row], expert: str, undoes: int = 0) -> None:
    """Append the rows of one act."""
    moment, act = now(), 0
    for row in rows:
        seq = tx.next_seq()
        act = act or seq
        table = "code" if row.trace_id else "code_merge"
        own = (
            {"trace_id": row.trace_id, "trace_version": row.trace_version, "present": row.present}
            if row.trace_id
            else {"failure_mode": row.failure_mode}
        )
        tx.insert(
            table, seq=seq, act=act, criterion_id=criterion_id, code=row.code, expert=expert, undoes=undoes,
            created_at=moment, **own,
        )  # fmt: skip


def _spelling(tx: Transaction, criterion_id: str, code: str) -> str:
    """The known code, or else the failure mode, that differs from this one in capitals only; the code itself for a new one."""
    known = modes(tx, criterion_id)
    folded = code.casefold()
    return next((name for name in (*known, *known.values()) if name.casefold() == folded), code)


def _was_present(tx: Transaction, criterion_id: str, trace_id: str, code: str, seq: int) -> bool:
    row = tx.row(
        "SELECT present FROM code WHERE criterion_id = ? AND trace_id = ? AND code = ? AND seq < ? ORDER BY seq DESC LIMIT 1",
        criterion_id, trace_id, code, seq,
    )  # fmt: skip
    return bool(row[0]) if row else False


def _was_in(tx: Transaction, criterion_id: str, code: str, seq: int) -> str:
    row = tx.row(
        "SELECT failure_mode FROM code_merge WHERE criterion_id = ? AND code = ? AND seq < ? ORDER BY seq DESC LIMIT 1",
        criterion_id, code, seq,
    )  # fmt: skip
    return str(row[0]) if row else ""
