"""What a matrix of outcomes says about its prompts: their means, and how far their ranking can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from engine.errors import EvaldeskError
from engine.ranking.advice import Headline, advise
from engine.ranking.outcomes import OutcomeTable, read_outcomes
from stats.prompt_means import PromptMean, prompt_mean
from stats.rank_agreement import PairSummary, all_pairs, summarise
from stats.ranks import fair_ranks
from stats.reference_ranking import ReferenceAgreement, against_others
from stats.selection import Holdout, LeaveOut, by_lcb, by_mean, leave_one_out
from stats.stability import Stability, stability
from stats.subsets import Condition, ScoreMatrix, is_binary, score_matrix, seed_pairs

MAX_SEEDS: Final = 1000
FIGURES: Final = ("tau_b", "rho", "top1", "topm")
"""The figures of agreement, in the order in which they are shown."""


@dataclass(frozen=True)
class RankingOptions:
    """How a ranking is looked at.

    seeds: of the conditions, each with every k. ks: subset sizes. top: size m of the top set. z: of the LCB
    rule. holdout: what leaving one out takes away, a seed with all its conditions or one condition.

    Raises EvaldeskError on values that are impossible.
    """

    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    ks: tuple[int, ...] = (50, 100, 200)
    top: int = 3
    z: float = 1.0
    holdout: Holdout = "seed"

    def __post_init__(self) -> None:
        for wrong, option, remedy in (
            (not 1 <= len(self.seeds) <= MAX_SEEDS, "--seeds", f"Give a number from 1 to {MAX_SEEDS:,}."),
            (not self.ks or min(self.ks, default=0) < 1, "--k", "Give subset sizes of 1 or more, such as --k 50,100."),
            (self.top < 1, "--top", "Give a number of 1 or more."),
            (not 0.0 <= self.z < float("inf"), "--z", "Give a number of 0 or more."),
        ):
            if wrong:
                raise EvaldeskError("is out of range", where=option, kept="Nothing was ranked.", remedy=remedy)


@dataclass(frozen=True)
class PromptScore:
    """A prompt's mean over all its items, with the interval for new items, and its fair rank (None: no outcome)."""

    prompt: str
    mean: PromptMean
    rank: float | None


@dataclass(frozen=True)
class StabilityAtK:
    """How two conditions of one k agree.

    expected: for any two seeds, from the outcome matrix; None where fewer than k items are answered. drawn: over the pairs of the seeds that were drawn, by figure.
    reference: each drawn condition against the modal ranking of the others of this k. overlap: the share of items that
    two subsets are expected to have in common.
    """

    k: int
    expected: Stability | None
    drawn: dict[str, PairSummary]
    reference: ReferenceAgreement
    overlap: float


@dataclass(frozen=True)
class Winners:
    """The prompts that a rule puts first over all conditions (several when tied), and what leaving one out says of it."""

    mean: tuple[str, ...]
    lcb: tuple[str, ...] | None


