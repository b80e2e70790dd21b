"""Which true failure rate may be shown, given how the labels were drawn, and which may not.

Positive = the judge reports a failure. p counts *all* judged cases, labelled ones included. Cases on which the judge
gave no verdict are in no figure.

how drawn, about the same data      the rate shown          interval              TPR and TNR
random                              post-stratified         logit or MOVER        as counted
by_cell                             the same within cells   logit or Wilson       weighted by cell
by_judge                            post-stratified         logit or MOVER        turned round by p
by_verdict, or thinned by it        Rogan-Gladen            Lang-Reiczigel        as counted
hand                                none
random, by_cell, by_verdict
from other data                     Rogan-Gladen            Lang-Reiczigel        as above

Rogan-Gladen stands beside every rate; the labels' own rate beside random ones. Where TPR and TNR do not identify a
rate the interval is [0, 1] and there is no number. A post-stratified rate needs neither, so that is never its reason.

>>> labelled = Confusion(tp=79, fn=90, fp=15, tn=416)
>>> found = corrected_rates("random", JudgedSample(labelled, flagged=647, judged=4000))
>>> found.shown.estimator, round(found.shown.value, 4), round(found.rogan_gladen.value, 4)
('post-stratified', 0.285, 0.2934)
>>> corrected_rates("by_verdict", JudgedSample(labelled, flagged=647, judged=4000)).shown.estimator
'Rogan-Gladen'
>>> corrected_rates("hand", JudgedSample(labelled, flagged=647, judged=4000)).shown
RateEstimate(value=None, low=0.0, high=1.0, estimator='none', interval='none', reason='drawn_by_hand')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from stats.cell_strata import labels_only, post_stratified_by_cell
from stats.confusion import Confusion
from stats.intervals import Interval
from stats.judge_rates import JudgeRates, rates_as_counted, rates_by_cell, rates_by_judge
from stats.post_stratified import JudgedSample, PostStratified, post_stratified
from stats.prevalence_draws import equal_tailed, jeffreys_draws
from stats.rogan_gladen import NotIdentified, lang_reiczigel, not_identified, rogan_gladen

HowDrawn = Literal["random", "by_cell", "by_judge", "by_verdict", "hand"]
Estimator = Literal["post-stratified", "Rogan-Gladen", "labels only", "none"]
RateInterval = Literal["logit", "mover", "agresti-coull", "effective-wilson", "Lang-Reiczigel", "Jeffreys", "none"]
Refusal = Literal[
    NotIdentified,
    "drawn_by_hand",
    "no_labels",
    "cell_without_labels",
    "verdict_without_labels",
    "drawn_from_other_data",
    "thinned",
    "one_case",
]

DRAWN: Final[tuple[HowDrawn, ...]] = ("random", "by_cell", "by_judge", "by_verdict", "hand")
"""The ways in which labels come to be drawn, by name."""


@dataclass(frozen=True)
class RateEstimate:
    """A true failure rate with its interval, or None and [0, 1] with the reason.

    reason: None; 'too_few_failures', 'too_few_goods' (labels of a class below 15), 'no_better_than_chance' (the interval
    of J touches 0); 'drawn_by_hand'; 'no_labels', 'cell_without_labels', 'verdict_without_labels' (a verdict of the judge
    that no label has); 'drawn_from_other_data' and 'thinned' (labels drawn by the judge's verdict, but
    elsewhere, or thinned by the expert's verdict since); 'one_case' (all labels belong to one case,
    or to no more cases than there are cells).
    """

    value: float | None
    low: float
    high: float
    estimator: Estimator
    interval: RateInterval
    reason: Refusal | None = None

    def as_pass_rate(self) -> RateEstimate:
        """The same estimate as a pass rate, 1 - theta.

        >>> RateEstimate(0.25, 0.125, 0.5, "Rogan-Gladen", "Lang-Reiczigel").as_pass_rate().high
        0.875
        """
        value = None if self.value is None else 1.0 - self.value
        return replace(self, value=value, low=1.0 - self.high, high=1.0 - self.low)


@dataclass(frozen=True)
class CorrectedRates:
    """What the labels and the judge's verdicts say of the true failure rate, by the labels' design.

    shown: the estimate for this design. rogan_gladen: always beside it. labels_only: the labels' own rate, None where
    they are no random draw from these data. observed: p. judge: TPR, TNR and J for this design, None where the labels
    cannot tell.
    """

    how_drawn: HowDrawn
    shown: RateEstimate
    rogan_gladen: RateEstimate
    labels_only: RateEstimate | None
    observed: float
    judge: JudgeRates | None


def corrected_rates(
    how_drawn: HowDrawn,
    samples: JudgedSample | Sequence[JudgedSample],
    confidence: float = 0.95,
    *,
    same_data: bool = True,
    thinned: bool = False,
    interval: Literal["Lang-Reiczigel", "Jeffreys"] = "Lang-Reiczigel",
) -> CorrectedRates:
    """The true failure rate by the labels' design, with what stands beside it.

    samples: one sample, or for by_cell one for each cell. same_data: False when the labels belong to other data than
    ``flagged`` and ``judged`` count; they must then be like it in all that TPR and TNR depend on. thinned: cases
    were taken out of the labels by the expert's verdict, as a half/half build pile is; what is left is by_verdict (after
    by_cell TPR and TNR are then pooled, which supposes that they are the same in every cell).
    interval: of Rogan-Gladen.

    For by_judge, Rogan-Gladen with the turned-round TPR and TNR is the post-stratified rate itself.

    Raises ValueError for an unknown design, for several samples when it is not by_cell, and for labels that exceed the
    judged cases they should be among.

    >>> earlier = Confusion(tp=77, fn=13, fp=21, tn=189)
    >>> found = corrected_rates("random", JudgedSample(earlier, flagged=350, judged=2000), same_data=False)
    >>> found.shown.estimator, round(found.shown.value, 2)
    ('Rogan-Gladen', 0.1)
    """
    cells = [samples] if isinstance(samples, JudgedSample) else list(samples)
    if how_drawn not in DRAWN:
        raise ValueError(f"{how_drawn!r} is no way of drawing labels; one of: {', '.join(DRAWN)}")
    if not cells or (len(cells) > 1 and how_drawn != "by_cell"):
        raise ValueError("labels come as one sample, and only those drawn by cell as several, one for each cell")
    if same_data:
        for cell in cells:
            cell.check_labelled_among_judged()
    flagged, judged = sum(cell.flagged for cell in cells), sum(cell.judged for cell in cells)
    refusal = _refusal(how_drawn, cells, same_data=same_data, thinned=thinned)
    if refusal is not None:
        none = _none(refusal)
        return CorrectedRates(how_drawn, none, none, None, flagged / judged, None)

    def by_error_rates(judge: JudgeRates) -> RateEstimate:
        return _rogan_gladen(judge, flagged, judged, confidence, interval)

    labelled = cells[0].labelled
    if how_drawn == "by_judge":
        estimate = _stratified(post_stratified(labelled, flagged, judged, confidence))
        judge = rates_by_judge(labelled, flagged, judged, confidence)
        beside = replace(estimate, estimator="Rogan-Gladen")
        return CorrectedRates(how_drawn, estimate, beside, None, flagged / judged, judge)
    weighted = how_drawn == "by_cell" and not thinned
    judge = rates_by_cell(cells, confidence) if weighted else rates_as_counted(_pooled(cells), confidence)
    beside = by_error_rates(judge)
    if how_drawn == "by_verdict" or thinned or not same_data:
        return CorrectedRates(how_drawn, beside, beside, None, flagged / judged, judge)
    alone = _stratified(labels_only(cells, confidence), "labels only")
    estimate = _random(cells, confidence)
    return CorrectedRates(how_drawn, estimate, beside, alone, flagged / judged, judge)


def _refusal(how_drawn: HowDrawn, cells: list[JudgedSample], *, same_data: bool, thinned: bool) -> Refusal | None:
    """Why no figure at all is possible, or None."""
    if how_drawn == "hand":
        return "drawn_by_hand"
    if not any(cell.labelled.judged for cell in cells):
        return "no_labels"
    if how_drawn == "by_cell" and not thinned and not all(cell.labelled.judged for cell in cells):
        return "cell_without_labels"
    if how_drawn == "by_judge":
        if not same_data:
            return "drawn_from_other_data"
        if thinned:
            return "thinned"
        labelled, flagged, passed = cells[0].labelled, cells[0].flagged, cells[0].judged - cells[0].flagged
        if (flagged and not labelled.tp + labelled.fp) or (passed and not labelled.fn + labelled.tn):
            return "verdict_without_labels"
    return None


def _random(cells: list[JudgedSample], confidence: float) -> RateEstimate:
    found = post_stratified_by_cell(cells, confidence)
    return _stratified(found, "labels only" if found.interval == "agresti-coull" else "post-stratified")


def _rogan_gladen(
    judge: JudgeRates,
    flagged: int,
    judged: int,
    confidence: float,
    interval: Literal["Lang-Reiczigel", "Jeffreys"],
) -> RateEstimate:
    counts = (judge.caught, judge.failures, judge.passed, judge.goods)
    reason = not_identified(*counts, confidence)
    if reason is not None:
        return _none(reason)
    point = float(rogan_gladen(flagged / judged, judge.caught / judge.failures, judge.passed / judge.goods))
    value = min(max(point, 0.0), 1.0)
    if interval == "Jeffreys":
        limits: Interval = equal_tailed(jeffreys_draws(flagged, judged, *counts), confidence)
    else:
        limits = lang_reiczigel(flagged, judged, *counts, confidence)
    # Both shrink towards 1/2 and may leave out a value at the very end.
    return RateEstimate(value, min(limits.low, value), max(limits.high, value), "Rogan-Gladen", interval)


def _stratified(found: PostStratified, estimator: Estimator = "post-stratified") -> RateEstimate:
    return RateEstimate(found.value, found.low, found.high, estimator, found.interval)


def _pooled(cells: list[JudgedSample]) -> Confusion:
    return Confusion(
        tp=sum(cell.labelled.tp for cell in cells),
        fn=sum(cell.labelled.fn for cell in cells),
        fp=sum(cell.labelled.fp for cell in cells),
        tn=sum(cell.labelled.tn for cell in cells),
    )


def _none(reason: Refusal) -> RateEstimate:
    return RateEstimate(None, 0.0, 1.0, "none", "none", reason)
