"""The release gate on TPR. Positive = the judge reports a failure."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats import gates
from stats.confusion import Confusion
from stats.gates import default_gate


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


def test_the_docstrings_examples_hold() -> None:
    result = doctest.testmod(gates)
    assert result.attempted > 0
    assert result.failed == 0
