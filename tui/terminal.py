"""What stands between the app and a real terminal: whether it can run there, what may reach it, how it is given back."""

from __future__ import annotations

import asyncio
import codecs
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.errors import EvaldeskError
from tui.widgets.literal import strip_dangerous

if TYPE_CHECKING:
    from rich.segment import Segment
    from textual.color import Color


def is_remote() -> bool:
    """Whether the terminal is reached over SSH."""
    return bool(os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"))


def check() -> None:
    """Raise EvaldeskError when the app cannot be shown here, with what to use instead."""
    instead = "Without a screen: evaldesk import, judge, runs, audit FILE (each has --help and --json)."
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise EvaldeskError("the app needs a terminal, and input or output is not one", remedy=instead)
    if os.environ.get("TERM", "dumb") in ("", "dumb", "unknown"):
        raise EvaldeskError(f"the app cannot be shown on TERM={os.environ.get('TERM', '')}", remedy=instead)
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if encoding not in ("utf8", "utf8sig"):
        raise EvaldeskError(
            f"the terminal's encoding is {sys.stdout.encoding}, and the app needs UTF-8",
            remedy=f"Set a UTF-8 locale (LC_ALL=C.UTF-8). {instead}",
        )


def prepare_environment() -> None:
    """Settings that Textual reads while it is imported; call before that."""
    if is_remote():
        # Over a bad line an arrow key arrives in pieces; wait longer before taking ESC for the Esc key.
        os.environ.setdefault("ESCDELAY", "250")


def default_theme() -> str:
    """The user's own 16 colours over SSH, and where the terminal has no more; the richer theme elsewhere."""
    few_colours = os.environ.get("COLORTERM", "") == "" and "256" not in os.environ.get("TERM", "")
    return "ansi-dark" if is_remote() or few_colours else "textual-dark"


def tolerate_broken_input() -> None:
    """Let an invalid UTF-8 byte on stdin become U+FFFD; the driver's strict decoder would end the app."""
    import importlib

    linux_driver = importlib.import_module("textual.drivers.linux_driver")

    def replacing(encoding: str) -> Callable[..., codecs.IncrementalDecoder]:
        decoder = codecs.getincrementaldecoder(encoding)
        return lambda errors="replace": decoder(errors)

    linux_driver.__dict__["getincrementaldecoder"] = replacing


def leave_on_signals(leave: Callable[[], None]) -> None:
    """SIGTERM, SIGHUP and SIGINT end the app in order, with the terminal given back whole; call inside the event loop."""
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(name, leave)


def make_control_filter() -> object:
    """The last layer before the terminal: deletes control, bidi, zero-width and tag characters from every segment."""
    from rich.segment import Segment as RichSegment
    from textual.filter import LineFilter

    class ControlFilter(LineFilter):
        def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
            del background
            return [
                segment if (clean := strip_dangerous(segment.text)) == segment.text else RichSegment(clean, segment.style, segment.control)
                for segment in segments
            ]

    return ControlFilter()
