"""The one sentence in plain words: it says what the counts carry, and no more."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.auditing.sentence import gate_sentence, percent, plain_sentence
from stats.confusion import Confusion, is_constant
from stats.gates import default_gate

tables = st.builds(Confusion, *[st.integers(0, 60)] * 4, *[st.integers(0, 9)] * 3)


def test_the_worked_example() -> None:
    said = plain_sentence(Confusion(tp=8, fn=12, fp=9, tn=171))
    assert said.startswith("The judge caught 8 of 20 failures (40 %), let 12 through and raised 9 false alarms on 180")
    assert "do not rely on it" in said


def test_a_judge_that_always_says_pass_is_called_constant() -> None:
    said = plain_sentence(Confusion(tp=0, fn=20, fp=0, tn=180))
    assert said == (
        "This is a constant judge: it said PASS every time (200 cases); its 90 % agreement is what always saying PASS "
        "reaches here, and it caught 0 of 20 failures."
    )


def test_a_judge_that_always_says_fail_catches_all_and_is_still_constant() -> None:
    said = plain_sentence(Confusion(tp=20, fn=0, fp=180, tn=0))
    assert said.startswith("This is a constant judge: it said FAIL every time")
    assert "passed 0 of 180 good answers" in said


@pytest.mark.parametrize(
    ("table", "part"),
    [
        (Confusion(0, 0, 0, 0), "there are no cases"),
        (Confusion(0, 0, 0, 0, unlabelled=8), "none of 8 cases has a human label"),
        (Confusion(0, 0, 0, 0, no_verdict_fail=3, no_verdict_pass=1), "no verdict on any of 4 labelled cases"),
        (Confusion(0, 0, 0, 12), "nothing shows whether it would catch one"),
        (Confusion(12, 0, 0, 0), "nothing shows whether it would pass one"),
        (Confusion(0, 5, 0, 0), "constant judge: it said PASS every time (5 cases), and it caught 0 of 5 failures"),
        (Confusion(0, 0, 5, 0), "constant judge: it said FAIL every time (5 cases), and it passed 0 of 5 good answers"),
        (Confusion(0, 1, 0, 0), "one case shows no pattern"),
        (Confusion(0, 0, 0, 1), "the one case"),
        (Confusion(0, 0, 3, 7), "Whether the judge catches failures is unknown"),
        (Confusion(3, 7, 0, 0), "whether it also rejects good answers is unknown"),
        (Confusion(9, 2, 3, 7), "too few failures to say"),
        (Confusion(0, 5, 5, 0), "no better than chance"),
        (Confusion(178, 33, 54, 11, 1), "with no verdict on 1 labelled case: these cases cannot tell that from chance"),
        (Confusion(30, 2, 3, 70), "reaches the 80 % a release asks for"),
        (Confusion(30, 5, 1, 99, no_verdict_fail=8), "only as long as the cases without a verdict are left out"),
        (Confusion(79, 90, 15, 416), "do not rely on it to find failures, because a release asks for 80 %"),
    ],
)
def test_each_kind_of_table_is_worded_with_care(table: Confusion, part: str) -> None:
    assert part in plain_sentence(table)


@given(tables)
def test_every_table_gets_one_sentence_without_gaps(table: Confusion) -> None:
    said = plain_sentence(table)
    assert said.endswith(".")
    assert said.count(". ") == 0
    assert not re.search(r"None|nan|inf|  ", said)
    assert not re.search(r"\b1 (failures|cases|good answers|false alarms)", said)
    # A verdict in favour is never given without the failures that the gate asks for.
    if "that reaches" in said:
        assert default_gate(table).reached
        assert is_constant(table) is None


def test_a_percentage_is_never_rounded_onto_a_bound_it_has_not_reached() -> None:
    assert percent(8, 20) == "40 %"
    assert percent(199, 250, 0.8) == "79.6 %"
    assert percent(999, 1000) == "99.9 %"
    assert percent(1, 1000) == "0.1 %"
    assert (percent(0, 7), percent(7, 7), percent(4, 5, 0.8)) == ("0 %", "100 %", "80 %")


def test_the_gate_in_words() -> None:
    assert gate_sentence(default_gate(Confusion(17, 5, 6, 58))) == "not enough failures: 3 more"
    assert gate_sentence(default_gate(Confusion(25, 0, 6, 58))) == "reached"
    assert gate_sentence(default_gate(Confusion(5, 25, 6, 58))) == "missed"
