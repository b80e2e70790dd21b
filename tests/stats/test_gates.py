"""The release gate and the strict gate on TPR, and the labels that they need. Positive = the judge reports a failure."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.confusion import Confusion
from stats.gates import default_gate, labels_needed, labels_needed_table, strict_gate
from stats.intervals import wilson


def test_below_the_count_it_is_neither_reached_nor_missed() -> None:
    gate = default_gate(Confusion(tp=17, fn=5, fp=6, tn=58))
    assert (gate.decided, gate.reached, gate.reason, gate.failures_needed) == (
        False,
        None,
        "not_enough_failures",
        3,
    )
    perfect = default_gate(Confusion(tp=24, fn=0, fp=0, tn=58))
    assert (perfect.decided, perfect.reached, perfect.failures_needed) == (
        False,
        None,
        1,
    )


def test_the_point_decides_from_25_failures_on() -> None:
    assert default_gate(Confusion(tp=20, fn=5, fp=0, tn=1)).reached is True
    assert default_gate(Confusion(tp=19, fn=6, fp=0, tn=1)).reached is False


def test_failures_without_a_judge_verdict_do_not_count() -> None:
    gate = default_gate(Confusion(tp=24, fn=0, fp=0, tn=9, no_verdict_fail=5))
    assert (gate.failures, gate.failures_needed, gate.decided) == (24, 1, False)


@given(st.integers(1, 400), st.integers(1, 20))
def test_exactly_the_target_is_reached(tenths: int, scale: int) -> None:
    """No rounding error turns 0.7 of the failures into a miss of the target 0.7."""
    share = tenths % 10 + 1
    table = Confusion(tp=share * scale, fn=(10 - share) * scale, fp=0, tn=0)
    assert default_gate(table, target=share / 10, needed=10).reached is True


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 9), st.integers(0, 9))
def test_needed_and_decided_say_the_same(tp: int, fn: int, fp: int, tn: int) -> None:
    gate = default_gate(Confusion(tp, fn, fp, tn))
    assert gate.decided == (gate.failures_needed == 0) == (gate.reached is not None)
    assert gate.failures + gate.failures_needed == max(tp + fn, 25)


def test_impossible_gates_are_refused() -> None:
    for target in (0.0, 1.2, 80):
        with pytest.raises(ValueError, match="target"):
            default_gate(Confusion(1, 0, 0, 0), target=target)
    with pytest.raises(ValueError, match="needed"):
        default_gate(Confusion(1, 0, 0, 0), needed=0)


def of(caught: int, failures: int) -> Confusion:
    return Confusion(tp=caught, fn=failures - caught, fp=3, tn=40)


def test_the_labels_needed_of_the_design() -> None:
    """Lower end at .80 with none wrong, 95 % and 90 % right: 16, 33, 74; at .90: 35, 166, and 90 % is never enough."""
    found = {(row.target, row.rate): row.labels for row in labels_needed_table()}
    assert found == {
        (0.8, 1.0): 16,
        (0.8, 0.95): 33,
        (0.8, 0.9): 74,
        (0.9, 1.0): 35,
        (0.9, 0.95): 166,
        (0.9, 0.9): None,
    }


@pytest.mark.parametrize("target", [0.5, 0.7, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("rate", [0.6, 0.85, 0.9, 0.95, 0.97, 1.0])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_labels_needed_is_the_last_time_that_the_lower_end_is_below(
    target: float, rate: float, confidence: float
) -> None:
    """Every n up to 1,500 with the interval itself, in place of the inequality that it comes from."""
    needed = labels_needed(target, rate, confidence)
    if rate <= target:
        assert needed is None
        return
    share = Fraction(str(rate))
    reached = [wilson(n * share.numerator // share.denominator, n, confidence).low >= target for n in range(1, 1501)]
    expected = max((n for n, there in enumerate(reached, start=1) if not there), default=0) + 1
    assert needed == expected


def test_the_first_n_that_happens_to_reach_the_target_is_not_enough() -> None:
    """Some n below 74 reach .80 with 90 % right, but the next one rounds down to fewer and falls below again."""
    needed = labels_needed(0.8, 0.9)
    assert needed is not None
    reached = [n for n in range(1, needed) if wilson(n * 9 // 10, n).low >= 0.8]
    assert reached
    assert wilson((needed - 1) * 9 // 10, needed - 1).low < 0.8


def test_more_is_needed_for_less_and_a_rate_all_but_at_the_target_needs_too_much() -> None:
    needed = [labels_needed(0.8, rate) for rate in (1.0, 0.95, 0.9, 0.85, 0.82, 0.801)]
    assert None not in needed
    assert needed == sorted(needed, key=lambda n: n or 0)
    assert labels_needed(0.8, 0.8001) is None


def test_the_strict_gate_looks_at_the_interval() -> None:
    assert strict_gate(of(16, 16)).reached is True
    assert strict_gate(of(15, 15)).reached is None
    worked = strict_gate(Confusion(tp=8, fn=12, fp=9, tn=171))
    assert (worked.reached, worked.reason, worked.tpr.k, worked.tpr.n) == (False, "missed", 8, 20)


def test_undecided_says_how_many_failures_would_decide_at_the_present_rate() -> None:
    above = strict_gate(of(27, 30))
    assert (above.reason, above.decides_at, above.failures_needed) == ("undecided", labels_needed(0.8, 0.9), 44)
    below = strict_gate(of(21, 30))
    assert below.reason == "undecided"
    assert below.decides_at is not None
    assert below.failures_needed == below.decides_at - 30
    at_target = strict_gate(of(24, 30))
    assert (at_target.reason, at_target.decides_at, at_target.failures_needed) == ("undecided", None, None)


def test_without_a_failure_the_fewest_that_could_decide_are_named() -> None:
    gate = strict_gate(Confusion(tp=0, fn=0, fp=2, tn=9, no_verdict_fail=4))
    assert (gate.reached, gate.reason, gate.tpr.n, gate.decides_at, gate.failures_needed) == (
        None,
        "undecided",
        0,
        16,
        16,
    )


@given(st.integers(0, 200), st.integers(0, 200), st.sampled_from([0.5, 0.8, 0.9]), st.sampled_from([0.9, 0.95]))
def test_the_strict_gate_and_the_interval_say_the_same(tp: int, fn: int, target: float, confidence: float) -> None:
    gate = strict_gate(Confusion(tp, fn, 0, 5), target, confidence)
    if tp + fn:
        interval = wilson(tp, tp + fn, confidence)
        assert (gate.tpr.low, gate.tpr.high) == (interval.low, interval.high)
        assert (gate.reached is True) == (interval.low >= target)
        assert (gate.reached is False) == (interval.high < target)
    assert gate.reason == {True: "reached", False: "missed", None: "undecided"}[gate.reached]
    if gate.reached is not None:
        assert (gate.decides_at, gate.failures_needed) == (tp + fn, 0)


@given(st.integers(1, 60), st.integers(0, 60), st.sampled_from([0.5, 0.8, 0.9]))
def test_as_many_failures_as_it_asks_for_decide_on_the_side_of_the_present_rate(
    tp: int, fn: int, target: float
) -> None:
    gate, rate = strict_gate(Confusion(tp, fn, 0, 5), target), Fraction(tp, tp + fn)
    if gate.reached is not None or gate.decides_at is None:
        return
    assert gate.decides_at > tp + fn
    for n in range(gate.decides_at, gate.decides_at + 40):
        caught = n * rate.numerator // rate.denominator
        above = rate > Fraction(str(target))
        k = caught if above or caught * rate.denominator == n * rate.numerator else caught + 1
        assert strict_gate(of(k, n), target).reached is above


def test_impossible_strict_gates_are_refused() -> None:
    for target in (0.0, 1.0, 80):
        with pytest.raises(ValueError, match="target"):
            strict_gate(of(1, 2), target)
        with pytest.raises(ValueError, match="target"):
            labels_needed(target, 1.0)
    with pytest.raises(ValueError, match="rate"):
        labels_needed(0.8, 95)
    for confidence in (0.0, 95):
        with pytest.raises(ValueError, match="confidence"):
            labels_needed(0.8, 0.7, confidence)
        with pytest.raises(ValueError, match="confidence"):
            strict_gate(of(1, 2), 0.8, confidence)
