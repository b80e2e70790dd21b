"""The protocol of the paper that this follows, as one function: prompts scored on seeded subsets of several sizes.

From the outcome matrix and some seeds come its two tables and its comparison of selection rules:

stability: for each subset size k, the agreement of two seeds (rho, tau-b, top-1, top-m), mean and std over seed pairs.
reference: for each k, the agreement of a seed with the modal ranking of the others, and the share of seeds that crown
    the same prompt.
selection: what each rule (mean, LCB, Borda) chooses over all conditions, and what its choice scores when one seed (or
    condition) is left out.

Beside each figure of the drawn seeds stands what any seeds are expected to show on these outcomes, with how that was
obtained: exact, approximate or simulated. All of it speaks of other subsets of this dataset, none of new items; for
those see `stats.item_folds`.

>>> import numpy as np
>>> outcomes = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 0]] * 50)
>>> paper = protocol(outcomes, seeds=range(1, 6), ks=(50, 100), m=2)
>>> [(row.k, round(row.drawn["tau_b"].mean, 2), round(row.expected.tau_b.value, 2)) for row in paper.stability]
[(50, 1.0, 0.99), (100, 1.0, 1.0)]
>>> paper.rule("mean").choice.winners, paper.left_out
((0,), ())
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.expected_protocol import expected_leave_out, expected_reference
from stats.rank_agreement import PairSummary, all_pairs, summarise
from stats.ranks import fair_ranks
from stats.reference_ranking import ReferenceAgreement, against_others
from stats.selection import Choice, HeldOut, Holdout, by_borda, by_lcb, by_mean, leave_one_out
from stats.stability import DRAWS, Figure, Stability, stability_over_k
from stats.subsets import Condition, ScoreMatrix, as_outcomes, score_matrix, seed_pairs

Floats = NDArray[np.float64]

KS: Final = (50, 100, 200)
"""Subset sizes of the paper's protocol."""

FIGURES: Final = ("tau_b", "rho", "top1", "topm")
"""The figures of agreement between two conditions, by name."""


@dataclass(frozen=True)
class StabilityRow:
    """How two seeds agree at one k: ``drawn`` over the pairs of the given seeds, by figure, and ``expected`` of any two.

    expected is None where expectations are worked out from fewer than k items. overlap: the share of items that two subsets are expected to have in common, k/N; 1 - overlap is the
    finite-population factor.
    """

    k: int
    drawn: dict[str, PairSummary]
    expected: Stability | None
    overlap: float


@dataclass(frozen=True)
class ReferenceRow:
    """How a seed agrees with the modal ranking of the others at one k, drawn and, by figure, expected (none: see above)."""

    k: int
    drawn: ReferenceAgreement
    expected: dict[str, Figure]


@dataclass(frozen=True)
class RuleRow:
    """What a rule chooses over all conditions, what its choices scored on what was left out, and the expected score."""

    rule: str
    choice: Choice
    held_out: HeldOut
    expected: Figure


@dataclass(frozen=True)
class Protocol:
    """The paper's tables for one matrix of outcomes.

    scores: of all prompts under all conditions, ordered by k, then seed. m: the size of the top set that was used.
    left_out: the subset sizes above the number of items. Without any other, all tables are empty.
    """

    scores: ScoreMatrix
    m: int
    stability: tuple[StabilityRow, ...]
    reference: tuple[ReferenceRow, ...]
    selection: tuple[RuleRow, ...]
    holdout: Holdout
    left_out: tuple[int, ...]

    def rule(self, name: str) -> RuleRow:
        """The row of one rule; KeyError when it is not in the table."""
        return {row.rule: row for row in self.selection}[name]


