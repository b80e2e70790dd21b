"""A judge's reply is read strictly: PASS, FAIL, or no verdict with the reason why."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.judging.verdict import Verdict, read_reply, reply_schema

CONTEXT = [
    {"kind": "passage", "id": "kb-1", "text": "Parcels wait at the pick-up point\nfor 7 days."},
    {"kind": "tool", "result": {"status": "late"}},
]


@pytest.mark.parametrize("verdict", ["PASS", "FAIL"])
def test_a_well_formed_reply_is_taken(verdict: str) -> None:
    reply = read_reply(json.dumps({"reason": "It is so.", "verdict": verdict}))
    assert (reply.verdict, reply.reason, reply.problem) == (verdict, "It is so.", "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("PASS", "not JSON"),
        ("", "not JSON"),
        ('["PASS"]', "not a JSON object"),
        ('{"verdict": "PASS"}', "no reason"),
        ('{"reason": "  ", "verdict": "PASS"}', "no reason"),
        ('{"reason": "r", "verdict": "pass"}', "neither PASS nor FAIL"),
        ('{"reason": "r", "verdict": "PASSED"}', "neither PASS nor FAIL"),
        ('{"reason": "r", "verdict": true}', "neither PASS nor FAIL"),
        ('{"reason": "r"}', "neither PASS nor FAIL"),
        ('{"verdict": "PASS", "reason": "r"}', "before the reason"),
        ('{"reason": "r", "verdict": "PASS"} and more', "not JSON"),
    ],
)
def test_anything_else_is_no_verdict_with_its_problem(text: str, problem: str) -> None:
    reply = read_reply(text)
    assert reply.verdict is Verdict.NO_VERDICT
    assert problem in reply.problem


def test_a_reply_that_was_cut_off_says_so() -> None:
    assert "cut off" in read_reply('{"reason": "the answ', finish="length").problem


@given(st.text())
def test_no_text_whatever_breaks_the_reading(text: str) -> None:
    reply = read_reply(text)
    assert reply.verdict in Verdict
    assert reply.verdict is not Verdict.NO_VERDICT or reply.problem


@pytest.mark.parametrize(
    ("quote", "problem"),
    [
        ("wait at the pick-up point for 7 days", ""),
        ("wait at the pick-up point for 9 days", "does not stand"),
        ("late", ""),
        ("", "missing"),
    ],
)
def test_a_quote_must_stand_in_the_context_and_the_verdict_stays(quote: str, problem: str) -> None:
    reply = read_reply(json.dumps({"reason": "r", "quote": quote, "verdict": "FAIL"}), context=CONTEXT)
    assert reply.verdict is Verdict.FAIL
    assert (problem in reply.problem) if problem else reply.problem == ""


@pytest.mark.parametrize("quote", [False, True])
def test_the_schema_asks_for_the_reason_before_the_verdict(quote: bool) -> None:
    names = list(reply_schema(quote_required=quote, reason_chars=100)["properties"])
    assert names == (["reason", "quote", "verdict"] if quote else ["reason", "verdict"])


def test_no_reply_can_break_the_reading_and_what_is_ambiguous_is_no_verdict() -> None:
    deep = "[" * 100_000
    twice = '{"reason": "it is so", "verdict": "FAIL", "verdict": "PASS"}'
    order = '{"verdict": "PASS", "reason": "it is so", "verdict": "PASS"}'
    for text in (deep, '{"a":' * 100_000, twice, order):
        reply = read_reply(text)
        assert reply.verdict is Verdict.NO_VERDICT and reply.problem
    half = read_reply('{"reason": "half \\ud83d of it", "verdict": "PASS"}')
    assert half.verdict is Verdict.PASS
    assert half.reason.encode("utf-8")
