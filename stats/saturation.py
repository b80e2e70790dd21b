"""Whether new failure modes still turn up: how long ago the last new one came, and which share is of a kind not seen yet.

A *case* is a failure with the modes that it shows. Good's estimate of the unseen share is n1/N: of N observations n1 are of a
kind seen exactly once (I. J. Good 1953, Biometrika 40, 237-264, after Turing). It follows from leaving one out: a
case is new to all the others when it shows a mode that no other shows. With one mode a case that is n1/N exactly; a case
that shows several modes of its own is still one case, so the share never passes 1.

The estimate is about cases drawn as these were, independently of each other: of a pile picked by hand it says nothing about
use. It is without bias for a sample with one case less, and rough for few: below `ENOUGH_CASES` it is better not shown.

>>> found = saturation([{"price"}, {"source"}, {"price"}, {"price", "tone"}, {"price"}])
>>> found.cases, found.modes, found.once, found.alone, found.since_new
(5, 3, 2, 2, 1)
>>> found.unseen
0.4
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Final

ENOUGH_CASES: Final = 20
"""So many cases are needed before anything is said, and so many without a new mode are taken as saturation."""


@dataclass(frozen=True)
class Saturation:
    """What a row of cases, in the order in which they were read, says about modes to come.

    cases: N. modes: different ones among them. once: modes that exactly one case shows (Good's n1). alone: cases that show at
    least one such mode. since_new: cases read after the last one that brought a mode not seen before it; all of them where
    there is no mode.
    """

    cases: int
    modes: int
    once: int
    alone: int
    since_new: int

    @property
    def unseen(self) -> float | None:
        """The estimated share of coming cases that show a mode not seen yet, alone/N; None without cases."""
        return self.alone / self.cases if self.cases else None

    @property
    def is_enough(self) -> bool:
        """Whether there are enough cases to say anything."""
        return self.cases >= ENOUGH_CASES

    @property
    def is_saturated(self) -> bool:
        """Whether the last `ENOUGH_CASES` cases brought nothing new: a rule of thumb for when to stop, no test."""
        return self.is_enough and self.since_new >= ENOUGH_CASES


def saturation(cases: Sequence[Collection[Hashable]]) -> Saturation:
    """The saturation of ``cases`` [N], each the modes of one case, in the order in which they were read.

    A mode that stands twice in a case counts once. A case without a mode counts as one that brought nothing new: leave out
    those that were not looked at.

    >>> saturation([]).unseen is None
    True
    """
    shown = [set(case) for case in cases]
    counts = Counter(mode for case in shown for mode in case)
    since_new, seen = 0, set[Hashable]()
    for case in shown:
        since_new = since_new + 1 if case <= seen else 0
        seen |= case
    return Saturation(
        cases=len(shown),
        modes=len(counts),
        once=sum(count == 1 for count in counts.values()),
        alone=sum(any(counts[mode] == 1 for mode in case) for case in shown),
        since_new=since_new,
    )
