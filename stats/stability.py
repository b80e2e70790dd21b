"""How far a ranking from k items agrees with another one from k items of the same dataset.

Outcomes are 0/1, [N items, M prompts], complete. Under a fixed decoding a condition is a k-subset drawn without
replacement, and two seeds are independent given the dataset, so the figures follow from the matrix without a seed:

- P+ and P0 of a pair of prompts, that the one beats the other or ties with it, are exact (hypergeometric).
- tau_b and rho expected between two seeds follow from these approximately, each with a correction for ties.
- Who is on top needs all prompts at once: simulated, from a seeded resampling of many conditions.

For other numbers, or where outcomes are missing, everything is simulated. These figures answer whether another subset
of *this* dataset would agree; whether new items would is another question.

>>> import numpy as np
>>> outcomes = np.array([[1, 0], [1, 0], [0, 1], [1, 1]])
>>> pairs = pair_probabilities(outcomes, k=2)
>>> round(float(pairs.wins[0, 1]), 12), round(float(pairs.ties[0, 1]), 12)
(0.5, 0.333333333333)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.rank_agreement import mean_over_pairs
from stats.ranks import fair_ranks, ranked_pairs, tied_on_top, tied_pairs
from stats.subsets import as_outcomes, is_binary, resampled_means

Floats = NDArray[np.float64]
Method = Literal["exact", "approximate", "simulated"]

DRAWS: Final = 2000
"""Conditions that a simulated figure comes from, unless said otherwise."""

MAX_EXACT_PROMPTS: Final = 60
"""Most prompts for which `stability` works out all pairs exactly; above it they come from `normal_pair_probabilities`."""

_NEGLIGIBLE: Final = 1e-18


@dataclass(frozen=True)
class PairProbabilities:
    """For every pair of prompts, [M, M], what happens on a random k-subset.

    wins[i, l]: P+, that i has more correct items than l; 0 on the diagonal. ties[i, l]: P0; 1 on the diagonal.
    """

    wins: Floats
    ties: Floats
    k: int


@dataclass(frozen=True)
class Figure:
    """A figure and how it was obtained; ``value`` is None where it is undefined."""

    value: float | None
    method: Method


@dataclass(frozen=True)
class Simulation:
    """Means over ``draws`` seeded conditions of one k, and over all pairs of these; None where undefined.

    tied_pairs: share of pairs of prompts that a condition ties. tied_top: share of conditions with several prompts on top.
    """

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

    tied_pairs: share of pairs of prompts with the same score. tied_top: share of conditions with several on top.
    """

    k: int
    tau_b: Figure
    rho: Figure
    top1: Figure
    topm: Figure
    tied_pairs: Figure
    tied_top: Figure


def stability(outcomes: ArrayLike, k: int, m: int, draws: int = DRAWS) -> Stability:
    """Expected agreement of two seeds at subset size ``k``; ``m`` is the size of the top set.

    ``outcomes`` [N, M] may hold any numbers and nan; every figure is simulated then. Raises ValueError when k is not in 1..N, m not in 1..M or draws below 2.
    """
    values = as_outcomes(outcomes)
    drawn = simulate(values, k, m, draws)
    rest = {name: Figure(getattr(drawn, name), "simulated") for name in ("top1", "topm", "tied_top")}
    if not is_binary(values) or np.isnan(values).any():
        more = {name: Figure(getattr(drawn, name), "simulated") for name in ("tau_b", "rho", "tied_pairs")}
        return Stability(k, **rest, **more)
    exact = values.shape[1] <= MAX_EXACT_PROMPTS
    pairs = pair_probabilities(values, k) if exact else normal_pair_probabilities(values, k)
    return Stability(
        k,
        tau_b=Figure(expected_tau_b(pairs), "approximate"),
        rho=Figure(expected_rho(pairs), "approximate"),
        tied_pairs=Figure(tied_share(pairs), "exact" if exact else "approximate"),
        **rest,
    )


def pair_probabilities(outcomes: ArrayLike, k: int) -> PairProbabilities:
    """P+ and P0 of every pair of prompts on a k-subset of the N items, exact to rounding.

    With b items that only i has right and c that only l has right, of N, the subset holds u of the b and v of the c;
    P+ sums C(b,u) C(c,v) C(N-b-c, k-u-v) / C(N,k) over u > v, P0 over u = v.

    ``outcomes`` [N, M] must be 0/1 and complete. Raises ValueError otherwise, or when k is not in 1..N.
    """
    only, n_items = _only(outcomes, k)
    n_prompts = len(only)
    log_factorial = np.array([math.lgamma(n + 1.0) for n in range(n_items + 1)])
    known: dict[tuple[int, int], tuple[float, float]] = {}
    wins, ties = np.zeros((n_prompts, n_prompts)), np.eye(n_prompts)
    for i in range(n_prompts):
        for other in range(i + 1, n_prompts):
            b, c = int(only[i, other]), int(only[other, i])
            if (b, c) not in known:
                won, tied = _win_and_tie(b, c, n_items, k, log_factorial)
                known[b, c], known[c, b] = (won, tied), (max(1.0 - won - tied, 0.0), tied)
            wins[i, other], ties[i, other] = known[b, c]
            wins[other, i], ties[other, i] = known[c, b]
    return PairProbabilities(wins, ties, k)


