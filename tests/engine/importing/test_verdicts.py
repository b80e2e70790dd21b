"""A person's verdict is read as what they wrote, and never guessed where it can be read both ways."""

from __future__ import annotations

import contextlib
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EvaldeskError
from engine.importing.verdicts import infer_reading, names_failure, parse_values, read_verdict


@pytest.mark.parametrize(
    "value",
    ["pass", "PASS", " Pass ", "true", "True", "TRUE", True, 1, 1.0, "1", "1.0", Decimal(1), "accept", "ACCEPT"],
)
def test_pass_in_every_usual_form(value: Any) -> None:
    assert read_verdict(value, infer_reading("human", [])) == "PASS"


@pytest.mark.parametrize("value", ["fail", "FAIL", "false", "False", False, 0, 0.0, "0", "0.0", "reject"])
def test_fail_in_every_usual_form(value: Any) -> None:
    assert read_verdict(value, infer_reading("human", [])) == "FAIL"


@pytest.mark.parametrize("value", [None, "", "  ", "\t\n", float("nan")])
def test_blank_is_not_labelled(value: Any) -> None:
    assert read_verdict(value, infer_reading("human", [])) is None


@pytest.mark.parametrize("value", ["yes", "no", "good", "bad", "ignore", "2", 2, 0.5, "passed?", "1,0", [1], {"a": 1}])
def test_anything_else_is_refused_with_a_reason(value: Any) -> None:
    with pytest.raises(ValueError, match="verdict"):
        read_verdict(value, infer_reading("human", []))


@pytest.mark.parametrize(
    "name",
    ["fail", "failed", "is_error", "hasHallucination", "HTTPError", "defect", "/judges/x/defect", "not_ok", "wrong",
     "Hallucinated?", "has_issue", "rejected"],
)  # fmt: skip
def test_columns_that_name_a_failure(name: str) -> None:
    assert names_failure(name)
    for value in ("1", 0, True, "False"):
        with pytest.raises(EvaldeskError) as caught:
            infer_reading(name, ["", value])
        assert "--values" in caught.value.remedy
        assert caught.value.where == name


@pytest.mark.parametrize(
    "name", ["human_passed", "label", "pass_fail", "mirror", "notes", "/errors/verdict", "verdict"]
)
def test_columns_that_do_not(name: str) -> None:
    assert not names_failure(name)
    assert infer_reading(name, ["1", "0"]).read("1") == "PASS"


def test_words_need_no_explanation_in_a_failure_column() -> None:
    reading = infer_reading("error", ["pass", "FAIL"])
    assert (reading.read("FAIL"), reading.read("pass")) == ("FAIL", "PASS")
    with pytest.raises(ValueError, match="'1'"):
        reading.read("1")


def test_a_stated_reading_is_taken_as_it_stands_and_echoed() -> None:
    reading = infer_reading("hallucination", ["1"], explicit="1=FAIL, 0=pass")
    assert [reading.read(v) for v in ("1", 1, 1.0, "0", 0)] == ["FAIL", "FAIL", "FAIL", "PASS", "PASS"]
    assert reading.as_dict() == {"1": "FAIL", "0": "PASS"}
    assert reading.explicit
    with pytest.raises(ValueError, match="'pass'"):
        reading.read("pass")
    assert infer_reading("x", [], {"Positive": "PASS"}).read(" positive ") == "PASS"
    assert infer_reading("x", [], reading).as_dict() == reading.as_dict()


@pytest.mark.parametrize("text", ["1", "1=", "=PASS", "1=GOOD", "1=PASS,1=FAIL", "1=PASS,,"])
def test_a_stated_reading_that_cannot_be_understood(text: str) -> None:
    with pytest.raises(EvaldeskError):
        parse_values(text)


@given(
    st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none(), st.decimals(), st.lists(st.integers()))
)
def test_every_value_is_a_verdict_a_blank_or_refused(value: Any) -> None:
    with contextlib.suppress(ValueError):
        assert read_verdict(value, infer_reading("human", [])) in ("PASS", "FAIL", None)
