"""What commands print: one JSON object, or lines for a person, with text from outside shown literally."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from tui.widgets.literal import visible

if TYPE_CHECKING:
    from rich.console import Console


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on stdout and nothing else; all but printable ASCII is escaped, so that any terminal or pipe takes it."""
    text = json.dumps(dict(value), ensure_ascii=True, indent=2, default=str)
    sys.stdout.write(text.replace("\x7f", "\\u007f") + "\n")


def print_line(text: str = "") -> None:
    """One line for a person; what the output's encoding lacks is escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(visible(text).encode(encoding, "backslashreplace").decode(encoding) + "\n")
    sys.stdout.flush()


def plain_console() -> Console:
    """A console that takes every text literally and leaves a reader that went away to the command, as print does."""
    from rich.console import Console

    class PlainConsole(Console):
        def on_broken_pipe(self) -> NoReturn:
            # Rich itself would end the program here, with exit code 1.
            raise BrokenPipeError

    return PlainConsole(markup=False, highlight=False, emoji=False)
