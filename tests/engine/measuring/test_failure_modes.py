"""Failure modes over labelled cases: counts, label numbers, and what is said about new ones."""

from __future__ import annotations

from engine.measuring.failure_modes import FailureMode, failure_modes
from engine.store.codes import CodedCase


def case(number: int, verdict: str, *modes: str, codes: tuple[str, ...] = ()) -> CodedCase:
    return CodedCase(f"T-{number}", number, verdict, "why", "Ada", "random", False, "none", codes or modes, modes)


def test_counts_are_of_cases_by_verdict_with_the_labels_where_a_mode_came_first_and_last() -> None:
    found = failure_modes(
        [
            case(1, "FAIL", "price", "price", codes=("price made up", "wrong price")),
            case(2, "PASS", "price"),
            case(3, "FAIL", "source"),
            case(4, "FAIL"),
            case(5, "FAIL", "price", "source"),
        ]
    )
    assert found.modes == (
        FailureMode("price", ("price", "price made up", "wrong price"), failures=2, passes=1, first=1, last=5),
        FailureMode("source", ("source",), failures=2, passes=0, first=3, last=5),
    )
    assert (found.failures, found.coded, found.coded_passes) == (4, 3, 1)


def test_what_is_said_depends_on_how_much_was_coded() -> None:
    def said(*cases: CodedCase) -> str:
        return failure_modes(cases).sentence

    assert said() == "No failures yet."
    assert said(case(1, "FAIL"), case(2, "PASS", "a")) == "No failure of 1 has a code yet: t gives one."
    few = [case(i, "FAIL", "a") for i in range(7)]
    assert said(*few, case(9, "FAIL")) == (
        "7 of 8 failures have a code: too few to say whether new failure modes still turn up. 13 more."
    )
    many = [case(i, "FAIL", "a") for i in range(21)]
    assert said(*many) == (
        "Last 20 coded failures: no new failure mode. About 0 % of failures drawn as these are of a kind not seen yet (Good-Turing, 0 of 21)."
    )
    assert said(*many, case(30, "FAIL", "b"), case(31, "FAIL")) == (
        "Newest failure mode: 0 coded failures ago. Go on until 20 bring none. "
        "About 5 % of failures drawn as these are of a kind not seen yet (Good-Turing, 1 of 22). 1 without a code."
    )


def test_codes_of_passes_and_failures_without_a_code_say_nothing_about_saturation() -> None:
    coded = [case(i, "FAIL", "a") for i in range(21)]
    passes = [case(30 + i, "PASS", "new") for i in range(5)]
    assert failure_modes([*coded, *passes, case(40, "FAIL")]).saturation == failure_modes(coded).saturation