def normal_pair_probabilities(outcomes: ArrayLike, k: int) -> PairProbabilities:
    """`pair_probabilities` by a normal approximation with continuity correction, for many prompts at once.

    The difference of two means has the mean d = (b - c)/N and the variance (1/k - 1/N) N/(N-1) ((b+c)/N - d^2); a tie is
    a difference within 1/(2k). Good to about .01 at k = 50 unless few items tell the two prompts apart. Raises ValueError as `pair_probabilities` does.
    """
    from scipy.special import ndtr

    only, n_items = _only(outcomes, k)
    difference = (only - only.T) / n_items
    variance = (only + only.T) / n_items - difference**2
    factor = (1.0 / k - 1.0 / n_items) * n_items / (n_items - 1) if n_items > 1 else 0.0
    deviation = np.sqrt(np.maximum(factor * variance, 0.0))
    half = 1.0 / (2 * k)
    # Without variance the difference is certain; any deviation far below the step of the scores says the same.
    deviation = np.maximum(deviation, 1e-6 * half)
    up, down = ndtr((difference - half) / deviation), ndtr((-difference - half) / deviation)
    return PairProbabilities(up, np.clip(1.0 - up - down, 0.0, 1.0), k)


def expected_tau_b(pairs: PairProbabilities) -> float | None:
    """tau-b expected between two seeds, approximately; None for one prompt, or when every pair always ties.

    The mean of (P+ - P-)^2 over pairs is tau-a's expectation, exactly; dividing by the expected share of untied pairs
    instead of each ranking's own is the approximation.
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


def tied_share(pairs: PairProbabilities) -> float | None:
    """The expected share of pairs of prompts that a condition ties: the mean of P0, exact; None for one prompt."""
    above = np.triu_indices(len(pairs.ties), 1)
    return float(pairs.ties[above].mean()) if above[0].size else None


def simulate(outcomes: ArrayLike, k: int, m: int, draws: int = DRAWS) -> Simulation:
    """The same figures and those of the top from ``draws`` seeded k-subsets, which are the same every time.

    Means over pairs come from all pairs of the draws. Their standard error falls with the square root of ``draws``:
    about .01 at 2,000 where conditions differ much in how well they agree with the rest, less elsewhere.

    Raises ValueError as `stability` does.
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
        agreement.tau_b,
        agreement.rho,
        agreement.top1,
        agreement.topm,
        tied_pairs=int(tied_pairs(ranks).sum()) / pairs if pairs else None,
        tied_top=float((on_top[ranked] > 1).mean()) if ranked.any() else None,
        draws=draws,
    )


def _only(outcomes: ArrayLike, k: int) -> tuple[NDArray[np.int64], int]:
    """([i, l] the number of items that i has right and l has not, N); ValueError on what cannot be worked out."""
    values = as_outcomes(outcomes)
    n_items = len(values)
    if np.isnan(values).any() or not is_binary(values):
        raise ValueError("pair probabilities need a complete matrix of 0/1 outcomes")
    if k != int(k) or not 1 <= k <= n_items:
        raise ValueError(f"{k!r} of {n_items} items cannot be drawn without replacement")
    return (values.T @ (1.0 - values)).astype(np.int64), n_items


def _win_and_tie(b: int, c: int, n_items: int, k: int, log_factorial: Floats) -> tuple[float, float]:
    if not b and not c:
        return 0.0, 1.0

    def log_choose(n: int | NDArray[np.int64], r: NDArray[np.int64]) -> Floats:
        return log_factorial[n] - log_factorial[r] - log_factorial[n - r]

    u, v = (_likely(count, n_items, k, log_factorial) for count in (b, c))
    rest = k - u[:, None] - v[None, :]
    same = n_items - b - c
    possible = (rest >= 0) & (rest <= same)
    held = np.where(possible, rest, 0)
    logs = log_choose(b, u)[:, None] + log_choose(c, v)[None, :] + log_choose(same, held)
    logs -= float(log_choose(n_items, np.array([k]))[0])
    chances = np.where(possible, np.exp(logs), 0.0)
    # What is left out and what rounding adds are both far below 1e-12; dividing makes the three cases sum to 1.
    total = float(chances.sum())
    won = float(chances[u[:, None] > v[None, :]].sum()) / total
    return won, float(chances[u[:, None] == v[None, :]].sum()) / total


def _likely(count: int, n_items: int, k: int, log_factorial: Floats) -> NDArray[np.int64]:
    """How many of ``count`` marked items a k-subset may hold, those numbers left out that it practically never does."""
    held = np.arange(max(0, k - (n_items - count)), min(count, k) + 1)
    other = n_items - count
    logs = (
        log_factorial[count] - log_factorial[held] - log_factorial[count - held]
        + log_factorial[other] - log_factorial[k - held] - log_factorial[other - k + held]
    )  # fmt: skip
    likely: NDArray[np.int64] = held[logs >= logs.max() + np.log(_NEGLIGIBLE)]
    return likely
