"""Numbers as models write them: found in running text, read as one value, or seen to be ambiguous.

Conventions:

- A value is plain decimal text: no exponent, no separators, no zeros that say nothing ("29.00" is "29", ".5" is "0.5"). Two numbers are
  equal exactly when their texts are. A fraction that does not end is cut at 28 digits.
- Read: thousands as 1,250 or 1 250 (also with a no-break blank, and LaTeX's 1{,}250), 1.5e3, 1.5 × 10^3, 1/2, 2 1/2, LaTeX fractions,
  currency signs before the number, a minus directly before the number or its currency sign (U+2212 too). Units are not read: 25 % is 25.
- A minus after a digit, a letter or a closing bracket joins two numbers and is no sign: 5-3.
- Exponents, subscripts and digits within a word (cm^2, x_1, A4) are no numbers.
- *Ambiguous* is what is written with digits but stands for no one number: 9:30, 10-15, 3,5 (a list or a decimal comma), 2024-05-06, 2^10,
  a calculation without its result, a number beside a root or pi, an exponent beyond 99.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext

_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-"),
        **dict.fromkeys("\u00a0\u2007\u2009\u202f", " "),
        **{chr(0xFF10 + digit): str(digit) for digit in range(10)},
        "\uff04": "$",
        "≈": "=",
        "⁄": "/",
    }
)

_LATEX = (
    (re.compile(r"\\(?:text(?:bf|it|rm)?|math(?:bf|rm|it)|mbox)\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\!"), ""),
    (re.compile(r"\\[,;: ]|~"), " "),
    (re.compile(r"\\([$%#&])"), r"\1"),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\^\{(-?[0-9]+)\}"), r"^\1"),
    (re.compile(r"\\(?:times|cdot)(?![a-zA-Z])"), "×"),
    (re.compile(r"\\div(?![a-zA-Z])"), "÷"),
    (re.compile(r"\\approx(?![a-zA-Z])"), "="),
    (re.compile(r"(?<=[0-9])\\[dt]?frac\{([0-9.,]+)\}\{([0-9.,]+)\}"), r" \1/\2"),
    (re.compile(r"\\[dt]?frac\{(-?[0-9.,]+)\}\{([0-9.,]+)\}"), r"\1/\2"),
)
_CURRENCY_CODE = re.compile(r"\b(?:US|USD|EUR|GBP|INR|Rs)\.?(?=[$0-9])")

_ENDS = r"(?![0-9]|[.,:/_^-][0-9])"
_NUMERAL = re.compile(
    rf"""
    (?=[-$€£¥₹]{{0,3}}\.?[0-9])
    (?P<minus>(?<![\w)\]}}%^.])-)?
    (?:[$€£¥₹](?P<inner>-)?)?
    (?<![\w^]) (?<!\^-) (?<![_^]\{{) (?<![0-9][.,:/])
    (?P<body>
        [0-9]{{1,3}}(?:\ [0-9]{{3}})+(?:\.[0-9]+)?{_ENDS}
      | [0-9]{{1,3}}\ [0-9]{{1,3}}/[0-9]{{1,3}}{_ENDS}
      | (?:(?<![\w.])\.)?[0-9]+(?:(?:\^-?|[.,:/_-])[0-9]+)*
    )
    (?:[eE](?P<exponent>[+-]?[0-9]+))?
    (?:\ ?[×x*]\ ?10\^(?P<power>-?[0-9]+))?
    """,
    re.VERBOSE,
)
_PLAIN = re.compile(
    r"(?P<whole>[1-9][0-9]{0,2}(?:,[0-9]{2,3})*,[0-9]{3}|[0-9]{1,3}(?: [0-9]{3})+|[0-9]*)(?:\.(?P<rest>[0-9]+))?"
)
_FRACTION = re.compile(r"(?:(?P<whole>[0-9]{1,3}) )?(?P<upper>[0-9]{1,30})/(?P<lower>[0-9]{1,30})")

_NO_NUMBER = r"\\(?:sqrt|[dt]?frac|binom|pi|pm|log|ln|exp|sin|cos|tan)(?![a-zA-Z])|[π√±]"
_UNIT = r"(?:[A-Za-z°%]{1,15}\.?[ \t]{0,3})?"
_JOINED_AFTER = re.compile(
    rf"[ \t]{{0,3}}{_UNIT}(?:[-+*/×÷=]|x(?=[ \t]?[0-9]))[ \t]{{0,3}}[($]{{0,3}}-?\$?\.?[0-9]|[ \t]{{0,3}}(?:{_NO_NUMBER})"
)
_JOINED_BEFORE = re.compile(
    rf"(?:[0-9)%][ \t]{{0,3}}{_UNIT}(?:[-+*/×÷^]|(?<![A-Za-z])x)[ \t]{{0,3}}[($]{{0,3}}|(?:{_NO_NUMBER})[\s{{}}]{{0,5}}|\}}\{{)\Z"
)
_LOOK_BACK = 60


@dataclass(frozen=True)
class Reading:
    """A number in a text: ``value`` as plain decimal text, "" where it is ambiguous. ``start`` and ``end`` are its place."""

    value: str
    start: int
    end: int

    @property
    def ambiguous(self) -> bool:
        """Written with digits, but standing for no one number."""
        return not self.value


def tidy(text: str) -> str:
    """The text with one spelling of minus, blanks, digits, currency and LaTeX's numbers; the other functions here expect it so."""
    text = text.replace("\r\n", "\n").translate(_CHARACTERS)
    if "\\" in text or "{" in text or "~" in text:
        for pattern, replacement in _LATEX:
            text = pattern.sub(replacement, text)
    return _CURRENCY_CODE.sub("$", text)


def numbers(text: str) -> Iterator[Reading]:
    """Every number in a tidy text, in order, each by itself.

    >>> [reading.value for reading in numbers("He ran 5-3=2 miles for $1,250.00, at 9:30")]
    ['', '2', '1250', '']
    """
    for found in _NUMERAL.finditer(text):
        yield Reading(_value(found), found.start(), found.end())


def first_number(text: str) -> Reading | None:
    """What a short text says when a number is expected there: its first number, or the result if that begins a calculation.

    The result is the last side of "=" that is one number: "5 + 3 = 8" is 8, and so is "8 = 5 + 3". A calculation without
    such a side is ambiguous.

    >>> first_number("5 apples (she started with 12)").value
    '5'
    >>> first_number("20 dollars - 5 dollars = 15 dollars").value
    '15'
    >>> first_number("20 - 5").ambiguous
    True
    """
    first = next(numbers(text), None)
    if first is None or not (first.ambiguous or _joined(text, first)):
        return first
    end = len(text)
    for side in reversed(text.split("=")):
        start = end - len(side)
        alone = _alone(side)
        if alone:
            return Reading(alone.value, start + alone.start, start + alone.end)
        end = start - 1
    return Reading("", first.start, first.end)


def last_number(text: str) -> Reading | None:
    """The last number of a text; ambiguous too when it is the last part of a calculation without a result.

    >>> last_number("The total is 72 clips, altogether.").value
    '72'
    >>> last_number("So 18 eggs at 9:30 a.m.").ambiguous
    True
    """
    last = None
    for found in _NUMERAL.finditer(text):
        last = found
    if last is None:
        return None
    reading = Reading(_value(last), last.start(), last.end())
    return Reading("", reading.start, reading.end) if _joined(text, reading) else reading


def _alone(side: str) -> Reading | None:
    reading = next(numbers(side), None)
    return None if reading is None or reading.ambiguous or _joined(side, reading) else reading


def _joined(text: str, reading: Reading) -> bool:
    before = text[max(0, reading.start - _LOOK_BACK) : reading.start]
    return bool(_JOINED_AFTER.match(text, reading.end) or _JOINED_BEFORE.search(before))


def _value(found: re.Match[str]) -> str:
    body, negative = found["body"], bool(found["minus"] or found["inner"])
    exponents = [text for text in (found["exponent"], found["power"]) if text]
    if any(len(text.lstrip("+-")) > 2 for text in exponents):
        return ""
    fraction = _FRACTION.fullmatch(body)
    if fraction:
        return "" if exponents else _divided(fraction, negative)
    plain = _PLAIN.fullmatch(body)
    if not plain:
        return ""
    whole = plain["whole"].replace(",", "").replace(" ", "")
    return _decimal_text(whole, plain["rest"] or "", sum(int(text) for text in exponents), negative)


def _divided(fraction: re.Match[str], negative: bool) -> str:
    upper, lower = Decimal(fraction["upper"]), Decimal(fraction["lower"])
    if lower == 0 or (fraction["whole"] and upper >= lower):
        return ""
    with localcontext(prec=28):
        value = upper / lower + Decimal(fraction["whole"] or 0)
    whole, _, rest = f"{value:f}".partition(".")
    return _decimal_text(whole, rest, 0, negative)


def _decimal_text(whole: str, rest: str, exponent: int, negative: bool) -> str:
    """Digits before and after the point, moved by a power of ten, as plain text; by characters, so that no digit is rounded."""
    if exponent >= 0:
        rest = rest.ljust(exponent, "0")
        whole, rest = whole + rest[:exponent], rest[exponent:]
    else:
        whole = whole.rjust(-exponent, "0")
        whole, rest = whole[:exponent], whole[exponent:] + rest
    whole, rest = whole.lstrip("0") or "0", rest.rstrip("0")
    text = f"{whole}.{rest}" if rest else whole
    return f"-{text}" if negative and text != "0" else text
