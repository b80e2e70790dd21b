"""Text from outside, made safe to show: what could act on a terminal becomes visible instead."""

from __future__ import annotations

import re

_CONTROL_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "␡"}
_KEPT = {0x09, 0x0A}

# C0, DEL, C1, bidi controls, zero-width (but U+200D, which joins emoji), line separators, tags, lone surrogates.
_DANGEROUS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)


def _picture(match: re.Match[str]) -> str:
    code = ord(match.group())
    return _CONTROL_PICTURES.get(code) or f"⟨U+{code:04X}⟩"


def visible(text: str) -> str:
    """The text with every character that could act on a terminal replaced by a visible form.

    CRLF counts as a line break; tab and newline stay. Nothing else is dropped, so a reader sees
    that something odd is there.
    """
    return _DANGEROUS.sub(_picture, text.replace("\r\n", "\n"))


def strip_dangerous(text: str) -> str:
    """The text without those characters: the last layer before the terminal."""
    return _DANGEROUS.sub("", text)


def one_line(text: str) -> str:
    """Visible text on one line: runs of blanks and line breaks become one space."""
    return " ".join(visible(text).split())
