"""The scores of all prompts at once on k random items, from Gaussian draws that are made once and serve every k.

The prompts of one dataset hang together: an item that is hard for one is hard for the others. Z [draws, M] is standard
normal with the correlations of the outcomes over items, and carries just that. A prompt's own score keeps its own
distribution:

- outcomes 0/1: the number of correct items is hypergeometric on a subset, exactly, and binomial on new items; the draw
  takes its quantile at Phi(Z). Scores are whole numbers of items, so they tie as often as real ones, near an accuracy
  of 0 or 1 too, where rounded normal scores do not.
- other numbers: mean + Z s sqrt(1/k - 1/N) on a subset, mean + Z s sqrt(1/n) on new items, s^2 the variance over items
  with N - 1.

Only the joint distribution is approximate. With 20,000 draws the probability of being on top, top-1 and top-m agreement
came out within .005 of long simulations (16 prompts of accuracy .05-.25, 40 of .90-.97; k from 10 to 500), the share of
conditions with a tie on top within .03.

Sources: Cochran (1977), Sampling Techniques, 3rd ed., section 2.5, for the variance without replacement; Cario and
Nelson (1997), Modeling and Generating Random Vectors with Arbitrary Marginal Distributions and Correlation Matrix.

>>> outcomes = np.repeat([[1, 0], [0, 1], [1, 1]], [30, 10, 60], axis=0)
>>> draws = gaussian_scores(outcomes, draws=3)
>>> draws.on_subset(50)
array([[42., 36.],
       [46., 33.],
       [47., 31.]])
>>> draws.on_subset(100)[0]
array([90., 70.])
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.count_distributions import CountDistribution, binomial, hypergeometric
from stats.normal_draws import normal_root, standard_normal
from stats.subsets import as_outcomes, is_binary, whole_steps

Floats = NDArray[np.float64]

MAX_DRAWS: Final = 20_000
"""Draws for up to 52 prompts, unless said otherwise."""

MIN_DRAWS: Final = 2_000
"""Draws for any number of prompts, at least."""

_CELLS: Final = 1 << 20


@dataclass(frozen=True)
class GaussianScores:
    """Draws for M prompts on N items; made by `gaussian_scores`.

    noise: Z, [D, draws], one row for each of the D different columns of outcomes. Prompts with the same outcomes on
    every item share it, and always tie. row: [M], which one is whose. means, deviations: [D], of the outcomes over items.
    """

    noise: Floats
    row: NDArray[np.int64]
    means: Floats
    deviations: Floats
    n_items: int
    binary: bool

    def on_subset(self, k: int) -> Floats:
        """[draws, M], scores on ``k`` of the N items: numbers of correct items where outcomes are 0/1, else means.

        Raises ValueError when k is not in 1..N.

        >>> gaussian_scores([[1, 0], [0, 1], [1, 1]], draws=4).on_subset(3)[0]
        array([2., 2.])
        """
        if k != int(k) or not 1 <= k <= self.n_items:
            raise ValueError(f"{k!r} of {self.n_items} items cannot be drawn without replacement")
        if self.binary:
            return self._quantiles([hypergeometric(self.n_items, hits, int(k)) for hits in self._hits])
        return self._normal(1.0 / k - 1.0 / self.n_items)

    def on_new_items(self, n: int) -> Floats:
        """[draws, M], scores on ``n`` new items like these, as `on_subset`; ValueError when n is below 1.

        The means of these N items are taken for the true ones, so this is what would happen if they were.

        >>> gaussian_scores([[1, 1], [1, 1]], draws=4).on_new_items(10)[0]
        array([10., 10.])
        """
        if n != int(n) or n < 1:
            raise ValueError(f"a score needs at least one item, got {n!r}")
        if self.binary:
            return self._quantiles([binomial(int(n), hits / self.n_items) for hits in self._hits])
        return self._normal(1.0 / n)

    @cached_property
    def _hits(self) -> list[int]:
        return [round(mean * self.n_items) for mean in self.means]

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], Floats]:
        order = np.argsort(self.noise, axis=1)
        return order, np.take_along_axis(self.noise, order, axis=1)

    def _normal(self, factor: float) -> Floats:
        scores: Floats = self.means[:, None] + self.noise * (self.deviations * np.sqrt(factor))[:, None]
        return scores[self.row].T

    def _quantiles(self, margins: list[CountDistribution]) -> Floats:
        from scipy.special import ndtri

        counts, draws = np.empty_like(self.noise), self.noise.shape[1]
        for own, margin, order, ascending in zip(counts, margins, *self._sorted, strict=True):
            # The count is the first whose cumulative probability reaches Phi(Z).
            steps = ndtri(np.minimum(np.cumsum(margin.chances[:-1]), 1.0))
            upto = np.concatenate([[0], np.searchsorted(ascending, steps, side="right"), [draws]])
            own[order] = np.repeat(margin.first + np.arange(len(margin.chances)), np.diff(upto))
        return counts[self.row].T


def gaussian_scores(outcomes: ArrayLike, draws: int | None = None, seed: int = 0) -> GaussianScores:
    """Draw Z for ``outcomes`` [N, M], which must be complete; the same every time for one ``seed``.

    ``draws`` is 20,000 unless said otherwise, fewer above 52 prompts. The order of the prompts makes no difference.
    Raises ValueError when an outcome is missing or infinite, or there are fewer than two draws.

    >>> gaussian_scores([[1, 0], [0, 1], [1, 1]], draws=4).on_new_items(10).shape
    (4, 2)
    """
    values = as_outcomes(outcomes)
    if np.isnan(values).any():
        raise ValueError("the joint distribution of scores needs a complete matrix of outcomes")
    if draws is None:
        draws = min(MAX_DRAWS, max(MIN_DRAWS, _CELLS // values.shape[1]))
    if draws < 2:
        raise ValueError(f"agreement needs at least two draws, got {draws!r}")
    # Sorted columns: the same draws whatever the order of the prompts, and one for equal ones.
    distinct, row = np.unique(values + 0.0, axis=1, return_inverse=True)
    steps, scale, _ = whole_steps(distinct)
    centred = distinct - distinct.mean(axis=0)
    deviations = np.sqrt((centred**2).sum(axis=0) / max(len(values) - 1, 1))
    noise = normal_root(_correlations(centred)) @ standard_normal(distinct.shape[1], draws, seed)
    means = steps.sum(axis=0) / (scale * len(values))
    return GaussianScores(noise, row.reshape(-1), means, deviations, len(values), is_binary(values))


def _correlations(centred: Floats) -> Floats:
    """[D, D]; a column without variance is independent of the others."""
    lengths = np.sqrt((centred**2).sum(axis=0))
    unit = centred / np.where(lengths > 0.0, lengths, 1.0)
    correlations: Floats = unit.T @ unit
    np.fill_diagonal(correlations, 1.0)
    return correlations
