"""The audit of a judge in text: confusion table, rates with their intervals, disagreements."""

from __future__ import annotations

from engine.auditing.sentence import gate_sentence
from engine.measuring.audit import Audit, Disagreement
from stats.confusion import Confusion, is_constant, no_verdict_bounds
from stats.intervals import Estimate, Proportion
from tui.presentation.lines import BLANK, Line, Span, columns, line, wrapped
from tui.widgets.literal import one_line, visible

PLOT_WIDTH = 21


def percent(value: float | None) -> str:
    """A share as whole percent, "–" where there is none."""
    return "–" if value is None else f"{100 * value:.0f} %"


def interval_plot(low: float | None, value: float | None, high: float | None, width: int = PLOT_WIDTH) -> str:
    """A share between 0 and 1 with its interval, e.g. ``   ├───●──┤   ``."""
    if low is None or value is None or high is None:
        return " " * width
    first, middle, last = (min(int(share * width), width - 1) for share in (low, value, high))
    cells = [" "] * width
    for index in range(first, last + 1):
        cells[index] = "─"
    cells[first], cells[last] = "├", "┤"
    cells[middle] = "●"
    return "".join(cells)


def confusion_lines(confusion: Confusion) -> list[Line]:
    """The confusion table with its margins. Positive = the judge reports a failure."""
    fail, passed = (
        confusion.tp + confusion.fn + confusion.no_verdict_fail,
        confusion.fp + confusion.tn + confusion.no_verdict_pass,
    )

    def row(name: str, *counts: int, styles: tuple[str, ...]) -> Line:
        return columns(
            [(Span(name), 14), *[(Span(f"{count:,}", style), -12) for count, style in zip(counts, styles, strict=True)]]
        )

    return [
        columns(
            [(Span(""), 14), *[(Span(head, "dim"), -12) for head in ("judge FAIL", "judge PASS", "no verdict", "all")]]
        ),
        row(
            "expert FAIL",
            confusion.tp,
            confusion.fn,
            confusion.no_verdict_fail,
            fail,
            styles=("strong", "fail", "warn", "dim"),
        ),
        row(
            "expert PASS",
            confusion.fp,
            confusion.tn,
            confusion.no_verdict_pass,
            passed,
            styles=("warn", "strong", "warn", "dim"),
        ),
    ]


def rate_line(name: str, rate: Proportion, width: int) -> Line:
    """``TPR  17 of 22   77 %  ├──●──┤  [57, 90]``."""
    counts = f"{rate.k:,} of {rate.n:,}"
    if rate.value is None or rate.low is None or rate.high is None:
        return columns(
            [(Span(name, "strong"), 10), (Span(counts), -12), (Span("  not to be had: no such cases yet", "dim"), 40)]
        )
    bounds = f"[{100 * rate.low:.0f}, {100 * rate.high:.0f}]"
    plot = interval_plot(rate.low, rate.value, rate.high) if width >= 74 else ""
    return columns(
        [
            (Span(name, "strong"), 10),
            (Span(counts), -12),
            (Span(percent(rate.value), "strong"), -8),
            (Span(f"  {bounds}"), 14),
            (Span(plot, "dim"), len(plot) or 1),
        ]
    )