@dataclass(frozen=True)
class Ranking:
    """The prompts of one outcome matrix, ranked, and what the ranking is worth.

    ``top`` is the size of the top set that was used, at most the number of prompts. ``answered`` of the items have an
    outcome. ``left_out`` are the subset sizes above the number of items. ``winners`` and ``loso`` are None where no subset size is left.
    """

    table: OutcomeTable
    options: RankingOptions
    top: int
    answered: int
    scores: tuple[PromptScore, ...]
    stability: tuple[StabilityAtK, ...]
    left_out: tuple[int, ...]
    winners: Winners | None
    loso: LeaveOut | None
    settled: bool = True
    notes: tuple[str, ...] = field(default=())

    @property
    def best_first(self) -> tuple[PromptScore, ...]:
        """The scores by rank, those of one rank in the order of the file, unranked prompts last."""
        return tuple(sorted(self.scores, key=lambda score: (score.rank is None, score.rank or 0.0)))

    @property
    def advice(self) -> str:
        """What to make of the ranking, in one sentence of plain words."""
        ranked = [score for score in self.scores if score.rank is not None]
        best = min((score.rank for score in ranked if score.rank is not None), default=None)
        leaders = tuple(score for score in ranked if score.rank == best)
        return advise(
            n_items=self.answered,
            ranked=len(ranked),
            leaders=tuple(score.prompt for score in leaders),
            mean=leaders[0].mean.mean if leaders else None,
            headlines=tuple(
                Headline(
                    row.k,
                    row.expected.tau_b.value,
                    row.expected.top1.value,
                    row.expected.tied_pairs.value,
                    row.expected.tied_top.value,
                )
                for row in self.stability
                if row.expected is not None
            ),
            settled=self.settled,
        )

    def as_json(self) -> dict[str, Any]:
        """The ranking as one JSON object, under its public names; null where a figure is undefined or not computed.

        ``stability[].expected`` is what any two seeds are expected to show, ``method`` how each of its figures was
        obtained; ``simulated`` is what the drawn seeds show, the mean over their pairs.
        """
        return {
            "advice": self.advice,
            "n_items": len(self.table.items),
            "n_prompts": len(self.table.prompts),
            "interval": "95 % over items: Wilson for 0/1 outcomes, t for other numbers",
            "options": {
                "seeds": list(self.options.seeds),
                "k": [row.k for row in self.stability],
                "top": self.top,
                "z": self.options.z,
                "holdout": self.options.holdout,
            },
            "scores": [
                {
                    "prompt": score.prompt,
                    "mean": score.mean.mean,
                    "low": score.mean.low,
                    "high": score.mean.high,
                    "n": score.mean.n,
                    "rank": score.rank,
                }
                for score in self.best_first
            ],
            "stability": [_stability_json(row) for row in self.stability],
            "best_set": None,
            "rank_intervals": None,
            "items_needed": {"winner_95": None, "top_pair": None},
            "reliability": None,
            "selection": self._selection_json(),
            "extractors": None,
            "notes": list(self.notes),
        }

    def _selection_json(self) -> dict[str, Any]:
        return {
            "winners": None
            if self.winners is None
            else {
                "mean": list(self.winners.mean),
                "lcb": None if self.winners.lcb is None else list(self.winners.lcb),
            },
            "loso": None
            if self.loso is None
            else {
                name: None
                if rule is None
                else {"mean": rule.mean, "std": rule.std, "held_out": rule.parts, "tied": rule.tied}
                for name, rule in (("mean", self.loso.mean), ("lcb", self.loso.lcb))
            },
            "folds": None,
        }


def rank_file(path: str | Path, options: RankingOptions | None = None) -> Ranking:
    """Rank the prompts of a file; raises EvaldeskError as `engine.ranking.outcomes.read_outcomes` does."""
    return rank_outcomes(read_outcomes(path), options)


def rank_outcomes(table: OutcomeTable, options: RankingOptions | None = None, *, settled: bool = True) -> Ranking:
    """Rank the prompts of a matrix of outcomes.

    Items that no prompt has an outcome on say nothing about other subsets and are left out of what is expected; while
    outcomes still come (not ``settled``), so are those that some prompts have not answered yet.
    """
    options = options or RankingOptions()
    values = table.values
    n_items, n_prompts = values.shape
    sizes = sorted(set(options.ks))
    ks = tuple(k for k in sizes if k <= n_items)
    left_out = tuple(k for k in sizes if k > n_items)
    top = min(options.top, n_prompts)
    conditions = [Condition(seed, k) for k in ks for seed in options.seeds]
    matrix = score_matrix(values, conditions)
    missing = np.isnan(values)
    answered = values[~missing.all(axis=1)]
    expect_on = answered if settled else values[~missing.any(axis=1)]
    winners, loso = _selection(table, matrix, options) if conditions else (None, None)
    return Ranking(
        table=table,
        options=options,
        top=top,
        answered=len(answered),
        scores=_scores(table),
        stability=tuple(_at_k(expect_on, n_items, matrix, k, top) for k in ks),
        left_out=left_out,
        winners=winners,
        loso=loso,
        settled=settled,
        notes=(*table.notes, *_notes(options, left_out, n_items, n_prompts, ks)),
    )


