"""Judges against one expert on the same cases: is the second one better, and on which cases?

Positive = the judge reports a failure. Three questions, kept apart: over all labelled cases (agreement), over the
expert's FAIL cases (TPR), and over the expert's PASS cases (TNR). A judge that catches more failures by calling more
good answers bad gains in the second and loses in the third.

>>> expert = ["FAIL", "FAIL", "FAIL", "PASS", "PASS"]
>>> old, new = ["PASS", "PASS", "FAIL", "PASS", "PASS"], ["FAIL", "FAIL", "FAIL", "FAIL", "PASS"]
>>> comparison = compare_judges(expert, old, new)
>>> comparison.gained.tolist(), comparison.lost.tolist()
([0, 1], [3])
>>> comparison.tpr.difference, comparison.tnr.difference
(0.6666666666666666, -0.5)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stats.confusion import Verdict, check_verdicts
from stats.multiplicity import holm
from stats.paired import PairedComparison, compare, paired_changes

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
NoVerdict = Literal["left out", "PASS", "FAIL"]


@dataclass(frozen=True)
class JudgeComparison:
    """A second judge against a first, each difference second less first.

    agreement: over all cases with a label. tpr: over the expert's FAIL cases. tnr: over the expert's PASS cases.
    gained, lost: positions of the cases that only the second, only the first judged as the expert did.
    left_out: positions of labelled cases on which one of the judges gave no verdict; in no figure.
    """

    agreement: PairedComparison
    tpr: PairedComparison
    tnr: PairedComparison
    gained: Indices
    lost: Indices
    left_out: Indices


@dataclass(frozen=True)
class JudgePair:
    """Two of several judges, by their positions, with p-values adjusted by Holm over all pairs of judges.

    Each of the three questions is a family of its own.
    """

    first: int
    second: int
    comparison: JudgeComparison
    agreement_p: float
    tpr_p: float
    tnr_p: float


def compare_judges(
    expert: Sequence[Verdict | None],
    first: Sequence[Verdict | None],
    second: Sequence[Verdict | None],
    no_verdict: NoVerdict = "left out",
    confidence: float = 0.95,
) -> JudgeComparison:
    """``second`` against ``first`` on the cases that ``expert`` labelled; rows of N verdicts, None = none given.

    ``no_verdict`` says what a judge's missing verdict is read as. The comparisons with 'PASS' and with 'FAIL' beside
    that without these cases show what silence about them could hide.

    Raises ValueError when the lengths differ, a verdict is none of 'PASS', 'FAIL' and None, ``no_verdict`` is unknown,
    or ``confidence`` is not strictly between 0 and 1.

    >>> compare_judges(["FAIL", "PASS"], ["PASS", "PASS"], ["FAIL", None]).left_out
    array([1])
    """
    one, other = (right_or_wrong(expert, judge, no_verdict) for judge in (first, second))
    labelled = np.array([label is not None for label in expert], dtype=bool)
    failure = np.array([label == "FAIL" for label in expert], dtype=bool)

    def over(cases: NDArray[np.bool_]) -> PairedComparison:
        return compare(paired_changes(one[cases], other[cases]), confidence)

    changes = paired_changes(one, other)
    return JudgeComparison(
        agreement=over(labelled),
        tpr=over(failure),
        tnr=over(labelled & ~failure),
        gained=changes.gained,
        lost=changes.lost,
        left_out=changes.left_out[labelled[changes.left_out]],
    )


def compare_all(
    expert: Sequence[Verdict | None],
    judges: Sequence[Sequence[Verdict | None]],
    no_verdict: NoVerdict = "left out",
    confidence: float = 0.95,
) -> list[JudgePair]:
    """Every pair of ``judges`` on the same cases, with p-values that hold for all pairs together (Holm).

    A pair in which nothing changed has p-value 1 and counts as a test. The intervals are those of each pair alone.

    Raises ValueError as `compare_judges` does.

    >>> [pair.tpr_p for pair in compare_all(["FAIL"] * 7, [["PASS"] * 7, ["FAIL"] * 7, ["FAIL"] * 7])]
    [0.046875, 0.046875, 1.0]
    """
    pairs = list(combinations(range(len(judges)), 2))
    found = [compare_judges(expert, judges[one], judges[other], no_verdict, confidence) for one, other in pairs]

    def adjusted(of: Callable[[JudgeComparison], PairedComparison]) -> list[float]:
        return [float(p) for p in holm([of(comparison).p_value for comparison in found])]

    families = zip(adjusted(lambda x: x.agreement), adjusted(lambda x: x.tpr), adjusted(lambda x: x.tnr), strict=True)
    return [
        JudgePair(one, other, comparison, *p)
        for (one, other), comparison, p in zip(pairs, found, families, strict=True)
    ]


def right_or_wrong(
    expert: Sequence[Verdict | None], judge: Sequence[Verdict | None], no_verdict: NoVerdict = "left out"
) -> Floats:
    """[N], whether the judge's verdict is the expert's: 1 or 0, nan where one of them is missing (None).

    ``no_verdict`` says what a missing verdict of the judge is read as. A case without a label is nan in any case.

    Raises ValueError as `compare_judges` does.

    >>> right_or_wrong(["FAIL", "PASS", "FAIL", None], ["FAIL", "FAIL", None, "PASS"])
    array([ 1.,  0., nan, nan])
    >>> right_or_wrong(["FAIL", "PASS"], [None, None], no_verdict="PASS")
    array([0., 1.])
    """
    check_verdicts(expert, judge)
    if no_verdict not in ("left out", "PASS", "FAIL"):
        raise ValueError(f"no_verdict must be 'left out', 'PASS' or 'FAIL', got {no_verdict!r}")
    said = [verdict or (None if no_verdict == "left out" else no_verdict) for verdict in judge]
    return np.array(
        [math.nan if None in pair else float(pair[0] == pair[1]) for pair in zip(expert, said, strict=True)],
        dtype=np.float64,
    )
