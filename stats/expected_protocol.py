"""What the paper's protocol is expected to show, over all choices of its seeds; what one set of seeds shows scatters.

The dataset is fixed; only the draws of the subsets are random. Each figure carries how it was obtained:

leaving one out: approximate. The means on k of N items are taken as normal, with the mean mu over all items and the
    covariance (1/k - 1/N) S, S the items' covariance (divisor N - 1); as draws of one seed are nested, the score at a
    smaller k is that at the next larger one and an independent rest. Seeds are independent of each other, so a held-out
    seed scores a choice with its mu, whatever the choice was made on. The normal draws are seeded, the same every time.
    Where outcomes are missing the protocol itself is drawn again and again: simulated.
agreement with the reference: simulated, with real subsets, because ties make the mode.

>>> import numpy as np
>>> outcomes = np.array([[1, 0], [1, 1], [0, 1], [1, 0]] * 25)
>>> found = expected_leave_out(outcomes, n_seeds=5, ks=(20, 40))
>>> found["mean"].value.__round__(2), found["mean"].method
(0.75, 'approximate')
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.normal_draws import normal_root, standard_normal
from stats.rank_agreement import between
from stats.ranks import fair_ranks, top_set
from stats.selection import Holdout, borda_values, lcb_values, mean_values
from stats.stability import Figure, Method
from stats.subsets import Condition, as_outcomes, resampled_means, score_matrix

Floats = NDArray[np.float64]

DRAWS: Final = 1000
"""Protocols that the expectation of leaving one out is taken over."""

REFERENCE_DRAWS: Final = 400
"""Protocols that the expected agreement with the reference is taken over."""

_TILE_CELLS: Final = 1 << 22


def expected_leave_out(
    outcomes: ArrayLike,
    n_seeds: int,
    ks: Sequence[int],
    z: float = 1.0,
    holdout: Holdout = "seed",
    draws: int = DRAWS,
) -> dict[str, Figure]:
    """What `stats.selection.leave_one_out` is expected to give, by rule: 'mean', 'lcb' and 'borda'.

    ``outcomes`` [N, M]; conditions are all pairs of ``n_seeds`` seeds and the sizes ``ks``. A figure is None where the
    protocol leaves nothing to choose on (for LCB, fewer than two conditions).

    Raises ValueError when a k is not in 1..N, or there is no seed or no k.

    >>> outcomes = np.array([[1, 0], [1, 1], [0, 1], [1, 0]] * 25)
    >>> round(expected_leave_out(outcomes, n_seeds=5, ks=(20,))["borda"].value, 2)
    0.75
    """
    values, sizes = as_outcomes(outcomes), tuple(sorted(set(ks)))
    if n_seeds < 1 or not sizes:
        raise ValueError("a protocol needs at least one seed and one subset size")
    if not 1 <= sizes[0] <= sizes[-1] <= len(values):
        raise ValueError(f"subset sizes must lie in 1 to {len(values):,}, got {sizes!r}")
    if holdout not in ("seed", "condition"):
        raise ValueError(f"holdout must be 'seed' or 'condition', got {holdout!r}")
    method: Method = "simulated" if np.isnan(values).any() else "approximate"
    drawn = _subsets(values, n_seeds, sizes, draws) if method == "simulated" else _normal(values, n_seeds, sizes, draws)
    rules = {"mean": mean_values, "lcb": lambda rows: lcb_values(rows, z), "borda": borda_values}
    result = {}
    for name, rule in rules.items():
        worth: list[Floats] = []
        for rest, held in _parts(drawn, holdout):
            if rest.shape[1] < (2 if name == "lcb" else 1):
                continue
            weights = top_set(fair_ranks(rule(rest)), 1)
            # A seed that is held out scores a prompt with its mean over all items on average: no need to draw it.
            own = values.mean(axis=0) if holdout == "seed" and method == "approximate" else held
            known = ~np.isnan(own) & (weights > 0.0)
            with np.errstate(invalid="ignore", divide="ignore"):
                worth.append(np.where(known, weights * own, 0.0).sum(axis=-1) / np.where(known, weights, 0.0).sum(-1))
        scores = np.concatenate(worth) if worth else np.empty(0)
        scores = scores[~np.isnan(scores)]
        result[name] = Figure(float(scores.mean()) if scores.size else None, method)
    return result


def expected_reference(
    outcomes: ArrayLike, k: int, m: int, n_seeds: int, draws: int = REFERENCE_DRAWS
) -> dict[str, Figure]:
    """What `stats.reference_ranking.against_others` is expected to give at one k with ``n_seeds`` seeds, by figure.

    'tau_b', 'rho', 'top1', 'topm' and 'top1_share'; all but the last are None with one seed. The share that crown the
    same prompt is at least 1/n_seeds by its definition, and falls with more seeds.

    Raises ValueError when k is not in 1..N, m not in 1..M, or there is no seed.

    >>> outcomes = np.array([[1, 0], [1, 1], [0, 1], [1, 0]] * 25)
    >>> figures = expected_reference(outcomes, k=100, m=1, n_seeds=5, draws=10)
    >>> figures["tau_b"].value, figures["top1_share"].value
    (1.0, 1.0)
    """
    values = as_outcomes(outcomes)
    if n_seeds < 1 or draws < 1:
        raise ValueError("an expectation needs at least one seed and one draw")
    ranks = fair_ranks(resampled_means(values, k, draws * n_seeds))
    on_top = top_set(ranks, 1).reshape(draws, n_seeds, -1)
    crowned = ~np.isnan(on_top[:, :, 0])
    with np.errstate(invalid="ignore"):
        shares = np.where(crowned[:, :, None], on_top, 0.0).sum(axis=1).max(axis=1) / crowned.sum(axis=1)
    figures = {"top1_share": _simulated(shares)}
    names = ("tau_b", "rho", "top1", "topm")
    if n_seeds < 2:
        return {name: Figure(None, "simulated") for name in names} | figures
    # Every seed is as good as every other: it is enough to leave out the first.
    groups = ranks.reshape(draws, n_seeds, -1)
    agreement = between(groups[:, 0], modal_references(groups[:, 1:]), m)
    return {name: _simulated(np.diagonal(getattr(agreement, name))) for name in names} | figures


def modal_references(ranks: ArrayLike) -> Floats:
    """[D, M], `stats.reference_ranking.modal_reference` of each of D sets of rankings [D, C, M], all at once.

    Fair ranks, nan where a prompt is not ranked. Raises ValueError unless there are three axes and a ranking in each
    set.

    >>> modal_references([[[1, 2, 3], [2, 1, 3], [1, 2, 3]], [[1, 2, 3], [2, 1, 3], [1, 3, 2]]])
    array([[1., 2., 3.],
           [1., 2., 3.]])
    """
    values = np.asarray(ranks, dtype=np.float64)
    n_sets, n_rankings, n_prompts = values.shape
    # Fair ranks are halves of whole numbers: 1, 1.5, 2 ... M.
    places = np.where(np.isnan(values), -1, 2.0 * np.nan_to_num(values) - 2.0).astype(np.int64)
    kinds = np.unique(places.reshape(-1, n_prompts), axis=0, return_inverse=True)[1].reshape(n_sets, n_rankings)
    counts = (kinds[:, :, None] == kinds[:, None, :]).sum(axis=2)
    most = counts.max(axis=1)
    single = (most > 1) & ((counts == most[:, None]).sum(axis=1) == most)
    references = np.take_along_axis(values, counts.argmax(axis=1)[:, None, None], axis=1)[:, 0]
    rest = np.flatnonzero(~single)
    for part in np.array_split(rest, max(1, len(rest) * 2 * n_prompts**2 // _TILE_CELLS)):
        references[part] = _per_prompt(places[part], n_prompts)
    return references


def _per_prompt(places: NDArray[np.int64], n_prompts: int) -> Floats:
    """The prompts of each set ranked by their most frequent ranks, those equally frequent averaged."""
    times = np.zeros((len(places), n_prompts, 2 * n_prompts), dtype=np.int32)
    for ranking in range(places.shape[1]):
        # Where the prompt is not ranked the place is -1, the last, which is not looked at.
        np.add.at(times, (*np.ogrid[: len(places), :n_prompts], places[:, ranking]), 1)
    times = times[:, :, :-1]
    best = times.max(axis=2, keepdims=True)
    modes = (times == best) & (best > 0)
    number = modes.sum(axis=2)
    ranks = 1.0 + np.arange(2 * n_prompts - 1) / 2.0
    return fair_ranks(-np.where(number > 0, modes @ ranks / np.maximum(number, 1), np.nan))


def _simulated(values: Floats) -> Figure:
    known = values[~np.isnan(values)]
    return Figure(float(known.mean()) if known.size else None, "simulated")


def _normal(values: Floats, n_seeds: int, sizes: tuple[int, ...], draws: int) -> Floats:
    """[draws, seeds, sizes, M], normal scores; from the largest k, where subsets differ least, to the smallest."""
    n_items, n_prompts = values.shape
    root = np.zeros((n_prompts, n_prompts))
    if n_items > 1:
        root = normal_root(np.cov(values, rowvar=False).reshape(n_prompts, n_prompts))
    scores = np.empty((draws, n_seeds, len(sizes), n_prompts))
    current, before = np.broadcast_to(values.mean(axis=0), (draws, n_seeds, n_prompts)), n_items
    for at in reversed(range(len(sizes))):
        step = np.sqrt(1.0 / sizes[at] - 1.0 / before)
        noise = standard_normal(draws * n_seeds, n_prompts, seed=at).reshape(draws, n_seeds, n_prompts)
        current = current + step * noise @ root
        scores[:, :, at], before = current, sizes[at]
    return scores


def _subsets(values: Floats, n_seeds: int, sizes: tuple[int, ...], draws: int) -> Floats:
    """[draws, seeds, sizes, M], the scores of real subsets, each protocol with seeds of its own."""
    conditions = [Condition(seed, k) for seed in range(draws * n_seeds) for k in sizes]
    return score_matrix(values, conditions).means.reshape(draws, n_seeds, len(sizes), -1)


def _parts(drawn: Floats, holdout: Holdout) -> list[tuple[Floats, Floats]]:
    """(scores [draws, C, M] to choose on, scores [draws, M] held out), for the first seed: all are alike."""
    draws, _, n_sizes, n_prompts = drawn.shape
    if holdout == "seed":
        return [(drawn[:, 1:].reshape(draws, -1, n_prompts), mean_values(drawn[:, 0]))]
    flat = drawn.reshape(draws, -1, n_prompts)
    return [(np.delete(flat, at, axis=1), flat[:, at]) for at in range(n_sizes)]
