"""A case written out for a judge: everything that the expert saw, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from engine.judging.trace import Trace


def case_text(trace: Trace) -> str:
    """Request, facts, context and response as plain text under fixed headings."""
    parts = [f"REQUEST\n{trace.request.strip()}"]
    if trace.facts:
        parts.append("FACTS\n" + "\n".join(f"{name}: {_plain(value)}" for name, value in trace.facts.items()))
    if trace.context:
        parts.append("CONTEXT\n" + "\n".join(context_line(item) for item in trace.context))
    parts.append(f"RESPONSE\n{trace.response.strip()}")
    return "\n\n".join(parts)


def context_line(item: Mapping[str, Any]) -> str:
    """One context item on one logical line: a tool call with its result, a passage with its id, a message."""
    kind = item.get("kind")
    if kind == "tool":
        arguments = item.get("arguments")
        given = (
            ", ".join(f"{k}={_plain(v)}" for k, v in arguments.items())
            if isinstance(arguments, Mapping)
            else _plain(arguments)
        )
        return f"{item.get('name', 'tool')}({given}) -> {_plain(item.get('result'))}"
    if kind == "passage":
        title = f" {item['title']}" if item.get("title") else ""
        return f"[{item.get('id', 'passage')}]{title}: {_plain(item.get('text'))}"
    if kind == "message":
        return f"{item.get('role', 'message')}: {_plain(item.get('content'))}"
    if kind == "text" and "text" in item:
        return _plain(item["text"])
    return _plain(dict(item))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
