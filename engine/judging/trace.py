"""A trace: request, what the system retrieved or did, response, and what is known about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.hashing import content_hash


@dataclass(frozen=True)
class Trace:
    """One trace in its newest version. ``position`` is its order of arrival, from 0."""

    trace_id: str
    version: int
    position: int
    request: str
    context: tuple[Mapping[str, Any], ...]
    facts: Mapping[str, Any]
    response: str
    metadata: Mapping[str, Any]
    origin: str = "real"
    group_key: str = ""


def group_key(request: str) -> str:
    """The normalised request: traces that share it belong to one group and go into one pile."""
    return content_hash(" ".join(re.findall(r"\w+", request.casefold())))[:16]
