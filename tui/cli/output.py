"""What commands print: one JSON object, or lines for a person, with text from outside shown literally."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from tui.widgets.literal import visible


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on stdout and nothing else; surrogates are escaped, so that any terminal or pipe takes it."""
    text = json.dumps(dict(value), ensure_ascii=False, indent=2, default=str)
    sys.stdout.write(text.encode("utf-8", "replace").decode("utf-8") + "\n")


def print_line(text: str = "") -> None:
    """One line for a person."""
    sys.stdout.write(visible(text) + "\n")
    sys.stdout.flush()
