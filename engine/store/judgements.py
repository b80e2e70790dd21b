"""Judgements: what a judge said about a case in one run; append-only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from engine.judging.verdict import Verdict, failed, read_reply
from engine.store.completions import StoredCompletion
from engine.store.transaction import Transaction, now


@dataclass(frozen=True)
class Judgement:
    """One judgement. ``problem`` says why there is no verdict, or what is wrong with the quote."""

    run_id: str
    trace_id: str
    verdict: Verdict
    reason: str
    quote: str
    problem: str


_COLUMNS = (
    "seq", "run_id", "judge_id", "trace_id", "trace_version", "request_key", "verdict", "reason", "quote", "problem", "created_at",
)  # fmt: skip


def derive(tx: Transaction, completions: Sequence[StoredCompletion]) -> set[str]:
    """Judgements for every case that waits for one of these completions, in any run; returns the runs that gained some."""
    by_key = {completion.request_key: completion for completion in completions}
    waiting = tx.rows(
        "SELECT c.run_id, run.judge_id, c.trace_id, c.trace_version, c.request_key, judge.quote_required, t.context "
        "FROM run_case c JOIN run USING (run_id) JOIN judge USING (judge_id) "
        "JOIN trace t ON t.trace_id = c.trace_id AND t.version = c.trace_version "
        "LEFT JOIN judgement j ON j.run_id = c.run_id AND j.trace_id = c.trace_id "
        "WHERE j.seq IS NULL AND c.request_key IN (SELECT unnest(?::VARCHAR[])) ORDER BY c.run_id, c.position",
        list(by_key),
    )
    moment = now()
    rows = []
    for run_id, judge_id, trace_id, trace_version, key, quote_required, context in waiting:
        done = by_key[key]
        reply = (
            failed(done.error)
            if done.error
            else read_reply(done.text, finish=done.finish, context=json.loads(context) if quote_required else None)
        )
        rows.append(
            (tx.next_seq(), run_id, judge_id, trace_id, trace_version, key, str(reply.verdict), reply.reason, reply.quote,
             reply.problem, moment)
        )  # fmt: skip
    tx.append("judgement", _COLUMNS, rows)
    return {row[1] for row in rows}


def of_run(tx: Transaction, run_id: str) -> dict[str, Judgement]:
    """The judgements of a run by trace id."""
    rows = tx.rows("SELECT run_id, trace_id, verdict, reason, quote, problem FROM judgement WHERE run_id = ?", run_id)
    return {row[1]: Judgement(row[0], row[1], Verdict(row[2]), *row[3:]) for row in rows}
