"""A JSON schema as llguidance takes it, for compact JSON: white space is what small models spend their tokens on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def compact_schema(schema: Mapping[str, Any]) -> str:
    """The schema as text, its properties in their order, with llguidance's own word for "no white space"."""
    return json.dumps({**schema, "x-guidance": {"whitespace_flexible": False}}, ensure_ascii=False)
