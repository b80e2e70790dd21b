"""Worked examples of hints on critiques: which are weak, and which must be left in peace."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sample_data
from engine.judging.critique_hints import HintKind, KnownCritiques, critique_hint, words_of


def kind(critique: str, known: KnownCritiques | None = None, trace_id: str = "T-1") -> str:
    hint = critique_hint(critique, known, trace_id)
    return str(hint.kind) if hint else ""


@pytest.mark.parametrize(
    "critique",
    [
        "good answer",
        "correct",
        "Wrong.",
        "WRONG!!!",
        "ok",
        "PASS",
        "The answer is correct.",
        "This is a very good response",
        "not good at all",
        "The model did a great job.",
        "Everything is fine, no problems",
        "looks good to me",
        "It doesn't work, so it fails.",
        "a helpful and accurate answer",
        "as expected",
        "I don’t like it",
        "gute Antwort",
        "falsch",
        "Richtig.",
        "Die Antwort ist leider nicht korrekt.",
        "passt so",
        "Alles in Ordnung",
        "Das ist so nicht richtig.",
        "Keine gute Antwort!",
        "Kriterium erfüllt",
        "ﬁne",
    ],
)
def test_the_verdict_in_other_words_names_no_feature(critique: str) -> None:
    assert kind(critique) == HintKind.ONLY_VERDICT


@pytest.mark.parametrize(
    "critique",
    [
        "The answer is wrong: 39 EUR stands nowhere on the page it cites.",
        "Correct, 33 in stock is what product_info says.",
        "Good that it asks for the order number first.",
        "Answers in English though asked in German",
        "It does not answer the question that was asked",
        "No source for the delivery date",
        "48 hours stands nowhere.",
        "Not the plan that this customer has",
        "Die Antwort nennt einen falschen Preis.",
        "Falsche Lieferzeit: 48 Stunden stehen nirgends.",
        "Keine Quelle für das Datum",
        "Gut, weil die Bestellnummer geprüft wird",
        "Le prix n'est pas celui du contrat.",
        "価格が間違っている",
    ],
)
def test_one_word_of_anything_else_is_enough(critique: str) -> None:
    assert kind(critique) == ""


@pytest.mark.parametrize("critique", ["wrong price", "Preis erfunden", "no source", "rude tone here", "価格"])
def test_a_feature_alone_is_short_but_no_empty_verdict(critique: str) -> None:
    assert kind(critique) == HintKind.TOO_SHORT


@pytest.mark.parametrize("critique", ["", "   \n", "…", "!?"])
def test_what_is_not_written_yet_gets_no_hint(critique: str) -> None:
    assert kind(critique) == ""


def test_a_copy_names_the_case_that_had_the_words_first() -> None:
    known = KnownCritiques(
        [("T-7", "39 EUR stands nowhere on the page."), ("T-8", "39 EUR stands nowhere on the page")]
    )
    hint = critique_hint("  39 eur stands nowhere — on the PAGE!", known, "T-9")
    assert hint is not None and (hint.kind, hint.copy_of, hint.text) == (HintKind.COPY, "T-7", "the same words as T-7")
    assert kind("39 EUR stands nowhere on the page it cites", known) == ""


def test_a_case_is_no_copy_of_itself_and_a_replaced_critique_is_forgotten() -> None:
    known = KnownCritiques([("T-7", "39 EUR stands nowhere on the page.")])
    assert kind("39 EUR stands nowhere on the page.", known, "T-7") == ""
    known.take([("T-7", "The plan is Basic, not Business.")])
    assert kind("39 EUR stands nowhere on the page.", known, "T-9") == ""
    known.take([("T-7", "")])
    assert kind("The plan is Basic, not Business.", known, "T-9") == ""


def test_no_critique_of_the_sample_is_flagged() -> None:
    rows = [json.loads(line) for line in sample_data.path("support_labels.jsonl").read_text("utf-8").splitlines()]
    known = KnownCritiques((row["id"], row["critique"]) for row in rows)
    assert [row["critique"] for row in rows if critique_hint(row["critique"], known, row["id"])] == []
    for criterion in json.loads(sample_data.path("criteria.json").read_text("utf-8")):
        assert [h for h in criterion["help_critiques"] if critique_hint(h["critique"])] == []


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_is_taken_and_only_words_count(critique: str, other: str) -> None:
    known = KnownCritiques([("T-7", other)])
    hint = critique_hint(critique, known, "T-1")
    assert (hint is None) == (critique_hint(f" {critique}  .", known, "T-1") is None)
    if hint is not None and hint.kind is HintKind.COPY:
        assert words_of(critique) == words_of(other)
