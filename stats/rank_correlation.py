"""Kendall's tau-b and Spearman's rho between many rankings of the same prompts at once, by matrix products.

Rankings come as fair ranks [C, M] (1 = best, ties averaged, nan = not ranked; see `stats.ranks`). A figure between two
of them is taken over the prompts that both rank, and is nan where undefined: fewer than two such prompts, or all of
these tied in one of the rankings.

tau_b: with s_p(a) = 1, 0 or -1 as ranking a puts the first prompt of pair p before, level with or behind the second,
    sum over p of s_p(a) s_p(b) / sqrt(d_a d_b), where d counts the pairs that a ranking does not tie. With S the matrix
    of all signs, the numerators are S S'.
rho: the correlation of the fair ranks.

Signs, their sums and twice the ranks are whole numbers, so sums are exact whatever their order: equal rankings agree
by exactly 1, and permuting the prompts changes nothing. Signs are made and used in tiles, never all at once.

Sources: Kendall (1945), Biometrika 33, 239-251; Spearman (1904), American Journal of Psychology 15, 72-101.

>>> ranks = [[1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [1.5, 1.5, 3.0]]
>>> kendall_tau_b(ranks).round(3)[0], spearman_rho(ranks).round(3)[0]
(array([1.   , 0.333, 0.816]), array([1.   , 0.5  , 0.866]))
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.ranks import as_fair_ranks, ranked_pairs, tied_pairs

Floats = NDArray[np.float64]
Float32s = NDArray[np.float32]

_Ranks = TypeVar("_Ranks", Floats, Float32s)

_TILE_CELLS = 1 << 22
_CACHE_CELLS = 1 << 17
_EXACT = 2**24  # whole numbers up to here are exact in float32


def kendall_tau_b(ranks_a: ArrayLike, ranks_b: ArrayLike | None = None) -> Floats:
    """[A, B], tau-b of each ranking in ``ranks_a`` [A, M] with each in ``ranks_b`` [B, M], or in ``ranks_a`` without it.

    Raises ValueError unless both hold fair ranks of the same prompts, or with more than 5,793 prompts.

    >>> kendall_tau_b([[1.0, 2.0, 3.0]], [[3.0, 2.0, 1.0], [2.0, 2.0, 2.0], [np.nan, 1.0, 2.0]])
    array([[-1., nan,  1.]])
    """
    a, b = _two(ranks_a, ranks_b)
    n_prompts = a.shape[1]
    if n_prompts * (n_prompts - 1) // 2 >= _EXACT:
        raise ValueError(f"too many prompts to compare pair by pair: {n_prompts:,}")
    if np.isnan(a).any() or np.isnan(b).any():
        return _tau_b_with_gaps(a, b)
    agreed = np.zeros((len(a), len(b)), dtype=np.float32)
    for of_a, of_b in _tiles_of_both(a, b):
        agreed += of_a.T @ of_b
    untied = [(ranked_pairs(ranks) - tied_pairs(ranks)).astype(np.float64) for ranks in (a, b)]
    return _over_roots(agreed, untied[0], untied[1])


def spearman_rho(ranks_a: ArrayLike, ranks_b: ArrayLike | None = None) -> Floats:
    """[A, B], rho of each ranking in ``ranks_a`` [A, M] with each in ``ranks_b`` [B, M], or in ``ranks_a`` without it.

    Where rankings lack prompts, those that both have are ranked anew. Raises ValueError unless both hold fair ranks of
    the same prompts.

    >>> spearman_rho([[1.0, 2.0, 3.0]], [[3.0, 2.0, 1.0], [2.0, 2.0, 2.0], [np.nan, 1.0, 2.0]])
    array([[-1., nan,  1.]])
    """
    a, b = _two(ranks_a, ranks_b)
    if np.isnan(a).any() or np.isnan(b).any():
        return _rho_with_gaps(a, b)
    of_a = _centred(a)
    of_b = of_a if a is b else _centred(b)
    return _over_roots(of_a @ of_b.T, (of_a**2).sum(axis=1), (of_b**2).sum(axis=1))


def mean_kendall_tau_b(ranks: ArrayLike) -> float | None:
    """The mean of tau-b over all pairs of different rankings in ``ranks`` [C, M], none lacking a prompt; None without a pair.

    With u_a the signs of ranking a divided by sqrt(d_a), a vector of length 1, it is (|sum of u_a|^2 - n) / (n (n - 1))
    over the n rankings that do not tie everything: no matrix over pairs of rankings, time in proportion to C.

    Raises ValueError unless these are fair ranks without nan.

    >>> mean_kendall_tau_b([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [3.0, 2.0, 1.0]])
    -0.333...
    """
    values = _complete(ranks)
    untied = ranked_pairs(values) - tied_pairs(values)
    values, weights = values[untied > 0], 1.0 / np.sqrt(untied[untied > 0])
    return mean_off_diagonal(_squared_sum_of_signs(values, weights), float(len(values)), len(values))


def mean_kendall_tau_a(ranks: ArrayLike) -> float | None:
    """As `mean_kendall_tau_b` for tau-a, which divides by all pairs of prompts, tied or not; None without a pair of these.

    Raises ValueError as `mean_kendall_tau_b` does.

    >>> mean_kendall_tau_a([[1.0, 2.0, 3.0], [1.5, 1.5, 3.0]])
    0.666...
    """
    values = _complete(ranks)
    n, n_prompts = values.shape
    pairs = n_prompts * (n_prompts - 1) // 2
    if not pairs:
        return None
    untied = float((pairs - tied_pairs(values)).sum())
    return mean_off_diagonal(_squared_sum_of_signs(values, np.ones(n)) / pairs, untied / pairs, n)


def mean_spearman_rho(ranks: ArrayLike) -> float | None:
    """The mean of rho over all pairs of different rankings, as `mean_kendall_tau_b` for tau-b.

    Raises ValueError as `mean_kendall_tau_b` does.

    >>> mean_spearman_rho([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [3.0, 2.0, 1.0]])
    -0.333...
    """
    centred = _centred(_complete(ranks))
    spread = (centred**2).sum(axis=1)
    known = spread > 0.0
    total = (centred[known] / np.sqrt(spread[known])[:, None]).sum(axis=0)
    n = int(known.sum())
    return mean_off_diagonal(float((total**2).sum()), float(n), n)


def mean_off_diagonal(squared_sum: float, own: float, n: int) -> float | None:
    """The mean of v_a v_b over the pairs of n different vectors, from |sum of v_a|^2 and sum of |v_a|^2; None with n < 2.

    For vectors of length at most 1: rounding carries the result neither above 1 nor below -1.

    >>> mean_off_diagonal(4.0, 2.0, 2)
    1.0
    """
    return max(-1.0, min((squared_sum - own) / (n * (n - 1)), 1.0)) if n > 1 else None


def _two(ranks_a: ArrayLike, ranks_b: ArrayLike | None) -> tuple[Floats, Floats]:
    """Both as fair ranks, and the very same array twice where they are the same."""
    a = as_fair_ranks(ranks_a)
    b = a if ranks_b is None or ranks_b is ranks_a else as_fair_ranks(ranks_b)
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"rankings of {a.shape[1]} and of {b.shape[1]} prompts cannot be compared")
    return a, b


def _complete(ranks: ArrayLike) -> Floats:
    values = as_fair_ranks(ranks)
    if np.isnan(values).any():
        raise ValueError("a mean without a matrix needs rankings that lack no prompt")
    return values


def _squared_sum_of_signs(ranks: Floats, weights: Floats) -> float:
    """The squared length of the weighted sum of the rankings' signs, made in tiles that stay in the cache."""
    n, n_prompts = ranks.shape
    doubled = np.ascontiguousarray(2.0 * ranks.T)
    total, columns = np.zeros((n_prompts, n_prompts)), max(1, _CACHE_CELLS // n_prompts)
    signs = np.empty((n_prompts, min(columns, n)))
    for begin in range(0, n, columns):
        part, weight = doubled[:, begin : begin + columns], weights[begin : begin + columns]
        for first in range(n_prompts - 1):
            tile = signs[first + 1 :, : len(weight)]
            total[first, first + 1 :] += _signs(part[first], part[first + 1 :], tile) @ weight
    return float((total**2).sum())


def _tau_b_with_gaps(a: Floats, b: Floats) -> Floats:
    agreed, untied_a, untied_b = (np.zeros((len(a), len(b)), dtype=np.float32) for _ in range(3))
    for of_a, of_b in _tiles_of_both(a, b):
        known_a, known_b = (~np.isnan(tile) for tile in (of_a, of_b))
        signs_a, signs_b = np.nan_to_num(of_a), np.nan_to_num(of_b)
        agreed += signs_a.T @ signs_b
        untied_a += np.abs(signs_a).T @ known_b.astype(np.float32)
        if a is not b:
            untied_b += known_a.astype(np.float32).T @ np.abs(signs_b)
    product = untied_a.astype(np.float64) * (untied_a.T if a is b else untied_b)
    return agreed / np.sqrt(np.where(product > 0.0, product, np.nan))


def _rho_with_gaps(a: Floats, b: Floats) -> Floats:
    """Among the prompts that a and b have in common, twice the centred rank of one is the sum of its signs in a."""
    n_prompts = a.shape[1]
    # Sums of products of centred ranks stay below M^3 / 3.
    kind = np.float32 if n_prompts**3 < 3 * _EXACT else np.float64
    side = max(1, min(_TILE_CELLS // n_prompts**2, math.isqrt(_TILE_CELLS // n_prompts)))
    rho = np.empty((len(a), len(b)))
    for row in range(0, len(a), side):
        of_a: NDArray[np.floating] = (2.0 * a[row : row + side]).astype(kind)
        known_a = ~np.isnan(of_a)
        for column in range(0, len(b), side):
            of_b: NDArray[np.floating] = (2.0 * b[column : column + side]).astype(kind)
            known_b = ~np.isnan(of_b)
            within_a, within_b = _centred_within(of_a, known_b), _centred_within(of_b, known_a)
            both = np.einsum("aib,bia->ab", within_a, within_b)
            product = (within_a**2).sum(axis=1, dtype=np.float64) * (within_b**2).sum(axis=1, dtype=np.float64).T
            rho[row : row + side, column : column + side] = both / np.sqrt(np.where(product > 0.0, product, np.nan))
    return rho


def _centred_within(doubled: NDArray[np.floating], known: NDArray[np.bool_]) -> NDArray[np.floating]:
    """[A, M, B], twice the centred ranks of each row [A, M] among what a row of ``known`` [B, M] has too; 0 elsewhere."""
    signs = np.nan_to_num(np.clip(doubled[:, :, None] - doubled[:, None, :], -1, 1))
    within: NDArray[np.floating] = signs @ known.T.astype(doubled.dtype)
    within *= known.T
    return within


def _centred(ranks: Floats) -> Floats:
    """Twice the ranks less twice their mean: whole numbers."""
    centred: Floats = 2.0 * ranks - (ranks.shape[1] + 1.0)
    return centred


def _tiles_of_both(a: Floats, b: Floats) -> Iterator[tuple[Float32s, Float32s]]:
    """The sign tiles of both; where both are the same array so are the tiles, whose product is then half the work."""
    width = max(1, _TILE_CELLS // max(len(a), len(b), 1))
    if a is b:
        return ((tile, tile) for tile in _sign_tiles(a, width))
    return zip(_sign_tiles(a, width), _sign_tiles(b, width), strict=True)


def _sign_tiles(ranks: Floats, width: int) -> Iterator[Float32s]:
    """Tiles [pairs, C] of the signs of all pairs of prompts: 1 first before second, -1 behind, 0 tied, nan unranked.

    At least ``width`` pairs each but the last, those of one first prompt together. A tile is overwritten by the next.
    """
    doubled = np.ascontiguousarray((2.0 * ranks).T, dtype=np.float32)
    n_prompts = len(doubled)
    pairs = n_prompts * (n_prompts - 1) // 2
    tile = np.empty((min(pairs, width + n_prompts), doubled.shape[1]), dtype=np.float32)
    filled = 0
    for first in range(n_prompts - 1):
        end = filled + n_prompts - 1 - first
        _signs(doubled[first], doubled[first + 1 :], tile[filled:end])
        filled = end
        if filled >= width or first == n_prompts - 2:
            yield tile[:filled]
            filled = 0


def _signs(first: _Ranks, second: _Ranks, out: _Ranks) -> _Ranks:
    """The signs of second - first, written to ``out``; of doubled ranks, which differ by 1 or more."""
    np.subtract(second, first, out=out)
    np.clip(out, -1, 1, out=out)
    return out


def _over_roots(products: NDArray[np.floating], squares_a: Floats, squares_b: Floats) -> Floats:
    """[A, B], each product over the root of its row's and its column's square; nan where one of these is 0."""
    of_a, of_b = (np.where(squares > 0.0, squares, np.nan) for squares in (squares_a, squares_b))
    quotients = np.empty(products.shape)
    rows = max(1, _CACHE_CELLS // max(len(of_b), 1))
    for begin in range(0, len(of_a), rows):
        part = quotients[begin : begin + rows]
        np.multiply.outer(of_a[begin : begin + rows], of_b, out=part)
        np.sqrt(part, out=part)
        np.divide(products[begin : begin + rows], part, out=part)
    return quotients
