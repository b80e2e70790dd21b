"""The items behind one cell of the score matrix: what was asked, what came back, how it was read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

from engine.store import datasets, outcomes, prompts, runs, sweeps
from engine.store.transaction import Transaction


@dataclass(frozen=True)
class ItemOutcome:
    """One item under one prompt. ``score`` is None before there is an outcome, and when the request failed."""

    item_id: str
    text: str
    answer: str
    score: float | None
    extracted: str
    no_answer: bool
    rule: str
    problem: str
    reply: str
    messages: tuple[Mapping[str, str], ...]
    repeat: int = 0
    likelihoods: Mapping[str, float] = field(default_factory=dict)
    """Natural log-probability of each option that was listed; empty where a reply was generated."""

    @property
    def is_cut_off(self) -> bool:
        """Whether the reply ended at its limit of tokens."""
        return self.problem == outcomes.CUT_OFF

    @property
    def probabilities(self) -> dict[str, float]:
        """The probability of each listed option as the first token of the reply, the likeliest first."""
        by_likelihood = sorted(self.likelihoods.items(), key=lambda pair: -pair[1])
        return {option: math.exp(min(likelihood, 0.0)) for option, likelihood in by_likelihood}


def of_cell(tx: Transaction, run_id: str, seed: int, k: int, prompt_id: str) -> list[ItemOutcome]:
    """The items that this condition draws, under this prompt, with each of their repeats; the wrong ones first."""
    from stats.subsets import draw

    run = runs.get(tx, run_id)
    sweep = sweeps.get(tx, run.sweep_id)
    pool = sweep.pool_items
    positions = [pool[int(index)] for index in draw(seed, len(pool), k)]
    prompt = prompts.by_id(tx, [prompt_id])[prompt_id]
    items = datasets.items(tx, sweep.dataset_id, positions)
    given = {(o.item, o.repeat): o for o in outcomes.of_run(tx, run.run_id) if o.prompt_id == prompt_id}
    replies = outcomes.replies(tx, run.run_id, prompt_id, positions)
    found = []
    for position, repeat in product(positions, range(sweep.repeats)):
        item, outcome = items[position], given.get((position, repeat))
        reply = replies.get((position, repeat), outcomes.Reply())
        text = next((item.fields[name] for name in prompt.fields if name in item.fields), "")
        found.append(
            ItemOutcome(
                item.item_id, text, item.answer, outcome.score if outcome else None, outcome.extracted if outcome else "",
                bool(outcome and outcome.no_answer), outcome.rule if outcome else "", outcome.problem if outcome else "",
                reply.text, tuple(prompt.messages(item.fields)), repeat, reply.likelihoods,
            )
        )  # fmt: skip
    return sorted(found, key=lambda item: (item.score is None, item.score or 0.0, not item.no_answer))
