"""Choosing one prompt by its scores under several conditions, and what the choice is worth on a held-out one.

mean: the prompt with the highest mean score over the conditions.
lcb: the prompt with the highest mean - z sigma / sqrt(K), sigma the sample standard deviation (K - 1) over its K
    conditions. A heuristic, not a confidence interval: conditions share items, so they are no independent sample.
    Where scores are 0 or more and no bound is above 0, bounds say nothing that was not known before the first item, and
    the mean decides; so a prompt that always fails, whose bound is 0, is chosen by no rule and no z.
borda: the prompt with the smallest sum of fair ranks over the conditions (`stats.consensus`).
shortest: the shortest prompt of a set that the scores cannot tell from the best.

Rows of the scores are conditions, but any rule may be given the outcomes of single items instead. What differs then:
over complete 0/1 items Borda is the mean rule, since an item's right and wrong answers are M/2 ranks apart; and LCB is
p - z sqrt(p(1-p)/(n-1)), which grows with the mean p except where 4 p(1-p)(n-1) < z^2 (1-2p)^2, p below about
z^2/4n. So on items LCB does not choose otherwise than the mean; over conditions it does so by the noise in sigma alone.

Tied winners are all returned. Scores are taken as tied within 1e-12, since means over conditions of several k are
rounded numbers; prompts that really differ are further apart.

>>> import numpy as np
>>> scores = np.array([[0.5, 0.4, 0.5], [0.7, 0.8, 0.7]])
>>> by_mean(scores).winners, by_lcb(scores, z=1.0).winners
((0, 1, 2), (0, 2))
>>> by_borda(scores).winners, by_length(scores, lengths=[30, 50, 20], best_set=[0, 1, 2]).winners
((0, 1, 2), (2,))
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.consensus import borda_points
from stats.ranks import fair_ranks
from stats.subsets import Condition

Floats = NDArray[np.float64]
Holdout = Literal["seed", "condition"]

_SAME = 1e-12


@dataclass(frozen=True)
class Choice:
    """The prompts (columns) that a rule puts first, more than one when tied, none when no prompt has a value.

    ``values`` [M] is what the rule compares; nan for a prompt that it cannot value.
    """

    winners: tuple[int, ...]
    values: Floats


Rule = Callable[[Floats], Choice]
"""A rule chooses among the columns of scores [rows, M], whose rows are conditions or items."""


@dataclass(frozen=True)
class Turn:
    """From which ``z`` on LCB no longer chooses what the mean does, and the prompts that it chooses there."""

    z: float
    winners: tuple[int, ...]


@dataclass(frozen=True)
class HeldOut:
    """What a rule's choices scored where they were not chosen.

    mean, std: over the held-out parts, std with n - 1; None without a part, or with one for std.
    parts: held-out seeds (or conditions) with a score. tied: on how many of them the rule had several winners; their
    scores were averaged, as a fair lot would on average.
    """

    mean: float | None
    std: float | None
    parts: int
    tied: int


@dataclass(frozen=True)
class LeaveOut:
    """Leaving one part out, by rule. ``lcb`` is None where fewer than two conditions are left to choose on."""

    mean: HeldOut
    lcb: HeldOut | None
    borda: HeldOut
    holdout: Holdout


def by_mean(scores: ArrayLike) -> Choice:
    """The mean rule on ``scores`` [C, M]; a nan (no outcome under that condition) is left out of its prompt's mean.

    Raises ValueError when there is no condition or no prompt.

    >>> by_mean([[0.5, 0.4], [0.6, 0.9]]).winners
    (1,)
    """
    return choose(mean_values(_checked(scores)))


def by_lcb(scores: ArrayLike, z: float = 1.0) -> Choice:
    """The LCB rule on ``scores`` [C, M]; a prompt with a score under fewer than two conditions has no value.

    Where the mean decides, because no bound is above 0 (the module says when), ``values`` are the means.

    Raises ValueError when z is negative or not finite, or there are fewer than two conditions.

    >>> by_lcb([[0.5, 0.4], [0.6, 0.9]], z=1.0).winners
    (0,)
    """
    values = _checked(scores)
    if len(values) < 2:
        raise ValueError("a deviation over conditions needs at least two of them")
    return choose(lcb_values(values, z))


def by_borda(scores: ArrayLike) -> Choice:
    """The Borda rule on ``scores`` [C, M]: the smallest sum of fair ranks, given as points (`stats.consensus`).

    Raises ValueError when there is no condition or no prompt.

    >>> by_borda([[0.5, 0.4], [0.6, 0.9], [0.5, 0.4]]).winners
    (0,)
    """
    return choose(borda_values(_checked(scores)))


def by_length(
    scores: ArrayLike, lengths: ArrayLike, best_set: Collection[int] | Callable[[Floats], Collection[int]]
) -> Choice:
    """The shortest prompt in the best set, that is among those which the data cannot tell from the best.

    ``lengths`` [M] are numbers of 0 and more, such as tokens; ``values`` of the choice are their negatives within the
    set, nan outside. ``best_set`` holds columns, or works them out from ``scores`` [rows, M], so that a choice on a part
    of the data uses that part only.

    Raises ValueError when the lengths are not one for each prompt, or the set names a prompt that does not exist.

    >>> by_length([[1, 1, 0], [1, 1, 1]], [12, 9, 3], best_set=lambda scores: by_mean(scores).winners).winners
    (1,)
    """
    values, sizes = _checked(scores), np.asarray(lengths, dtype=np.float64)
    if sizes.shape != values.shape[1:] or not ((sizes >= 0.0) & np.isfinite(sizes)).all():
        raise ValueError(f"there must be a length of 0 or more for each of {values.shape[1]} prompts")
    members = sorted(best_set(values) if callable(best_set) else best_set)
    if members and not 0 <= members[0] <= members[-1] < len(sizes):
        raise ValueError(f"the best set names prompts that do not exist: {members!r}")
    shortness = np.full(len(sizes), np.nan)
    shortness[members] = -sizes[members]
    return choose(shortness)


def lcb_turn(scores: ArrayLike) -> Turn | None:
    """The smallest z from which LCB disagrees with the mean rule on ``scores`` [C, M]; None where it never does.

    They disagree until z is so large that no bound is above 0, where the mean decides again.

    A winner by mean w loses to a steadier prompt l (a smaller standard error) at z = (mean_w - mean_l)/(se_w - se_l). Of
    several winners by mean the steadiest is taken; if they differ, the turn is at 0, where the tie breaks.

    Prompts without a value for LCB are left out. Raises ValueError as `by_lcb` does.

    >>> lcb_turn([[0.9, 0.7], [0.5, 0.6]])
    Turn(z=0.333..., winners=(1,))
    """
    values = _checked(scores)
    chosen = by_lcb(values, 0.0)
    if not chosen.winners:
        return None
    means, errors = mean_values(values), _standard_errors(values)
    tied = np.array(chosen.winners)
    steadiest = tied[errors[tied] <= errors[tied].min() + _SAME]
    if len(steadiest) < len(tied):
        return Turn(0.0, tuple(int(i) for i in steadiest))
    own = steadiest[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        turns = np.where(errors < errors[own] - _SAME, (means[own] - means) / (errors[own] - errors), np.inf)
    if np.isinf(turns).all():
        return None
    z = float(turns.min())
    if np.nanmin(values) >= 0.0 and means[own] - z * errors[own] <= _SAME:
        return None
    # Of those that draw level at this z, the steadiest leads behind it.
    level = np.flatnonzero(turns <= z + _SAME)
    return Turn(z, tuple(int(i) for i in level[errors[level] <= errors[level].min() + _SAME]))


def leave_one_out(
    scores: ArrayLike, conditions: Sequence[Condition], z: float = 1.0, holdout: Holdout = "seed"
) -> LeaveOut:
    """`leave_out` for the mean, LCB and Borda rules. Raises ValueError as that does, or as `by_lcb` does on z.

    >>> conditions = [Condition(seed, 50) for seed in (1, 2, 3)]
    >>> found = leave_one_out([[0.5, 0.4], [0.6, 0.5], [0.4, 0.8]], conditions)
    >>> round(found.mean.mean, 3), round(found.lcb.mean, 3), round(found.borda.mean, 3)
    (0.433, 0.45, 0.467)
    """
    _checked_z(z)
    mean, borda = (leave_out(scores, conditions, rule, holdout) for rule in (by_mean, by_borda))
    enough = _least_left(_parts(conditions, holdout)) > 1
    lcb = leave_out(scores, conditions, lambda rest: by_lcb(rest, z), holdout) if enough else None
    return LeaveOut(mean, lcb, borda, holdout)


def leave_out(scores: ArrayLike, conditions: Sequence[Condition], rule: Rule, holdout: Holdout = "seed") -> HeldOut:
    """Choose by ``rule`` on all conditions but one part, score the choice on that part; over all parts.

    ``scores`` is [C, M], a row for each of ``conditions``. With holdout 'seed' a part is every condition of one seed,
    and the choice's score on it the mean over them; with 'condition' it is one condition, while others of its seed,
    which share its items, stay among those that the choice is made on. The dataset is the same in every part: for new
    items the score is too high by some points (`stats.item_folds` holds out items).

    Raises ValueError when the numbers of rows and conditions differ, or on an unknown ``holdout``.

    >>> conditions = [Condition(seed, 50) for seed in (1, 2, 3)]
    >>> leave_out([[0.5, 0.4], [0.6, 0.5], [0.4, 0.8]], conditions, by_mean)
    HeldOut(mean=0.4333..., std=0.0577..., parts=3, tied=0)
    """
    values, parts = _checked(scores), np.array(_parts(conditions, holdout))
    if len(values) != len(conditions):
        raise ValueError(f"{len(values)} rows of scores for {len(conditions)} conditions")
    held_out, tied = [], 0
    for part in dict.fromkeys(parts.tolist()):
        held = parts == part
        if held.all():
            continue
        choice = rule(values[~held])
        own = values[held][:, list(choice.winners)]
        own = own[~np.isnan(own)]
        if own.size:
            held_out.append(float(own.mean()))
            tied += len(choice.winners) > 1
    if not held_out:
        return HeldOut(None, None, 0, 0)
    spread = float(np.std(held_out, ddof=1)) if len(held_out) > 1 else None
    return HeldOut(float(np.mean(held_out)), spread, len(held_out), tied)


def mean_values(scores: Floats) -> Floats:
    """[..., M], the means over the rows of ``scores`` [..., C, M], missing ones left out; nan without any.

    >>> mean_values(np.array([[0.5, np.nan], [0.7, 0.9]])).round(3)
    array([0.6, 0.9])
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Floats = np.nansum(scores, axis=-2) / (~np.isnan(scores)).sum(axis=-2)
    return means


