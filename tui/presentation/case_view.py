"""A case as the expert reads it: request, facts, context, response, metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from engine.judging.trace import Trace
from engine.store.cases import CaseRow, Progress
from engine.store.labels import Label
from tui.presentation.lines import BLANK, Line, Span, line, pad, wrapped
from tui.widgets.literal import one_line, visible

GLYPHS = {
    "PASS": Span("✓", "pass"),
    "FAIL": Span("✗", "fail"),
    "NOT_APPLICABLE": Span("–", "dim"),
    "DEFECT": Span("!", "warn"),
    "DEFERRED": Span("»", "warn"),
}
NAMES = {"NOT_APPLICABLE": "n/a", "DEFECT": "defect", "DEFERRED": "deferred", "WITHDRAWN": "", "": ""}
PILES = {"build": Span("b", "accent"), "sealed": Span("s", "dim"), "none": Span(" ")}


def case_lines(trace: Trace, width: int) -> list[Line]:
    """Everything that belongs to a case, in the order in which it happened."""
    lines: list[Line] = [line(("REQUEST", "key")), *wrapped(visible(trace.request), width), BLANK]
    if trace.facts:
        lines += [line(("FACTS", "key")), *_facts(trace.facts, width), BLANK]
    if trace.context:
        calls = sum(1 for item in trace.context if item.get("kind") == "tool")
        passages = sum(1 for item in trace.context if item.get("kind") == "passage")
        counts = [
            f"{n} {word}{'s' if n != 1 else ''}" for n, word in ((calls, "tool call"), (passages, "passage")) if n
        ]
        lines.append(line(("CONTEXT", "key"), ("  " + ", ".join(counts), "dim")))
        for item in trace.context:
            lines += context_lines(item, width)
        lines.append(BLANK)
    lines += [line(("RESPONSE", "key")), *wrapped(visible(trace.response), width)]
    return lines


def context_lines(item: Mapping[str, Any], width: int) -> list[Line]:
    """One context item: a tool call with its result, a passage with its id, a message."""
    kind = item.get("kind")
    if kind == "tool":
        arguments = item.get("arguments")
        given = (
            ", ".join(f"{name}={_value(value)}" for name, value in arguments.items())
            if isinstance(arguments, Mapping)
            else _value(arguments)
        )
        head = wrapped(visible(f"{item.get('name', 'tool')}({given})"), width, "strong", "  ", "▾ ")
        return [*head, *wrapped(visible("→ " + _value(item.get("result"))), width, "plain", "  ")]
    if kind == "passage":
        head = wrapped(
            visible(f"[{item.get('id', '?')}] {item.get('title', '')}".rstrip()), width, "strong", "  ", "▾ "
        )
        return [*head, *wrapped(visible(_value(item.get("text"))), width, "plain", "  ")]
    if kind == "message":
        head = wrapped(visible(str(item.get("role", "message"))), width, "strong", "  ", "▾ ")
        return [*head, *wrapped(visible(_value(item.get("content"))), width, "plain", "  ")]
    return wrapped(visible(_value(item.get("text") if kind == "text" else dict(item))), width, "plain", "  ", "▾ ")


def case_title(trace: Trace, pile: str) -> str:
    """Id, dimensions and pile for the frame around a case."""
    scalars = [
        one_line(str(v)) for v in trace.metadata.values() if isinstance(v, str | int | float) and len(str(v)) < 24
    ]
    pile_name = {"build": "build pile", "sealed": "sealed"}.get(pile, "")
    # Before the metadata, which a narrow terminal cuts.
    written = ["written for the grid"] if trace.origin != "real" else []
    return " · ".join([one_line(trace.trace_id), *written, *scalars[:5], *([pile_name] if pile_name else [])])


def case_row(row: CaseRow, width: int) -> Line:
    """One line of the list of cases: mark, pile, id, beginning of the request."""
    glyph = Span("✎", "warn") if row.draft else GLYPHS.get(row.mark, Span("·", "dim"))
    trace_id = one_line(row.trace_id)
    rest = width - 5 - min(len(trace_id), 12)
    return line(
        glyph,
        PILES.get(row.pile, Span(" ")),
        " ",
        (pad(trace_id, min(len(trace_id), 12)), "strong"),
        " ",
        pad(one_line(row.request), max(rest, 0)),
    )


def label_line(label: Label | None) -> Line:
    """The label that counts, for the line between a case and its critique."""
    if label is None or label.mark == "WITHDRAWN":
        return line(("not labelled yet", "dim"))
    glyph = GLYPHS.get(str(label.mark), Span("·"))
    name = NAMES.get(str(label.mark), str(label.mark))
    who = f"  by {one_line(label.expert)}" if label.expert else ""
    bare = "  without a critique" if label.mark.is_verdict and not label.critique else ""
    return line(
        glyph, (f" {name}", glyph.style), (who, "dim"), ("  imported" if label.source_id else "", "dim"), (bare, "dim")
    )


def progress_text(progress: Progress) -> str:
    """Counts for the head of the Label screen."""
    parts = [f"{progress.labelled}/{progress.total}", f"{progress.passes} PASS", f"{progress.failures} FAIL"]
    if progress.drafts:
        parts.append(f"{progress.drafts} draft{'s' if progress.drafts != 1 else ''}")
    if progress.deferred:
        parts.append(f"{progress.deferred} deferred")
    return "  ".join(parts)


def _facts(facts: Mapping[str, Any], width: int) -> list[Line]:
    return wrapped("   ".join(visible(f"{name}: {_value(value)}") for name, value in facts.items()), width)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
