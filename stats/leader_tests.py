"""Paired tests of every prompt against the leader, with Holm's adjustment.

For 0/1 outcomes the exact McNemar test. For other numbers the sign-flip test of the mean difference, its direct
extension: it asks about the means that the ranking is made of, needs no normality (as t does), and keeps zeros and the
sizes of the differences (which Wilcoxon's test gives up). Items in clusters are summed within them and flipped together.

The leader is the prompt that these same items put first, so it is partly first by luck, while the p-values are those of
a test that names it beforehand. With ten equally good prompts on 300 items some "significant" loser turns up in 12 % of
evaluations instead of 5 %. To say which prompts may be best, use `stats.best_set`, which allows for that; or name ``leader``
beforehand.

>>> import numpy as np
>>> outcomes = np.array([[1, 1, 0]] * 9 + [[1, 0, 0]] * 2 + [[0, 1, 1]])
>>> against = leader_tests(outcomes)
>>> against.leader, [(test.prompt, test.ahead, test.behind, round(test.adjusted, 4)) for test in against.tests]
(0, [(1, 2, 1, 1.0), (2, 11, 1, 0.0127)])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.clusters import Labels
from stats.multiplicity import holm
from stats.paired import mcnemar_p_values
from stats.sign_flip import DRAWS, blocks, sign_flip_test
from stats.subsets import as_outcomes, is_binary, whole_steps

Floats = NDArray[np.float64]
Method = Literal["mcnemar", "sign flip", "sign flip, simulated", "none"]


@dataclass(frozen=True)
class LeaderTest:
    """The leader against one ``prompt`` (column), over the ``n`` items with an outcome of both.

    difference: the leader's mean less the prompt's; ahead, behind: items on which the leader scores more, less.
    p_value: two-sided; adjusted: Holm over all prompts. With n = 0 all three figures are nan and method is 'none'.
    """

    prompt: int
    n: int
    ahead: int
    behind: int
    difference: float
    p_value: float
    adjusted: float
    method: Method


@dataclass(frozen=True)
class LeaderTests:
    """``tests`` holds a test for every prompt but the leader, by column. tied: all prompts that share the leader's place."""

    leader: int
    tied: tuple[int, ...]
    tests: tuple[LeaderTest, ...]


def leaders(outcomes: ArrayLike) -> tuple[int, ...]:
    """The prompts (columns) with the highest mean over the complete items of ``outcomes`` [N, M]; several when tied.

    Items without an outcome of every prompt are left out, since a prompt must not lead for having had the easier items.
    Raises ValueError when the matrix is empty or holds an infinity, or no item is complete.

    >>> leaders([[1, 1, 0], [0, 0, 0]])
    (0, 1)
    """
    totals = blocks(outcomes).sums.sum(axis=0)
    return tuple(int(i) for i in np.flatnonzero(totals == totals.max()))


def leader_tests(
    outcomes: ArrayLike,
    leader: int | None = None,
    *,
    clusters: Labels | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> LeaderTests:
    """Every prompt of ``outcomes`` [N, M] (0/1 or any finite numbers, nan = missing) against ``leader``.

    Without ``leader`` it is the first of `leaders`. Missing outcomes: a pair is compared on the items that both have;
    only the choice of the leader needs complete items. McNemar where all outcomes are 0/1 and no ``clusters`` [N] are
    given. ``draws`` and ``seed`` concern simulated sign-flip tests only.

    Raises ValueError as `leaders` does (with ``leader`` given, no item needs to be complete), and when the leader is no
    column or the labels do not match.

    >>> leader_tests([[1, 0], [1, 1], [1, 0], [0, 1]]).tests[0].p_value
    1.0
    """
    values = as_outcomes(outcomes)
    n_prompts = values.shape[1]
    if leader is None:
        tied = leaders(values)
        leader = tied[0]
    else:
        if leader != int(leader) or not 0 <= leader < n_prompts:
            raise ValueError(f"the leader must be a column from 0 to {n_prompts - 1}, got {leader!r}")
        leader = int(leader)
        tied = (leader,)
    others = [prompt for prompt in range(n_prompts) if prompt != leader]
    # In whole steps where there are few decimals: .3 - .1 is not .2 in floating-point numbers, and no test would be exact.
    missing = np.isnan(values)
    filled, scale, _ = whole_steps(np.where(missing, 0.0, values))
    steps = np.where(missing, np.nan, filled)
    differences = steps[:, [leader]] - steps[:, others]
    shared = (~np.isnan(differences)).sum(axis=0)
    ahead, behind = (differences > 0.0).sum(axis=0), (differences < 0.0).sum(axis=0)
    p_values, methods = np.full(len(others), np.nan), ["none"] * len(others)
    if clusters is None and is_binary(values):
        p_values = np.where(shared > 0, mcnemar_p_values(ahead, behind), np.nan)
        methods = ["mcnemar" if n else "none" for n in shared]
    else:
        for column in np.flatnonzero(shared > 0):
            test = sign_flip_test(differences[:, column], clusters, draws, seed)
            p_values[column] = test.p_value
            methods[column] = "sign flip" if test.method == "exact" else "sign flip, simulated"
    with np.errstate(invalid="ignore"):
        means = np.nansum(differences, axis=0) / (scale * shared)
    columns = zip(others, shared, ahead, behind, means, p_values, holm(p_values), methods, strict=True)
    return LeaderTests(leader, tied, tuple(_test(*column) for column in columns))


def _test(
    prompt: int, n: int, ahead: int, behind: int, difference: float, p_value: float, adjusted: float, method: Method
) -> LeaderTest:
    return LeaderTest(
        prompt, int(n), int(ahead), int(behind), float(difference), float(p_value), float(adjusted), method
    )