def audit_lines(audit: Audit, width: int, *, compact: bool = False) -> list[Line]:
    """Sentence, table, rates, gate and notes of one audit; ``compact`` leaves out the blank lines."""
    gap: list[Line] = [] if compact else [BLANK]
    lines: list[Line] = []
    sentence = audit.sentence if audit.confusion.judged or not audit.pending else "No verdict has come in yet."
    so_far = (
        f"So far, {audit.pending} of {audit.total} cases pending: " if audit.pending and audit.confusion.judged else ""
    )
    lines += [line((text, "strong")) for text in _wrap(so_far + sentence, width)]
    if audit.stale:
        lines += wrapped(f"STALE: {audit.stale}. Measure again.", width, "warn")
    lines += [*gap, *confusion_lines(audit.confusion), *gap]
    rates = audit.rates
    lines += [rate_line("TPR", rates.tpr, width), rate_line("TNR", rates.tnr, width)]
    lines += [rate_line("precision", rates.precision, width), rate_line("agreement", rates.agreement, width)]
    lines.append(
        line(
            ("kappa ", "strong"), _estimate(rates.kappa), "   ",
            (f"a judge that always says PASS would agree {percent(rates.baseline_agreement.value)}", "dim"),
        )
    )  # fmt: skip
    lines += [
        *gap,
        line(
            ("gate ", "strong"),
            f"TPR ≥ {percent(audit.gate.target)} on ≥ {audit.gate.needed} failures: ",
            (gate_sentence(audit.gate), _gate_style(audit)),
        ),
    ]
    constant = is_constant(audit.confusion)
    if constant and audit.confusion.judged > 1:
        lines += wrapped(f"CONSTANT JUDGE: it has said {constant} every time.", width, "warn")
    if audit.confusion.no_verdict:
        bounds = no_verdict_bounds(audit.confusion)
        lines += wrapped(
            f"{audit.confusion.no_verdict} without a verdict, in no rate above. With all of them as PASS to FAIL, TPR is "
            f"{percent(bounds.tpr_as_pass.value)} to {percent(bounds.tpr_as_fail.value)}, TNR {percent(bounds.tnr_as_fail.value)} to {percent(bounds.tnr_as_pass.value)}.",
            width, "warn",
        )  # fmt: skip
    lines.append(line(("Positive = the judge reports a failure. Intervals: 95 % Wilson.", "dim")))
    lines += wrapped(
        f"{audit.rounds_on_pile} round{'s' if audit.rounds_on_pile != 1 else ''} measured on this sealed pile so far; each spends some of its secrecy.",
        width,
        "dim",
    )
    return lines


def disagreement_row(item: Disagreement, width: int) -> Line:
    """One disagreement in the list: drawer, id, who said what, the request."""
    drawer = {"label": "w", "prompt": "p", "model": "m"}.get(item.drawer, "·")
    judge = {"NO_VERDICT": "none"}.get(item.judge, item.judge)
    return line(
        (drawer, "accent" if item.drawer else "dim"), " ", (one_line(item.trace_id), "strong"), "  ",
        (f"expert {item.expert}", "fail" if item.expert == "FAIL" else "pass"), "  ", (f"judge {judge:<4}", "warn"), "  ",
        one_line(item.request),
    )  # fmt: skip


def disagreement_lines(item: Disagreement, width: int) -> list[Line]:
    """The expert's critique above the judge's reason."""
    judge = "no verdict" if item.judge == "NO_VERDICT" else item.judge
    critique = visible(item.critique) or "(no critique: an imported label)"
    lines = [
        line(("expert ", "dim"), (item.expert, "fail" if item.expert == "FAIL" else "pass")),
        *wrapped(critique, width, indent="  "),
    ]
    lines += [
        line(("judge  ", "dim"), (judge, "warn")),
        *wrapped(visible(item.reason) or "(no reason)", width, indent="  "),
    ]
    if item.problem:
        lines += wrapped(visible(item.problem), width, "warn", "  ")
    return lines


def drawer_counts(audit: Audit) -> Line:
    """How many disagreements lie in which drawer."""
    drawers = [d.drawer for d in audit.disagreements]
    unsorted = sum(1 for drawer in drawers if not drawer)
    return line(
        ("disagreements ", "strong"), (str(len(drawers)), "strong"), "   ", ("w", "key"), f" label {drawers.count('label')}   ",
        ("p", "key"), f" prompt {drawers.count('prompt')}   ", ("m", "key"), f" model {drawers.count('model')}   unsorted {unsorted}",
    )  # fmt: skip


def _estimate(estimate: Estimate) -> str:
    if estimate.value is None:
        return "undefined here"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.2f} (no interval)"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _gate_style(audit: Audit) -> str:
    return {True: "pass", False: "fail", None: "warn"}[audit.gate.reached]


def _wrap(text: str, width: int) -> list[str]:
    return ["".join(span.text for span in spans) for spans in wrapped(text, width)]
