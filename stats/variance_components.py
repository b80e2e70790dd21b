"""Where the spread of outcomes comes from (prompts, items, the rest), and how many items rank prompts reliably.

Two-way analysis of variance with random effects, outcome = mean + prompt + item + (prompt x item) + error. With one
draw a cell the last two cannot be told apart and are one residual; with several draws the error is what repeats differ
by. Each component is the one that equates the mean squares with their expectations (M prompts, N items, R repeats):

    error           MS_within                        (R > 1)
    prompt x item   (MS_interaction - MS_within) / R (R > 1; with R = 1, MS_interaction is interaction and error)
    item            (MS_item - MS_interaction) / (M R)
    prompt          (MS_prompt - MS_interaction) / (N R)

Components are shown as they come out, below 0 too: that is an estimate of a small one. Reliabilities take it as 0.
Reliability G(k): the share of the variance of prompts' means over k shared items that is the prompts' own, or the
correlation to expect between two such rankings' scores.

Sources: Cornfield and Tukey (1956), Annals of Mathematical Statistics 27, 907-949; Cronbach et al. (1972), The
Dependability of Behavioral Measurements; Brennan (2001), Generalizability Theory.

Judges' marks for six targets (Shrout and Fleiss, 1979, Psychological Bulletin 86, 420-428); targets in columns:

>>> import numpy as np
>>> marks = np.array([[9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]])
>>> parts = variance_components(marks)
>>> round(reliability(parts, 1), 2), round(reliability(parts, 4), 2), round(reliability(parts, 1, shared=False), 2)
(0.71, 0.91, 0.29)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.intervals import Interval, normal_quantile

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MeanSquare:
    """One row of the analysis of variance. ``mean_square`` is nan without degrees of freedom."""

    sum_of_squares: float
    degrees: int

    @property
    def mean_square(self) -> float:
        """Sum of squares over degrees of freedom; nan without these."""
        return self.sum_of_squares / self.degrees if self.degrees else math.nan


@dataclass(frozen=True)
class VarianceComponents:
    """Variance of single outcomes by source, from ``items`` complete items x ``prompts`` x ``repeats``.

    prompt, item: may be below 0. interaction: prompt x item, None with one draw a cell. residual: the error of a repeat,
    or interaction and error together with one draw a cell.
    ms_prompt, ms_item, ms_interaction, ms_within: the analysis of variance; ms_within has no degrees with one draw.
    left_out: items without every outcome.
    """

    prompt: float
    item: float
    interaction: float | None
    residual: float
    ms_prompt: MeanSquare
    ms_item: MeanSquare
    ms_interaction: MeanSquare
    ms_within: MeanSquare
    items: int
    prompts: int
    repeats: int
    left_out: int


def variance_components(outcomes: ArrayLike) -> VarianceComponents:
    """The components of ``outcomes`` [N items, M prompts], or [N, M, R repeats], of any finite numbers.

    Missing outcomes (nan): only items with every outcome count, so that the design stays balanced. Prompts and items are
    taken as drawn from many; with few prompts the prompt component is known badly (two prompts give it one degree).

    Raises ValueError when there are fewer than 2 complete items or prompts, an outcome is infinite, or the shape is
    another.

    >>> parts = variance_components([[[1, 1], [0, 1]], [[0, 0], [0, 0]], [[1, 1], [1, 0]]])
    >>> round(parts.item, 4), round(parts.residual, 4), parts.repeats
    (0.1667, 0.1667, 2)
    """
    values = np.asarray(outcomes, dtype=np.float64)
    if values.ndim == 2:
        values = values[:, :, None]
    if values.ndim != 3 or 0 in values.shape:
        raise ValueError(
            f"outcomes must be items x prompts, or items x prompts x repeats, got the shape {values.shape}"
        )
    if np.isinf(values).any():
        raise ValueError("an outcome must be a finite number, or nan where there is none")
    complete = ~np.isnan(values).any(axis=(1, 2))
    left_out = int((~complete).sum())
    values = values[complete]
    n, m, r = values.shape
    if n < 2 or m < 2:
        raise ValueError(f"components need at least two complete items and two prompts, got {n} and {m}")
    # Far from 0, squares would lose digits. What rounding alone makes of equal means must come out as 0, or its ratios
    # would be taken for reliabilities.
    noise = values.size * (16.0 * np.finfo(np.float64).eps * float(np.abs(values).max())) ** 2
    values = values - values.mean()
    cells = values.mean(axis=2)
    of_items, of_prompts = cells.mean(axis=1), cells.mean(axis=0)
    rest = cells - of_items[:, None] - of_prompts + cells.mean()
    prompt = MeanSquare(_above(noise, n * r * _squares(of_prompts - cells.mean())), m - 1)
    item = MeanSquare(_above(noise, m * r * _squares(of_items - cells.mean())), n - 1)
    interaction = MeanSquare(_above(noise, r * _squares(rest)), (n - 1) * (m - 1))
    within = MeanSquare(_above(noise, _squares(values - cells[:, :, None])) if r > 1 else 0.0, n * m * (r - 1))
    between = interaction.mean_square
    return VarianceComponents(
        prompt=(prompt.mean_square - between) / (n * r),
        item=(item.mean_square - between) / (m * r),
        interaction=(between - within.mean_square) / r if r > 1 else None,
        residual=within.mean_square if r > 1 else between,
        ms_prompt=prompt,
        ms_item=item,
        ms_interaction=interaction,
        ms_within=within,
        items=n,
        prompts=m,
        repeats=r,
        left_out=left_out,
    )


def reliability(parts: VarianceComponents, k: float, repeats: int = 1, *, shared: bool = True) -> float | None:
    """G(k) = var_prompt / (var_prompt + var_e / k) for ``k`` items and ``repeats`` draws a cell; None without any variance.

    var_e = var_interaction + var_residual / repeats, as all prompts have the same items. Not ``shared``: every prompt
    has its own items, and var_e holds var_item too (the coefficient of dependability). Components below 0 count as 0.

    Raises ValueError when k is not above 0, repeats < 1, or repeats > 1 from components with one draw a cell, which
    cannot tell what more draws would even out.

    >>> parts = variance_components([[9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]])
    >>> round(reliability(parts, 4), 2)
    0.91
    """
    if not k > 0.0:
        raise ValueError(f"a reliability needs some items, got k={k!r}")
    own, noise = max(parts.prompt, 0.0), _noise(parts, repeats, shared) / k
    return own / (own + noise) if own + noise > 0.0 else None


def items_for_reliability(
    parts: VarianceComponents, target: float = 0.9, repeats: int = 1, *, shared: bool = True
) -> float:
    """The k at which `reliability` is ``target``: target / (1 - target) var_e / var_prompt; inf without prompt variance.

    A number to round up. Raises ValueError when the target is not strictly between 0 and 1, and as `reliability` does.

    >>> parts = variance_components([[9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]])
    >>> round(items_for_reliability(parts, 0.9), 2)
    3.59
    """
    if not 0.0 < target < 1.0:
        raise ValueError(f"a target must lie between 0 and 1, got {target!r}")
    noise = _noise(parts, repeats, shared)
    return target / (1.0 - target) * noise / parts.prompt if parts.prompt > 0.0 else math.inf


def reliability_interval(parts: VarianceComponents, k: float, confidence: float = 0.95) -> Interval:
    """An interval for `reliability` at ``k`` shared items and the repeats that were made, from F = MS_prompt / MS_interaction.

    Each end of F is divided by N for the ratio of variances, less than 0 counting as 0. Exact for normal effects and
    errors, a guide for 0/1 outcomes. It is wide with few prompts, whatever the number of items.

    Raises ValueError when k is not above 0 or the confidence is not strictly between 0 and 1.

    Source: McGraw and Wong (1996), Psychological Methods 1, 30-46, ICC(C,1).

    >>> parts = variance_components([[9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]])
    >>> reliability_interval(parts, 1)
    Interval(low=0.34..., high=0.94...)
    """
    from scipy.special import fdtri

    normal_quantile(confidence)
    if not k > 0.0:
        raise ValueError(f"a reliability needs some items, got k={k!r}")
    first, second = parts.ms_prompt.degrees, parts.ms_interaction.degrees
    tail = 0.5 + confidence / 2.0
    prompt, rest = parts.ms_prompt.mean_square, parts.ms_interaction.mean_square
    ends = []
    for factor in (1.0 / float(fdtri(first, second, tail)), float(fdtri(second, first, tail))):
        signal = max(prompt * factor - rest, 0.0) / parts.items
        ends.append(signal / (signal + rest / k) if signal + rest > 0.0 else 0.0)
    return Interval(ends[0], ends[1])


def _noise(parts: VarianceComponents, repeats: int, shared: bool) -> float:
    if repeats != int(repeats) or repeats < 1:
        raise ValueError(f"there must be at least one draw a cell, got {repeats!r}")
    if repeats > 1 and parts.interaction is None:
        raise ValueError("components from one draw a cell do not say what further draws would even out")
    noise = max(parts.interaction or 0.0, 0.0) + max(parts.residual, 0.0) / repeats
    return noise if shared else noise + max(parts.item, 0.0)


def _above(noise: float, squares: float) -> float:
    return squares if squares > noise else 0.0


def _squares(values: Floats) -> float:
    return float(np.square(values).sum())
