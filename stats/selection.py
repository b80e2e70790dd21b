"""Choosing one prompt by its scores under several conditions, and what the choice is worth on a held-out one.

mean: the prompt with the highest mean score over the conditions.
lcb: the prompt with the highest mean - z sigma / sqrt(K), sigma the sample standard deviation (K - 1) over its K
    conditions. A heuristic, not a confidence interval: conditions share items, so they are no independent sample.

Tied winners are all returned. Scores are taken as tied within 1e-12, since means over conditions of several k are
rounded numbers; prompts that really differ are further apart.

>>> import numpy as np
>>> scores = np.array([[0.5, 0.4, 0.5], [0.7, 0.8, 0.7]])
>>> by_mean(scores).winners, by_lcb(scores, z=1.0).winners
((0, 1, 2), (0, 2))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    holdout: Holdout


def by_mean(scores: ArrayLike) -> Choice:
    """The mean rule on ``scores`` [C, M]; a nan (no outcome under that condition) is left out of its prompt's mean.

    Raises ValueError when there is no condition or no prompt.
    """
    values, counts = _checked(scores)
    return _choice(_means(values, counts))


def by_lcb(scores: ArrayLike, z: float = 1.0) -> Choice:
    """The LCB rule on ``scores`` [C, M]; a prompt with a score under fewer than two conditions has no value.

    Raises ValueError when z is negative or not finite, or there are fewer than two conditions.
    """
    values, counts = _checked(scores)
    if not 0.0 <= z < np.inf:
        raise ValueError(f"z must be a finite number, 0 or more, got {z!r}")
    if len(values) < 2:
        raise ValueError("a deviation over conditions needs at least two of them")
    means = _means(values, counts)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.nansum((values - means) ** 2, axis=0) / (counts - 1)
        bounds = means - z * np.sqrt(variance) / np.sqrt(counts)
    bounds[counts < 2] = np.nan
    return _choice(bounds)


def leave_one_out(
    scores: ArrayLike, conditions: Sequence[Condition], z: float = 1.0, holdout: Holdout = "seed"
) -> LeaveOut:
    """Choose on all conditions but one part, score the choice on that part; over all parts.

    ``scores`` is [C, M], a row for each of ``conditions``. With holdout 'seed' a part is every condition of one seed,
    and the choice's score on it the mean over them; with 'condition' it is one condition, while others of its seed,
    which share its items, stay among those that the choice is made on. The dataset is the same in every part: for new
    items the score is too high by some points.

    Raises ValueError when the numbers of rows and conditions differ, or on an unknown ``holdout``.
    """
    values, _ = _checked(scores)
    if len(values) != len(conditions):
        raise ValueError(f"{len(values)} rows of scores for {len(conditions)} conditions")
    if holdout not in ("seed", "condition"):
        raise ValueError(f"holdout must be 'seed' or 'condition', got {holdout!r}")
    parts = [condition.seed if holdout == "seed" else row for row, condition in enumerate(conditions)]
    mean = _left_out(values, parts, by_mean)
    lcb = _left_out(values, parts, lambda rest: by_lcb(rest, z)) if _least_left(parts) > 1 else None
    return LeaveOut(mean, lcb, holdout)


def _left_out(values: Floats, parts: Sequence[int], rule: Callable[[Floats], Choice]) -> HeldOut:
    of_row, scores, tied = np.array(parts), [], 0
    for part in dict.fromkeys(parts):
        held = of_row == part
        if held.all():
            continue
        choice = rule(values[~held])
        own = values[held][:, list(choice.winners)]
        own = own[~np.isnan(own)]
        if own.size:
            scores.append(float(own.mean()))
            tied += len(choice.winners) > 1
    if not scores:
        return HeldOut(None, None, 0, 0)
    spread = float(np.std(scores, ddof=1)) if len(scores) > 1 else None
    return HeldOut(float(np.mean(scores)), spread, len(scores), tied)


def _least_left(parts: Sequence[int]) -> int:
    return min(len(parts) - parts.count(part) for part in set(parts))


def _choice(values: Floats) -> Choice:
    if np.isnan(values).all():
        return Choice((), values)
    return Choice(tuple(int(i) for i in np.flatnonzero(values >= np.nanmax(values) - _SAME)), values)


def _means(values: Floats, counts: NDArray[np.int64]) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Floats = np.nansum(values, axis=0) / counts
    return means


def _checked(scores: ArrayLike) -> tuple[Floats, NDArray[np.int64]]:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"scores must be conditions x prompts with at least one of each, got the shape {values.shape}")
    return values, (~np.isnan(values)).sum(axis=0)
