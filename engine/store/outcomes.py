"""Outcomes: how each prompt did on each item in a sweep's run; append-only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.store.completions import StoredCompletion
from engine.store.transaction import Transaction, now
from engine.sweeping.scoring import score

CUT_OFF = "cut off at the limit of tokens"


@dataclass(frozen=True)
class Outcome:
    """One (prompt, item, repeat). ``score`` is None when the request failed: an error is not a wrong answer."""

    seq: int
    prompt_id: str
    item: int
    score: float | None
    extracted: str
    no_answer: bool
    rule: str
    problem: str
    repeat: int = 0


_COLUMNS = (
    "seq", "run_id", "prompt_id", "item", "request_key", "score", "extracted", "no_answer", "rule", "problem", "repeat", "created_at",
)  # fmt: skip


def derive(tx: Transaction, completions: Sequence[StoredCompletion]) -> set[str]:
    """Outcomes for every cell that waits for one of these completions, in any run; returns the runs that gained some."""
    by_key = {completion.request_key: completion for completion in completions}
    waiting = tx.rows(
        "SELECT c.run_id, c.prompt_id, c.item, c.request_key, c.repeat, s.scorer, s.letters, i.answer FROM run_cell c "
        "JOIN run USING (run_id) JOIN sweep s USING (sweep_id) JOIN item i ON i.dataset_id = s.dataset_id AND i.position = c.item "
        "LEFT JOIN outcome o ON o.run_id = c.run_id AND o.prompt_id = c.prompt_id AND o.item = c.item AND o.repeat = c.repeat "
        "WHERE o.seq IS NULL AND c.request_key IN (SELECT unnest(?::VARCHAR[])) ORDER BY c.run_id, c.position",
        list(by_key),
    )
    moment = now()
    rows: list[tuple[object, ...]] = []
    for seq, (run_id, prompt_id, item, key, repeat, scorer, letters, answer) in zip(
        tx.next_seqs(len(waiting)), waiting, strict=True
    ):
        done = by_key[key]
        if done.error:
            rows.append((seq, run_id, prompt_id, item, key, None, "", False, "", done.error, repeat, moment))
            continue
        scored = score(scorer, done.text, answer, letters)
        problem = CUT_OFF if done.finish == "length" else ""
        rows.append(
            (seq, run_id, prompt_id, item, key, scored.value, scored.extracted, scored.no_answer, scored.rule, problem, repeat, moment)
        )  # fmt: skip
    tx.append("outcome", _COLUMNS, rows)
    return {str(row[1]) for row in rows}


def of_run(tx: Transaction, run_id: str, after: int = 0) -> list[Outcome]:
    """The outcomes of a run in the order in which they came, those behind event ``after``."""
    rows = tx.rows(
        "SELECT seq, prompt_id, item, score, extracted, no_answer, rule, problem, repeat FROM outcome WHERE run_id = ? AND seq > ? "
        "ORDER BY seq",
        run_id,
        after,
    )
    return [Outcome(*row) for row in rows]


def cut_off(tx: Transaction, run_id: str) -> dict[str, int]:
    """How many replies ended at their limit of tokens, by prompt id; prompts without one are left out."""
    return dict(
        tx.rows(
            "SELECT prompt_id, count(*) FROM outcome WHERE run_id = ? AND problem = ? GROUP BY prompt_id",
            run_id,
            CUT_OFF,
        )
    )


@dataclass(frozen=True)
class Reply:
    """What the model gave: a text or, for the scorer likelihood, the log-probability of each option that was listed."""

    text: str = ""
    likelihoods: Mapping[str, float] = field(default_factory=dict)


def replies(tx: Transaction, run_id: str, prompt_id: str, items: Sequence[int]) -> dict[tuple[int, int], Reply]:
    """The raw replies behind the outcomes of one prompt on these items, by item and repeat."""
    rows = tx.rows(
        "SELECT o.item, o.repeat, any_value(c.text), any_value(c.likelihoods) FROM outcome o JOIN completion c ON c.request_key = o.request_key AND c.error = '' "
        "WHERE o.run_id = ? AND o.prompt_id = ? AND o.item IN (SELECT unnest(?::BIGINT[])) GROUP BY o.item, o.repeat",
        run_id,
        prompt_id,
        list(items),
    )
    return {(item, repeat): Reply(text, json.loads(likelihoods or "{}")) for item, repeat, text, likelihoods in rows}
