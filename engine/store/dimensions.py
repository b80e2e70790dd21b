"""Dimensions and the values that cases have in them: set by hand, else by a rule, else from a metadata field."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.errors import EvaldeskError, Refused
from engine.hashing import content_hash
from engine.judging.dimension import REQUEST, Dimension, Rule, checked_name
from engine.store import traces
from engine.store.transaction import Transaction, now

MOST_VALUES = 30
"""A metadata field with more values than this names single cases rather than kinds of them."""
_LOOKED_AT, _COUNTED = 10_000, 100_000
_FIELDS = "dimension_id, name, field, rules, place"
# Where each dimension stands now, and what was set by hand; '' for taken back.
_CURRENT = "(SELECT * FROM dimension QUALIFY seq = max(seq) OVER (PARTITION BY dimension_id))"
_STANDING = "(SELECT * FROM dimension_value WHERE undoes = 0 AND seq NOT IN (SELECT undoes FROM dimension_value WHERE undoes <> 0))"

Given = Callable[[object], str]
"""Takes a value as a parameter of the statement that is being written, and returns its mark: ``$4``."""


@dataclass(frozen=True)
class Candidate:
    """A metadata field that could be a dimension, with its values, the most frequent first, over the traces that were looked at."""

    field: str
    values: tuple[tuple[str, int], ...]
    looked_at: int

    @property
    def filled(self) -> int:
        """How many of the traces have a value in it."""
        return sum(count for _, count in self.values)


@dataclass(frozen=True)
class CaseValue:
    """The value of one case in one dimension, None for none, and what gives it: hand, rule, metadata or ""."""

    dimension: Dimension
    value: str | None
    source: str


def everyone(tx: Transaction) -> list[Dimension]:
    """All dimensions, in their order."""
    rows = tx.rows(f"SELECT {_FIELDS} FROM {_CURRENT} WHERE NOT removed ORDER BY place, seq")
    return [_from_row(row) for row in rows]


def named(among: Iterable[Dimension], name: str) -> Dimension | None:
    """The dimension of this name, letter case aside; None for none."""
    return next((dimension for dimension in among if dimension.name.casefold() == name.strip().casefold()), None)


def get(tx: Transaction, name: str) -> Dimension:
    """The dimension of this name; raises EvaldeskError that lists those that exist."""
    known = everyone(tx)
    found = named(known, name)
    if found is None:
        raise EvaldeskError(f"there is no dimension {name!r}", remedy=what_there_is(known))
    return found


def add(tx: Transaction, name: str, field: str = "", author: str = "") -> Dimension:
    """A new dimension behind the others, filled from the metadata field ``field`` (by default the one of its name)."""
    name = checked_name(name)
    known = everyone(tx)
    _check_free(known, name)
    found = Dimension(
        content_hash([name, tx.next_seq()])[:12], name, field or name, place=known[-1].place + 1 if known else 0.0
    )
    _write(tx, found, author)
    return found


def rename(tx: Transaction, dimension_id: str, name: str, author: str = "") -> Dimension:
    """Give a dimension another name; its values stay."""
    found, name = _by_id(tx, dimension_id), checked_name(name)
    _check_free([other for other in everyone(tx) if other.dimension_id != dimension_id], name)
    return _write(tx, replace(found, name=name), author)


def move(tx: Transaction, dimension_id: str, step: int, author: str = "") -> None:
    """Let a dimension change places with the one before (-1) or behind it (1); at the end nothing happens."""
    known = everyone(tx)
    here = [dimension.dimension_id for dimension in known].index(_by_id(tx, dimension_id).dimension_id)
    there = here + step
    if 0 <= there < len(known):
        _write(tx, replace(known[here], place=known[there].place), author)
        _write(tx, replace(known[there], place=known[here].place), author)


def remove(tx: Transaction, dimension_id: str, author: str = "") -> None:
    """Show a dimension no more; the rows that say what it was stay."""
    _write(tx, _by_id(tx, dimension_id), author, removed=True)


def set_rules(tx: Transaction, dimension_id: str, rules: Sequence[Rule], author: str = "") -> Dimension:
    """Let these rules fill a dimension, the first that matches counts; raises EvaldeskError for a wrong regular expression."""
    for rule in rules:
        if rule.how == "matches":
            _check_regex(tx, rule.what[0])
    return _write(tx, replace(_by_id(tx, dimension_id), rules=tuple(rules)), author)


def candidates(tx: Transaction) -> list[Candidate]:
    """Metadata fields with 2 to `MOST_VALUES` values that are no dimension yet, the fullest first; over ten thousand traces at most."""
    total = traces.count(tx)
    every = max(total // _LOOKED_AT, 1)
    counts: dict[str, Counter[str]] = {}
    rows = tx.rows(f"SELECT metadata FROM {traces.CURRENT} WHERE position % ? = 0 ORDER BY position", every)
    for (text,) in rows:
        for field, value in json.loads(text).items():
            shown = _scalar(value)
            if shown:
                counts.setdefault(field, Counter())[shown] += 1
    taken = {dimension.field for dimension in everyone(tx)}
    found = [
        Candidate(field, tuple(values.most_common()), len(rows))
        for field, values in counts.items()
        if field not in taken and 2 <= len(values) <= MOST_VALUES
    ]
    return sorted(found, key=lambda candidate: (-candidate.filled, candidate.field.casefold()))


# -- the value of a case ----------------------------------------------------------------------------


def of_case(tx: Transaction, trace_id: str) -> list[CaseValue]:
    """The value of a case in every dimension, with what gives it."""
    known = everyone(tx)
    if not known:
        return []
    values: list[object] = [trace_id]

    def given(value: object) -> str:
        values.append(value)
        return f"${len(values)}"

    parts = [part for i, d in enumerate(known) for part in (_hand_sql(i), _rules_sql(d, given), _field_sql(d, given))]
    joins = " ".join(join_sql(dimension, number, given) for number, dimension in enumerate(known))
    row = tx.row(f"SELECT {', '.join(parts)} FROM {traces.CURRENT} t {joins} WHERE t.trace_id = $1", *values)
    if row is None:
        return []
    found = []
    for number, dimension in enumerate(known):
        by_source = zip(("hand", "rule", "metadata"), row[3 * number : 3 * number + 3], strict=True)
        source, value = next(((source, value) for source, value in by_source if value), ("", None))
        found.append(CaseValue(dimension, value, source))
    return found


def values_of(tx: Transaction, dimension_id: str) -> list[tuple[str, int]]:
    """The values that cases have in a dimension, with how many have each, the most frequent first; at most a hundred.

    In a large workspace over a hundred thousand traces spread over it.
    """
    dimension = _by_id(tx, dimension_id)
    values: list[object] = [max(traces.count(tx) // _COUNTED, 1)]

    def given(value: object) -> str:
        values.append(value)
        return f"${len(values)}"

    value, join = value_sql(dimension, 0, given), join_sql(dimension, 0, given)
    rows = tx.rows(
        f"SELECT mode(v), count(*) FROM (SELECT {value} AS v FROM {traces.CURRENT} t {join} WHERE t.position % $1 = 0) WHERE v IS NOT NULL "
        "GROUP BY lower(v) ORDER BY count(*) DESC, 1 LIMIT 100",
        *values,
    )
    return [(row[0], row[1]) for row in rows]


def set_by_hand(tx: Transaction, dimension_id: str, trace_id: str, value: str, author: str) -> None:
    """Say which value a case has, whatever rules and metadata say."""
    _append_values(tx, [(_by_id(tx, dimension_id).dimension_id, trace_id, checked_name(value), author, 0)])


def undo(tx: Transaction, trace_id: str, author: str) -> tuple[Dimension, str] | None:
    """Take back the newest value set by hand for this case, any number of times.

    Appends the state before it. Returns the dimension and what was taken back, or None when nothing is left.
    """
    known = {dimension.dimension_id: dimension for dimension in everyone(tx)}
    row = tx.row(
        f"SELECT seq, dimension_id, value FROM {_STANDING} WHERE trace_id = ? AND dimension_id IN (SELECT unnest(?::VARCHAR[])) "
        "ORDER BY seq DESC LIMIT 1",
        trace_id, list(known),
    )  # fmt: skip
    if row is None:
        return None
    seq, dimension_id, taken = row
    before = tx.row(
        f"SELECT value FROM {_STANDING} WHERE trace_id = ? AND dimension_id = ? AND seq < ? ORDER BY seq DESC LIMIT 1",
        trace_id, dimension_id, seq,
    )  # fmt: skip
    _append_values(tx, [(dimension_id, trace_id, before[0] if before else "", author, seq)])
    return known[dimension_id], taken


def keep_cells(tx: Transaction, source_id: str, author: str) -> int:
    """Let the written traces of a source stay in the cell that their rows name, where a rule would put them elsewhere.

    Returns for how many (trace, dimension) a value was set.
    """
    rows: list[tuple[str, str, str, str, int]] = []
    for dimension in everyone(tx):
        if not dimension.rules:
            continue
        values: list[object] = [source_id]

        def given(value: object, values: list[object] = values) -> str:
            values.append(value)
            return f"${len(values)}"

        field, value, join = _field_sql(dimension, given), value_sql(dimension, 0, given), join_sql(dimension, 0, given)
        found = tx.rows(
            f"SELECT trace_id, wanted FROM (SELECT t.trace_id, {field} AS wanted, {value} AS has FROM {traces.CURRENT} t {join} "
            "WHERE t.source_id = $1 AND t.origin = 'written') WHERE lower(wanted) <> lower(has)",
            *values,
        )
        rows += [(dimension.dimension_id, trace_id, wanted, author, 0) for trace_id, wanted in found]
    _append_values(tx, rows)
    return len(rows)


# -- in statements ----------------------------------------------------------------------------------


def value_sql(dimension: Dimension, number: int, given: Given) -> str:
    """The value of trace ``t`` in a dimension, NULL for none; stands beside ``join_sql`` of the same number."""
    return f"coalesce({_hand_sql(number)}, {_rules_sql(dimension, given)}, {_field_sql(dimension, given)})"


def join_sql(dimension: Dimension, number: int, given: Given) -> str:
    """What was set by hand, joined to trace ``t``."""
    return (
        f"LEFT JOIN (SELECT trace_id, nullif(arg_max(value, seq), '') AS hand FROM dimension_value "
        f"WHERE dimension_id = {given(dimension.dimension_id)} GROUP BY trace_id) hand{number} ON hand{number}.trace_id = t.trace_id"
    )


def metadata_sql(field: str, given: Given) -> str:
    """A metadata field of trace ``t`` as text."""
    pointer = "/" + field.replace("~", "~0").replace("/", "~1")
    return f"json_extract_string(t.metadata, {given(pointer)})"


def _hand_sql(number: int) -> str:
    return f"hand{number}.hand"


def _field_sql(dimension: Dimension, given: Given) -> str:
    return f"nullif(trim({metadata_sql(dimension.field, given)}), '')"


def _rules_sql(dimension: Dimension, given: Given) -> str:
    cases = []
    for rule in dimension.rules:
        text = "t.request" if rule.where == REQUEST else metadata_sql(rule.where, given)
        if rule.how == "is":
            found = f"lower(trim({text})) IN (SELECT lower(v) FROM unnest({given(list(rule.what))}::VARCHAR[]) u(v))"
        else:
            pattern = rule.what[0] if rule.how == "matches" else _words_pattern(rule.what)
            found = f"regexp_matches({text}, {given(pattern)})"
        cases.append(f"WHEN {found} THEN {given(rule.value)}::VARCHAR")
    return f"CASE {' '.join(cases)} END" if cases else "NULL::VARCHAR"


def _words_pattern(words: Sequence[str]) -> str:
    # \b knows no letters beyond ASCII.
    some = "|".join(r"\s+".join(re.escape(part) for part in word.split()) for word in words)
    return rf"(?i)(?:^|[^\pL\pM\pN_])(?:{some})(?:$|[^\pL\pM\pN_])"


def _check_regex(tx: Transaction, pattern: str) -> None:
    import duckdb

    try:
        tx.value("SELECT regexp_matches('', ?)", pattern)
    except duckdb.Error as error:
        reason = str(error).splitlines()[0].partition(": ")[2] or str(error)
        raise EvaldeskError(
            f"{pattern[:80]!r} is no regular expression that can be used: {reason}",
            kept="Nothing was changed.", remedy="The syntax is that of RE2: no look-around, no back-references.",
        ) from error  # fmt: skip


def _check_free(known: Sequence[Dimension], name: str) -> None:
    if named(known, name) is not None:
        raise Refused(
            f"there is a dimension {name!r} already", kept="Nothing was changed.", remedy="Give another name."
        )


def _by_id(tx: Transaction, dimension_id: str) -> Dimension:
    found = next((dimension for dimension in everyone(tx) if dimension.dimension_id == dimension_id), None)
    if found is None:
        raise EvaldeskError("this dimension is no more", where=dimension_id, kept="Nothing was changed.")
    return found


def what_there_is(known: Sequence[Dimension]) -> str:
    """Which dimensions can be named, or how to get some."""
    if not known:
        return "Choose some on the Coverage screen (d), or with --dimension NAME."
    return f"Dimensions in this workspace: {', '.join(dimension.name for dimension in known)}."


def _write(tx: Transaction, dimension: Dimension, author: str, *, removed: bool = False) -> Dimension:
    tx.insert(
        "dimension", seq=tx.next_seq(), dimension_id=dimension.dimension_id, name=dimension.name, field=dimension.field,
        rules=json.dumps([vars(rule) for rule in dimension.rules], ensure_ascii=False), place=dimension.place,
        removed=removed, author=author, created_at=now(),
    )  # fmt: skip
    return dimension


def _append_values(tx: Transaction, rows: Sequence[tuple[str, str, str, str, int]]) -> None:
    moment = now()
    tx.append(
        "dimension_value",
        ("dimension_id", "trace_id", "value", "author", "undoes", "seq", "created_at"),
        [(*row, tx.next_seq(), moment) for row in rows],
    )


def _scalar(value: Any) -> str:
    """A metadata value as the store reads it, "" for what is no single value."""
    if isinstance(value, str):
        return value.strip(" ")
    return json.dumps(value) if isinstance(value, bool | int | float) else ""


def _from_row(row: Sequence[Any]) -> Dimension:
    rules = tuple(Rule(**{**rule, "what": tuple(rule["what"])}) for rule in json.loads(row[3]))
    return Dimension(row[0], row[1], row[2], rules, row[4])
