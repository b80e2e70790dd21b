"""Home in text: each criterion's place in the seven steps, and the next thing to do."""

from __future__ import annotations

from engine.auditing.sentence import gate_sentence
from engine.measuring.consistency import DEFAULT_SAMPLE
from engine.measuring.overview import BUILD_TARGET, FAILURES_TARGET, TRACES_TARGET, Standing
from tui.presentation.audit_view import percent
from tui.presentation.lines import BLANK, Line, Span, line, pad, wrapped
from tui.widgets.literal import one_line


def standing_lines(standing: Standing, width: int) -> list[Line]:
    """The seven steps of one criterion with counts against their targets."""
    progress, build, sealed = standing.progress, standing.build, standing.sealed
    expert = one_line(standing.criterion.author)
    again = ""
    if standing.repeated:
        again = f"; read again blind, {standing.repeated - standing.flipped} of {standing.repeated} the same"
    elif progress.labelled >= DEFAULT_SAMPLE:
        again = "; b shows labelled cases again, blind"
    real = progress.total - progress.written
    written = f", and {progress.written} written for the coverage grid" if progress.written else ""
    built, labelled_sealed = build.passes + build.failures, sealed.passes + sealed.failures
    measured = standing.newest_confusion
    judged = measured is not None and measured.judged > 0
    complete = judged and not standing.newest_pending
    rate = ""
    if judged and measured is not None:
        tpr = measured.tp / (measured.tp + measured.fn) if measured.tp + measured.fn else None
        rate = f"TPR {measured.tp} of {measured.tp + measured.fn} ({percent(tpr)})"
        if standing.newest_pending:
            total = measured.labelled + measured.unlabelled + standing.newest_pending
            rate = f"so far {total - standing.newest_pending} of {total} cases judged, {rate}"
    steps = [
        ("1 Expert", bool(expert), (expert or "nobody named yet") + again),
        ("2 Traces", real >= TRACES_TARGET, f"{real} ({TRACES_TARGET} or more){written}"),
        ("3 Labels", built >= BUILD_TARGET and sealed.failures >= FAILURES_TARGET,
         f"build pile {build.passes} PASS {build.failures} FAIL (about {BUILD_TARGET}, half and half); "
         f"sealed {labelled_sealed} labelled, {sealed.failures} failures (at least {FAILURES_TARGET})"),
        ("4 Defects", progress.defects == 0, f"{progress.defects} open" if progress.defects else "none open"),
        ("5 Judge", complete and bool(standing.gate and standing.gate.reached), f"{standing.judge_versions} version{_s(standing.judge_versions)}, {standing.rounds} round{_s(standing.rounds)} measured"),
        ("6 Measure", complete, rate or "not measured on sealed labels: sign of the error unknown"),
        ("7 Segment", False, "comes in a later version"),
    ]  # fmt: skip
    lines: list[Line] = []
    for name, done, text in steps:
        head = "✓ " if done else "· "
        pieces = wrapped(text, max(width - 14, 20))
        lines.append((Span(head, "pass" if done else "dim"), Span(pad(name, 11), "strong"), *pieces[0]))
        lines += [(Span(" " * 13), *piece) for piece in pieces[1:]]
    if standing.gate is not None and complete:
        lines.append(line(("  gate       ", "dim"), gate_sentence(standing.gate)))
    lines += [BLANK, line(("Next  ", "accent"), (standing.next_thing, "strong"), "   ", ("Enter", "key"))]
    return lines


def _s(count: int) -> str:
    return "" if count == 1 else "s"
