"""Whether the model that a server says it used is the one that was asked for."""

from __future__ import annotations

import re

# What follows a model's name when it is a snapshot or a channel of the same model; "-turbo" or "-mini" is another model.
_SNAPSHOT = re.compile(r"(?:[-@:_.](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|00\d|v\d{1,3}|latest|preview|exp|free))+$")


def is_same_model(asked: str, served: str, snapshot: str = "") -> bool:
    """Whether ``served`` is ``asked`` or a dated snapshot of it; exactly ``snapshot`` where one is pinned.

    Letter case, a provider or a path in front and ``.gguf`` behind are no difference, and a server that does not name its
    model is believed unless a snapshot is pinned.

    >>> is_same_model("gpt-x", "gpt-x-2025-01-01"), is_same_model("gpt-x-latest", "openai/gpt-x-20250101")
    (True, True)
    >>> is_same_model("gpt-4", "gpt-4o"), is_same_model("gpt-4", "gpt-4-turbo")
    (False, False)
    """
    if snapshot:
        return served == snapshot
    if not served:
        return True
    wanted, found = (_plain(name) for name in (asked, served))
    # Two different dates are two models: at most one side may be without its own.
    return (
        found == wanted
        or _SNAPSHOT.sub("", found) == wanted.removesuffix("-latest")
        or found == _SNAPSHOT.sub("", wanted)
    )


def _plain(name: str) -> str:
    return name.casefold().rstrip("/").rsplit("/", 1)[-1].removesuffix(".gguf")