def _scores(table: OutcomeTable) -> tuple[PromptScore, ...]:
    values = table.values
    binary = is_binary(values)
    whole = score_matrix(values, [Condition(0, len(values))])
    ranks = fair_ranks(whole.means[0])
    return tuple(
        PromptScore(prompt, _mean(column, binary), None if np.isnan(rank) else float(rank))
        for prompt, column, rank in zip(table.prompts, values.T, ranks, strict=True)
    )


def _mean(column: NDArray[np.float64], binary: bool) -> PromptMean:
    return prompt_mean(column, binary=binary)


def _at_k(answered: NDArray[np.float64], n_items: int, matrix: ScoreMatrix, k: int, top: int) -> StabilityAtK:
    rows = [row for row, condition in enumerate(matrix.conditions) if condition.k == k]
    conditions = [matrix.conditions[row] for row in rows]
    ranks = fair_ranks(matrix.means[rows])
    agreement, pairs = all_pairs(ranks, top), seed_pairs(conditions)
    seeds = [condition.seed for condition in conditions]
    return StabilityAtK(
        k,
        expected=stability(answered, k, top) if k <= len(answered) else None,
        drawn={name: summarise(getattr(agreement, name), pairs, seeds) for name in FIGURES},
        reference=against_others(ranks, top),
        overlap=k / n_items,
    )


def _selection(table: OutcomeTable, matrix: ScoreMatrix, options: RankingOptions) -> tuple[Winners, LeaveOut]:
    def names(winners: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(table.prompts[winner] for winner in winners)

    means = matrix.means
    lcb = names(by_lcb(means, options.z).winners) if len(means) > 1 else None
    winners = Winners(names(by_mean(means).winners), lcb)
    return winners, leave_one_out(means, matrix.conditions, options.z, options.holdout)


def _notes(
    options: RankingOptions, left_out: tuple[int, ...], n_items: int, n_prompts: int, ks: tuple[int, ...]
) -> list[str]:
    notes = []
    if left_out:
        notes.append(f"left out: k = {', '.join(f'{k:,}' for k in left_out)}, because there are only {n_items:,} items")
    if n_items in ks:
        notes.append(f"k = {n_items:,} takes every item, so all seeds agree there whatever the prompts are")
    if options.top > n_prompts:
        notes.append(f"the top set is all {n_prompts:,} prompts, because there are no {options.top:,}")
    return notes


def _stability_json(row: StabilityAtK) -> dict[str, Any]:
    expected = {name: getattr(row.expected, name, None) for name in FIGURES}
    ties = {
        "pairs_share": row.expected.tied_pairs if row.expected else None,
        "top_share": row.expected.tied_top if row.expected else None,
    }
    return {
        "k": row.k,
        "expected": {name: figure.value if figure else None for name, figure in expected.items()},
        "method": {
            **{name: figure.method if figure else None for name, figure in expected.items()},
            "ties": {name: figure.method if figure else None for name, figure in ties.items()},
        },
        "simulated": {
            **{name: row.drawn[name].mean for name in FIGURES},
            "std_over_pairs": {name: row.drawn[name].std_over_pairs for name in FIGURES},
            "jackknife_error": {name: row.drawn[name].standard_error for name in FIGURES},
            "pairs": {name: row.drawn[name].pairs for name in FIGURES},
        },
        "reference": {
            "tau_b": row.reference.tau_b,
            "rho": row.reference.rho,
            "top1": row.reference.top1,
            "topm": row.reference.topm,
            "top1_share": row.reference.top1_share,
            "conditions": row.reference.conditions,
            "per_prompt": row.reference.per_prompt,
            "ties": row.reference.ties,
        },
        "ties": {name: figure.value if figure else None for name, figure in ties.items()},
        "overlap": row.overlap,
        "finite_population_factor": 1.0 - row.overlap,
    }
