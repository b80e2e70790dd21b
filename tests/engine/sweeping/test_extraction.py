"""What a reply answers is found by rules in a stated order; what is no one answer is no answer."""

from __future__ import annotations

import json
import string
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.sweeping.extraction import Extracted, extract_choice, extract_exact, extract_number

TEN = "ABCDEFGHIJ"

like_replies = st.lists(
    st.sampled_from(
        [
            *"0123456789.,:-/$%=+*#{}()[]\"'\\^_ \n~AaBbIixe×−½٣",
            *(
                "the answer is ",
                "Answer:",
                "####",
                "\\boxed{",
                "\\frac{1}{3}",
                "\\text{",
                '"answer": ',
                "Question:",
                "\n\n",
            ),
            *("1e99", "1e100", "1/0", " 000", "×10^", "and ", "Rs", "<answer>", "(A)", "A.", " is the correct answer"),
        ]
    )
    | st.text(max_size=3),
    max_size=25,
).map("".join)


def number(value: str, rule: str) -> Extracted:
    return Extracted(value, rule)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        # The first marker wins over everything, unless no number follows it directly.
        ("#### 18\nThe answer is 5", number("18", "marker")),
        ("\\boxed{4} #### 18 #### 19", number("18", "marker")),
        ("#### **$1,018.50**", number("1018.5", "marker")),
        ("####\n-18", number("-18", "marker")),
        ("#### 1. Count the eggs\nThere are 9.\n#### 18", number("18", "marker")),
        ("#### 18. So do 3 hens lay.", number("18", "marker")),
        ("#### 1. Count\nThere are 9.\n#### 2. Add\nThat makes 18", number("18", "last number")),
        ("#### Step 1\nIt is 18", number("18", "last number")),
        ("##### 7\nIt is 18", number("18", "last number")),
        # The last balanced box.
        ("\\boxed{1} then \\boxed{\\boxed{2}}, the answer is 9", number("2", "boxed")),
        ("\\boxed{x = 5}", number("5", "boxed")),
        ("\\boxed{3 + 4 = 7}", number("7", "boxed")),
        ("\\boxed{6 \\text{ cm}^2}", number("6", "boxed")),
        ("\\boxed{\\{8\\}} of 9", number("8", "boxed")),
        ("\\boxed{none}. It is 3", number("3", "last number")),
        ("so \\boxed{4", number("4", "last number")),
        # JSON.
        ('{"answer": 18, "check": 7}', number("18", "json")),
        ('```json\n{"final_answer": "\\u0024 18 eggs", "n": 7}\n```', number("18", "json")),
        ('{"answer": 1} {"answer": "2"} of 3', number("2", "json")),
        ('{"answer": null, "n": 7}', number("7", "last number")),
        # A declaration in the last paragraph that has a digit; the first number after it.
        ("The answer is 5 apples (she began with 12).\n\nGlad to help!", number("5", "declaration")),
        ("The answer is 5.\n\nThe other one has 6.", number("6", "last number")),
        ("The answer is 4. No: the final answer is 5, out of 12", number("5", "declaration")),
        ("The answer is 5. The answer is clear, for 3 reasons and more", number("5", "declaration")),
        ("The answer to the second part, in euros, is 5 of 12", number("5", "declaration")),
        ("The answer is 20 - 5 = 15 of 30 eggs", number("15", "declaration")),
        ("The answer is 20 euros - 5 euros = 15 euros of 30 euros", number("15", "declaration")),
        ("The answer is 15 = 20 - 5", number("15", "declaration")),
        ("Réponse : 5 sur 12", number("5", "declaration")),
        ("答案是 5 (12)", number("5", "declaration")),
        ("<answer>5</answer> of 12", number("5", "declaration")),
        ("The answer is not 5 but 6", number("6", "last number")),
        ("Answer: we add what each of the 3 children has, 4 + 5 = 9", number("9", "last number")),
        ("The answer is 5. He had 6.", number("5", "declaration")),
        ("The answer is 6 girls. Therefore, there are 18 children.", number("18", "last number")),
        ("The answer is:\n1. Add the 4 eggs.\n2. Now there are 9", number("9", "last number")),
        ("Sub-question 1 answer: 5. Twice that makes 10", number("10", "last number")),
        # The last number.
        ("first 3, then 4, then stop", number("4", "last number")),
        ("nothing at all", Extracted("", "none")),
        (" \n", Extracted("", "none")),
    ],
)
def test_the_rules_for_numbers_in_their_order(reply: str, expected: Extracted) -> None:
    assert extract_number(reply) == expected


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("It is 7.\n\nQuestion: how many of 9?", "7"),
        ("It is 7.\n**Q:** how many of 9?", "7"),
        ("Question: are there 3?\nAnswer: 7", "7"),
        ("I cannot say.\nQuestion: and of 9?\n#### 9", ""),
        ("So the question: are there 9?", "9"),
    ],
)
def test_a_next_question_is_cut_off_but_not_the_first(reply: str, value: str) -> None:
    assert extract_number(reply).value == value


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("29.00", "29"),
        ("007", "7"),
        ("-0.0", "0"),
        (".50", "0.5"),
        ("so...5", "5"),
        ("1,234,567.80", "1234567.8"),
        ("12,34,567", "1234567"),
        ("1 234 567", "1234567"),
        ("1\u202f234", "1234"),
        ("1{,}234", "1234"),
        ("1\\,234", "1234"),
        ("in 2024 300", "300"),
        ("\u22125", "-5"),
        ("-$5", "-5"),
        ("$-5$", "-5"),
        ("(-5)", "-5"),
        ("8-3=5", "5"),
        ("the type F-16", "16"),
        ("USD500", "500"),
        ("\\$500", "500"),
        ("500\\%", "500"),
        ("\uff15\uff10", "50"),
        ("1.5e3", "1500"),
        ("25E-1", "2.5"),
        ("1.5 \\times 10^{3}", "1500"),
        ("2.5×10^-1", "0.25"),
        ("3/4", "0.75"),
        ("-\\dfrac{3}{4}", "-0.75"),
        ("1/3", "0." + "3" * 28),
        ("2 1/2", "2.5"),
        ("2\\frac{1}{2}", "2.5"),
        ("6 cm^2", "6"),
        ("6 m_1", "6"),
        ("6 of A4", "6"),
        ("\\textbf{6}", "6"),
    ],
)
def test_how_numbers_are_written(written: str, value: str) -> None:
    assert extract_number(written).value == value


