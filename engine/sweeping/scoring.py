"""A reply scored against a reference answer: 1 for right, 0 for wrong, and no answer told apart from a wrong one.

Three scorers read a reply (`engine.sweeping.extraction`), the fourth has none to read:

- exact: the whole reply, small letters and capitals alike.
- number: the number that the reply gives, compared as Decimal: 29.00 is 29.
- choice: the option letter that the reply chooses.
- likelihood: the option letter that the model finds likeliest as its first token (`engine.backends.option_likelihoods`).

*No answer* is a reply in which the scorer finds nothing that it can read, an ambiguous one included. It counts 0 and is counted apart: a
prompt whose answers cannot be read has another fault than one whose answers are wrong.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Literal

from engine.errors import EvaldeskError
from engine.sweeping.extraction import Extracted, Rule, extract_choice, extract_exact, extract_number
from engine.sweeping.numerals import numbers, tidy

Scorer = Literal["exact", "number", "choice", "likelihood"]

SCORERS: tuple[Scorer, ...] = ("exact", "number", "choice", "likelihood")
READERS: tuple[Scorer, ...] = ("exact", "number", "choice")
"""Those that read a reply."""
LETTERED = ("choice", "likelihood")
"""Those whose answers are option letters."""

LETTERS = "ABCD"
"""The option letters where nothing else is said."""

_WANTED: dict[Scorer, str] = {
    "exact": "no text",
    "number": "no number",
    "choice": "no option letter",
    "likelihood": "no option letter",
}


@dataclass(frozen=True)
class Scored:
    """One reply under one scorer.

    value: 1.0 right, 0.0 wrong or no answer.
    extracted: the answer that was found, "" for no answer.
    no_answer: nothing was found, or nothing that stands for one answer; to be counted apart.
    rule: the rule of extraction that decided.
    """

    value: float
    extracted: str
    no_answer: bool
    rule: Rule


def score(scorer: str, reply: str, answer: str, letters: str = LETTERS) -> Scored:
    """One reply against its reference answer; ``letters`` are the options of a choice.

    Raises EvaldeskError as `check_answer` does.

    >>> score("number", "The total is $29.00.", "29")
    Scored(value=1.0, extracted='29', no_answer=False, rule='last number')
    >>> score("choice", "Both A and C are right.", "A")
    Scored(value=0.0, extracted='', no_answer=True, rule='none')
    """
    reference = check_answer(scorer, answer, letters)
    # Where likelihoods were asked for, the reply is the option that they decide for, and not a text to be read.
    found = _likeliest(reply) if scorer == "likelihood" else _extract(scorer, reply, letters)
    right = bool(found.value) and _same(scorer, found.value, reference)
    return Scored(1.0 if right else 0.0, found.value, not found.value, found.rule)


def score_all(reply: str, answer: str, letters: str = LETTERS) -> dict[Scorer, Scored]:
    """The reply under every reader that can read the reference answer, in the order of `READERS`: whether another reading of the same
    replies would change a ranking can be seen only when all are scored.

    >>> {scorer: scored.value for scorer, scored in score_all("So it is 18.", "18").items()}
    {'exact': 0.0, 'number': 1.0}
    """
    return {scorer: score(scorer, reply, answer, letters) for scorer in READERS if _reference(scorer, answer, letters)}


def check_answer(scorer: str, answer: str, letters: str = LETTERS) -> str:
    """The reference answer as the scorer reads it.

    A reference is read more strictly than a reply. exact: any text but blanks and punctuation. number: one number and no other, with or
    without a unit, or a worked solution that ends in ``#### number`` or a box, as GSM8K has them. choice and likelihood: one of the letters, alone.

    Raises EvaldeskError, naming the answer, when the scorer cannot read it, and when there is no such scorer.

    >>> check_answer("number", "$1,250.00")
    '1250'
    """
    if scorer not in SCORERS:
        raise EvaldeskError(f"there is no scorer {scorer!r}", remedy=f"Scorers: {', '.join(SCORERS)}.")
    reference = _reference(scorer, answer, letters)
    if not reference:
        wanted = f"{_WANTED[scorer]} of {letters}" if scorer in LETTERED else _WANTED[scorer]
        raise EvaldeskError(
            f"the reference answer {_shortened(answer)} holds {wanted} that the scorer {scorer!r} can read",
            kept="Nothing was scored.",
            remedy="Correct the answer, or choose another scorer.",
        )
    return reference


def _likeliest(option: str) -> Extracted:
    return Extracted(option, "likeliest" if option else "none")


def _extract(scorer: str, text: str, letters: str) -> Extracted:
    if scorer == "number":
        return extract_number(text)
    if scorer in LETTERED:
        return extract_choice(text, letters)
    return extract_exact(text)


def _reference(scorer: str, answer: str, letters: str) -> str:
    found = _extract(scorer, answer, letters)
    if scorer in LETTERED and found.rule != "whole reply":
        return ""
    if scorer == "number" and found.rule not in ("marker", "boxed"):
        return found.value if len(list(islice(numbers(tidy(answer)), 2))) == 1 else ""
    return found.value


def _same(scorer: str, found: str, reference: str) -> bool:
    if scorer == "number":
        return Decimal(found) == Decimal(reference)
    if scorer in LETTERED:
        return found == reference
    return _folded(found) == _folded(reference)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())


def _shortened(answer: str) -> str:
    return repr(answer if len(answer) <= 60 else f"{answer[:57]}...")
