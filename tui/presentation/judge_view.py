"""Judge versions in text: the list, the four parts, the rendered prompt."""

from __future__ import annotations

from engine.judging.judge import Judge, changed_parts, prompt_parts, render
from engine.judging.trace import Trace
from engine.store.piles import LabelledCase
from stats.confusion import Confusion
from tui.presentation.audit_view import percent
from tui.presentation.lines import BLANK, Line, Span, line, pad, wrapped
from tui.widgets.literal import one_line, visible


def version_row(judge: Judge, confusion: Confusion | None) -> Line:
    """One version in the list, with the figures of its newest round."""
    if confusion is None or not confusion.judged:
        figures = "not measured"
    else:
        failures, passes = confusion.tp + confusion.fn, confusion.fp + confusion.tn
        tpr = percent(confusion.tp / failures) if failures else "–"
        tnr = percent(confusion.tn / passes) if passes else "–"
        figures = f"TPR {tpr}  TNR {tnr}"
    return line((f"v{judge.number:<3}", "strong"), pad(figures, 22), "  ", one_line(judge.change))


def parts_lines(judge: Judge, parent: Judge | None, model_name: str, width: int) -> list[Line]:
    """The four parts of a version, and what changed against its parent."""
    lines: list[Line] = [
        line((f"v{judge.number}", "strong"), f"  {one_line(model_name)}  ", (judge.judge_id, "dim")),
        line(("change   ", "dim"), one_line(judge.change) or "–"),
    ]
    if parent is not None:
        changed = changed_parts(judge, parent)
        lines.append(
            line(
                ("against  ", "dim"),
                f"v{parent.number}: ",
                (", ".join(changed) or "nothing", "warn" if len(changed) > 1 else "plain"),
            )
        )
        if len(changed) > 1:
            lines += wrapped("More than one part changed: the round will not say which of them helped.", width, "warn")
    for number, (name, text) in enumerate(prompt_parts(judge), 1):
        lines += [BLANK, line((f"{number} {name.upper()}", "key")), *wrapped(visible(text), width)]
    return lines


def rendered_lines(judge: Judge, trace: Trace, width: int) -> list[Line]:
    """The messages as the model gets them, for one case of the build pile."""
    lines: list[Line] = [line(("RENDERED for ", "key"), (one_line(trace.trace_id), "key"), ("  (build pile)", "dim"))]
    for message in render(judge, trace):
        lines += [BLANK, line((message["role"], "accent")), *wrapped(visible(message["content"]), width)]
    return lines


def example_row(case: LabelledCase, chosen: bool) -> Line:
    """One build-pile case in the example picker."""
    mark = str(case.label.mark)
    return line(
        ("[x] " if chosen else "[ ] ", "accent" if chosen else "dim"), (one_line(case.trace.trace_id), "strong"), " ",
        Span(f"{mark:<5}", "fail" if mark == "FAIL" else "pass"), one_line(case.label.critique),
    )  # fmt: skip
