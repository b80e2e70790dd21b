"""What stands between the app and a real terminal: whether it can run there, what may reach it, how it is given back."""

from __future__ import annotations

import asyncio
import codecs
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.errors import EvaldeskError
from tui.widgets.literal import strip_dangerous

if TYPE_CHECKING:
    from rich.segment import Segment
    from textual.color import Color
    from textual.events import Key
    from textual.filter import LineFilter
    from textual.message import Message

_PASTE_STARTS, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"


def is_remote() -> bool:
    """Whether the terminal is reached over SSH."""
    return bool(os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"))


def check() -> None:
    """Raise EvaldeskError when the app cannot be shown here, with what to use instead."""
    instead = "Without a screen: evaldesk import, judge, runs, audit FILE (each has --help and --json)."
    # Textual draws on the error stream, so a redirected one means a screen that stays empty.
    streams = {"input": sys.stdin, "output": sys.stdout, "the error stream": sys.stderr}
    for name, stream in streams.items():
        if stream is None or not stream.isatty():
            raise EvaldeskError(f"the app needs a terminal, and {name} is not one", remedy=instead)
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


def harden_driver() -> None:
    """Make Textual's terminal driver survive broken input and a terminal that is gone; call before the app starts.

    An invalid UTF-8 byte becomes U+FFFD, a key sequence that cannot be read is dropped, an ESC in
    pasted text stays text, and output to a closed terminal is thrown away instead of blocking the app.
    """
    import importlib

    from textual._xterm_parser import XTermParser
    from textual.drivers._writer_thread import WriterThread

    class SturdyParser(XTermParser):
        def __init__(self, debug: bool = False) -> None:
            self._pasted: str | None = None
            self._fed = ""
            super().__init__(debug)

        def feed(self, data: str) -> Iterable[Message]:
            if not data:
                yield from super().feed(data)
            while data:
                if self._pasted is None:
                    yield from super().feed(keys := self._before_paste(data))
                    data = data[len(keys) :]
                    continue
                text, end, data = (self._pasted + data).partition(_PASTE_ENDS)
                self._pasted = None if end else text
                if end:
                    # The parser would read the keys of a sequence inside a paste as typed.
                    yield from super().feed(text.replace("\x1b", "␛") + end)

        def tick(self) -> Iterable[Message]:
            waited = self._timeout_time is not None
            yield from super().tick()
            if waited and self._timeout_time is None:
                # What came before counts as keys now, so it begins no paste any more.
                self._fed = ""

        def _before_paste(self, data: str) -> str:
            known = len(self._fed)
            head, start, _ = (self._fed + data).partition(_PASTE_STARTS)
            self._pasted = "" if start else None
            self._fed = "" if start else (self._fed + data)[-len(_PASTE_STARTS) + 1 :]
            return (head + start)[known:]

        def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[Key]:
            # Numbers in a sequence may be no characters.
            with suppress(ValueError, OverflowError):
                yield from super()._sequence_to_key_events(sequence, alt)

    class SturdyWriter(WriterThread):
        def run(self) -> None:
            gone = False
            while (text := self._queue.get()) is not None:
                if gone:
                    continue
                try:
                    self._file.write(text)
                    if self._queue.qsize() == 0:
                        self._file.flush()
                except OSError:
                    gone = True
            with suppress(OSError):
                self._file.flush()

    def replacing(encoding: str) -> Callable[..., codecs.IncrementalDecoder]:
        decoder = codecs.getincrementaldecoder(encoding)
        return lambda errors="replace": decoder(errors)

    linux_driver = importlib.import_module("textual.drivers.linux_driver")
    linux_driver.__dict__.update(getincrementaldecoder=replacing, XTermParser=SturdyParser, WriterThread=SturdyWriter)


def keep_log_off_screen() -> None:
    """Without a handler, Python prints warnings and tracebacks of log records on the terminal."""
    logging.getLogger().addHandler(logging.NullHandler())


def leave_on_signals(leave: Callable[[int], None]) -> None:
    """SIGTERM, SIGHUP and SIGINT call ``leave(exit code)`` (128 + number), so that the terminal is given back whole.

    Call inside the event loop, before the terminal is taken over.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        loop.add_signal_handler(number, leave, 128 + number)


def make_control_filter() -> LineFilter:
    """The last layer before the terminal: deletes control, bidi, zero-width and tag characters from every segment."""
    from rich.segment import Segment as RichSegment
    from textual.filter import LineFilter

    class ControlFilter(LineFilter):
        def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
            del background
            return [
                segment
                if (clean := strip_dangerous(segment.text)) == segment.text
                else RichSegment(clean, segment.style, segment.control)
                for segment in segments
            ]

    return ControlFilter()


def make_plain_filter() -> LineFilter:
    """For NO_COLOR: takes every colour out, the greys that Textual leaves too; bold, underline and reverse stay."""
    from rich.segment import Segment as RichSegment
    from textual.filter import LineFilter

    class PlainFilter(LineFilter):
        def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
            del background
            return [
                RichSegment(text, style.without_color if style else None, control) for text, style, control in segments
            ]

    return PlainFilter()