def protocol(
    outcomes: ArrayLike,
    seeds: Sequence[int],
    ks: Sequence[int] = KS,
    m: int = 3,
    z: float = 1.0,
    holdout: Holdout = "seed",
    draws: int | None = None,
    expect_on: ArrayLike | None = None,
) -> Protocol:
    """The tables for ``outcomes`` [N, M] (0/1 or any finite numbers, nan where missing) under ``seeds`` x ``ks``.

    ``m`` is the size of the top set, and taken as M where there are fewer prompts; z belongs to the LCB rule, which has
    no row with a single condition. ``draws`` is the number of draws of each k that expected figures come from;
    unless said, `stats.stability.DRAWS`, and for Gaussian ones those of `stats.stability.stability`.
    Expected figures are those of ``expect_on`` [n, M], all of ``outcomes`` unless said: while outcomes still come, the
    items that every prompt has answered; they are missing at a k above n.

    Raises ValueError when there is no seed or one is repeated, on a k or m below 1, on a z that is negative or not
    finite, on draws below 2, or on outcomes as `stats.subsets.score_matrix` does.

    >>> paper = protocol([[1, 0], [1, 1], [0, 0], [1, 0]] * 20, seeds=(1, 2, 3), ks=(40, 400))
    >>> paper.left_out, paper.rule("lcb").choice.winners
    ((400,), (0,))
    """
    values = as_outcomes(outcomes)
    known = values if expect_on is None else np.asarray(expect_on, dtype=np.float64)
    n_items, n_prompts = values.shape
    if known.ndim != 2 or known.shape[1] != n_prompts:
        raise ValueError(f"expectations need outcomes of the same {n_prompts} prompts, got the shape {known.shape}")
    if not len(seeds) or len(set(seeds)) < len(seeds):
        raise ValueError(f"a protocol needs seeds, each once, got {list(seeds)!r}")
    if m < 1 or not len(ks) or min(ks) < 1:
        raise ValueError(f"the top set and the subsets need at least one element, got m={m!r}, ks={list(ks)!r}")
    sizes = tuple(sorted(set(ks)))
    possible, top = tuple(k for k in sizes if k <= n_items), min(m, n_prompts)
    conditions = [Condition(seed, k) for k in possible for seed in seeds]
    scores = score_matrix(values, conditions)
    ranks = fair_ranks(scores.means) if conditions else np.empty((0, n_prompts))
    expected = (
        {row.k: row for row in stability_over_k(known, [k for k in possible if k <= len(known)], top, draws)}
        if len(known)
        else {}
    )
    drawn = DRAWS if draws is None else draws
    of_k = {k: slice(at * len(seeds), (at + 1) * len(seeds)) for at, k in enumerate(possible)}
    return Protocol(
        scores=scores,
        m=top,
        stability=tuple(_stability_row(ranks[of_k[k]], seeds, top, k / n_items, k, expected.get(k)) for k in possible),
        reference=tuple(_reference_row(known, ranks[of_k[k]], k, top, drawn) for k in possible),
        selection=_selection_rows(known, scores, len(seeds), possible, z, holdout, drawn),
        holdout=holdout,
        left_out=tuple(k for k in sizes if k > n_items),
    )


def _stability_row(
    ranks: Floats, seeds: Sequence[int], m: int, overlap: float, k: int, expected: Stability | None
) -> StabilityRow:
    agreement, pairs = all_pairs(ranks, m), seed_pairs([Condition(seed, k) for seed in seeds])
    drawn = {name: summarise(getattr(agreement, name), pairs, np.array(seeds)) for name in FIGURES}
    return StabilityRow(k, drawn, expected, overlap)


def _reference_row(known: Floats, ranks: Floats, k: int, m: int, draws: int) -> ReferenceRow:
    n_seeds = len(ranks)
    expected = expected_reference(known, k, m, n_seeds, max(1, draws // n_seeds)) if k <= len(known) else {}
    return ReferenceRow(k, against_others(ranks, m), expected)


def _selection_rows(
    known: Floats,
    scores: ScoreMatrix,
    n_seeds: int,
    ks: tuple[int, ...],
    z: float,
    holdout: Holdout,
    draws: int,
) -> tuple[RuleRow, ...]:
    if not scores.conditions:
        return ()
    means = scores.means
    left_out = leave_one_out(means, scores.conditions, z, holdout)
    expected = {rule: Figure(None, "approximate") for rule in ("mean", "lcb", "borda")}
    if ks[-1] <= len(known):
        expected = expected_leave_out(known, n_seeds, ks, z, holdout, max(1, draws // n_seeds))
    rows = [RuleRow("mean", by_mean(means), left_out.mean, expected["mean"])]
    if len(means) > 1:
        held_out = left_out.lcb or HeldOut(None, None, 0, 0)
        rows.append(RuleRow("lcb", by_lcb(means, z), held_out, expected["lcb"]))
    rows.append(RuleRow("borda", by_borda(means), left_out.borda, expected["borda"]))
    return tuple(rows)
