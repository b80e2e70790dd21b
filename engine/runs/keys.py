"""Request keys: equal requests have equal keys, and a key that has a result is never generated again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.hashing import content_hash


def request_key(
    model_fingerprint: str,
    messages: Sequence[Mapping[str, str]],
    sampling: Mapping[str, Any],
    schema: Mapping[str, Any] | None,
    repeat: int = 0,
    options: Sequence[str] = (),
) -> str:
    """Hash of (model fingerprint, rendered messages, sampling, schema, repeat index), and of the options where there are any.

    The schema counts with the order of its fields: a reply that gives its reason first is another request.
    """
    ordered_schema = _ordered(schema) if schema is not None else None
    content = [model_fingerprint, [dict(m) for m in messages], dict(sampling), ordered_schema, repeat]
    return content_hash([*content, list(options)] if options else content)[:32]


def _ordered(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [[name, _ordered(item)] for name, item in value.items()]
    if isinstance(value, list | tuple):
        return [_ordered(item) for item in value]
    return value