@pytest.mark.parametrize(
    "written",
    [
        "9:30", "3:2", "10-15", "10\u201315", "2024-05-06", "5/6/2024", "3,5", "1,2,3", "0,500", "1.250,00", "1.2.3", "2^10", "1/0", "3 5/4",
        "1e100", "1×10^400", "20 - 5", "20 eggs - 5", "3 x 4", "3 + 4", "2\\sqrt{3}", "\\frac{\\pi}{2}", "\\frac{x}{2}", "2π",
    ],
)  # fmt: skip
def test_what_stands_for_no_one_number_is_ambiguous_under_every_rule(written: str) -> None:
    for reply, rule in [
        (f"of 7: {written}", "last number"),
        (f"7 #### {written}", "marker"),
        (f"7 \\boxed{{{written}}}", "boxed"),
        (f"7, and the answer is {written}", "declaration"),
    ]:
        if rule == "marker" and not written[0].isdigit():
            continue
        assert extract_number(reply) == Extracted("", rule, ambiguous=True), reply  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        # The whole reply.
        ("b", number("B", "whole reply")),
        (" **(B)**. ", number("B", "whole reply")),
        ("Option B", number("B", "whole reply")),
        ("$\\text{B}$", number("B", "whole reply")),
        ("a", number("A", "whole reply")),
        ("E", Extracted("", "none")),
        ("B\n\nQuestion: next?\nAnswer: C", number("B", "whole reply")),
        # Box, JSON.
        ("The answer is A, no: \\boxed{\\mathbf{B}}.", number("B", "boxed")),
        ("\\boxed{x} so the answer is A.", number("A", "declaration")),
        ('{"why": "(A)", "answer": "b"}', number("B", "json")),
        # The last declaration.
        ("Answer: A. No. Answer: B", number("B", "declaration")),
        ("the ANSWER would be: B, not (A)", number("B", "declaration")),
        ("I'd go with B over (A)", number("B", "declaration")),
        ("My choice is option B, not (A)", number("B", "declaration")),
        ("Surely B is the best option, not (A)", number("B", "declaration")),
        ("I see.\nAnswer:\n\n**b**", number("B", "declaration")),
        ("<answer>B</answer> not (A)", number("B", "declaration")),
        ("答案是B。", number("B", "declaration")),
        ("The answer is E. (A)", number("A", "parenthesised")),
        ("The answer is A because of it", number("A", "declaration")),
        ("The answer is a.", number("A", "declaration")),
        ("The answer is B, A is wrong", number("B", "declaration")),
        # A label before the rest.
        ("B) Paris, not (A)", number("B", "label")),
        ("**B.** Paris\n\nIt is the capital.", number("B", "label")),
        ("A. Rome\nB. Paris", Extracted("", "none")),
        ("A. Rome B. Paris C. Bonn D. Bern", Extracted("", "none")),
        # The last (X).
        ("not (A), rather (b)", number("B", "parenthesised")),
        # Several are no answer.
        ("Answer: A and C", Extracted("", "declaration", ambiguous=True)),
        ("The answer is (A) or (C).", Extracted("", "declaration", ambiguous=True)),
        ("Answer: A, C", Extracted("", "declaration", ambiguous=True)),
        ("either (A) or (C)", Extracted("", "parenthesised", ambiguous=True)),
        ("They are (A) 1 (B) 2 (C) 3 (D) 4", Extracted("", "parenthesised", ambiguous=True)),
        # No first capital, article or pronoun.
        ("Both are fine", Extracted("", "none")),
        ("A dog", Extracted("", "none")),
        ("The answer is a dog", Extracted("", "none")),
        ("The answer is A dog", Extracted("", "none")),
        ("Answer: C-section", Extracted("", "none")),
        ("The answer is not A", Extracted("", "none")),
        ("Neither A nor C is the correct answer", Extracted("", "none")),
        ("A is not the correct answer", Extracted("", "none")),
        ("", Extracted("", "none")),
    ],
)
def test_the_rules_for_choices_in_their_order(reply: str, expected: Extracted) -> None:
    assert extract_choice(reply, "ABCD") == expected


