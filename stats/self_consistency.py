"""How consistent the expert is with themselves: labels given again, blind, to cases that were labelled before.

A case *flips* when the second verdict is not the first. Flips are counted by the first verdict too: an expert who lets
failures pass the second time has another problem than one who has become stricter. No judge can be expected to agree
with an expert better than the expert does.

>>> consistency = self_consistency(["FAIL", "FAIL", "PASS", "PASS", "PASS"], ["FAIL", "PASS", "PASS", "PASS", None])
>>> consistency.flips.k, consistency.flips.n, consistency.flipped.tolist()
(1, 4, [1])
>>> consistency.fail_flips.k, consistency.fail_flips.n, consistency.pass_flips.k, consistency.pass_flips.n
(1, 2, 0, 2)
>>> consistency.kappa.value, consistency.reaches_bar
(0.5, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stats.confusion import Verdict, tabulate
from stats.intervals import Estimate, IntervalMethod, Proportion, proportion
from stats.kappa import cohens_kappa

Indices = NDArray[np.int64]

WORKING_BAR: Final = 0.5
"""The kappa from which on an expert's labels are taken as good enough to work with."""


@dataclass(frozen=True)
class SelfConsistency:
    """First against repeated verdicts of one expert, over the cases that have both.

    agreement: cases with the same verdict twice. flips: the others. fail_flips: of the cases that were FAIL first, those
    that became PASS. pass_flips: of the cases that were PASS first, those that became FAIL.
    kappa: Cohen's kappa of the two times. flipped: positions of the cases that flipped, rising.
    """

    agreement: Proportion
    flips: Proportion
    fail_flips: Proportion
    pass_flips: Proportion
    kappa: Estimate
    flipped: Indices

    @property
    def reaches_bar(self) -> bool | None:
        """Whether kappa is at `WORKING_BAR` or above; None where kappa is undefined. The point decides, not its interval."""
        return None if self.kappa.value is None else self.kappa.value >= WORKING_BAR


def self_consistency(
    first: Sequence[Verdict | None],
    repeat: Sequence[Verdict | None],
    confidence: float = 0.95,
    method: IntervalMethod = "wilson",
) -> SelfConsistency:
    """The consistency of ``first`` [N] and ``repeat`` [N], the verdicts of one expert on the same cases.

    A case without one of the two (None: not repeated, or left undecided) is left out. Each case stands once: two
    repeats of the same case are no two cases.

    Raises ValueError when the lengths differ, a verdict is none of 'PASS', 'FAIL' and None, the method is unknown, or
    ``confidence`` is not strictly between 0 and 1.

    >>> self_consistency(["FAIL"], [None]).kappa
    Estimate(value=None, low=None, high=None)
    """
    table = tabulate(first, repeat)
    same, to_pass, to_fail = table.tp + table.tn, table.fn, table.fp

    def share(k: int, n: int) -> Proportion:
        return proportion(k, n, confidence, method)

    return SelfConsistency(
        agreement=share(same, table.judged),
        flips=share(to_pass + to_fail, table.judged),
        fail_flips=share(to_pass, table.tp + to_pass),
        pass_flips=share(to_fail, table.tn + to_fail),
        kappa=cohens_kappa(table.tp, to_pass, to_fail, table.tn, confidence),
        flipped=np.flatnonzero([None not in pair and pair[0] != pair[1] for pair in zip(first, repeat, strict=True)]),
    )
