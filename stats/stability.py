"""How far a ranking from k items agrees with another one from k items of the same dataset.

Under a fixed decoding a condition is a k-subset drawn without replacement, and two seeds are independent given the
dataset, so what two seeds are expected to show follows from the outcome matrix [N items, M prompts] without any seed.
Where outcomes are 0/1 and complete, each figure is

- exact: tau_a, the mean of (P+ - P-)^2 over pairs of prompts, and the share of tied pairs, the mean of P0;
- approximate: tau_b and rho, the same numerators over the expected spread; and what depends on all prompts at once, who
  is on top, from Gaussian draws (see `stats.gaussian_scores`).

Above `MAX_EXACT_PROMPTS` prompts P+ and P0 are nearly exact, and so "approximate". For other numbers, or where outcomes
are missing, everything is simulated from seeded subsets. On 16 prompts of accuracy .05 to .25 and 40 of .90 to .97 the
approximate figures came out within .015 of 20,000 subsets, tied_top within .03.

These figures answer whether another subset of *this* dataset would agree; whether new items would is another question.

>>> outcomes = np.repeat([[1, 0], [0, 1], [1, 1]], [30, 10, 60], axis=0)
>>> expected = stability(outcomes, k=20, m=1)
>>> expected.tau_a
Figure(value=0.803..., method='exact')
>>> expected.top1.method
'approximate'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.gaussian_scores import gaussian_scores
from stats.pair_probabilities import (
    PairProbabilities,
    nearly_exact_pair_probabilities,
    pair_probabilities,
    tied_share,
)
from stats.rank_agreement import mean_over_pairs, mean_top_overlap
from stats.rank_correlation import mean_kendall_tau_a
from stats.ranks import fair_ranks, ranked_pairs, tied_on_top, tied_pairs, top_set
from stats.subsets import as_outcomes, is_binary, resampled_means

Floats = NDArray[np.float64]
Method = Literal["exact", "approximate", "simulated"]

DRAWS: Final = 2000
"""Conditions that a simulated figure comes from, unless said otherwise."""

FIGURES: Final = ("tau_a", "tau_b", "rho", "top1", "topm", "tied_pairs", "tied_top")
"""The figures of `Stability`, by name."""

MAX_EXACT_PROMPTS: Final = 60
"""Most prompts for which `stability` works out all pairs exactly, about .2 ms each."""


@dataclass(frozen=True)
class Figure:
    """A figure and how it was obtained; ``value`` is None where it is undefined."""

    value: float | None
    method: Method


@dataclass(frozen=True)
class Simulation:
    """Means over ``draws`` seeded conditions of one k, and over all pairs of these; None where undefined.

    tau_a is None too where a condition lacks a prompt. tied_pairs: share of pairs of prompts that a condition ties. tied_top: share of conditions with several prompts on top.
    """

    tau_a: float | None
    tau_b: float | None
    rho: float | None
    top1: float | None
    topm: float | None
    tied_pairs: float | None
    tied_top: float | None
    draws: int


@dataclass(frozen=True)
class Stability:
    """What to expect between two seeds at one k.

    tau_a: (concordant - discordant) / all pairs of prompts, a tie counting as neither. tied_pairs: share of pairs of
    prompts with the same score. tied_top: share of conditions with several on top.
    """

    k: int
    tau_a: Figure
    tau_b: Figure
    rho: Figure
    top1: Figure
    topm: Figure
    tied_pairs: Figure
    tied_top: Figure


def stability(outcomes: ArrayLike, k: int, m: int, draws: int | None = None) -> Stability:
    """Expected agreement of two seeds at subset size ``k``; ``m`` is the size of the top set.

    ``draws`` is the number of Gaussian draws or, where everything is simulated, of conditions. Without it there are up
    to 20,000 of the one, which puts the standard error of top1 and topm below .004, and `DRAWS` of the other.

    ``outcomes`` [N, M] may hold any finite numbers and nan. Raises ValueError when k is not in 1..N, m not in 1..M or
    draws below 2.

    >>> stability([[1, 0, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0]], k=4, m=2).topm
    Figure(value=0.75, method='approximate')
    """
    return stability_over_k(outcomes, (k,), m, draws)[0]


def stability_over_k(outcomes: ArrayLike, ks: Sequence[int], m: int, draws: int | None = None) -> tuple[Stability, ...]:
    """`stability` at each of ``ks``; the Gaussian draws are made once, so that figures move smoothly with k.

    Raises ValueError as `stability` does.

    >>> outcomes = np.repeat([[1, 0], [0, 1], [1, 1]], [30, 10, 60], axis=0)
    >>> [round(row.tau_a.value, 3) for row in stability_over_k(outcomes, (5, 20, 50), m=1)]
    [0.279, 0.804, 0.998]
    """
    values = as_outcomes(outcomes)
    if not is_binary(values) or np.isnan(values).any():
        return tuple(_simulated(values, k, m, DRAWS if draws is None else draws) for k in ks)
    exact = values.shape[1] <= MAX_EXACT_PROMPTS
    method: Method = "exact" if exact else "approximate"
    work_out = pair_probabilities if exact else nearly_exact_pair_probabilities
    scores = gaussian_scores(values, draws)
    expected = []
    for k in ks:
        pairs, lower_is_better = work_out(values, k), -scores.on_subset(k)
        first = top_set(lower_is_better, 1)
        expected.append(
            Stability(
                k,
                tau_a=Figure(expected_tau_a(pairs), method),
                tau_b=Figure(expected_tau_b(pairs), "approximate"),
                rho=Figure(expected_rho(pairs), "approximate"),
                top1=Figure(mean_top_overlap(first), "approximate"),
                topm=Figure(mean_top_overlap(top_set(lower_is_better, m)), "approximate"),
                tied_pairs=Figure(tied_share(pairs), method),
                tied_top=Figure(float((first.max(axis=1) < 1.0).mean()), "approximate"),
            )
        )
    return tuple(expected)


def expected_tau_a(pairs: PairProbabilities) -> float | None:
    """tau-a expected between two seeds, as exact as ``pairs``: the mean of (P+ - P-)^2; None for one prompt.

    The sign of each pair of prompts is independent between two seeds with the expectation P+ - P-.

    >>> expected_tau_a(pair_probabilities([[1, 0], [0, 1], [1, 0]], k=1))
    0.111...
    """
    above = np.triu_indices(len(pairs.ties), 1)
    return float(((pairs.wins - pairs.wins.T)[above] ** 2).mean()) if above[0].size else None


def expected_tau_b(pairs: PairProbabilities) -> float | None:
    """tau-b expected between two seeds, approximately; None for one prompt, or when every pair always ties.

    The mean of (P+ - P-)^2 over pairs is tau-a's expectation, exactly; dividing by the expected share of untied pairs
    instead of each ranking's own is the approximation.

    >>> expected_tau_b(pair_probabilities([[1, 0], [0, 1], [1, 0]], k=1))
    0.111...
    """
    above = np.triu_indices(len(pairs.ties), 1)
    untied = float((1.0 - pairs.ties[above]).sum())
    if untied <= 0.0:
        return None
    return float(((pairs.wins - pairs.wins.T)[above] ** 2).sum()) / untied


def expected_rho(pairs: PairProbabilities, *, correct_ties: bool = True) -> float | None:
    """rho expected between two seeds, approximately; None for one prompt, or when every pair always ties.

    The covariance of two seeds' ranks is exact: E r_i = 1 + sum over l of P(l beats i) + P0/2. It is divided by the
    expected spread of the ranks, which ties lower by half of the tied pairs and half of the tied triples. Tied pairs
    are exact; a triple is taken to tie with probability 2/sqrt(3) (P0_ij P0_jl P0_il)^(2/3), what equal normal scores
    give. Without ``correct_ties`` the spread is that of a ranking without ties, and the figure too low.

    >>> expected_rho(pair_probabilities([[1, 0], [0, 1], [1, 0]], k=1))
    0.111...
    """
    m = len(pairs.ties)
    above = np.triu_indices(m, 1)
    expected = 1.0 + pairs.wins.sum(axis=0) + (pairs.ties.sum(axis=0) - 1.0) / 2.0
    spread = m * (m * m - 1) / 12.0
    if correct_ties:
        two = float(pairs.ties[above].sum())
        power = np.where(np.eye(m, dtype=bool), 0.0, pairs.ties) ** (2.0 / 3.0)
        three = 2.0 / np.sqrt(3.0) * float((power @ power * power).sum()) / 6.0
        spread -= (two + min(three, two * (m - 2) / 3.0)) / 2.0
    if m < 2 or spread <= 1e-12 or float(pairs.ties[above].min()) >= 1.0:
        return None
    return min(float(((expected - (m + 1) / 2.0) ** 2).sum() / spread), 1.0)


def simulate(outcomes: ArrayLike, k: int, m: int, draws: int = DRAWS) -> Simulation:
    """The same figures and those of the top from ``draws`` seeded k-subsets, which are the same every time.

    Means over pairs come from all pairs of the draws. Their standard error falls with the square root of ``draws``:
    about .01 at 2,000 where conditions differ much in how well they agree with the rest, less elsewhere.

    Raises ValueError as `stability` does.

    >>> simulate([[1, 0], [0, 1], [1, 1], [1, 0]], k=2, m=1, draws=50).tied_top
    0.4
    """
    values = as_outcomes(outcomes)
    if draws < 2:
        raise ValueError(f"agreement needs at least two draws, got {draws!r}")
    ranks = fair_ranks(resampled_means(values, k, draws))
    agreement = mean_over_pairs(ranks, m)
    pairs = int(ranked_pairs(ranks).sum())
    on_top = tied_on_top(ranks)
    ranked = on_top > 0
    return Simulation(
        None if np.isnan(ranks).any() else mean_kendall_tau_a(ranks),
        agreement.tau_b,
        agreement.rho,
        agreement.top1,
        agreement.topm,
        tied_pairs=int(tied_pairs(ranks).sum()) / pairs if pairs else None,
        tied_top=float((on_top[ranked] > 1).mean()) if ranked.any() else None,
        draws=draws,
    )


def _simulated(values: Floats, k: int, m: int, draws: int) -> Stability:
    drawn = simulate(values, k, m, draws)
    return Stability(k, **{name: Figure(getattr(drawn, name), "simulated") for name in FIGURES})