def lcb_values(scores: Floats, z: float = 1.0) -> Floats:
    """[..., M], mean - z sigma / sqrt(K) over the rows of ``scores`` [..., C, M]; nan below two. ValueError on a bad z.

    Where scores are 0 or more and no prompt of the M comes out above 0: their means.

    >>> lcb_values(np.array([[0.5, 0.4], [0.7, 0.8]]), z=1.0).round(3)
    array([0.5, 0.4])
    >>> lcb_values(np.array([[1.0, 0.0], [0.0, 0.0]]), z=2.0)
    array([0.5, 0. ])
    """
    _checked_z(z)
    errors = _standard_errors(scores)
    means = np.where(np.isnan(errors), np.nan, mean_values(scores))
    bounds = means - z * errors
    informed = (bounds > _SAME).any(axis=-1, keepdims=True) | (scores < 0.0).any(axis=-2).any(axis=-1, keepdims=True)
    values: Floats = np.where(informed, bounds, means)
    return values


def _standard_errors(scores: Floats) -> Floats:
    counts, means = (~np.isnan(scores)).sum(axis=-2), mean_values(scores)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.nansum((scores - means[..., None, :]) ** 2, axis=-2) / (counts - 1)
        errors: Floats = np.sqrt(variance) / np.sqrt(counts)
    errors[counts < 2] = np.nan
    return errors