@pytest.mark.parametrize("reply", ["The answer is I think hard to find", "The answer is I'm unsure", "I see"])
def test_the_pronoun_is_no_tenth_option_nor_ninth(reply: str) -> None:
    assert extract_choice(reply, TEN).value == ""
    assert extract_choice("The answer is I.", TEN).value == "I"


@pytest.mark.parametrize("letters", ["", "AA", "aA", "A1", "Ä", "A B"])
def test_option_letters_must_be_letters(letters: str) -> None:
    with pytest.raises(ValueError, match="distinct letters"):
        extract_choice("A", letters)


def test_options_may_be_given_in_small_letters() -> None:
    assert extract_choice("The answer is b.", "ab").value == "B"


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("  New \n\t York. ", "New York"),
        ("**“New York”**!", "New York"),
        ("`x = 1`;", "x = 1"),
        ("cafe\u0301", "caf\u00e9"),
        (".5", ".5"),
        ("It's *so* here", "It's *so* here"),
        ("...", ""),
        ('""', ""),
        ("", ""),
    ],
)
def test_an_exact_reply_loses_only_what_stands_around_it(reply: str, value: str) -> None:
    assert extract_exact(reply) == (Extracted(value, "whole reply") if value else Extracted("", "none"))


@settings(deadline=None)
@given(like_replies)
def test_any_text_is_read_and_its_value_reads_back_as_itself(reply: str) -> None:
    found = [extract_number(reply), extract_choice(reply, TEN), extract_exact(reply)]
    again = [extract_number(found[0].value), extract_choice(found[1].value, TEN), extract_exact(found[2].value)]
    assert [one.value for one in again] == [one.value for one in found]
    assert not any(one.ambiguous and one.value for one in found)
    assert all(one.rule != "none" or one == Extracted("", "none") for one in found)
    if found[0].value:
        assert Decimal(found[0].value).is_finite() and set(found[0].value) <= set("-.0123456789")
    assert found[1].value in ("", *TEN)


