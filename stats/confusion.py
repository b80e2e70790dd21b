"""A judge against one expert: the confusion table and the rates that follow from it.

Positive = the judge reports a failure. TPR is the share of the expert's FAIL cases that the judge calls FAIL,
TNR the share of the expert's PASS cases that it calls PASS. A case on which the judge gave *no verdict* is in no
rate, is counted apart, and `no_verdict_bounds` shows how far it could move TPR and TNR; `with_no_verdict_as` gives the
whole table, and so every other rate, as it would be with all of them PASS or FAIL.

>>> table = Confusion(tp=8, fn=12, fp=9, tn=171)
>>> figures = rates(table)
>>> figures.tpr.value, figures.tnr.value, figures.agreement.value
(0.4, 0.95, 0.895)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

from stats.intervals import Estimate, IntervalMethod, Proportion, as_count, proportion
from stats.kappa import cohens_kappa

Verdict = Literal["PASS", "FAIL"]


@dataclass(frozen=True)
class Confusion:
    """Counts of cases by the expert's and the judge's verdict. Positive = the judge reports a failure.

    tp: expert FAIL, judge FAIL (a failure caught).
    fn: expert FAIL, judge PASS (a failure missed).
    fp: expert PASS, judge FAIL (a false alarm).
    tn: expert PASS, judge PASS.
    no_verdict_fail, no_verdict_pass: the judge gave no verdict, by the expert's verdict.
    unlabelled: cases without an expert verdict; in no rate.

    Raises ValueError when a count is negative or not a whole number.
    """

    tp: int
    fn: int
    fp: int
    tn: int
    no_verdict_fail: int = 0
    no_verdict_pass: int = 0
    unlabelled: int = 0

    def __post_init__(self) -> None:
        for entry in fields(self):
            count = getattr(self, entry.name)
            whole = as_count(count)
            if whole is None or whole < 0:
                raise ValueError(f"{entry.name} must be a whole number of cases, 0 or more, got {count!r}")
            object.__setattr__(self, entry.name, whole)

    @property
    def no_verdict(self) -> int:
        """Labelled cases on which the judge gave no verdict."""
        return self.no_verdict_fail + self.no_verdict_pass

    @property
    def judged(self) -> int:
        """Cases with a verdict of both: what agreement and kappa are taken over."""
        return self.tp + self.fn + self.fp + self.tn

    @property
    def labelled(self) -> int:
        """Cases with an expert verdict, those without a judge verdict included."""
        return self.judged + self.no_verdict


@dataclass(frozen=True)
class Rates:
    """What a confusion table says about the judge, over the cases with a verdict of both.

    tpr: tp of tp + fn. tnr: tn of fp + tn. precision: tp of tp + fp. recall: the same figure as tpr, by its other name.
    agreement: (tp + tn) of all. baseline_agreement: what a judge that always says PASS would reach, (fp + tn) of all;
    always_fail_agreement: what one that always says FAIL would, (tp + fn) of all. Either says nothing about the judge.
    kappa: Cohen's kappa of expert and judge.
    """

    tpr: Proportion
    tnr: Proportion
    precision: Proportion
    recall: Proportion
    agreement: Proportion
    baseline_agreement: Proportion
    kappa: Estimate
    always_fail_agreement: Proportion


@dataclass(frozen=True)
class NoVerdictBounds:
    """TPR and TNR with every missing judge verdict counted as PASS, and as FAIL: what silence about them could hide."""

    tpr_as_pass: Proportion
    tpr_as_fail: Proportion
    tnr_as_pass: Proportion
    tnr_as_fail: Proportion


def tabulate(expert: Sequence[Verdict | None], judge: Sequence[Verdict | None]) -> Confusion:
    """The confusion table of two rows of verdicts [N] on the same cases; None = no verdict, or not labelled.

    Raises ValueError when the lengths differ, or a verdict is none of 'PASS', 'FAIL' and None.

    >>> tabulate(["FAIL", "FAIL", "PASS", "PASS", None], ["FAIL", "PASS", "PASS", None, "PASS"])
    Confusion(tp=1, fn=1, fp=0, tn=1, no_verdict_fail=0, no_verdict_pass=1, unlabelled=1)
    """
    check_verdicts(expert, judge)
    cells = Counter(zip(expert, judge, strict=True))
    return Confusion(
        tp=cells["FAIL", "FAIL"],
        fn=cells["FAIL", "PASS"],
        fp=cells["PASS", "FAIL"],
        tn=cells["PASS", "PASS"],
        no_verdict_fail=cells["FAIL", None],
        no_verdict_pass=cells["PASS", None],
        unlabelled=sum(count for (label, _), count in cells.items() if label is None),
    )


def check_verdicts(*rows: Sequence[Verdict | None]) -> None:
    """Raise ValueError unless all ``rows`` have one length and hold nothing but 'PASS', 'FAIL' and None.

    >>> check_verdicts(["PASS", None], ["FAIL", "PASS"])
    """
    if len({len(row) for row in rows}) > 1:
        raise ValueError(f"verdicts on the same cases must be rows of one length, got {[len(row) for row in rows]}")
    for verdict in set().union(*rows):
        if verdict not in ("PASS", "FAIL", None):
            raise ValueError(f"a verdict must be 'PASS', 'FAIL' or None, got {verdict!r}")


def rates(confusion: Confusion, confidence: float = 0.95, method: IntervalMethod = "wilson") -> Rates:
    """The rates of a confusion table, each over the cases with a verdict of both expert and judge.

    ``method`` is the interval of the proportions; that of kappa is `cohens_kappa`'s. Raises ValueError when the method
    is unknown or ``confidence`` not strictly between 0 and 1.

    >>> always_pass = rates(Confusion(tp=0, fn=10, fp=0, tn=90))
    >>> always_pass.agreement.value, always_pass.baseline_agreement.value, always_pass.tpr.value
    (0.9, 0.9, 0.0)
    >>> always_pass.precision.value is None
    True
    """
    tp, fn, fp, tn = confusion.tp, confusion.fn, confusion.fp, confusion.tn

    def share(k: int, n: int) -> Proportion:
        return proportion(k, n, confidence, method)

    tpr = share(tp, tp + fn)
    return Rates(
        tpr=tpr,
        tnr=share(tn, fp + tn),
        precision=share(tp, tp + fp),
        recall=tpr,
        agreement=share(tp + tn, confusion.judged),
        baseline_agreement=share(fp + tn, confusion.judged),
        kappa=cohens_kappa(tp, fn, fp, tn, confidence),
        always_fail_agreement=share(tp + fn, confusion.judged),
    )


def no_verdict_bounds(confusion: Confusion) -> NoVerdictBounds:
    """TPR and TNR over all labelled cases, with every missing verdict read as PASS, and as FAIL.

    Never raises; a class without labelled cases has proportions without a value.

    >>> bounds = no_verdict_bounds(Confusion(tp=8, fn=2, fp=1, tn=9, no_verdict_fail=2, no_verdict_pass=1))
    >>> bounds.tpr_as_pass.k, bounds.tpr_as_fail.k, bounds.tpr_as_pass.n
    (8, 10, 12)
    """
    as_pass, as_fail = (rates(with_no_verdict_as(confusion, verdict)) for verdict in ("PASS", "FAIL"))
    return NoVerdictBounds(as_pass.tpr, as_fail.tpr, as_pass.tnr, as_fail.tnr)


def with_no_verdict_as(confusion: Confusion, verdict: Verdict) -> Confusion:
    """The table with every missing judge verdict read as ``verdict``; none is left without one.

    Raises ValueError when ``verdict`` is neither 'PASS' nor 'FAIL'.

    >>> table = Confusion(tp=8, fn=2, fp=1, tn=9, no_verdict_fail=2, no_verdict_pass=1)
    >>> with_no_verdict_as(table, "PASS")
    Confusion(tp=8, fn=4, fp=1, tn=10, no_verdict_fail=0, no_verdict_pass=0, unlabelled=0)
    """
    of_failures, of_good = confusion.no_verdict_fail, confusion.no_verdict_pass
    none_left = replace(confusion, no_verdict_fail=0, no_verdict_pass=0)
    if verdict == "PASS":
        return replace(none_left, fn=confusion.fn + of_failures, tn=confusion.tn + of_good)
    if verdict == "FAIL":
        return replace(none_left, tp=confusion.tp + of_failures, fp=confusion.fp + of_good)
    raise ValueError(f"a missing verdict can be read as 'PASS' or 'FAIL', not as {verdict!r}")


def swap_positive(confusion: Confusion) -> Confusion:
    """The same table under the other convention (positive = the judge says PASS): TPR and TNR trade places.

    Cases without a verdict trade classes too. Never raises.

    >>> swap_positive(Confusion(tp=8, fn=12, fp=9, tn=171))
    Confusion(tp=171, fn=9, fp=12, tn=8, no_verdict_fail=0, no_verdict_pass=0, unlabelled=0)
    """
    return Confusion(
        tp=confusion.tn,
        fn=confusion.fp,
        fp=confusion.fn,
        tn=confusion.tp,
        no_verdict_fail=confusion.no_verdict_pass,
        no_verdict_pass=confusion.no_verdict_fail,
        unlabelled=confusion.unlabelled,
    )


def is_constant(confusion: Confusion) -> Verdict | None:
    """The one verdict that the judge gave every time, or None when it gave both or none.

    Cases without a judge verdict or without a label say nothing here. A table in which the expert gave only that
    verdict too is constant as well; it cannot show whether the judge would ever say the other.

    Never raises.

    >>> is_constant(Confusion(tp=0, fn=20, fp=0, tn=180))
    'PASS'
    """
    says_fail, says_pass = confusion.tp + confusion.fp, confusion.fn + confusion.tn
    if says_pass and not says_fail:
        return "PASS"
    if says_fail and not says_pass:
        return "FAIL"
    return None
