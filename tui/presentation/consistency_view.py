"""Self-consistency in text: the figures in words, a flipped case side by side."""

from __future__ import annotations

from engine.measuring.consistency import Consistency
from engine.store.blind_repeats import Repeat
from stats.self_consistency import WORKING_BAR
from tui.presentation.audit_view import percent
from tui.presentation.case_view import GLYPHS
from tui.presentation.lines import BLANK, Line, Span, counted, line, pad, wrap, wrapped
from tui.widgets.literal import one_line, visible


def consistency_lines(found: Consistency, width: int) -> list[Line]:
    """What the expert's repeats say of the expert, in sentences."""
    figures = found.figures
    if figures is None:
        return wrapped(
            "Nothing is repeated yet. n draws cases that you have labelled and shows them again without your label: "
            "no judge can be expected to agree with you better than you do.", width,
        )  # fmt: skip
    same, kappa = figures.agreement, figures.kappa
    lines = wrapped(f"The same verdict twice: {same.k} of {same.n} ({percent(same.value)}).", width, "strong")
    if kappa.value is None:
        lines += wrapped("kappa is not defined: all verdicts of one time are alike.", width)
    else:
        bounds = "" if kappa.low is None or kappa.high is None else f" [{kappa.low:.2f}, {kappa.high:.2f}]"
        bar = "at" if figures.reaches_bar else "below"
        lines += wrapped(f"kappa {kappa.value:.2f}{bounds}, {bar} the working bar of {WORKING_BAR:.2f}.", width)
    lines += wrapped(
        f"FAIL became PASS in {figures.fail_flips.k} of {figures.fail_flips.n}, "
        f"PASS became FAIL in {figures.pass_flips.k} of {figures.pass_flips.n}.", width,
    )  # fmt: skip
    shortest, median, longest = found.days
    between = (
        f"{counted(shortest, 'day')}" if shortest == longest else f"{shortest} to {longest} days, median {median:g},"
    )
    left = f" {counted(found.undecided, 'case')} left undecided." if found.undecided else ""
    lines += wrapped(f"{between} between label and repeat.{left}", width, "dim")
    return [*lines, *([BLANK, line(("FLIPPED", "key"))] if found.flipped else [])]


def repeat_row(repeat: Repeat, width: int) -> Line:
    """``✗ ✓ T-0412  the label's critique``: the verdict of then, the one of now, the case."""
    trace_id = one_line(repeat.trace_id)
    spent = 4 + min(len(trace_id), 16) + 1
    return line(
        GLYPHS.get(repeat.first, Span("·")), " ", GLYPHS.get(repeat.verdict, Span("·")), " ",
        (pad(trace_id, min(len(trace_id), 16)), "strong"), " ", pad(one_line(repeat.first_critique), max(width - spent - 1, 0)),
    )  # fmt: skip


def repeat_lines(repeat: Repeat, width: int) -> list[Line]:
    """Label and repeat side by side, each with its critique."""
    half = max((width - 3) // 2, 8)
    left = [f"then {repeat.first}", *wrap(visible(repeat.first_critique) or "no critique", half)]
    right = [
        f"now {repeat.verdict}, {counted(repeat.days, 'day')} later",
        *wrap(visible(repeat.critique) or "no critique", half),
    ]
    rows = max(len(left), len(right))
    left += [""] * (rows - len(left))
    right += [""] * (rows - len(right))
    return [
        line(
            (pad(one, half), "strong" if not number else "plain"),
            ("   ", "dim"),
            (other, "strong" if not number else "plain"),
        )
        for number, (one, other) in enumerate(zip(left, right, strict=True))
    ]
