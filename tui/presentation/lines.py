"""Lines of styled text, the one form in which presentation hands things to widgets.

A style is a name (see STYLES); widgets give each name its look through the theme, so that no
presentation function knows a colour. Text in spans has to be visible text (tui.widgets.literal).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size

STYLES = ("plain", "dim", "strong", "pass", "fail", "warn", "accent", "key")


class Span(NamedTuple):
    """A piece of text in one style."""

    text: str
    style: str = "plain"


class Cell(NamedTuple):
    """A cell of a grid: its text, and how dark it is: 0 lowest, 1 highest, None not shaded. The text alone says it all."""

    text: str
    shade: float | None = None


Line = tuple[Span, ...]
BLANK: Line = ()


def line(*parts: str | Span | tuple[str, str]) -> Line:
    """A line from plain strings, (text, style) pairs and spans."""
    return tuple(Span(part) if isinstance(part, str) else Span(*part) for part in parts)


def width_of(spans: Line) -> int:
    """Cells that a line takes."""
    return sum(cell_len(span.text) for span in spans)


def fit(spans: Line, width: int) -> Line:
    """The line cut to ``width`` cells, with an ellipsis where something was cut."""
    if width_of(spans) <= width:
        return spans
    kept: list[Span] = []
    left = max(width - 1, 0)
    for span in spans:
        size = cell_len(span.text)
        if size > left:
            kept.append(Span(set_cell_size(span.text, left).rstrip() + "…", span.style))
            break
        kept.append(span)
        left -= size
    return tuple(kept)


def pad(text: str, width: int) -> str:
    """Text filled with blanks, or cut with an ellipsis, to exactly ``width`` cells."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(text, max(width - 1, 0)) + "…" if width > 0 else ""


def wrap(text: str, width: int) -> list[str]:
    """Text broken at blanks into pieces of at most ``width`` cells; leading blanks of a line stay, long words are cut."""
    width = max(width, 4)
    pieces: list[str] = []
    for paragraph in text.expandtabs(4).split("\n"):
        pieces.extend(_wrap_paragraph(paragraph, width))
    return pieces


def counted(count: int, what: str) -> str:
    """``1 prompt``, ``2 prompts``, ``1,000 items``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def whole_number(text: str) -> int | None:
    """A number as a person types it, up to nine digits; None for everything else."""
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else None


def shortened(text: str, width: int) -> str:
    """Text cut to at most ``width`` cells, with an ellipsis where something was cut."""
    return text if cell_len(text) <= width else pad(text, width)


def wrapped(text: str, width: int, style: str = "plain", indent: str = "", first: str | None = None) -> list[Line]:
    """The same as styled lines, each behind ``indent``; the first one behind ``first`` (of equal width) where it is given."""
    pieces = wrap(text, width - cell_len(indent))
    if not indent and first is None:
        return [(Span(piece, style),) for piece in pieces]
    return [
        line(first if first is not None and not number else indent, (piece, style))
        for number, piece in enumerate(pieces)
    ]


def columns(cells: Iterable[tuple[Span, int]]) -> Line:
    """A line of cells of fixed width; a negative width aligns to the right."""
    spans: list[Span] = []
    for span, width in cells:
        if width < 0:
            gap = -width - cell_len(span.text)
            spans.append(Span(" " * max(gap, 0) + pad(span.text, min(-width, cell_len(span.text))), span.style))
        else:
            spans.append(Span(pad(span.text, width), span.style))
    return tuple(spans)


def plain(lines: Sequence[Line]) -> str:
    """The text of lines without styles, trailing blanks removed."""
    return "\n".join("".join(span.text for span in spans).rstrip() for spans in lines)


def _wrap_paragraph(paragraph: str, width: int) -> list[str]:
    if paragraph.isascii():
        return [paragraph] if len(paragraph) <= width else _wrap_ascii(paragraph, width)
    if cell_len(paragraph) <= width:
        return [paragraph]
    indent = _indent(paragraph, width)
    pieces: list[str] = []
    current, taken = indent, len(indent)
    for word in paragraph.split():
        joint = "" if current == indent else " "
        size = cell_len(word)
        if taken + len(joint) + size <= width:
            current, taken = current + joint + word, taken + len(joint) + size
            continue
        if current != indent:
            pieces.append(current)
        parts = chop_cells(word, width - len(indent)) if size > width - len(indent) else [word]
        pieces.extend(indent + part for part in parts[:-1])
        current = indent + parts[-1]
        taken = cell_len(current)
    pieces.append(current)
    return pieces


def _wrap_ascii(paragraph: str, width: int) -> list[str]:
    """The same where every character takes one cell: a response of several MB in one line is laid out while a key is answered."""
    indent = _indent(paragraph, width)
    text, room = " ".join(paragraph.split()), width - len(indent)
    pieces: list[str] = []
    start = 0
    while len(text) - start > room:
        cut = text.rfind(" ", start, start + room + 1)
        end = cut if cut > start else start + room
        pieces.append(indent + text[start:end])
        start = end + 1 if text[end] == " " else end
    return [*pieces, indent + text[start:]]


def _indent(paragraph: str, width: int) -> str:
    return paragraph[: len(paragraph) - len(paragraph.lstrip(" "))][: width // 2]
