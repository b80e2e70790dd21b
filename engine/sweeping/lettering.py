"""Option letters as models write them: which are meant as a choice, and which are words.

A letter within wrapping ("(A)", "**A**", "$A$") is a choice. A bare capital is one where a choice is expected. A bare A or I is a word
unless punctuation, the end, or a word such as "because" follows, and so is every bare small letter: "the answer is a car" chooses nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from engine.sweeping.cues import CHOICE_CUE

_WRAPPING = r"""[\s*_$"'“”‘’()\[\]{}`.:,;!]*"""
_OPEN = r"""[(\[{*_$"'“‘`]"""
_CLOSE = r"""[)\]}*_$"'”’`]"""
_NOT_IN_WORD = r"(?![\w]|['’-]\w)"
_NOT_WITHIN = r"(?<![A-Za-z0-9_À-ɏ])"
_A_LIST = 3
"""So many labels anywhere in a reply are the options repeated, not a choice."""
_LEAD = rf"[\s:：]{{0,6}}(?:(?:the|option|choice|letter|answer|clearly|definitely|probably|likely|most|therefore)[\s:]{{1,3}}){{0,3}}{_OPEN}{{0,6}}[ ]?"
_PICK = r"\b(?:pick|choose|chose|select|go\ with|going\ with)\b"
_IS_RIGHT = r"\s(?:is|was)\s(?:the\s)?(?:most\s)?(?:correct|right|best)\s(?:answer|option|choice)\b"
_JOINT = r"[)\]*$\"']{0,4}\s{0,3}(?:,?\s{0,2}(?:and|or)\s{1,2}|[&/]\s{0,2})"


@dataclass(frozen=True)
class Choice:
    """A letter as found: ``letter`` in capitals, "" when the text names several."""

    letter: str

    @property
    def ambiguous(self) -> bool:
        """Several letters where one was asked for."""
        return not self.letter


@dataclass(frozen=True)
class Lettering:
    """The patterns for one set of option letters; made by `lettering`."""

    whole: re.Pattern[str]
    declared: re.Pattern[str]
    also: re.Pattern[str]
    labels: re.Pattern[str]
    listed: re.Pattern[str]
    bracketed: re.Pattern[str]
    letters: str

    def whole_text(self, text: str) -> Choice | None:
        """The letter that a text consists of, wrapping and "option" or "answer" before it aside."""
        found = self.whole.fullmatch(text.strip())
        return Choice(_letter(found)) if found else None

    def last_declaration(self, text: str) -> Choice | None:
        """The last letter that the text declares to be the answer; ambiguous when it declares several at once."""
        last = None
        for found in self.declared.finditer(text):
            last = found
        if last is None:
            return None
        return Choice("") if self.also.match(text, last.end()) else Choice(_letter(last))

    def leading_label(self, text: str) -> Choice | None:
        """The label that a text begins with ("C. Paris"), unless it goes on to list the options."""
        label = self.labels.match(text)
        if not label or any(_letter(other) != _letter(label) for other in self.labels.finditer(text)):
            return None
        listed = {_letter(other) for other in self.listed.finditer(text)}
        return None if len(listed) >= max(2, min(_A_LIST, len(self.letters))) else Choice(_letter(label))

    def last_bracketed(self, text: str) -> Choice | None:
        """The last "(X)"; ambiguous when it is joined to another by "and" or "or", or ends a list of all the options."""
        found = list(self.bracketed.finditer(text))
        if not found:
            return None
        letters = [_letter(one) for one in found]
        listed = len(self.letters) > 1 and "".join(letters[-len(self.letters) :]) == self.letters
        joined = len(found) > 1 and re.fullmatch(
            r"\s?(?:,?\s?(?:and|or)|[,&/])\s?", text[found[-2].end() : found[-1].start()][:9]
        )
        several = joined and letters[-1] != letters[-2]
        return Choice("") if listed or several else Choice(letters[-1])


@lru_cache(maxsize=64)
def lettering(letters: str) -> Lettering:
    """The patterns for these option letters.

    Raises ValueError unless they are distinct letters from A to Z.
    """
    capitals = letters.upper()
    if not re.fullmatch(r"[A-Z]+", capitals) or len(set(capitals)) < len(capitals):
        raise ValueError(f"option letters must be distinct letters from A to Z, got {letters!r}")
    words = "".join(letter for letter in capitals if letter in "AI")
    others = "".join(letter for letter in capitals if letter not in "AI")
    either = f"[{capitals}{capitals.lower()}]"
    ends = r"(?=[ \t]{0,3}(?:\Z|[\n.,;:!?)\]}*_$\"”<(/&=]|[-–—](?!\w)|because\b|since\b|and\b|or\b))"
    as_word = r"(?=[ \t]{0,3}(?:as|for|due)\b)"
    bare = [rf"[{capitals.lower()}]{ends}"]
    if others:
        bare.append(f"[{others}]")
    if words:
        bare.append(rf"[{words}](?:{ends}|{as_word})")
    wrapped = rf"(?<=[(\[{{*_$\"'“‘`]){either}(?={_CLOSE})"
    letter = rf"(?:{wrapped}|{_NOT_WITHIN}(?:{'|'.join(bare)}){_NOT_IN_WORD})"
    return Lettering(
        whole=re.compile(rf"{_WRAPPING}(?:(?i:option|choice|answer)[\s:]{_WRAPPING})?(?P<a>{either}){_WRAPPING}"),
        declared=re.compile(
            rf"(?i:{CHOICE_CUE}|{_PICK})(?i:{_LEAD})(?P<a>{letter})"
            rf"|(?<!nor\ )(?<!or\ )(?<!and\ )(?<!\w)[(\[*]{{0,3}}(?P<b>[{capitals}])[)\]*]{{0,3}}{_IS_RIGHT}"
        ),
        also=re.compile(
            rf"{_JOINT}{_OPEN}{{0,4}}{letter}|[)\]*$]{{0,4}},\s?{_OPEN}{{0,4}}{either}{_CLOSE}{{0,4}}(?=\s*\Z|[.,]|\sand\b|\sor\b)"
        ),
        labels=re.compile(rf"^[\s*_(\[]{{0,8}}(?P<a>{either})[*_]{{0,3}}[.):\]](?=[\s*_]|\Z)", re.MULTILINE),
        listed=re.compile(rf"(?<!\w)(?:\((?P<a>{either})\)|(?P<b>[{capitals}])[.):])(?=\s)"),
        bracketed=re.compile(rf"\((?P<a>{either})\)"),
        letters=capitals,
    )


def _letter(found: re.Match[str]) -> str:
    groups = found.groupdict()
    letter: str = groups["a"] or groups["b"]
    return letter.upper()
