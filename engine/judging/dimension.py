"""A dimension: a feature by which requests differ, with the rules that say which value a case has."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

from engine.errors import EvaldeskError

REQUEST = "request"
"""In ``Rule.where``: the text of the request; every other name is a metadata field."""

How = Literal["has", "is", "matches"]
_RULE = re.compile(
    r"(?P<value>\S|\S.*?\S)\s+if\s+(?P<where>\S|\S.*?\S)\s+(?P<how>has|is|matches)\s+(?P<what>\S.*)", re.DOTALL
)
RULE_FORM = "VALUE if request has WORD, WORD (or: FIELD is VALUE, VALUE; request matches REGEX)"


@dataclass(frozen=True)
class Rule:
    """Gives a case ``value`` where the text at ``where`` (the request, or a metadata field) is like ``what``.

    ``how``: has one of the words or phrases as whole words, is one of the values as a whole (letter case counts in neither), or
    matches the regular expression, of which there is one. A rule is data: it is compared, never run.
    """

    value: str
    where: str
    how: How
    what: tuple[str, ...]

    @property
    def text(self) -> str:
        """The rule in words, as ``parse_rule`` reads it."""
        return f"{self.value} if {self.where} {self.how} {', '.join(self.what)}"


@dataclass(frozen=True)
class Dimension:
    """One dimension. ``field`` is the metadata field that gives the value where neither a hand nor a rule does."""

    dimension_id: str
    name: str
    field: str
    rules: tuple[Rule, ...] = ()
    place: float = 0.0


def parse_rule(text: str) -> Rule:
    """Read a rule in words; raises EvaldeskError with its form.

    >>> parse_rule("refund if request has refund, money back")
    Rule(value='refund', where='request', how='has', what=('refund', 'money back'))
    """
    found = _RULE.fullmatch(text.strip())
    what = found["what"].strip() if found else ""
    # A comma in a regular expression is part of it.
    parts = (
        (what,) if found and found["how"] == "matches" else tuple(p for part in what.split(",") if (p := part.strip()))
    )
    if found is None or not any(parts):
        raise EvaldeskError(
            f"{text.strip()[:80]!r} is no rule", kept="Nothing was changed.", remedy=f"The form: {RULE_FORM}."
        )
    return Rule(found["value"], found["where"], cast("How", found["how"]), parts)


def checked_name(text: str) -> str:
    """The name of a dimension, or a value, as it is kept: without blanks around it; raises EvaldeskError for an empty or overlong one."""
    name = text.strip()
    if not name or len(name) > 200:
        raise EvaldeskError(
            "a name needs a character, and no more than 200", kept="Nothing was changed.", remedy="Give another one."
        )
    return name
