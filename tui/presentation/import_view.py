"""What an import would bring, in text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.importing.reading import Preview
from engine.importing.records import Refusal
from engine.intake import IntakeReport
from tui.presentation.case_view import context_lines
from tui.presentation.lines import BLANK, Line, counted, line, pad, wrapped
from tui.widgets.literal import one_line, visible

_SHOWN_REFUSALS = 30

HOW_DRAWN = {
    "random": "at random out of all cases: they stand for all of them",
    "by_cell": "so many of each kind of case",
    "by_judge": "because of what a judge said about them",
    "by_verdict": "so many PASS and so many FAIL",
    "hand": "picked by hand",
}
"""The values of ``engine.store.labels.HOW_DRAWN`` in words."""


def preview_lines(preview: Preview, width: int) -> list[Line]:
    """What was detected, the fields with an example each, a sample case, what is refused."""
    so_far = "" if preview.complete else " in the first rows"
    labels = f", {preview.n_labels:,} with a label" if preview.n_labels else ""
    lines = wrapped(
        f"{preview.format}, {preview.encoding}: {preview.accepted:,} {preview.kind}{labels}{so_far}, "
        f"{len(preview.refused):,} refused",
        width,
        "warn" if preview.refused else "strong",
    )
    for problem in preview.problems:
        lines += wrapped(visible(problem), width, "warn")
    if preview.values:
        read_as = one_line(", ".join(f"{value} = {verdict}" for value, verdict in preview.values.items()))
        lines += wrapped(read_as, width, indent=" " * 9, first="values   ")
    if preview.n_labels:
        lines += how_drawn_lines(width)
    lines += refusal_lines(preview.refused, width)
    for case in preview.sample[:1]:
        lines += [BLANK, line(("A SAMPLE CASE", "key")), *sample_lines(case, width)]
    lines += [BLANK, line(("FIELDS", "key"), ("  path and an example", "dim"))]
    for path, example in preview.fields:
        lines.append(line("  ", (one_line(path), "strong"), f"  {one_line(example)}"))
    return lines


def sample_lines(case: Mapping[str, Any], width: int) -> list[Line]:
    """One case as it would come in."""
    lines: list[Line] = []
    for name in ("request", "context", "response", "label", "critique", "metadata"):
        value = case.get(name)
        if value in (None, "", [], {}):
            continue
        lines.append(line((name, "dim")))
        if name == "context":
            for item in value:
                lines += context_lines(item, width) if isinstance(item, Mapping) else wrapped(visible(str(item)), width)
        elif isinstance(value, Mapping):
            lines += wrapped(visible("   ".join(f"{k}: {v}" for k, v in value.items())), width, indent="  ")
        else:
            lines += wrapped(visible(str(value)), width, indent="  ")
    return lines


def refusal_lines(refused: tuple[Refusal, ...], width: int) -> list[Line]:
    """Refused rows, each with its place and reason."""
    lines: list[Line] = []
    for refusal in refused[:_SHOWN_REFUSALS]:
        place = f"row {refusal.row}, {refusal.field}:" if refusal.field else f"row {refusal.row}:"
        lines += wrapped(visible(f"{place} {refusal.reason}"), width, "warn", "  ")
    if len(refused) > _SHOWN_REFUSALS:
        lines.append(line((f"  and {len(refused) - _SHOWN_REFUSALS:,} more", "warn")))
    return lines


def report_lines(report: IntakeReport, width: int) -> list[Line]:
    """What came of an import."""
    lines = wrapped(report_sentence(report), width, "strong")
    return [*lines, *refusal_lines(report.refused, width)]


def report_sentence(report: IntakeReport) -> str:
    """One line: what was added, what was here already, what was refused."""
    parts = []
    if report.kind == "traces":
        written = f" ({report.written:,} written for the grid)" if report.written else ""
        parts.append(f"{counted(report.added, 'trace')} added{written}, {_here(report.same)}")
    if report.labels_added or report.labels_same:
        parts.append(f"{counted(report.labels_added, 'label')} added, {_here(report.labels_same)}")
    parts.append(f"{counted(len(report.refused), 'row')} refused")
    return "; ".join(parts)


def how_drawn_lines(width: int) -> list[Line]:
    """What may stand under "how drawn", a line each."""
    lines = wrapped("How were the labelled cases drawn? It says what the figures may stand for.", width, "strong")
    for name, meaning in HOW_DRAWN.items():
        lines += wrapped(meaning, width, indent=" " * 13, first="  " + pad(name, 11))
    return lines


def _here(count: int) -> str:
    return f"{count:,} {'was' if count == 1 else 'were'} here already"
