"""Which fields of a file hold the human verdict and the judge's, and how their values are read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal

from engine.errors import EvaldeskError
from engine.importing.pointer import MISSING, get, paths, pointer
from engine.importing.rows import Row
from engine.importing.verdicts import FLAGS, WORDS, ValueReading, infer_reading, names_failure, normalise

Role = Literal["human", "judge"]

_NAMES: Final[Mapping[Role, tuple[frozenset[str], ...]]] = {
    "human": (
        frozenset({"human", "expert"}),
        frozenset({"label", "labels", "annotation", "annotator", "gold", "groundtruth"}),
    ),
    "judge": (
        frozenset({"judge", "judges", "judgement", "judgment"}),
        frozenset({"verdict", "prediction", "predicted", "pred", "grader", "autorater", "evaluator"}),
    ),
}
"""Words in a field's name by which it is recognised; an earlier group wins over a later one."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LISTED = 20


@dataclass(frozen=True)
class VerdictColumn:
    """Where the verdicts of one side come from and how they were read.

    ``path`` is a column name, a dotted path or a JSON Pointer in ``file``. ``seen`` holds the known values that occur.
    """

    file: str
    path: str
    reading: ValueReading
    seen: frozenset[str] = frozenset()

    def values(self) -> dict[str, str]:
        """{value: "PASS" | "FAIL"} for the values that occur; the whole reading when none does."""
        known = self.reading.as_dict()
        return {value: verdict for value, verdict in known.items() if value in self.seen} or known

    @property
    def reading_text(self) -> str:
        """The same for a person: "1 = PASS, 0 = FAIL"."""
        return ", ".join(f"{value} = {verdict}" for value, verdict in self.values().items())


def holds(head: Sequence[Row], path: str) -> bool:
    """Whether ``path`` leads somewhere in at least one of the rows."""
    return any(get(row.fields, path) is not MISSING for row in head)


def fields_of(head: Sequence[Row]) -> list[str]:
    """Every field that the rows have, in order of appearance."""
    return list(dict.fromkeys(path for row in head for path in paths(row.fields)))


def candidates(head: Sequence[Row], role: Role, explicit: ValueReading | None = None) -> list[str]:
    """Fields whose name speaks of this side and whose values, as far as there are any, are mostly verdicts.

    Where there are none, a column called just that ("human", "judge"): its values are then refused by their rows.
    """
    known = {*WORDS, *FLAGS, *(explicit.as_dict() if explicit else ())}
    named = [(path, _words(path)) for path in fields_of(head)]
    other = _NAMES["judge" if role == "human" else "human"][0]
    for group in _NAMES[role]:
        fitting = [path for path, words in named if words & group and not words & other]
        found = [path for path in fitting if _mostly_verdicts(head, path, known)]
        if found:
            return found
    plain = [path for path, _ in named if any(path.casefold() in group for group in _NAMES[role])]
    return plain if len(plain) == 1 else []


def not_found(head: Sequence[Row], file: str, role: Role, path: str | None, found: Sequence[str] = ()) -> EvaldeskError:
    """The error for a side whose field is missing (``path`` given), ambiguous (``found``) or not recognised."""
    side = "human" if role == "human" else "judge's"
    columns = fields_of(head)
    if path is not None:
        what = f"there is no field {path!r}"
    elif found:
        what = f"{len(found)} fields could hold the {side} verdict: {_listing(found)}"
        return EvaldeskError(what, where=file, kept="Nothing was measured.", remedy=f"Choose one with --{role} FIELD.")
    else:
        what = f"no field was recognised as the {side} verdict"
    return EvaldeskError(
        f"{what}; found: {_listing(columns)}" if columns else f"{what}; the file has no rows",
        where=file,
        kept="Nothing was measured.",
        remedy=f"Name it with --{role} FIELD (a column name, or a JSON Pointer such as /judges/a/verdict).",
    )


def reading_for(
    head: Sequence[Row], path: str, values: Sequence[Any], explicit: ValueReading | None, option: str = "--values"
) -> ValueReading:
    """How the values of a field are read: as stated, the rest inferred from its name and its values.

    Flags (1, true, ...) are not inferred beside a statement that turns one of them around. Raises EvaldeskError, which
    names ``option``, for unstated flags in a field whose name speaks of a failure.
    """
    stated = explicit.as_dict() if explicit else {}
    turned = any(FLAGS.get(value, verdict) != verdict for value, verdict in stated.items())
    name = _column_name(head, path)
    try:
        inferred = infer_reading(name, () if turned else [value for value in values if _key(value) not in stated])
    except EvaldeskError as error:
        remedy = error.remedy.replace("--values", option)
        raise EvaldeskError(error.what, where=path, kept=error.kept, remedy=remedy) from None
    if explicit is None:
        return inferred
    rest = [
        (value, verdict)
        for value, verdict in inferred.verdicts
        if value not in stated and not (turned and value in FLAGS)
    ]
    return ValueReading((*explicit.verdicts, *rest), path, explicit=True)


def refuse_one_reading_for_opposites(
    human: VerdictColumn, judge: VerdictColumn, stated: ValueReading, heads: tuple[Sequence[Row], Sequence[Row]]
) -> None:
    """Refuse one statement about flags for two fields of which just one is named like a failure.

    One of them would be read the wrong way round. Raises EvaldeskError; fields with other values pass.
    """
    flags = FLAGS.keys() & stated.as_dict().keys()
    failing = [names_failure(_column_name(head, side.path)) for head, side in zip(heads, (human, judge), strict=True)]
    if failing[0] != failing[1] and flags & human.seen and flags & judge.seen:
        raise EvaldeskError(
            f"one --values for {human.path!r} and {judge.path!r}, of which only one is named like a failure",
            kept="Nothing was measured.",
            remedy="State each: --values for the human verdict and --values-judge for the judge's, "
            "for example --values 1=FAIL,0=PASS --values-judge 1=PASS,0=FAIL.",
        )


def _column_name(head: Sequence[Row], path: str) -> str:
    """The name that a reading goes by: of a path only its last part speaks."""
    if path.startswith("/") or any(path in row.fields for row in head):
        return path
    return pointer({}, path)


def _mostly_verdicts(head: Sequence[Row], path: str, known: set[str]) -> bool:
    filled = verdicts = 0
    for row in head:
        value = get(row.fields, path)
        if isinstance(value, (dict, list, tuple)):
            return False
        key = _key(value)
        filled += bool(key)
        verdicts += key in known
    return 2 * verdicts >= filled


def _key(value: Any) -> str:
    return "" if value is MISSING or isinstance(value, (dict, list, tuple)) else normalise(value)


def _words(path: str) -> set[str]:
    words = [word.casefold() for word in _WORD.findall(path)]
    return {*words, *(first + second for first, second in pairwise(words))}


def _listing(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")
