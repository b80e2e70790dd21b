"""What a matrix of outcomes says about its prompts: their means, and how far their ranking can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.errors import EvaldeskError
from engine.ranking.advice import Headline, advise
from engine.ranking.decision import Decision, decide
from engine.ranking.outcomes import OutcomeTable, read_outcomes
from stats.item_folds import FOLDS, ItemDisjoint, item_disjoint, on_conditions
from stats.prompt_means import PromptMean, prompt_mean
from stats.protocol import Protocol, protocol
from stats.ranks import fair_ranks
from stats.selection import Holdout, Rule, by_borda, by_lcb, by_mean
from stats.subsets import Condition, is_binary, score_matrix

MAX_SEEDS: Final = 1000


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
class Ranking:
    """The prompts of one outcome matrix, ranked, and what the ranking is worth.

    ``answered`` of the items have an outcome. ``protocol`` holds how conditions agree and what the rules choose,
    ``decision`` what the items decide (None where there is nothing to decide), ``folds`` what each rule's choice
    scores on items that it was not made on. Not ``settled``: outcomes still come.
    """

    table: OutcomeTable
    options: RankingOptions
    answered: int
    scores: tuple[PromptScore, ...]
    protocol: Protocol
    decision: Decision | None
    folds: dict[str, ItemDisjoint]
    settled: bool = True
    notes: tuple[str, ...] = field(default=())

    @property
    def top(self) -> int:
        """The size of the top set that was used, at most the number of prompts."""
        return self.protocol.m

    @property
    def best_first(self) -> tuple[PromptScore, ...]:
        """The scores by rank, those of one rank in the order of the file, unranked prompts last."""
        return tuple(sorted(self.scores, key=lambda score: (score.rank is None, score.rank or 0.0)))

    @property
    def best_set(self) -> tuple[str, ...] | None:
        """The prompts that may be the best, by rank; None where that is not known."""
        if self.decision is None:
            return None
        members = {self.table.prompts[column] for column in self.decision.best_set}
        return tuple(score.prompt for score in self.best_first if score.prompt in members)

    @property
    def advice(self) -> str:
        """What to make of the ranking, in one sentence of plain words."""
        ranked = [score for score in self.best_first if score.rank is not None]
        leaders = tuple(score for score in ranked if score.rank == ranked[0].rank)
        decided = None if self.decision is None else self.decision.winner
        same_leader = decided is not None and leaders and leaders[0].prompt == self.table.prompts[decided]
        return advise(
            n_items=self.answered,
            common=self.decision.items if self.decision else 0,
            leader_items=tuple(score.mean.n for score in leaders),
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
                for row in self.protocol.stability
                if row.expected is not None
            ),
            best_set=self.best_set,
            winner_items=self.decision.winner_items if self.decision and same_leader else None,
            settled=self.settled,
        )


def rank_file(path: str | Path, options: RankingOptions | None = None) -> Ranking:
    """Rank the prompts of a file; raises EvaldeskError as `engine.ranking.outcomes.read_outcomes` does."""
    return rank_outcomes(read_outcomes(path), options)


def rank_outcomes(table: OutcomeTable, options: RankingOptions | None = None, *, settled: bool = True) -> Ranking:
    """Rank the prompts of a matrix of outcomes.

    Items that no prompt has an outcome on say nothing about other subsets and are left out of what is expected.
    """
    options = options or RankingOptions()
    values = table.values
    answered = values[~np.isnan(values).all(axis=1)]
    found = protocol(values, options.seeds, options.ks, options.top, options.z, options.holdout, expect_on=answered)
    return Ranking(
        table=table,
        options=options,
        answered=len(answered),
        scores=_scores(table),
        protocol=found,
        decision=decide(values, [row.k for row in found.stability]),
        folds=_folds(answered, found.scores.conditions, options.z) if settled else {},
        settled=settled,
        notes=(*table.notes, *_notes(options, found, values.shape)),
    )


def _scores(table: OutcomeTable) -> tuple[PromptScore, ...]:
    values = table.values
    binary = is_binary(values)
    whole = score_matrix(values, [Condition(0, len(values))])
    ranks = fair_ranks(whole.means[0])
    return tuple(
        PromptScore(prompt, prompt_mean(column, binary=binary), None if np.isnan(rank) else float(rank))
        for prompt, column, rank in zip(table.prompts, values.T, ranks, strict=True)
    )


def _folds(values: NDArray[np.float64], conditions: Sequence[Condition], z: float) -> dict[str, ItemDisjoint]:
    """Each rule under item-disjoint folds; none where no subset fits into what a fold leaves, or too few items are there."""
    left = len(values) - -(-len(values) // FOLDS)
    if len(values) < FOLDS or sum(condition.k <= left for condition in conditions) < 2:
        return {}
    rules: dict[str, Rule] = {"mean": by_mean, "lcb": lambda scores: by_lcb(scores, z), "borda": by_borda}
    return {name: item_disjoint(values, on_conditions(rule, conditions)) for name, rule in rules.items()}


def _notes(options: RankingOptions, found: Protocol, shape: tuple[int, ...]) -> list[str]:
    n_items, n_prompts = shape
    notes = []
    if found.left_out:
        sizes = ", ".join(f"{k:,}" for k in found.left_out)
        notes.append(f"left out: k = {sizes}, because there are only {n_items:,} items")
    if any(row.k == n_items for row in found.stability):
        notes.append(f"k = {n_items:,} takes every item, so all seeds agree there whatever the prompts are")
    if options.top > n_prompts:
        notes.append(f"the top set is all {n_prompts:,} prompts, because there are no {options.top:,}")
    return notes
