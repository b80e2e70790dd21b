"""Choices by option likelihood, on the small real model: what is asked, what is kept, what it means."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from engine.errors import Refused
from engine.models.registry import SMOLLM2, find_models
from engine.store.models import Model
from engine.sweeping import items, starting
from engine.sweeping.dataset import Dataset, Item
from engine.sweeping.prompt import Prompt
from engine.sweeping.starting import SweepOrder
from tests.engine.sweeping.conftest import Sweeper

QUESTIONS = (
    ("Which animal barks?", "dog", "cat", "A"),
    ("Which of these is a colour?", "seven", "red", "B"),
    ("2 + 2 =", "4", "5", "A"),
)
ORDER = SweepOrder(
    (
        Prompt("plain", "{question}\nA. {a}\nB. {b}\nAnswer with the letter only."),
        Prompt("answer", "{question}\nA. {a}\nB. {b}\nAnswer:"),
    ),
    Dataset("pairs", tuple(Item(f"q{n}", {"question": q, "a": a, "b": b}, answer) for n, (q, a, b, answer) in enumerate(QUESTIONS))),
    "likelihood", seeds=(1,), ks=(3,),
)  # fmt: skip


@pytest.mark.slow
def test_the_likeliest_letter_is_scored_and_all_likelihoods_are_kept(sweeper: Sweeper) -> None:
    found = [model for model in find_models() if model.name == SMOLLM2]
    if not found:
        pytest.skip("the embedded model is not installed")
    model = Model(found[0].fingerprint.short, SMOLLM2, "llamacpp", str(found[0].path))
    run = sweeper.store.call(starting.start, sweeper.store.workspace, ORDER, model)
    sweeper.finish(run)
    kept = sweeper.rows("SELECT text, likelihoods, completion_tokens FROM completion")
    assert len(kept) == 6
    for text, told, tokens in kept:
        likelihoods = json.loads(told)
        assert set(likelihoods) == set("ABCD") and tokens == 1
        assert text == max(likelihoods, key=lambda option: likelihoods[option])
        assert sum(math.exp(value) for value in likelihoods.values()) < 1.0
    for prompt in ORDER.prompts:
        for item in sweeper.store.call(items.of_cell, run.run_id, 1, 3, prompt.prompt_id):
            assert item.extracted == next(iter(item.probabilities)) and item.rule == "likeliest"
            assert item.score == (item.extracted == item.answer) and not item.no_answer
    again = sweeper.store.call(starting.start, sweeper.store.workspace, ORDER, model)
    assert (again.status, again.to_run) == ("done", 0)
    # The same prompts with a reply that is read are other requests.
    _, plan = sweeper.store.call(starting.plan, replace(ORDER, scorer="choice", max_tokens=1), model)
    assert plan.to_run == 6


def test_neither_temperature_nor_more_tokens_go_with_likelihoods(sweeper: Sweeper) -> None:
    for wrong in (replace(ORDER, temperature=0.5), replace(ORDER, max_tokens=2)):
        with pytest.raises(Refused, match="likelihood of options"):
            sweeper.store.call(starting.plan, wrong, sweeper.model())
    assert sweeper.store.call(starting.plan, replace(ORDER, max_tokens=1), sweeper.model())[1].needed == 6
