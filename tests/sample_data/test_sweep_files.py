"""The two tasks that prompts are swept over: items and candidate prompts belong together and say what the README says."""

from __future__ import annotations

import json
import re
from collections import Counter
from decimal import Decimal
from string import Formatter
from typing import Any

import pytest

import sample_data
from sample_data import make_sums

TASKS = {"reviews": "review", "sums": "question"}
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
LABEL_WIDTH = 16


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in sample_data.path(name).read_text("utf-8").splitlines()]


@pytest.mark.parametrize(("task", "field"), TASKS.items())
def test_items_are_many_and_differ(task: str, field: str) -> None:
    items = _rows(f"{task}_items.jsonl")
    assert len(items) >= 320
    assert all(set(item) == {"id", field, "answer"} for item in items)
    assert [item["id"] for item in items] == [f"{task[0]}{number:03d}" for number in range(1, len(items) + 1)]
    texts = Counter(" ".join(item[field].casefold().split()) for item in items)
    assert [text for text, count in texts.items() if count > 1 or not text] == []
    assert not any("\n" in item[field] or item[field] != item[field].strip() for item in items)


@pytest.mark.parametrize("first", [60, None])
def test_both_classes_of_reviews_are_about_as_frequent(first: int | None) -> None:
    answers = Counter(item["answer"] for item in _rows("reviews_items.jsonl")[:first])
    assert set(answers) == {"positive", "negative"}
    assert 0.4 <= answers["positive"] / answers.total() <= 0.6


def test_sums_are_the_output_of_their_script() -> None:
    assert sample_data.path("sums_items.jsonl").read_bytes() == make_sums.text().encode("utf-8")


def test_sums_have_thousands_negative_and_decimal_answers() -> None:
    items = _rows("sums_items.jsonl")
    answers = [Decimal(item["answer"]) for item in items]
    assert sum(answer < 0 for answer in answers) >= 30
    assert sum(answer != answer.to_integral_value() for answer in answers) >= 30
    assert sum(answer >= 1000 for answer in answers) >= 30
    assert sum(bool(re.search(r"\d,\d{3}", item["question"])) for item in items) >= 30


def test_bare_sums_add_up() -> None:
    checked = 0
    for item in _rows("sums_items.jsonl"):
        found = re.fullmatch(r"(?:What is|How much is) ([\d.,]+) (\+|plus|-) ([\d.,]+)\?", item["question"])
        if found:
            left, right = (Decimal(found[place].replace(",", "")) for place in (1, 3))
            assert Decimal(item["answer"]) == (left - right if found[2] == "-" else left + right), item
            checked += 1
    assert checked == 5 * make_sums.ROUNDS


@pytest.mark.parametrize(("task", "field"), TASKS.items())
def test_prompts_fit_their_items_and_the_screen(task: str, field: str) -> None:
    prompts = _rows(f"{task}_prompts.jsonl")
    assert len(prompts) == 20
    assert all(set(prompt) == {"name", "template"} for prompt in prompts)
    names = [prompt["name"] for prompt in prompts]
    assert len(set(names)) == len({prompt["template"] for prompt in prompts}) == 20
    assert [name for name in names if len(name) > LABEL_WIDTH or not NAME.fullmatch(name)] == []
    for prompt in prompts:
        # Every template asks about its item, and about nothing that the items lack.
        assert {name for _, name, _, _ in Formatter().parse(prompt["template"]) if name is not None} == {field}
        assert "{x}" in prompt["template"].format(**{field: "{x}"})
