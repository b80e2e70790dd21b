"""What a confusion table comes to, in one sentence of plain words. Positive = the judge reports a failure."""

from __future__ import annotations

from stats.confusion import Confusion, Rates, Verdict, is_constant, no_verdict_bounds, rates
from stats.gates import GateResult, default_gate


def plain_sentence(confusion: Confusion, gate: GateResult | None = None) -> str:
    """One sentence, ending in a full stop, that says what the judge does and whether to rely on it.

    ``gate`` is the gate to judge by, the release gate by default. The sentence claims no more than the counts carry:
    a constant judge is called one, and a missing class, missing verdicts and too few failures are said.
    """
    if not confusion.judged:
        return _nothing_to_measure(confusion)
    constant = is_constant(confusion)
    if constant:
        return _constant(confusion, constant)
    failures, passes = confusion.tp + confusion.fn, confusion.fp + confusion.tn
    figures, gate = rates(confusion), gate or default_gate(confusion)
    if not failures:
        return (
            f"Whether the judge catches failures is unknown, because the expert found none in "
            f"{_cases(confusion.judged)}: it raised {_count(confusion.fp, 'false alarm')} on "
            f"{_count(passes, 'good answer')}{_unanswered(confusion)}."
        )
    caught = (
        f"The judge caught {confusion.tp:,} of {_count(failures, 'failure')} "
        f"({percent(confusion.tp, failures, gate.target)})"
    )
    if not passes:
        return (
            f"{caught}{_unanswered(confusion)}; whether it also rejects good answers is unknown, because the expert "
            f"found none, so do not rely on it yet."
        )
    return (
        f"{caught}, let {confusion.fn:,} through and raised {_count(confusion.fp, 'false alarm')} on "
        f"{_count(passes, 'good answer')}{_unanswered(confusion)}: {_conclusion(confusion, figures, gate)}."
    )


def gate_sentence(gate: GateResult) -> str:
    """What the gate says, in a few words: "not enough failures: 3 more", "reached" or "missed"."""
    if gate.reason == "not_enough_failures":
        return f"not enough failures: {gate.failures_needed:,} more"
    return gate.reason


def percent(k: int, n: int, target: float | None = None) -> str:
    """k of n as a whole percentage; with decimals where rounding would show 0, 100 or the target and it is not that."""
    landmarks = [0.0, 100.0] + ([] if target is None else [100.0 * target])
    exact = 100.0 * k / n
    for digits in range(5):
        shown = round(exact, digits)
        if all(abs(shown - mark) > 1e-9 or abs(exact - mark) < 1e-9 for mark in landmarks):
            return f"{exact:.{digits}f} %"
    return f"{exact:.6g} %"


def _conclusion(confusion: Confusion, figures: Rates, gate: GateResult) -> str:
    bar = percent_of(gate.target)
    if figures.kappa.value is not None and figures.kappa.value <= 0.0:
        return "that is no better than chance, so do not rely on it"
    if figures.kappa.low is not None and figures.kappa.low <= 0.0:
        return "these cases cannot tell that from chance, so do not rely on it"
    if gate.reached:
        unanswered_as_pass = no_verdict_bounds(confusion).tpr_as_pass.value
        if unanswered_as_pass is not None and unanswered_as_pass < gate.target:
            return f"that reaches the {bar} a release asks for only as long as the cases without a verdict are left out"
        return f"that reaches the {bar} a release asks for, on at least {_count(gate.needed, 'failure')}"
    if gate.decided:
        return f"do not rely on it to find failures, because a release asks for {bar}"
    missing = f"{_count(gate.failures_needed, 'more failure')} needed"
    high = figures.tpr.high
    if high is not None and high < gate.target:
        return (
            f"do not rely on it to find failures, because even the interval's upper end, {percent_of(high)}, is below "
            f"the {bar} a release asks for (which also wants {gate.needed:,} failures)"
        )
    return f"too few failures to say whether that is enough for a release ({missing})"


def _constant(confusion: Confusion, said: Verdict) -> str:
    failures, passes = confusion.tp + confusion.fn, confusion.fp + confusion.tn
    extra = _unanswered(confusion)
    if said == "PASS" and not failures:
        return (
            f"The judge and the expert said PASS on {_all_cases(confusion.judged)}{extra}: without a failure among "
            f"them nothing shows whether it would catch one."
        )
    if said == "FAIL" and not passes:
        return (
            f"The judge and the expert said FAIL on {_all_cases(confusion.judged)}{extra}: without a good answer among "
            f"them nothing shows whether it would pass one."
        )
    if confusion.judged == 1:
        other = "FAIL" if said == "PASS" else "PASS"
        return (
            f"The judge said {said} on the one case, which the expert called {other}{extra}: one case shows no pattern."
        )
    name = f"This is a constant judge: it said {said} every time ({_cases(confusion.judged)}{extra})"
    agreed = confusion.tp + confusion.tn
    agreement = f"its {percent(agreed, confusion.judged)} agreement is what always saying {said} reaches here"
    if said == "PASS":
        caught = f"it caught 0 of {_count(failures, 'failure')}"
        return f"{name}; {agreement}, and {caught}." if passes else f"{name}, and {caught}."
    passed = f"it passed 0 of {_count(passes, 'good answer')}"
    return f"{name}; {agreement}, and {passed}." if failures else f"{name}, and {passed}."


def _nothing_to_measure(confusion: Confusion) -> str:
    if confusion.labelled:
        return (
            f"There is nothing to measure: the judge gave no verdict on any of "
            f"{_count(confusion.labelled, 'labelled case')}."
        )
    if confusion.unlabelled:
        return f"There is nothing to measure: none of {_cases(confusion.unlabelled)} has a human label."
    return "There is nothing to measure: there are no cases."


def _unanswered(confusion: Confusion) -> str:
    return f", with no verdict on {_count(confusion.no_verdict, 'labelled case')}" if confusion.no_verdict else ""


def percent_of(share: float) -> str:
    """A share as a percentage with no more digits than it needs, at most one: "80 %", "61.3 %"."""
    return f"{100.0 * share:.1f}".removesuffix(".0") + " %"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _cases(number: int) -> str:
    return _count(number, "case")


def _all_cases(number: int) -> str:
    return "the one case" if number == 1 else f"all {_cases(number)}"
