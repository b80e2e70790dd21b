"""Finding cases: by words, by what the expert said, by pile, by dimension, by a judge's disagreement."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import Refused
from engine.store import labels, piles, traces
from engine.store.transaction import Transaction

_VERDICTS = "mark IN ('PASS', 'FAIL')"
_OF_LABEL: Mapping[str, str] = {
    "open": "mark IS NULL OR mark IN ('WITHDRAWN', 'DEFERRED')",
    "labelled": _VERDICTS,
    "pass": "mark = 'PASS'",
    "fail": "mark = 'FAIL'",
    "deferred": "mark = 'DEFERRED'",
    "n/a": "mark = 'NOT_APPLICABLE'",
    "defect": "mark = 'DEFECT'",
    "draft": "has_draft",
    "disagreement": f"{_VERDICTS} AND verdict IN ('PASS', 'FAIL') AND verdict <> mark",
    "no-verdict": "verdict NOT IN ('PASS', 'FAIL')",
}
STATES = tuple(_OF_LABEL)
PILES = (piles.BUILD, piles.SEALED, piles.NONE)
_TERM = re.compile(
    r'"(?P<quoted>[^"]*)"?|(?P<name>[^\s"=:]+)(?P<sign>[=:])(?:"(?P<text>[^"]*)"?|(?P<value>[^\s"]+))|(?P<word>\S+)'
)


@dataclass(frozen=True)
class CaseQuery:
    """What cases have to be, all of it at once. ``words`` is one piece of text; dimensions are metadata fields with their values."""

    words: str = ""
    states: tuple[str, ...] = ()
    piles: tuple[str, ...] = ()
    dimensions: tuple[tuple[str, str], ...] = ()


def parse(text: str) -> CaseQuery:
    """Read what somebody typed: ``is:STATE``, ``in:PILE`` and ``FIELD=VALUE`` are conditions, the rest is text to be found as it stands.

    Quotes keep blanks in a value together, and take what looks like a condition for text. Raises Refused for a state or
    a pile that there is not.

    >>> parse('is:fail language=de late  parcel')
    CaseQuery(words='late parcel', states=('fail',), piles=(), dimensions=(('language', 'de'),))
    """
    words: list[str] = []
    conditions: dict[str, list[str]] = {"is": [], "in": []}
    dimensions: list[tuple[str, str]] = []
    for term in _TERM.finditer(text):
        name, value = term["name"], term["text"] or term["value"] or ""
        if term["sign"] == "=" and value:
            dimensions.append((name, value))
        elif term["sign"] == ":" and name in conditions:
            known = STATES if name == "is" else PILES
            if value.casefold() not in known:
                raise Refused(f"no case is {name}:{value}", remedy=f"{name}: takes {', '.join(known)}.")
            conditions[name].append(value.casefold())
        else:
            words.append(term[0] if term["quoted"] is None else term["quoted"])
    return CaseQuery(" ".join(words).strip(), tuple(conditions["is"]), tuple(conditions["in"]), tuple(dimensions))


def find(tx: Transaction, criterion_id: str, query: CaseQuery, within: range) -> list[int]:
    """Positions ``within`` of the cases that are all this, ascending. Letter case counts neither in words nor in values of dimensions.

    A hundred thousand cases are read through in a quarter of a second: who looks through more does so in pieces.
    """
    if not within:
        return []
    values: list[object] = [criterion_id, within[0], within[-1]]

    def given(value: object) -> str:
        values.append(value)
        return f"${len(values)}"

    conditions = ["t.position BETWEEN $2 AND $3", *(f"({_OF_LABEL[state]})" for state in query.states)]
    if query.words:
        text = "t.trace_id || ' ' || t.request || ' ' || t.response || ' ' || t.context"
        conditions.append(f"contains(lower({text}), lower({given(query.words)}))")
    for name, value in query.dimensions:
        pointer = "/" + name.replace("~", "~0").replace("/", "~1")
        conditions.append(f"lower(json_extract_string(t.metadata, {given(pointer)})) = lower({given(value)})")
    if query.piles:
        conditions.append(f"coalesce(pile, 'none') IN (SELECT unnest({given(list(query.piles))}::VARCHAR[]))")
    rows = tx.rows(
        f"SELECT t.position FROM {traces.CURRENT} t "
        f"LEFT JOIN (SELECT trace_id, mark FROM {labels.CURRENT} WHERE criterion_id = $1) l USING (trace_id) "
        "LEFT JOIN (SELECT DISTINCT trace_id, true AS has_draft FROM draft WHERE criterion_id = $1) d USING (trace_id) "
        f"LEFT JOIN (SELECT trace_id, pile FROM {piles.CURRENT} WHERE criterion_id = $1) p USING (trace_id) "
        "LEFT JOIN (SELECT j.trace_id, arg_max(j.verdict, j.seq) AS verdict FROM judgement j JOIN judge USING (judge_id) "
        "WHERE judge.criterion_id = $1 GROUP BY j.trace_id) v USING (trace_id) "
        f"WHERE {' AND '.join(conditions)} ORDER BY t.position",
        *values,
    )
    return [row[0] for row in rows]
