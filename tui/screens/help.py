"""The key sheet of a screen, made from its bindings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui.presentation.lines import BLANK, Line, line, pad

if TYPE_CHECKING:
    from textual.app import App
    from textual.binding import Binding
    from textual.screen import Screen

NAMES = {
    "question_mark": "?",
    "slash": "/",
    "left": "←",
    "right": "→",
    "up": "↑",
    "down": "↓",
    "escape": "Esc",
    "enter": "Enter",
    "tab": "Tab",
    "equals_sign": "=",
    "pagedown": "PgDn",
    "pageup": "PgUp",
}


def help_lines(app: App[None], screen: Screen[object]) -> list[Line]:
    """All keys that count on ``screen``, then those that count everywhere."""
    lines: list[Line] = [line(("THIS SCREEN", "key")), *_sheet(type(screen).BINDINGS)]
    if screen.focused is not None:
        own = [b for b in type(screen.focused).BINDINGS if getattr(b, "id", None)]
        if own:
            lines += [BLANK, line(("WHERE THE CURSOR IS", "key")), *_sheet(own)]
    if screen.is_modal:
        # A dialog keeps the app's keys to itself until it is closed.
        return lines
    lines += [BLANK, line(("EVERYWHERE", "key")), *_sheet(type(app).BINDINGS)]
    lines += [line(f"  {pad('ctrl+p', 12)} ", ("find any command by name", "plain"))]
    return lines


def _sheet(bindings: Sequence[object]) -> list[Line]:
    sheet = []
    for binding in bindings:
        if not getattr(binding, "description", ""):
            continue
        found: Binding = binding  # type: ignore[assignment]
        keys = " ".join(NAMES.get(key, key) for key in found.key.split(","))
        sheet.append(
            line("  ", (pad(found.key_display or keys, 12), "strong"), " ", found.tooltip or found.description)
        )
    return sheet
