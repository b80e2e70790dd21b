"""Finding cases: by words, by what the expert said, by pile, by dimension, by a judge's disagreement."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import Refused
from engine.store import dimensions, labels, piles, traces
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
    "real": "t.origin = 'real'",
    "written": "t.origin <> 'real'",
    "disagreement": f"{_VERDICTS} AND verdict IN ('PASS', 'FAIL') AND verdict <> mark",
    "no-verdict": "verdict NOT IN ('PASS', 'FAIL')",
}
STATES = tuple(_OF_LABEL)
PILES = (piles.BUILD, piles.SEALED, piles.NONE)
# Within quotes a quote is doubled.
_TERM = re.compile(
    r'(?:"(?P<long>(?:[^"]|"")+)"(?==)|(?P<name>[^\s"=:]+))(?P<sign>[=:])(?:"(?P<text>(?:[^"]|"")*)"?|(?P<value>[^\s"]+))'
    r'|"(?P<quoted>(?:[^"]|"")*)"?|(?P<word>\S+)'
)


@dataclass(frozen=True)
class CaseQuery:
    """What cases have to be, all of it at once. ``words`` is one piece of text; dimensions, or metadata fields, have their values, "" for none."""

    words: str = ""
    states: tuple[str, ...] = ()
    piles: tuple[str, ...] = ()
    dimensions: tuple[tuple[str, str], ...] = ()


def parse(text: str) -> CaseQuery:
    """Read what somebody typed: ``is:STATE``, ``in:PILE`` and ``FIELD=VALUE`` are conditions, the rest is text to be found as it stands.

    Quotes keep blanks in a name or a value together, and take what looks like a condition for text; ``FIELD=""`` means that a
    case has no value there. Raises Refused for a state or a pile that there is not.

    >>> parse('is:fail language=de late  parcel')
    CaseQuery(words='late parcel', states=('fail',), piles=(), dimensions=(('language', 'de'),))
    """
    words: list[str] = []
    conditions: dict[str, list[str]] = {"is": [], "in": []}
    having: list[tuple[str, str]] = []
    for term in _TERM.finditer(text):
        name, value = _unquoted(term["long"] or term["name"]), term["value"] or _unquoted(term["text"])
        if term["sign"] == "=":
            having.append((name, value))
        elif term["sign"] == ":" and name in conditions:
            known = STATES if name == "is" else PILES
            if value.casefold() not in known:
                raise Refused(f"no case is {name}:{value}", remedy=f"{name}: takes {', '.join(known)}.")
            conditions[name].append(value.casefold())
        else:
            words.append(term[0] if term["quoted"] is None else _unquoted(term["quoted"]))
    return CaseQuery(" ".join(words).strip(), tuple(conditions["is"]), tuple(conditions["in"]), tuple(having))


def condition(name: str, value: str | None) -> str:
    """``FIELD=VALUE`` as ``parse`` reads it, for any name and value; None for a case without one.

    >>> condition("persona", "new customer"), condition("user type", None)
    ('persona="new customer"', '"user type"=""')
    """
    return f"{_quoted(name, ' =:')}={_quoted(value or '', ' ')}"


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
    joins = ""
    known = dimensions.everyone(tx) if query.dimensions else []
    for number, (name, value) in enumerate(query.dimensions):
        dimension = dimensions.named(known, name)
        if dimension is not None:
            joins += dimensions.join_sql(dimension, number, given) + " "
            has = dimensions.value_sql(dimension, number, given)
        else:
            has = dimensions.metadata_sql(name, given)
        is_so = f"lower({has}) = lower({given(value)})" if value else f"coalesce({has}, '') = ''"
        conditions.append(is_so)
    if query.piles:
        conditions.append(f"coalesce(pile, 'none') IN (SELECT unnest({given(list(query.piles))}::VARCHAR[]))")
    rows = tx.rows(
        f"SELECT t.position FROM {traces.CURRENT} t {joins}"
        f"LEFT JOIN (SELECT trace_id, mark FROM {labels.CURRENT} WHERE criterion_id = $1) l ON l.trace_id = t.trace_id "
        "LEFT JOIN (SELECT DISTINCT trace_id, true AS has_draft FROM draft WHERE criterion_id = $1) d ON d.trace_id = t.trace_id "
        f"LEFT JOIN (SELECT trace_id, pile FROM {piles.CURRENT} WHERE criterion_id = $1) p ON p.trace_id = t.trace_id "
        "LEFT JOIN (SELECT j.trace_id, arg_max(j.verdict, j.seq) AS verdict FROM judgement j JOIN judge USING (judge_id) "
        "WHERE judge.criterion_id = $1 GROUP BY j.trace_id) v ON v.trace_id = t.trace_id "
        f"WHERE {' AND '.join(conditions)} ORDER BY t.position",
        *values,
    )
    return [row[0] for row in rows]


def _quoted(text: str, special: str) -> str:
    needs = not text or '"' in text or any(c in special or c.isspace() for c in text)
    return '"' + text.replace('"', '""') + '"' if needs else text


def _unquoted(text: str | None) -> str:
    return (text or "").replace('""', '"')
