"""What a selection rule's choice is worth on new items: choose on some items, score the choice on the others.

Leaving a seed out (`stats.selection.leave_out`) scores a choice on a subset that shares most of its items with those
that the choice was made on, so the luck of a prompt on this dataset comes along. Here the items are divided into folds;
the rule chooses on all folds but one, and its choice is scored on that one, which it has never seen. The choices are
made on (folds - 1)/folds of the items, so the figure speaks of a slightly smaller dataset than there is. Where prompts
are nearly even it is a little low too: an item that favours a prompt is missing where that prompt is chosen without it.

Source: Stone (1974), Journal of the Royal Statistical Society B 36, 111-147; that the standard error over items is not
exact, since folds share items that choices are made on: Bengio and Grandvalet (2004), Journal of Machine Learning
Research 5, 1089-1105.

>>> import numpy as np
>>> from stats.selection import by_mean
>>> outcomes = np.array([[1, 0], [1, 1], [0, 1], [1, 0]] * 10)
>>> found = item_disjoint(outcomes, by_mean, folds=5)
>>> found.mean, round(found.standard_error, 3), found.chosen, found.folds
(0.75, 0.069, array([1., 0.]), 5)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.clusters import Labels, numbered
from stats.resampling import standard_errors
from stats.selection import Choice, HeldOut, Holdout, Rule, leave_out
from stats.subsets import Condition, as_outcomes, score_matrix

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

FOLDS: Final = 10
"""Folds that the items are divided into, unless said otherwise."""


@dataclass(frozen=True)
class ItemDisjoint:
    """What a rule's choices score on items that they were not made on.

    mean: over the items, each held out once (in each repeat). standard_error: over items, or over groups where these
    are kept together; a little small, because the choices share items. Both None without a score, the error with one.
    in_sample: what the choice on all items scores on those same items; its excess over ``mean`` is ``optimism``.
    chosen [M]: in which share of the folds each prompt was chosen, 1/t each where t were tied.
    folds: how many parts were held out, over all repeats; tied: in how many the rule had several winners, whose scores
    were averaged as a fair lot would on average. items: how many have a score.
    """

    mean: float | None
    standard_error: float | None
    in_sample: float | None
    chosen: Floats
    folds: int
    tied: int
    items: int

    @property
    def optimism(self) -> float | None:
        """How much more the choice scores where it was made."""
        return None if self.mean is None or self.in_sample is None else self.in_sample - self.mean


@dataclass(frozen=True)
class RuleWorth:
    """A rule's choice over all conditions and what it is worth: for other seeds (the paper's LOSO), and for new items."""

    choice: Choice
    other_seeds: HeldOut
    new_items: ItemDisjoint


def fold_of_items(n_items: int, folds: int = FOLDS, seed: int = 0, groups: Labels | None = None) -> Indices:
    """[N], the fold (0 to folds - 1) of each item: as even as can be, drawn by ``seed``, the same every time.

    ``groups`` [N] names the group of each item, such as the question that several items vary; a group goes into one
    fold as a whole, larger ones first, each into the fold that holds the fewest items.

    Raises ValueError when there are fewer than 2 folds or more than items (or groups), or not one group for each item.

    >>> fold_of_items(7, folds=3, seed=1).tolist()
    [0, 0, 0, 2, 1, 2, 1]
    >>> fold_of_items(6, folds=2, seed=1, groups=["a", "a", "b", "b", "b", "c"]).tolist()
    [1, 1, 0, 0, 0, 1]
    """
    if groups is not None and len(groups) != n_items:
        raise ValueError(f"{len(groups)} groups for {n_items} items")
    of_item = np.arange(n_items) if groups is None else numbered(groups)
    sizes = np.bincount(of_item)
    if folds != int(folds) or not 2 <= folds <= len(sizes):
        what = "items" if groups is None else "groups of items"
        raise ValueError(f"{len(sizes)} {what} cannot be divided into {folds!r} folds of which one is held out")
    drawn = np.argsort(np.random.PCG64(seed).random_raw(len(sizes)), kind="stable")
    fold_of_group, held = np.empty(len(sizes), dtype=np.int64), np.zeros(folds, dtype=np.int64)
    for group in drawn[np.argsort(-sizes[drawn], kind="stable")]:
        fold = int(held.argmin())
        fold_of_group[group] = fold
        held[fold] += sizes[group]
    return fold_of_group[of_item]


def item_disjoint(
    outcomes: ArrayLike,
    rule: Rule,
    folds: int = FOLDS,
    repeats: int = 1,
    seed: int = 0,
    groups: Labels | None = None,
) -> ItemDisjoint:
    """Choose by ``rule`` on all folds of the items but one and score the choice on that one; over all folds.

    ``outcomes`` [N, M] may hold nan; an item counts by the outcomes that the chosen prompts have on it, and not at all
    without any. The rule gets the outcomes [n, M] of the items it may choose on; a rule on conditions is made one on
    items by `on_conditions`. ``repeats`` divides anew with the seeds from ``seed`` on, and averages each item's scores:
    that takes away what is due to the division, not what is due to the items.

    Raises ValueError as `fold_of_items` does, on outcomes as `stats.subsets.score_matrix` does, or when repeats < 1.

    >>> from stats.selection import by_mean
    >>> item_disjoint([[1, 0], [1, 1], [0, 1], [1, 0]] * 5, by_mean, folds=4).mean
    0.75
    """
    values = as_outcomes(outcomes)
    n_items, n_prompts = values.shape
    if repeats < 1:
        raise ValueError(f"the items must be divided at least once, got {repeats!r} repeats")
    total, times = np.zeros(n_items), np.zeros(n_items)
    chosen, tied = np.zeros(n_prompts), 0
    for repeat in range(repeats):
        fold_of = fold_of_items(n_items, folds, seed + repeat, groups)
        for fold in range(folds):
            held = fold_of == fold
            winners = list(rule(values[~held]).winners)
            if winners:
                chosen[winners] += 1.0 / len(winners)
                tied += len(winners) > 1
            scores = _on_items(values[held], winners)
            known = ~np.isnan(scores)
            total[held] += np.where(known, scores, 0.0)
            times[held] += known
    counted = times > 0
    mean, error = _mean_and_error(
        total[counted] / times[counted], None if groups is None else numbered(groups)[counted]
    )
    whole = _on_items(values, list(rule(values).winners))
    whole = whole[~np.isnan(whole)]
    return ItemDisjoint(
        mean=mean,
        standard_error=error,
        in_sample=float(whole.mean()) if whole.size else None,
        chosen=chosen / (folds * repeats),
        folds=folds * repeats,
        tied=tied,
        items=int(counted.sum()),
    )


def on_conditions(rule: Rule, conditions: Sequence[Condition]) -> Rule:
    """``rule`` on the scores under ``conditions``, drawn from whatever items it is given; for `item_disjoint`.

    Subset sizes above the number of those items are left out; the rule raises ValueError when none is left.

    >>> from stats.selection import by_lcb
    >>> rule = on_conditions(by_lcb, [Condition(seed, 2) for seed in (1, 2)])
    >>> rule(np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]])).winners
    (0,)
    """

    def on_items(outcomes: Floats) -> Choice:
        possible = [condition for condition in conditions if condition.k <= len(outcomes)]
        if not possible:
            raise ValueError(f"no subset size fits into the {len(outcomes):,} items that a choice is made on")
        return rule(score_matrix(outcomes, possible).means)

    return on_items


def worth(
    outcomes: ArrayLike,
    conditions: Sequence[Condition],
    rules: Mapping[str, Rule],
    folds: int = FOLDS,
    repeats: int = 1,
    seed: int = 0,
    groups: Labels | None = None,
    holdout: Holdout = "seed",
) -> dict[str, RuleWorth]:
    """Each rule's choice on the scores under ``conditions``, with its worth for other seeds and for new items.

    For new items the same rule chooses on the same conditions, drawn within the items that are not held out. Raises
    ValueError as `item_disjoint` and `stats.selection.leave_out` do.

    >>> from stats.selection import by_mean
    >>> outcomes = np.array([[1, 0], [1, 1], [0, 1], [1, 0]] * 10)
    >>> found = worth(outcomes, [Condition(seed, 20) for seed in range(5)], {"mean": by_mean})["mean"]
    >>> found.choice.winners, round(found.other_seeds.mean, 3), round(found.new_items.mean, 3)
    ((0,), 0.76, 0.75)
    """
    values = as_outcomes(outcomes)
    scores = score_matrix(values, conditions).means
    return {
        name: RuleWorth(
            rule(scores),
            leave_out(scores, conditions, rule, holdout),
            item_disjoint(values, on_conditions(rule, conditions), folds, repeats, seed, groups),
        )
        for name, rule in rules.items()
    }


def _on_items(values: Floats, winners: list[int]) -> Floats:
    """[n], the mean outcome of the winners on each item; nan where none of them has one."""
    own = values[:, winners]
    known = ~np.isnan(own)
    with np.errstate(invalid="ignore", divide="ignore"):
        scores: Floats = np.where(known, own, 0.0).sum(axis=1) / known.sum(axis=1)
    return scores


def _mean_and_error(scores: Floats, groups: Labels | None) -> tuple[float | None, float | None]:
    if not len(scores):
        return None, None
    error = float(standard_errors(scores[:, None], clusters=groups)[0])
    return float(scores.mean()), None if isnan(error) else error
