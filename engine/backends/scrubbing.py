"""What a server says, made fit to be shown and kept: one short line, without control characters, without the key."""

from __future__ import annotations

import json

MASK = "[key]"
LONGEST = 300
_PIECE = 8
"""A piece of the key this long gives it away; shorter ones are words."""


def one_line(text: str, key: str, *, longest: int = LONGEST) -> str:
    """``text`` on one line of at most ``longest`` characters, pieces of the key replaced by ``MASK``."""
    # Cut generously before looking for pieces of the key, exactly afterwards: half a key at the cut would not be found.
    text = without_key(text[: 20 * longest], key)
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def without_key(text: str, key: str) -> str:
    """``text`` with every piece of the key of at least 8 characters (or the whole of a shorter key) replaced by ``MASK``."""
    if not key:
        return text
    for form in {key, json.dumps(key)[1:-1]}:
        text = text.replace(form, MASK)
    hidden: set[int] = set()
    for start in range(len(key) - _PIECE + 1):
        piece = key[start : start + _PIECE]
        place = text.find(piece)
        while place >= 0:
            hidden.update(range(place, place + _PIECE))
            place = text.find(piece, place + 1)
    if not hidden:
        return text
    return "".join(
        MASK if place in hidden and place - 1 not in hidden else "" if place in hidden else character
        for place, character in enumerate(text)
    )
