"""Judge versions in text: the list, the four parts, the rendered prompt."""

from __future__ import annotations

from typing import NamedTuple

from engine.judging.judge import Judge, changed_parts, prompt_parts, render
from engine.judging.trace import Trace
from engine.store.piles import LabelledCase
from stats.confusion import Confusion
from tui.presentation.audit_view import percent
from tui.presentation.case_view import case_lines
from tui.presentation.lines import BLANK, Line, Span, line, pad, wrapped
from tui.widgets.literal import one_line, visible


class Version(NamedTuple):
    """A judge version with the counts of its newest round, and how many cases of that have no verdict yet."""

    judge: Judge
    confusion: Confusion | None = None
    pending: int = 0


def version_row(version: Version) -> Line:
    """One version in the list, with the figures of its newest round; none before that is complete."""
    judge, confusion, pending = version
    if confusion is not None and pending:
        total = confusion.labelled + confusion.unlabelled + pending
        figures = f"so far {total - pending} of {total}"
    elif confusion is None or not confusion.judged:
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
    """The messages as the model gets them, for one case of the build pile, and the keys that hold here."""
    is_example = trace.trace_id in {example.trace_id for example in judge.examples}
    lines: list[Line] = [
        line(("RENDERED for ", "key"), (one_line(trace.trace_id), "key"), (f"  (build pile{', an example' if is_example else ''})", "dim")),
        line(("Tab", "key"), " next case   ", ("space PgDn PgUp", "key"), " scroll   ", ("r", "key"), " back to the parts"),
    ]  # fmt: skip
    for message in render(judge, trace):
        lines += [BLANK, line((message["role"], "accent")), *wrapped(visible(message["content"]), width)]
    return lines


def example_lines(case: LabelledCase, width: int) -> list[Line]:
    """What a few rows can hold of an example: critique, request and response first, then the case in full."""
    trace, lines = case.trace, []
    for name, text in (("critique", case.label.critique), ("request", trace.request), ("response", trace.response)):
        lines += wrapped(visible(text), width, indent=" " * 10, first=pad(name, 10))
    return [*lines, BLANK, *case_lines(trace, width)]


def example_row(case: LabelledCase, chosen: bool) -> Line:
    """One build-pile case in the example picker."""
    mark = str(case.label.mark)
    return line(
        ("[x] " if chosen else "[ ] ", "accent" if chosen else "dim"), (one_line(case.trace.trace_id), "strong"), " ",
        Span(f"{mark:<5}", "fail" if mark == "FAIL" else "pass"), one_line(case.label.critique),
    )  # fmt: skip