@settings(deadline=None)
@given(
    st.decimals(min_value=-(10**9), max_value=10**9, places=3),
    st.sampled_from(["{:f}", "{:,}", "{:.6f}", "{:e}", "${:f}", "#### {:,}", "so \\boxed{{{:f}}}.", "The answer is {:,} km.", '{{"answer": "{:,}"}}']),
)  # fmt: skip
def test_a_number_survives_every_format(value: Decimal, form: str) -> None:
    assert Decimal(extract_number(form.format(value)).value) == value


@settings(deadline=None)
@given(
    st.sampled_from("BCDEFGHJ"),
    st.sampled_from(["{}", "({})", "The answer is {}", "Answer: **{}**.", "{}. Paris", "\\boxed{{{}}}"]),
)
def test_a_letter_survives_every_format(letter: str, form: str) -> None:
    assert extract_choice(form.format(letter), TEN).value == letter


@pytest.mark.parametrize(
    "part",
    [
        "1", "{", "}", "{}", "\\boxed{", "\\boxed ", "the answer is ", "answer to ", "answer to a ", "answer: ", "Question: ", "\n", "\n ", " ",
        "####", "#### ", '"answer": ', '"answer":"', "\\", "1,", "1.", "1/", "1:", "1 111", "-", "$", "=", "1=", "9:30=", "1 + ", "1e", "^{",
        "\\frac{1", "\\text{", "(A) ", "(A)", "A. ", "A\n", "A and ", "is A and ", "I ", "*", "_", "(", "'", "So. ", "question 1 ", "nor A is the ",
    ],
)  # fmt: skip
def test_long_replies_of_one_part_are_read_in_linear_steps(part: str) -> None:
    """A pattern that backtracks needs minutes for these, so that the suite would never end; a linear one needs a blink."""
    length = 200_000 if part in ("1", "{", "the answer is ", "9:30=") else 50_000
    text = "the answer is " + part * (length // len(part)) + "5"
    extract_number(text)
    extract_choice(text, TEN)
    extract_exact(text)


def test_blanks_between_a_word_and_nothing_are_passed_once() -> None:
    assert extract_choice("option" + " " * 200_000 + "x", TEN) == Extracted("", "none")
    assert extract_choice("option" + " " * 200_000 + "b", TEN) == Extracted("B", "whole reply")


def test_a_number_of_200_000_digits_is_one_number() -> None:
    digits = "7" * 200_000
    assert extract_number(digits + ".0").value == digits


def test_the_cases_of_public_bug_reports(shared_data: Path) -> None:
    cases = json.loads((shared_data / "golden/extraction_cases.json").read_text(encoding="utf-8"))
    wrong = []
    for case in cases:
        number_wanted = case["task"] == "gsm8k"
        found = extract_number(case["text"]) if number_wanted else extract_choice(case["text"], case["letters"])
        if found.value != case["value"]:
            wrong.append((case["text"], case["value"], found))
    assert wrong == []
    assert len(cases) == 62


def test_every_reference_of_a_real_test_set_is_read_at_its_marker(shared_data: Path) -> None:
    lines = (shared_data / "datasets/gsm8k/test.jsonl").read_text(encoding="utf-8").splitlines()
    found = [extract_number(json.loads(line)["answer"]) for line in lines]
    assert {one.rule for one in found} == {"marker"}
    assert len(found) == 1319
    assert sum(one.value.startswith("-") for one in found) == 2
    assert all(set(one.value) <= set(string.digits + "-.") for one in found)
