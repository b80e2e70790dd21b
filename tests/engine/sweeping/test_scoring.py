"""A reply is right, wrong or no answer; a reference that a scorer cannot read is refused by name."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import EvaldeskError
from engine.sweeping.scoring import SCORERS, Scored, check_answer, score, score_all


def test_the_likeliest_option_is_the_answer_and_an_empty_reply_is_none() -> None:
    assert score("likelihood", "B", " (b) ") == Scored(1.0, "B", False, "likeliest")
    assert score("likelihood", "A", "B") == Scored(0.0, "A", False, "likeliest")
    assert score("likelihood", "", "B") == Scored(0.0, "", True, "none")
    with pytest.raises(EvaldeskError, match="no option letter of ABCD"):
        check_answer("likelihood", "blue")


@pytest.mark.parametrize(
    ("scorer", "reply", "answer", "expected"),
    [
        ("number", "It costs $29.00.", "29", Scored(1.0, "29", False, "last number")),
        ("number", "It costs 1,250", "1250.0", Scored(1.0, "1250", False, "last number")),
        ("number", "It costs 1,250", "125", Scored(0.0, "1250", False, "last number")),
        ("number", "#### 18", "2 * 9 = <<2*9=18>>18\n#### 18", Scored(1.0, "18", False, "marker")),
        ("number", "at 9:30", "30", Scored(0.0, "", True, "last number")),
        ("number", "", "0", Scored(0.0, "", True, "none")),
        ("choice", "The answer is (b).", "B", Scored(1.0, "B", False, "declaration")),
        ("choice", "The answer is (b).", "c", Scored(0.0, "B", False, "declaration")),
        ("choice", "No idea", "A", Scored(0.0, "", True, "none")),
        ("exact", '**"STRASSE"**.', "straße", Scored(1.0, "STRASSE", False, "whole reply")),
        ("exact", "cafe\u0301  noir", "CAF\u00c9 noir", Scored(1.0, "caf\u00e9 noir", False, "whole reply")),
        ("exact", "It is Paris", "Paris", Scored(0.0, "It is Paris", False, "whole reply")),
        ("exact", ' "" ', "Paris", Scored(0.0, "", True, "none")),
    ],
)
def test_right_wrong_and_no_answer(scorer: str, reply: str, answer: str, expected: Scored) -> None:
    assert score(scorer, reply, answer) == expected


@pytest.mark.parametrize(
    ("scorer", "answer"),
    [
        ("number", "abc"),
        ("number", ""),
        ("number", "10-15"),
        ("number", "20 - 5"),
        ("number", "from 3 to 4"),
        ("choice", "E"),
        ("choice", "The answer is B"),
        ("choice", "2"),
        ("exact", " \n"),
        ("exact", "..."),
    ],
)
def test_a_reference_that_cannot_be_read_is_refused_by_name(scorer: str, answer: str) -> None:
    with pytest.raises(EvaldeskError) as refused:
        check_answer(scorer, answer)
    assert repr(answer) in refused.value.what and repr(scorer) in refused.value.what
    assert refused.value.kept and refused.value.remedy
    with pytest.raises(EvaldeskError):
        score(scorer, "It is 5, (B)", answer)


def test_a_long_reference_is_named_by_its_beginning() -> None:
    with pytest.raises(EvaldeskError, match=r"'x{57}\.\.\.'") as refused:
        check_answer("number", "x" * 5000)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("scorer", "answer", "read"),
    [
        ("number", "$1,250.00 a year", "1250"),
        ("number", "3 + 4 = 7\n#### 7", "7"),
        ("number", "thus \\boxed{\\frac{1}{2}} of 3", "0.5"),
        ("choice", "(b)", "B"),
        ("exact", "New  York.", "New York"),
    ],
)
def test_a_reference_as_it_is_read(scorer: str, answer: str, read: str) -> None:
    assert check_answer(scorer, answer) == read


def test_a_scorer_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(EvaldeskError, match="exact, number, choice"):
        score("regex", "5", "5")


def test_every_scorer_that_can_read_the_reference_scores() -> None:
    assert list(score_all("B", "B")) == ["exact", "choice"]
    assert list(score_all("18", "18")) == ["exact", "number"]
    assert score_all("18", "...") == {}
    all_of_it = score_all("So the answer is 18.", "18")
    assert (all_of_it["exact"].value, all_of_it["number"].value) == (0.0, 1.0)
    assert list(score_all("E", "E", "ABCDE")) == ["exact", "choice"]


@settings(deadline=None)
@given(st.text(), st.text() | st.sampled_from(["18", "B", "1/2"]))
def test_scores_are_0_or_1_and_no_answer_is_never_right(reply: str, answer: str) -> None:
    for scorer, scored in score_all(reply, answer).items():
        assert scorer in SCORERS and scored.value in (0.0, 1.0)
        assert scored.no_answer == (scored.extracted == "")
        assert not (scored.no_answer and scored.value)
        assert scored == score(scorer, reply, answer)


@settings(deadline=None)
@given(st.text())
def test_the_reference_itself_is_a_right_reply(answer: str) -> None:
    assert all(scored.value == 1.0 for scored in score_all(answer, answer).values())
