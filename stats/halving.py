"""Sequential halving: spend a fixed number of outcomes, halving the field of prompts round by round.

There are R = ceil(log2 M) rounds, and each spends at most an R-th part of the budget of B outcomes (one prompt on one
item): every prompt that is left is scored on floor(B / (R s)) further items, s being how many are left. Then the better
half stays, ceil(s/2) prompts. Prompts tied across that border all stay; the next round has fewer items for each then,
so the budget holds, and several prompts may be left at the end: the budget cannot tell them apart.

It answers "what is the best choice for this budget", whereas racing (`stats.racing`) answers "how little is enough to be
sure". The paper's bound on choosing a prompt that is not the best, 3 log2(M) exp(-B / (8 H log2 M)) with H the largest
i / gap_i^2, is for rounds that forget the earlier ones, and for B independent draws.

Source: Karnin, Koren, Somekh (2013), Proceedings of Machine Learning Research 28(3), 1238-1246.

>>> [(step.prompts, step.items) for step in plan(n_prompts=16, budget=1600).rounds]
[(16, 25), (8, 50), (4, 100), (2, 200)]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.ranks import fair_ranks
from stats.subsets import as_outcomes, whole_steps

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Round:
    """One round: so many prompts are scored on so many further items each."""

    prompts: int
    items: int

    @property
    def outcomes(self) -> int:
        """What the round costs."""
        return self.prompts * self.items


@dataclass(frozen=True)
class Plan:
    """The rounds that a budget allows, if no round ends in a tie across the border."""

    rounds: tuple[Round, ...]

    @property
    def outcomes(self) -> int:
        """What all rounds cost: at most the budget."""
        return sum(step.outcomes for step in self.rounds)

    @property
    def items(self) -> int:
        """On how many items a prompt is scored that stays to the end."""
        return sum(step.items for step in self.rounds)


@dataclass(frozen=True)
class Halving:
    """How it went: the rounds as they were, the prompts that stayed after each, and those left, several when tied.

    outcomes: how many were spent; the outcomes of missing cells count as spent.
    """

    rounds: tuple[Round, ...]
    stayed: tuple[tuple[int, ...], ...]
    winners: tuple[int, ...]
    outcomes: int


def plan(n_prompts: int, budget: int, n_items: int | None = None) -> Plan:
    """The rounds for ``budget`` outcomes over ``n_prompts`` prompts, as the module says.

    With ``n_items`` a round takes no more than what is left of them after the earlier rounds, so a large budget need not
    be spent. A single prompt needs no round.

    Raises ValueError when there is no prompt, or when the budget is too small for an item in the first round.

    >>> plan(n_prompts=5, budget=300).rounds
    (Round(prompts=5, items=20), Round(prompts=3, items=33), Round(prompts=2, items=50))
    >>> plan(n_prompts=5, budget=300, n_items=60).rounds[-1]
    Round(prompts=2, items=7)
    """
    rounds, left, used = [], n_prompts, 0
    total = n_rounds(n_prompts)
    for _ in range(total):
        step = _round(left, total, budget, n_items, used)
        rounds.append(step)
        used += step.items
        left = (left + 1) // 2
    return Plan(tuple(rounds))


def n_rounds(n_prompts: int) -> int:
    """ceil(log2 M). Raises ValueError when there is no prompt.

    >>> [n_rounds(m) for m in (1, 2, 3, 4, 5, 16, 17)]
    [0, 1, 2, 2, 3, 4, 5]
    """
    if n_prompts != int(n_prompts) or n_prompts < 1:
        raise ValueError(f"halving needs at least one prompt, got {n_prompts!r}")
    return (int(n_prompts) - 1).bit_length()


def staying(scores: ArrayLike) -> Indices:
    """The positions, ascending, of those in ``scores`` [s] that stay: the better half, and whoever ties with its last.

    A prompt without a score (nan) stays only when all are. Raises ValueError when there is none at all.

    >>> staying([0.5, 0.7, 0.2, 0.4]), staying([0.5, 0.7, 0.5, 0.5]), staying([0.1, 0.3, 0.2])
    (array([0, 1]), array([0, 1, 2, 3]), array([1, 2]))
    """
    values = np.asarray(scores, dtype=np.float64)
    ranks = fair_ranks(values)
    if np.isnan(ranks).all():
        return np.arange(len(values))
    known = np.sort(ranks[~np.isnan(ranks)])
    last = known[min((len(values) + 1) // 2, len(known)) - 1]
    return np.flatnonzero(ranks <= last)


def halve(outcomes: ArrayLike, budget: int, seed: int = 0, *, forget: bool = False) -> Halving:
    """Replays sequential halving on outcomes that are already there, the items in the order that ``seed`` draws.

    ``outcomes`` [N, M], any numbers, nan where missing. All prompts of a round are scored on the same items. They are
    compared by their means over all items so far, which are the same items for all that are left; with ``forget`` over
    those of the round alone, as in the paper.

    Raises ValueError as `plan` does, or on outcomes as `stats.subsets.score_matrix` does.

    >>> outcomes = np.array([[1, 1, 0, 0], [1, 0, 0, 1]] * 20)
    >>> found = halve(outcomes, budget=64)
    >>> found.winners, found.outcomes, found.rounds
    ((0,), 64, (Round(prompts=4, items=8), Round(prompts=2, items=16)))
    """
    values = as_outcomes(outcomes)
    n_items, n_prompts = values.shape
    ordered = values[np.argsort(np.random.PCG64(seed).random_raw(n_items), kind="stable")]
    present = ~np.isnan(ordered)
    steps, _, _ = whole_steps(np.where(present, ordered, 0.0))
    left, used, total = np.arange(n_prompts), 0, n_rounds(n_prompts)
    rounds: list[Round] = []
    stayed: list[tuple[int, ...]] = []
    for _ in range(total):
        if len(left) == 1:
            break
        step = _round(len(left), total, budget, n_items, used)
        part = slice(used if forget else 0, used + step.items)
        used += step.items
        with np.errstate(invalid="ignore", divide="ignore"):
            means = steps[part][:, left].sum(axis=0) / present[part][:, left].sum(axis=0)
        if step.items or not forget:
            left = left[staying(means)]
        rounds.append(step)
        stayed.append(tuple(int(i) for i in left))
    return Halving(tuple(rounds), tuple(stayed), tuple(int(i) for i in left), sum(step.outcomes for step in rounds))


def _round(left: int, total: int, budget: int, n_items: int | None, used: int) -> Round:
    items = budget // (total * left)
    if items < 1:
        raise ValueError(f"{total} rounds over {left} prompts need at least {total * left:,} outcomes, got {budget!r}")
    return Round(left, items if n_items is None else min(items, n_items - used))
