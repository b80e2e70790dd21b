"""Small inputs written for this project; the demo workspace is made from them. See README.md beside this file."""

from __future__ import annotations

import importlib.resources
from pathlib import Path

SEALED_DRAW = (96, 2)
"""Number of sealed cases and seed of their random draw in the demo workspace."""


def path(name: str) -> Path:
    """The file ``name`` of this package on disk; raises FileNotFoundError when it is not one of them."""
    found = Path(str(importlib.resources.files(__name__).joinpath(name)))
    if not found.is_file():
        raise FileNotFoundError(name)
    return found
