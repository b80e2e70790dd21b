"""The answer in a model's reply: found by written rules, in a stated order, or no answer; never a guess.

The reply itself is kept raw elsewhere; what is extracted here can be extracted anew when a rule changes. Every pattern is linear in the
reply. A rule that comes from a public bug report names it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from engine.sweeping.cues import ANSWER_CUE
from engine.sweeping.lettering import Choice, lettering
from engine.sweeping.numerals import Reading, first_number, last_number, tidy

Rule = Literal[
    "marker",
    "boxed",
    "json",
    "declaration",
    "last number",
    "whole reply",
    "label",
    "parenthesised",
    "likeliest",
    "none",
]


@dataclass(frozen=True)
class Extracted:
    """What was found in a reply.

    value: the answer, "" for no answer. A number is plain decimal text ("29", "-0.5"), a choice a capital letter.
    rule: which rule found it, or found that it cannot be read; "none" when no rule applies.
    ambiguous: the rule found something that stands for no one answer (a clock time, a range, two letters); ``value`` is "".
    """

    value: str
    rule: Rule
    ambiguous: bool = False


_NONE = Extracted("", "none")

_NEXT_QUESTION = re.compile(r"^[ \t>*#_]{0,8}(?:Question|QUESTION|Q)[*_]{0,4}[ \t]{0,3}:", re.MULTILINE)
_MARKER = re.compile(r"(?<!#)####(?!#)[ \t*_]{0,8}\n?[ \t*_]{0,8}(?=[-$€£¥₹]{0,2}\.?[0-9])")
_HEADING = re.compile(r"[0-9]{1,3}[.)][ \t]+[A-Za-z]")
_BRACES = re.compile(r"(?P<boxed>\\f?box(?:ed)?\s*\{)|\\.|[{}]", re.DOTALL)
_JSON_ANSWER = re.compile(r'"(?i:(?:final[_ ]?)?answer)"\s*:\s*(?P<value>"(?:[^"\\\n]|\\.)*"|-?[0-9][0-9.eE+-]*)')
_BLANK_LINE = re.compile(r"\n[ \t]*(?=\n)")
_DECLARATION = re.compile(ANSWER_CUE, re.IGNORECASE)
_PART_OF_QUESTION = re.compile(r"question[ \t]{0,3}[0-9]{1,3}[ \t]{1,3}\Z", re.IGNORECASE)
_BEFORE_ANSWER = re.compile(r"[\s*_:]*")
_SENTENCE_END = re.compile(r"[.!?](?=\s|\Z)|[\n;<]")
_DIGIT = re.compile("[0-9]")
_WORDS_BEFORE_NUMBER = 4
_CONCLUSION = re.compile(r"(?:^|[.!?]\s{1,2})(?:Therefore|So|Thus|Hence|Finally|In total)\b", re.MULTILINE)
_NOT = re.compile(r"\s*not\b", re.IGNORECASE)
_OUTER = " \"'“”‘’«»„*_`"
_FINAL = _OUTER + ".,;:!?。！？"


def extract_number(reply: str) -> Extracted:
    r"""The number that a reply gives as its answer.

    First the reply is cut before a next question that the model made up: a later line that begins with "Question:" or "Q:"
    (https://github.com/sgl-project/sglang/pull/29933). Then the first rule that finds something decides:

    1. marker: the first ``####`` directly followed by a number: the first, since a model may run on
       (https://github.com/sgl-project/sglang/pull/29933); one without a digit is passed over
       (https://github.com/jundot/omlx/pull/3484), and so are numbered headings ("#### 1. Count the eggs").
    2. boxed: the last box of LaTeX whose braces balance, if it holds a number
       (https://github.com/EvolvingLMMs-Lab/lmms-eval/pull/1512, https://github.com/bojieli/ai-agent-book/pull/173).
    3. json: the last field "answer" whose value is a number or a text with one.
    4. declaration: in the last paragraph with a digit, the last "the answer is", "Answer:" or the like with a number at most four words
       and no comma later in the same sentence; the first number there, so that "5 apples (she started with 12)" is 5. An answer to a numbered
       sub-question, "is not 5", a numbered list, and what is followed by "Therefore ..." or "So ..." with a number are no declarations.
    5. last number: the last number of the reply.

    A comma alone is no number (https://github.com/jundot/omlx/pull/3484, https://github.com/stanford-crfm/helm/issues/4337), a sign is kept
    (https://github.com/google-deepmind/proeval/pull/19), thousands are read as such
    (https://github.com/open-compass/opencompass/pull/2426). How numbers are written: `engine.sweeping.numerals`. What a rule finds but what
    stands for no one number (9:30, 10-15, 3,5, a calculation without its result) is *ambiguous*: no answer, and no later rule is asked.

    >>> extract_number("200,000-130,000=$70,000\n#### 70000")
    Extracted(value='70000', rule='marker', ambiguous=False)
    >>> extract_number("The total cost is $29.00.")
    Extracted(value='29', rule='last number', ambiguous=False)
    >>> extract_number("So 18 eggs at 9:30 a.m.")
    Extracted(value='', rule='last number', ambiguous=True)
    """
    text = _before_next_question(reply.replace("\r\n", "\n"))
    box = _last_box(text)
    text = tidy(text)
    rules: tuple[tuple[Rule, Callable[[], Reading | None]], ...] = (
        ("marker", lambda: _marked_number(text)),
        ("boxed", lambda: first_number(tidy(box))),
        ("json", lambda: first_number(tidy(_json_answer(text)))),
        ("declaration", lambda: _declared_number(text)),
        ("last number", lambda: last_number(text)),
    )
    for rule, find in rules:
        reading = find()
        if reading:
            return Extracted(reading.value, rule, reading.ambiguous)
    return _NONE


def extract_choice(reply: str, letters: str) -> Extracted:
    r"""The option letter that a reply chooses, in capitals; only ``letters`` ("ABCD") are options.

    First the reply is cut before a next question, as for numbers. Then the first rule that finds something decides:

    1. whole reply: the reply is a letter, small or capital (https://github.com/EleutherAI/lm-evaluation-harness/pull/4188), with brackets,
       emphasis or punctuation around it.
    2. boxed: the last box of LaTeX whose braces balance, if it holds just a letter.
    3. json: the last field "answer", if it holds just a letter.
    4. declaration: the last "the answer is", "Answer:", "I would pick", "... is the correct answer" or the like that is followed by a letter
       (https://github.com/openai/simple-evals/pull/34, https://github.com/open-compass/opencompass/issues/1933).
    5. label: the reply begins with a labelled option, "C. Paris", and lists no other
       (https://github.com/stanford-crfm/helm/issues/2939).
    6. parenthesised: the last "(X)".

    Never the first capital of a word (https://github.com/EvolvingLMMs-Lab/lmms-eval/issues/1434), the article "a" or the pronoun "I"
    (https://github.com/jundot/omlx/pull/3668). Two letters joined as the answer ("A and C"), and a bare list of all the options, are
    *ambiguous*: no answer.

    Raises ValueError unless ``letters`` are distinct letters from A to Z.

    >>> extract_choice("I considered (A), but it is incorrect. Final answer: D.", "ABCD")
    Extracted(value='D', rule='declaration', ambiguous=False)
    >>> extract_choice("Both A and C are right.", "ABCD")
    Extracted(value='', rule='none', ambiguous=False)
    """
    options = lettering(letters)
    text = _before_next_question(reply.replace("\r\n", "\n"))
    box = _last_box(text)
    text = tidy(text).strip()
    rules: tuple[tuple[Rule, Callable[[], Choice | None]], ...] = (
        ("whole reply", lambda: options.whole_text(text)),
        ("boxed", lambda: options.whole_text(tidy(box))),
        ("json", lambda: options.whole_text(_json_answer(text))),
        ("declaration", lambda: options.last_declaration(text)),
        ("label", lambda: options.leading_label(text)),
        ("parenthesised", lambda: options.last_bracketed(text)),
    )
    for rule, find in rules:
        choice = find()
        if choice:
            return Extracted(choice.letter, rule, choice.ambiguous)
    return _NONE


def extract_exact(reply: str) -> Extracted:
    """The whole reply, for comparing word by word: Unicode NFC, blanks collapsed, and without outer quotes, outer Markdown emphasis and final
    punctuation. Nothing is cut, searched or folded; a reply of which nothing is left is no answer.

    >>> extract_exact(' **"New   York"**. ')
    Extracted(value='New York', rule='whole reply', ambiguous=False)
    """
    text = " ".join(unicodedata.normalize("NFC", reply).split())
    value = text.lstrip(_OUTER).rstrip(_FINAL)
    return Extracted(value, "whole reply") if value else _NONE


def _before_next_question(text: str) -> str:
    for found in _NEXT_QUESTION.finditer(text):
        if found.start() and not text[: found.start()].isspace():
            return text[: found.start()]
    return text


def _last_box(text: str) -> str:
    """What stands in the last balanced box to be closed, "" without one."""
    if "box" not in text:
        return ""
    opened: list[tuple[bool, int]] = []
    last = (0, 0)
    for found in _BRACES.finditer(text):
        if found[0] == "}":
            boxed, start = opened.pop() if opened else (False, 0)
            if boxed:
                last = (start, found.start())
        elif found[0] == "{" or found["boxed"]:
            opened.append((bool(found["boxed"]), found.end()))
    return text[last[0] : last[1]]


def _json_answer(text: str) -> str:
    last = ""
    for found in _JSON_ANSWER.finditer(text):
        last = found["value"]
    if not last.startswith('"'):
        return last
    try:
        return str(json.loads(last, strict=False))
    except ValueError:
        return last.strip('"')


def _marked_number(text: str) -> Reading | None:
    starts = [found.end() for found in _MARKER.finditer(text)]
    if len(starts) > 1:
        starts = [start for start in starts if not _HEADING.match(text, start)]
    if not starts:
        return None
    end = text.find("\n", starts[0])
    return first_number(text[starts[0] : end if end >= 0 else len(text)])


def _declared_number(text: str) -> Reading | None:
    paragraph = next((part for part in reversed(_BLANK_LINE.split(text)) if _DIGIT.search(part)), "")
    end = len(paragraph)
    for found in reversed(list(_DECLARATION.finditer(paragraph))):
        before = _BEFORE_ANSWER.match(paragraph, found.end(), end)
        start = before.end() if before else found.end()
        stop = _SENTENCE_END.search(paragraph, start, end)
        sentence = paragraph[start : stop.start() if stop else end]
        is_list = "\n" in paragraph[found.end() : start] and _HEADING.match(paragraph, start, end)
        end = found.start()
        if is_list or _NOT.match(sentence) or _PART_OF_QUESTION.search(paragraph[max(0, end - 24) : end]):
            continue
        reading = first_number(sentence)
        before_number = _DIGIT.split(sentence, maxsplit=1)[0]
        if reading and "," not in before_number and len(before_number.split()) <= _WORDS_BEFORE_NUMBER:
            return None if _concludes(paragraph, start + reading.end) else reading
    return None


def _concludes(paragraph: str, start: int) -> bool:
    last_digit = max(paragraph.rfind(digit) for digit in "0123456789")
    return bool(_CONCLUSION.search(paragraph, start, max(start, last_digit)))