def borda_values(scores: Floats) -> Floats:
    """[..., M], Borda's points of the rankings that the rows of ``scores`` [..., C, M] are.

    Raises ValueError without a row or a prompt, or when a score is infinite.

    >>> borda_values(np.array([[0.5, 0.4, 0.1], [0.7, 0.7, 0.2]]))
    array([0.875, 0.625, 0.   ])
    """
    return borda_points(fair_ranks(scores))


def choose(values: Floats) -> Choice:
    """The prompts with the highest of ``values`` [M], those within 1e-12 of it too; none when all are nan.

    >>> choose(np.array([0.3, 0.1 + 0.2, np.nan])).winners
    (0, 1)
    """
    if np.isnan(values).all():
        return Choice((), values)
    return Choice(tuple(int(i) for i in np.flatnonzero(values >= np.nanmax(values) - _SAME)), values)


def _parts(conditions: Sequence[Condition], holdout: Holdout) -> list[int]:
    if holdout not in ("seed", "condition"):
        raise ValueError(f"holdout must be 'seed' or 'condition', got {holdout!r}")
    return [condition.seed if holdout == "seed" else row for row, condition in enumerate(conditions)]


def _least_left(parts: Sequence[int]) -> int:
    return min((len(parts) - parts.count(part) for part in set(parts)), default=0)


def _checked_z(z: float) -> None:
    if not 0.0 <= z < np.inf:
        raise ValueError(f"z must be a finite number, 0 or more, got {z!r}")


def _checked(scores: ArrayLike) -> Floats:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"scores must be conditions x prompts with at least one of each, got the shape {values.shape}")
    return values
