"""What a sweep's outcomes come to: the score matrix, agreement between conditions, the ranking; kept as tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.store import outcomes, rankings, runs, sweeps
from engine.store.runs import Run
from engine.store.transaction import Transaction
from engine.sweeping.sweep import Sweep

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stats.rank_agreement import Agreement
    from stats.subsets import ScoreMatrix

DEFAULT_TOP = 3
DEFAULT_Z = 1.0
MAX_AGREEMENT_CONDITIONS = 200
"""More conditions than these are not compared pair by pair on a screen."""


@dataclass(frozen=True)
class PromptScore:
    """One prompt over all items with an outcome; while outcomes still come, over those that all prompts have answered.

    ``rank`` is 1 for the best; tied prompts share the average place. ``no_answer`` and ``failed`` are replies, of which
    there are as many to an item as repeats; an item with a failed one counts with the others. ``flip_rate`` is None
    without repeats (`stats.flips`).
    """

    prompt_id: str
    name: str
    rank: float | None
    score_sum: float
    n: int
    mean: float | None
    low: float | None
    high: float | None
    no_answer: int
    failed: int
    flip_rate: float | None = None


@dataclass(frozen=True)
class SweepResults:
    """Everything that the Sweep and Ranking screens show of one run.

    ``outcomes`` is pool x prompts, nan where there is none; ``matrix`` is conditions x prompts in the order of ``sweep.conditions`` and ``sweep.prompts``; ``ranks`` are fair ranks
    of its means; ``agreement`` is conditions x conditions. ``done`` of ``needed`` cells have an outcome or failed.
    """

    run: Run
    sweep: Sweep
    done: int
    needed: int
    scores: tuple[PromptScore, ...]
    outcomes: NDArray[np.float64]
    matrix: ScoreMatrix
    ranks: NDArray[np.float64]
    agreement: Agreement
    top: int

    @property
    def complete(self) -> bool:
        return self.done == self.needed

    @property
    def compared(self) -> NDArray[np.float64]:
        """The outcomes that prompts are ranked by: all of them or, while they still come, those on items that all have."""
        return comparable(self.outcomes, complete=self.complete)

    @property
    def ranked(self) -> list[PromptScore]:
        """The prompts best first; those without a score last."""
        return sorted(self.scores, key=lambda s: (s.rank is None, s.rank or 0.0))


@dataclass
class OutcomeMatrix:
    """The outcomes of one run, pool x prompts, that grow with the run: only new rows are read.

    ``replies`` is [4, pool, prompts]: how many came, scored or failed; how many were scored; the sum of their scores; how
    many of them had no answer.
    """

    run_id: str
    seen: int = 0
    replies: NDArray[np.float64] | None = None
    failed: dict[str, int] = field(default_factory=dict)
    done: int = 0

    def update(self, tx: Transaction, sweep: Sweep) -> NDArray[np.float64]:
        """Take in what came since; the mean over repeats, nan where some have not come yet or all failed."""
        import numpy as np

        pool = {position: index for index, position in enumerate(sweep.pool_items)}
        column = {prompt_id: index for index, (prompt_id, _) in enumerate(sweep.prompts)}
        if self.replies is None:
            self.replies = np.zeros((4, len(pool), len(column)))
        for outcome in outcomes.of_run(tx, self.run_id, self.seen):
            self.seen = outcome.seq
            self.done += 1
            cell = pool[outcome.item], column[outcome.prompt_id]
            if outcome.score is None:
                self.failed[outcome.prompt_id] = self.failed.get(outcome.prompt_id, 0) + 1
                self.replies[:, *cell] += (1, 0, 0, 0)
                continue
            self.replies[:, *cell] += (1, 1, outcome.score, outcome.no_answer)
        came, scored, sums, _ = self.replies
        return np.where((came == sweep.repeats) & (scored > 0), sums / np.maximum(scored, 1), np.nan)


def measure(
    tx: Transaction, run_id: str, known: OutcomeMatrix | None = None, top: int = DEFAULT_TOP
) -> tuple[SweepResults, OutcomeMatrix]:
    """Count the outcomes that there are, write the tables, and return both; ``known`` spares reading the old ones again."""
    from stats.rank_agreement import all_pairs
    from stats.ranks import fair_ranks
    from stats.subsets import score_matrix

    run = runs.get(tx, run_id)
    sweep = sweeps.get(tx, run.sweep_id)
    if known is None or known.run_id != run.run_id:
        known = OutcomeMatrix(run.run_id)
    seen_before = known.seen
    values = known.update(tx, sweep)
    matrix = score_matrix(values, sweep.conditions)
    ranks = fair_ranks(matrix.means)
    top = min(top, len(sweep.prompts))
    agreement = all_pairs(ranks[:MAX_AGREEMENT_CONDITIONS], top)
    results = SweepResults(
        run,
        sweep,
        known.done,
        sweep.needed_cells,
        _scores(sweep, known, values),
        values,
        matrix,
        ranks,
        agreement,
        top,
    )
    if seen_before != known.seen or not rankings.is_kept(tx, run.run_id, top):
        _keep(tx, results)
    return results, known


def results_json(results: SweepResults) -> dict[str, Any]:
    """The results as ``evaldesk sweep --json`` prints them."""
    from dataclasses import asdict

    return {
        "run": results.run.run_id, "sweep": results.sweep.sweep_id, "name": results.sweep.name, "status": results.run.status,
        "model": results.sweep.model_id, "dataset": results.sweep.dataset_id, "scorer": results.sweep.scorer,
        "repeats": results.sweep.repeats, "temperature": results.sweep.sampling.get("temperature", 0),
        "needed": results.run.needed, "cached": results.run.cached, "awaited": results.run.awaited,
        "to_run": results.run.to_run, "done": results.done, "complete": results.complete,
        "prompts": [asdict(score) for score in results.ranked],
        "score_matrix": [
            {"seed": condition.seed, "k": condition.k, "prompt": name, "sum": float(results.matrix.sums[c, p]),
             "n": int(results.matrix.counts[c, p])}
            for c, condition in enumerate(results.matrix.conditions) for p, (_, name) in enumerate(results.sweep.prompts)
        ],
        "agreement": [
            {"a": {"seed": a.seed, "k": a.k}, "b": {"seed": b.seed, "k": b.k}, **_figures(results.agreement, i, j)}
            for i, a, j, b in _pairs(results)
        ],
    }  # fmt: skip


def comparable(outcomes: NDArray[np.float64], *, complete: bool) -> NDArray[np.float64]:
    """Pool x prompts, nan on items that only some prompts have an outcome on while others are still to come."""
    import numpy as np

    if complete:
        return outcomes
    shared = outcomes.copy()
    shared[np.isnan(outcomes).any(axis=1)] = np.nan
    return shared


def _scores(sweep: Sweep, known: OutcomeMatrix, outcomes: NDArray[np.float64]) -> tuple[PromptScore, ...]:
    import numpy as np

    from stats.flips import flip_rate
    from stats.prompt_means import prompt_mean
    from stats.ranks import fair_ranks
    from stats.subsets import Condition, score_matrix

    assert known.replies is not None
    values = comparable(outcomes, complete=known.done == sweep.needed_cells)
    _, scored, right, unanswered = known.replies * ~np.isnan(values)
    no_answer, flips = unanswered.sum(axis=0), flip_rate(right, scored)
    whole = score_matrix(values, [Condition(0, len(values))])
    sums, ranks = whole.sums[0], fair_ranks(whole.means[0])
    scores = []
    for column, (prompt_id, name) in enumerate(sweep.prompts):
        mean = prompt_mean(values[:, column], binary=sweep.repeats == 1)
        # Scores are shares of right replies: the t interval of a few items may reach beyond what there is.
        low, high = (None if end is None else min(max(end, 0.0), 1.0) for end in (mean.low, mean.high))
        scores.append(
            PromptScore(
                prompt_id, name, _known(ranks[column]), float(sums[column]), mean.n, mean.mean, low, high,
                int(no_answer[column]), known.failed.get(prompt_id, 0), _known(flips[column]),
            )
        )  # fmt: skip
    return tuple(scores)


def _keep(tx: Transaction, results: SweepResults) -> None:
    matrix = results.matrix
    rankings.keep(
        tx,
        results.run.run_id,
        results.top,
        cells=[
            (condition.seed, condition.k, prompt_id, float(matrix.sums[c, p]), int(matrix.counts[c, p]))
            for c, condition in enumerate(matrix.conditions)
            for p, (prompt_id, _) in enumerate(results.sweep.prompts)
        ],
        pairs=[
            (a.seed, a.k, b.seed, b.k, *_figures(results.agreement, i, j).values()) for i, a, j, b in _pairs(results)
        ],
        scores=[
            (s.prompt_id, s.rank, s.score_sum, s.n, s.mean, s.low, s.high, s.no_answer, s.failed, s.flip_rate)
            for s in results.scores
        ],
    )


def _pairs(results: SweepResults) -> list[tuple[int, Any, int, Any]]:
    compared = results.matrix.conditions[: len(results.agreement.tau_b)]
    return [(i, a, j, b) for i, a in enumerate(compared) for j, b in enumerate(compared) if i < j]


def _known(value: float) -> float | None:
    return None if value != value else float(value)


def _figures(agreement: Agreement, i: int, j: int) -> dict[str, float | None]:
    values = {
        "tau_b": agreement.tau_b[i, j], "rho": agreement.rho[i, j], "top1": agreement.top1[i, j], "topm": agreement.topm[i, j],
    }  # fmt: skip
    return {name: None if value != value else float(value) for name, value in values.items()}
