"""Kemeny's consensus: the strict order that reverses the fewest preferences of the given rankings.

Rankings come as fair ranks [C, M] (1 = best, ties averaged, nan = not ranked; see `stats.ranks`). A preference is a
ranking that puts one prompt before another. A pair that a ranking ties, or of which it lacks a prompt, is none; were a
tie to cost one half in whatever order, the same orders would be the best. Letting the consensus tie prompts gains
nothing: that would cost one half of each preference of the pair, never less than the better of its two orders.

Several orders can be equally good. None is picked: their number is given, and each prompt's mean place among them.

Sources: Kemeny (1959), Daedalus 88, 577-591; prompts that majorities put before all others stay before them, Truchon
(1998), An extension of the Condorcet criterion and Kemeny orders; dynamic programming over subsets after Held and Karp
(1962), Journal of the SIAM 10, 196-210.

>>> best = kemeny([[1, 2, 3], [1, 3, 2], [3, 1, 2]])
>>> best.order, best.cost, best.optimal, best.method
((0, 1, 2), 3, 1, 'exact')
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.consensus import as_rankings, preferences
from stats.ranks import fair_ranks

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

MAX_EXACT_CYCLE: Final = 20
"""Most prompts in one majority cycle that `kemeny` orders exactly; half a second of work, four times less for two prompts fewer."""

_HALF_BITS: Final = 10


@dataclass(frozen=True)
class Kemeny:
    """The best orders of M prompts.

    order: one of them, best first; of several that is the one with the lowest numbers first, and nothing more. Prompts
        that no ranking has are left out of it, and are nan in ``places`` and ``ranks``.
    cost: how many strict preferences it reverses, of ``preferences``.
    places: each prompt's mean place over all best orders, and ``ranks`` fair ranks by it: both the same however the
        prompts are numbered. first: the prompts that come first in some best order.
    optimal: how many orders are equally good.
    method: 'exact', or 'approximate' where a majority cycle is larger than was asked to be solved: then ``order`` is
        the best found by moving single prompts. It may still meet the lower bound, and is then exact.
    lower_bound: a number of preferences that every order reverses; the cost itself when exact.

    After such a cycle ``optimal`` is None (unknown), and within it ``places`` and ``first`` are those of ``order``.
    """

    order: tuple[int, ...]
    cost: int
    preferences: int
    places: Floats
    ranks: Floats
    first: tuple[int, ...]
    optimal: int | None
    method: Literal["exact", "approximate"]
    lower_bound: int

    @property
    def unique(self) -> bool | None:
        """Whether no other order is as good; None where that is unknown."""
        return None if self.optimal is None else self.optimal == 1


def kemeny(ranks: ArrayLike, max_cycle: int = MAX_EXACT_CYCLE) -> Kemeny:
    """Kemeny's consensus of fair ``ranks`` [C, M].

    Prompts are first divided into majority cycles: sets within which majorities (or even votes) lead from every prompt
    to every other. A majority puts each set before the next, in every best order, so each is ordered by itself: exactly
    up to ``max_cycle`` prompts, by dynamic programming over its subsets (2^s states, half a second at s = 20). Real
    rankings rarely have long cycles, so hundreds of prompts are usually exact too. A longer cycle is approximated.

    Raises ValueError when there is no ranking or no prompt, or when max_cycle is not in 1..20.

    >>> cycle = kemeny([[1, 2, 3], [3, 1, 2], [2, 3, 1]])
    >>> cycle.optimal, cycle.first, cycle.ranks
    (3, (0, 1, 2), array([2., 2., 2.]))
    """
    if max_cycle != int(max_cycle) or not 1 <= max_cycle <= MAX_EXACT_CYCLE:
        raise ValueError(f"cycles are ordered exactly up to a number from 1 to {MAX_EXACT_CYCLE}, got {max_cycle!r}")
    before = preferences(ranks)
    ranked = np.flatnonzero(~np.isnan(as_rankings(ranks)).all(axis=0))
    bound = _unavoidable(before)
    places = np.full(len(before), np.nan)
    order: list[int] = []
    first: tuple[int, ...] = ()
    counts: list[int] = []
    for members in _majority_cycles(before, ranked):
        inside = before[np.ix_(members, members)]
        if len(members) <= max_cycle:
            own, place, count, tops = _solve(inside)
            bound += _cost(inside, own) - _unavoidable(inside)
        else:
            own = _improve(inside)
            place, count, tops = 1.0 + np.argsort(own).astype(np.float64), 0, own[:1]
        places[members] = len(order) + place
        first = first or tuple(int(i) for i in np.sort(members[tops]))
        order.extend(int(i) for i in members[own])
        counts.append(count)
    cost = _cost(before, np.array(order, dtype=np.int64))
    return Kemeny(
        order=tuple(order),
        cost=cost,
        preferences=int(before.sum()),
        places=places,
        ranks=fair_ranks(-np.round(places, 9)),
        first=first,
        optimal=prod(counts) if all(counts) else None,
        method="exact" if cost == bound else "approximate",
        lower_bound=bound,
    )


def _cost(before: Indices, order: Indices) -> int:
    """How many preferences the order reverses: those of later prompts over earlier ones."""
    arranged = before[np.ix_(order, order)]
    return int(np.tril(arranged, -1).sum())


def _unavoidable(before: Indices) -> int:
    """What every order reverses: of each pair the fewer preferences, were all pairs free of each other."""
    return int(np.minimum(before, before.T).sum()) // 2


def _majority_cycles(before: Indices, ranked: Indices) -> list[Indices]:
    """The sets of ranked prompts that majorities or even votes lead around in, best first: strongly connected components.

    Of any two prompts one has a majority or they are even, so the components stand in one line, and a prompt of an
    earlier one reaches more prompts than any of a later one.
    """
    from scipy.sparse.csgraph import connected_components

    among = before[np.ix_(ranked, ranked)]
    if not len(ranked):
        return []
    n_components, label = connected_components(among >= among.T, directed=True, connection="strong")
    # Whoever is in an earlier set beats all of the later ones, and so more prompts than any of them does.
    beaten = (among > among.T).sum(axis=1)
    members = [np.flatnonzero(label == component) for component in range(n_components)]
    return [ranked[part] for part in sorted(members, key=lambda part: -int(beaten[part].min()))]


def _solve(before: Indices) -> tuple[Indices, Floats, int, Indices]:
    """(the best order with the lowest numbers first, mean places, number of best orders, who comes first in some).

    least[S] is what the best arrangement of the set S before all others costs, given as bits of S.
    """
    size = len(before)
    if size == 1:
        return np.zeros(1, dtype=np.int64), np.ones(1), 1, np.zeros(1, dtype=np.int64)
    added = _Added(before)
    least = np.full(1 << size, np.iinfo(np.int64).max, dtype=np.int64)
    least[0] = 0
    sets = np.arange(1 << size, dtype=np.int64)
    layers = np.split(np.argsort(np.bitwise_count(sets), kind="stable"), np.cumsum(_layer_sizes(size))[:-1])
    for layer in layers[:-1]:
        for i in range(size):
            without = layer[(layer >> i) & 1 == 0]
            into = without | (1 << i)
            least[into] = np.minimum(least[into], least[without] + added.cost(i, without))
    return _trace(size, least, added)


class _Added:
    """What putting prompt i right behind the set S costs: the preferences over i of everyone who is not in S."""

    def __init__(self, before: Indices) -> None:
        size = len(before)
        self._all = before.sum(axis=0)
        low, high = before[:_HALF_BITS], before[_HALF_BITS:]
        self._low, self._high = _subset_sums(low), _subset_sums(high)
        self._mask = (1 << min(size, _HALF_BITS)) - 1

    def cost(self, i: int, sets: Indices) -> Indices:
        total: Indices = self._all[i] - self._low[i][sets & self._mask] - self._high[i][sets >> _HALF_BITS]
        return total


def _subset_sums(rows: Indices) -> Indices:
    """[M, 2^rows], the sum over every subset of the rows, for each column."""
    sums = np.zeros((rows.shape[1], 1), dtype=np.int64)
    for row in rows:
        sums = np.concatenate([sums, sums + row[:, None]], axis=1)
    return sums


def _layer_sizes(size: int) -> list[int]:
    sizes = [1]
    for i in range(size):
        sizes.append(sizes[-1] * (size - i) // (i + 1))
    return sizes


def _trace(size: int, least: Indices, added: _Added) -> tuple[Indices, Floats, int, Indices]:
    """Back from the full set over the sets that a best order passes through, then forward, counting."""
    whole = (1 << size) - 1
    ends = np.zeros(1 << size, dtype=np.int64)  # in how many ways a best order goes on from the set
    ends[whole] = 1
    passed = [np.array([whole], dtype=np.int64)]
    for _ in range(size):
        found = []
        for i in range(size):
            into = passed[-1][(passed[-1] >> i) & 1 == 1]
            without = into ^ (1 << i)
            best = least[without] + added.cost(i, without) == least[into]
            without, into = without[best], into[best]
            ends[without] += ends[into]
            found.append(without)
        passed.append(np.unique(np.concatenate(found)))
    total = int(ends[0])
    begins = np.zeros(1 << size, dtype=np.int64)
    begins[0] = 1
    weight = np.zeros((size, size))  # [i, place]: in how many best orders
    for place, layer in enumerate(passed[:0:-1]):
        for i in range(size):
            without = layer[(layer >> i) & 1 == 0]
            into = without | (1 << i)
            best = (ends[into] > 0) & (least[without] + added.cost(i, without) == least[into])
            without, into = without[best], into[best]
            begins[into] += begins[without]
            weight[i, place] = float((begins[without] * ends[into]).sum())
    order, at = [], 0
    while at != whole:
        free = [i for i in range(size) if not at >> i & 1 and ends[at | 1 << i]]
        step = next(i for i in free if least[at] + added.cost(i, np.array([at]))[0] == least[at | 1 << i])
        order.append(step)
        at |= 1 << step
    places = weight @ np.arange(1.0, size + 1.0) / total
    return np.array(order, dtype=np.int64), places, total, np.flatnonzero(weight[:, 0] > 0)


def _improve(before: Indices) -> Indices:
    """An order from which moving any single prompt gains nothing, begun at the one by majorities won less lost."""
    order: Indices = np.argsort((before - before.T).sum(axis=0), kind="stable").astype(np.int64)
    improved = True
    while improved:
        improved = False
        for i in range(len(before)):
            rest = order[order != i]
            own = int(np.flatnonzero(order == i)[0])
            # Behind the first j of the others: their being before i, and i before those that follow, is what it costs.
            costs = np.concatenate([[0], np.cumsum(before[i, rest] - before[rest, i])])
            best = int(costs.argmin())
            if costs[best] < costs[own]:
                order = np.insert(rest, best, i)
                improved = True
    return order
