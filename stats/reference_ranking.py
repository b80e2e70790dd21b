"""Agreement of each condition with a reference: the most frequent ranking of the others.

>>> import numpy as np
>>> ranks = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [2.0, 1.0, 3.0]])
>>> modal_reference(ranks)
Reference(ranks=array([1., 2., 3.]), kind='ranking', frequency=2, ties=0)
>>> against_others(ranks, m=1).top1_share
0.666...
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.rank_agreement import between
from stats.ranks import fair_ranks, top_set

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Reference:
    """The modal ranking [M] of several conditions, as fair ranks.

    kind: 'ranking' when one ranking is the most frequent, 'per_prompt' when each prompt's most frequent rank was taken.
    frequency: how many conditions have that ranking; of 'per_prompt', how many have the most frequent one.
    ties: of 'per_prompt', how many prompts have several ranks that are equally frequent (their average was taken).
    """

    ranks: Floats
    kind: Literal["ranking", "per_prompt"]
    frequency: int
    ties: int


@dataclass(frozen=True)
class ReferenceAgreement:
    """Means over conditions of the agreement with the others' modal reference; None where undefined.

    top1_share: the share of all conditions that crown the most often crowned prompt; t prompts tied on top of a
        condition count 1/t each.
    per_prompt: how many of the references had to be made from each prompt's most frequent rank.
    ties: how many references hold a prompt without a single most frequent rank.
    """

    tau_b: float | None
    rho: float | None
    top1: float | None
    topm: float | None
    top1_share: float | None
    conditions: int
    per_prompt: int
    ties: int


def modal_reference(ranks: ArrayLike) -> Reference:
    """The most frequent ranking among ``ranks`` [C, M] (fair ranks, nan = not ranked).

    It is taken when it occurs at least twice and more often than any other. Otherwise nearly all are unique or several
    are equally frequent: then each prompt goes by its most frequent rank, or by the average of those that are equally
    frequent, and the prompts are ranked by that, ties being ties.

    Raises ValueError when there is no condition or no prompt.

    >>> modal_reference([[1, 2, 3], [2, 1, 3], [1, 2, 3]]).ranks
    array([1., 2., 3.])
    """
    values = np.asarray(ranks, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"a reference needs conditions x prompts, got the shape {values.shape}")
    return _Frequencies(values).reference()


def against_others(ranks: ArrayLike, m: int) -> ReferenceAgreement:
    """Each condition of ``ranks`` [C, M] against the modal reference of the others, itself left out; means over C.

    Give conditions of one k and different seeds only: one seed's smaller subset lies within its larger one, and a
    reference that holds the one would flatter the other. With one condition there are no others, and only
    ``top1_share`` is defined. Raises ValueError when m is not in 1..M.

    >>> round(against_others(np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [1.0, 2.0, 3.0]]), m=1).top1_share, 2)
    0.67
    """
    values = np.asarray(ranks, dtype=np.float64)
    top_set(values, m)
    on_top = top_set(values, 1)
    crowned = on_top[~np.isnan(on_top).any(axis=1)]
    share = float(crowned.mean(axis=0).max()) if len(crowned) else None
    if len(values) < 2:
        return ReferenceAgreement(None, None, None, None, share, len(values), 0, 0)
    frequencies = _Frequencies(values)
    references = [frequencies.reference(without=own) for own in range(len(values))]
    figures = [between(values[own : own + 1], reference.ranks[None, :], m) for own, reference in enumerate(references)]
    return ReferenceAgreement(
        tau_b=_mean([figure.tau_b for figure in figures]),
        rho=_mean([figure.rho for figure in figures]),
        top1=_mean([figure.top1 for figure in figures]),
        topm=_mean([figure.topm for figure in figures]),
        top1_share=share,
        conditions=len(values),
        per_prompt=sum(reference.kind == "per_prompt" for reference in references),
        ties=sum(reference.ties > 0 for reference in references),
    )


class _Frequencies:
    """How often each ranking occurs, and each rank of each prompt: counted once, for every condition left out in turn."""

    def __init__(self, values: Floats) -> None:
        n_prompts = values.shape[1]
        # Fair ranks are halves of whole numbers: 1, 1.5, 2 ... M.
        self._places = np.where(np.isnan(values), -1, 2.0 * np.nan_to_num(values) - 2.0).astype(np.int64)
        # Compared as whole numbers, so that rankings which lack the same prompts are the same.
        _, at, group, self._counts = np.unique(
            self._places, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        self._whole, self._group = values[at], group.reshape(-1)
        self._times = np.zeros((n_prompts, 2 * n_prompts - 1), dtype=np.int64)
        for row in self._places:
            ranked = np.flatnonzero(row >= 0)
            self._times[ranked, row[ranked]] += 1

    def reference(self, without: int | None = None) -> Reference:
        counts, times = self._counts.copy(), self._times.copy()
        if without is not None:
            counts[self._group[without]] -= 1
            own = self._places[without]
            ranked = np.flatnonzero(own >= 0)
            times[ranked, own[ranked]] -= 1
        most = int(counts.max())
        if most > 1 and int((counts == most).sum()) == 1:
            return Reference(self._whole[int(counts.argmax())], "ranking", most, 0)
        best = times.max(axis=1, keepdims=True)
        modes = (times == best) & (best > 0)
        number = modes.sum(axis=1)
        ranks = 1.0 + np.arange(times.shape[1]) / 2.0
        typical = np.where(number > 0, modes @ ranks / np.maximum(number, 1), np.nan)
        return Reference(fair_ranks(-typical), "per_prompt", most, int((number > 1).sum()))


def _mean(cells: list[Floats]) -> float | None:
    known = [float(cell[0, 0]) for cell in cells if not np.isnan(cell[0, 0])]
    return sum(known) / len(known) if known else None
