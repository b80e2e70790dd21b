"""Racing: score item after item, and drop a prompt as soon as another one is surely better, to save model time.

Of two prompts only the items count on which they differ: b on which l does better than i, c on which i does better.
The evidence that l is better is the e-value

    E(l beats i) = 2^(n+1) B(b+1, c+1) (1 - I_1/2(b+1, c+1)),   n = b + c,

the likelihood of the n differing items averaged over chances p of l, uniform on (1/2, 1), against p = 1/2. As long as
p <= 1/2, each item multiplies E by at most 1 in expectation: E is a test supermartingale that begins at 1, and with a
probability of at most 1/x it *ever* reaches x (Ville's inequality). So it may be looked at after every item, without a
price. i is dropped when E(l beats i) >= (M-1)/alpha for some l; the best prompt then falls with a probability of at
most alpha, by the union over its M-1 rivals.

It is a promise about new items: items must come in an order that has nothing to do with the outcomes, such as a seeded
one, and "best" is who does better more often than worse against every other prompt. With 0/1 outcomes that is the
highest mean. In a finite dataset that is used up to the end, draws are no longer independent, and the bound is not
proven there; once all items are scored nothing is left to save.

Sources: Ville (1939), Étude critique de la notion de collectif; mixtures of likelihood ratios: Robbins (1970), Annals of
Mathematical Statistics 41, 1397-1409; e-values and test martingales: Ramdas, Grünwald, Vovk, Shafer (2023), Statistical
Science 38, 576-601. In whole numbers E = sum of C(n+1, j) over j <= b, divided by (n+1) C(n, b).

>>> float(e_value(1, 0)), float(e_value(0, 1))
(1.5, 0.5)
>>> wins_needed(12, threshold=20.0)[[6, 12]]
array([ 7, 11])
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.subsets import as_outcomes

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

ALPHA: Final = 0.05
"""How likely a race may drop a prompt that is the best, at most, unless said otherwise."""

_TILE_ITEMS: Final = 32
_TILE_CELLS: Final = 1 << 21


@dataclass(frozen=True)
class Race:
    """How a race went.

    survivors: the prompts that are left, in order of their numbers. dropped_at [M]: how many items had been scored when
    the prompt was dropped; 0 where it was not. dropped_by [M]: the prompt that beat it, with the strongest evidence of
    those that did at the time; -1 where it was not dropped.
    outcomes: how many outcomes (prompt, item) were needed; share: of all there are.
    """

    survivors: tuple[int, ...]
    dropped_at: Indices
    dropped_by: Indices
    outcomes: int
    share: float


def e_value(wins: ArrayLike, losses: ArrayLike) -> Floats:
    """E that the one is better, from the numbers of items on which it did better and worse; inf where it overflows.

    Raises ValueError as `log_e_value` does.

    >>> e_value([7, 16], [0, 4]).round(1)
    array([31.9, 20.5])
    """
    with np.errstate(over="ignore"):
        values: Floats = np.exp(log_e_value(wins, losses))
    return values


def log_e_value(wins: ArrayLike, losses: ArrayLike) -> Floats:
    """The natural logarithm of `e_value`, which has no limits; ``wins`` and ``losses`` of any shapes that broadcast.

    Raises ValueError when a number is negative or not whole.

    >>> round(float(log_e_value(5000, 1000)), 2)
    1451.79
    """
    from scipy.special import betaincc, betaln

    b, c = np.broadcast_arrays(np.asarray(wins, dtype=np.float64), np.asarray(losses, dtype=np.float64))
    if not ((b >= 0) & (c >= 0) & (b == np.floor(b)) & (c == np.floor(c))).all():
        raise ValueError("wins and losses must be whole numbers, 0 or more")
    n = b + c
    tail = betaincc(b + 1.0, c + 1.0, 0.5)
    far = tail < 1e-280
    with np.errstate(divide="ignore"):
        near: Floats = (n + 1.0) * log(2.0) + betaln(b + 1.0, c + 1.0) + np.log(tail)
    if not far.any():
        return near
    return np.where(far, _few_wins(np.where(far, b, 0.0), np.where(far, c, 0.0)), near)


@lru_cache(maxsize=16)
def wins_needed(n_max: int, threshold: float) -> Indices:
    """[n_max + 1], of n differing items the fewest wins with which E reaches ``threshold``; n + 1 where none does.

    The array is shared between calls and cannot be written to. Raises ValueError when n_max is negative or the threshold not above 1.

    >>> wins_needed(6, 20.0)
    array([1, 2, 3, 4, 5, 6, 7])
    """
    if n_max != int(n_max) or n_max < 0:
        raise ValueError(f"there must be 0 or more differing items, got {n_max!r}")
    if not 1.0 < threshold < np.inf:
        raise ValueError(f"evidence must be asked to reach a number above 1, got {threshold!r}")
    n, target = np.arange(n_max + 1), log(threshold)
    too_few, enough = n // 2, n + 1  # E <= (b+1)/(c+1) up to half of the items
    while (enough - too_few > 1).any():
        middle = (enough + too_few) // 2
        reached = log_e_value(np.clip(middle, 0, n), n - np.clip(middle, 0, n)) >= target
        enough = np.where((enough - too_few > 1) & reached, middle, enough)
        too_few = np.where((enough - too_few > 1) & ~reached, middle, too_few)
    fewest: Indices = enough.astype(np.int64)
    fewest.flags.writeable = False
    return fewest


def beaten(outcomes: ArrayLike, alpha: float = ALPHA) -> tuple[int, ...]:
    """The prompts that may be dropped by what is known so far.

    ``outcomes`` [N, M] holds nan where nothing was scored, such as after a prompt was dropped. A pair counts the items
    on which both have an outcome, so what a dropped prompt has shown stays. A race that goes on asks this after each
    batch of items and drops whoever is named.

    Raises ValueError when alpha is not in (0, 1), or on outcomes as `stats.subsets.score_matrix` does.

    >>> import numpy as np
    >>> beaten(np.array([[1, 0]] * 8 + [[1, 1]] * 5)), beaten(np.array([[1, 0]] * 5))
    ((1,), ())
    """
    values = as_outcomes(outcomes)
    threshold = _threshold(values.shape[1], alpha)
    if threshold is None:
        return ()
    better = np.array([(column[:, None] > values).sum(axis=0) for column in values.T])
    reached = log_e_value(better, better.T) >= log(threshold)
    out = reached.any(axis=0)
    return () if out.all() else tuple(int(i) for i in np.flatnonzero(out))


def race(outcomes: ArrayLike, alpha: float = ALPHA, seed: int = 0) -> Race:
    """Replays a race on outcomes that are already there, item after item in the order that ``seed`` draws.

    ``outcomes`` [N, M] may be any numbers; what counts is who is better on an item. A missing outcome (nan) says
    nothing. Where not all outcomes are 0 or 1, prompts can beat each other in a circle; none is best then, and who falls
    first is luck. The race does not end with nobody: prompts that would all fall at the same item stay.

    Raises ValueError as `beaten` does.

    >>> import numpy as np
    >>> outcomes = np.array([[1, 1, 0], [1, 0, 0]] * 40)
    >>> race(outcomes, seed=3).survivors
    (0,)
    """
    values = as_outcomes(outcomes)
    n_items, n_prompts = values.shape
    threshold = _threshold(n_prompts, alpha)
    dropped_at, dropped_by = np.zeros(n_prompts, dtype=np.int64), np.full(n_prompts, -1)
    alive = np.arange(n_prompts)
    needed = None if threshold is None else wins_needed(n_items, threshold)
    won = np.zeros((n_prompts, n_prompts), dtype=np.int64)  # [l, i]: on how many items l did better
    ordered = values[np.argsort(np.random.PCG64(seed).random_raw(n_items), kind="stable")]
    done = 0
    while needed is not None and done < n_items and len(alive) > 1:
        part = ordered[done : done + max(1, min(_TILE_ITEMS, _TILE_CELLS // len(alive) ** 2))][:, alive]
        better = (part[:, :, None] > part[:, None, :]).cumsum(axis=0) + won[np.ix_(alive, alive)]
        reached = better >= needed[better + better.transpose(0, 2, 1)]
        at = reached.any(axis=(1, 2))
        if not at.any():
            won[np.ix_(alive, alive)] = better[-1]
            done += len(part)
            continue
        step = int(at.argmax())
        won[np.ix_(alive, alive)] = better[step]
        done += step + 1
        out = reached[step].any(axis=0)
        if out.all():
            continue
        evidence = np.where(reached[step], log_e_value(better[step], better[step].T), -np.inf)
        dropped_at[alive[out]] = done
        dropped_by[alive[out]] = alive[evidence.argmax(axis=0)[out]]
        alive = alive[~out]
    known = ~np.isnan(ordered)
    needed_until = np.where(dropped_at > 0, dropped_at, done)
    used = int((known & (np.arange(n_items)[:, None] < needed_until)).sum())
    return Race(
        survivors=tuple(int(i) for i in alive),
        dropped_at=dropped_at,
        dropped_by=dropped_by,
        outcomes=used,
        share=used / max(int(known.sum()), 1),
    )


def _threshold(n_prompts: int, alpha: float) -> float | None:
    """(M-1)/alpha; None for a single prompt, which has no rivals."""
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha!r}")
    return (n_prompts - 1) / alpha if n_prompts > 1 else None


def _few_wins(b: Floats, c: Floats) -> Floats:
    """log E for b far below c: 1/(n+1) times C(n+1, b)/C(n, b) times a sum whose terms fall by (b-j)/(n+2-b+j)."""
    n = b + c
    term, total, j = np.ones_like(b), np.ones_like(b), 0
    while bool((term > 1e-17 * total).any()):
        term = term * (b - j) / (n + 2.0 - b + j)
        total += term
        j += 1
    logs: Floats = np.log(total) - np.log(n + 1.0 - b)
    return logs
