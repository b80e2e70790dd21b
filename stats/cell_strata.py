"""The true failure rate from labels drawn within cells, a chosen number in each, and from labels without the judge.

Positive = the judge reports a failure. Each cell's labels are random within the cell; its share of all judged cases is
its weight. Left unweighted, a cell that was labelled more than its share would count for more than it is.

>>> cells = [
...     JudgedSample(Confusion(tp=8, fn=2, fp=3, tn=27), flagged=30, judged=100),
...     JudgedSample(Confusion(tp=1, fn=1, fp=2, tn=36), flagged=90, judged=900),
... ]
>>> round(post_stratified_by_cell(cells).value, 4), round(labels_only(cells).value, 4)
(0.0785, 0.07)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stats.confusion import Confusion
from stats.post_stratified import JudgedSample, PostStratified, logit_limits, post_stratified
from stats.proportion_limits import jeffreys_limits, wilson_limits


def post_stratified_by_cell(cells: Sequence[JudgedSample], confidence: float = 0.95) -> PostStratified:
    """theta over cells whose labels were drawn at random within each cell, however many in each.

    theta = sum of W theta_c with W the cell's share of all judged cases, theta_c as in `post_stratified`; a cell in which
    one of the judge's verdicts has no label counts with its labels alone. Variance: sum of W^2 var_c, on the logit scale
    when every cell has 5 or more of each count; otherwise the cells' own limits, squared and added with weights W^2.

    Raises ValueError without a cell, when a cell has no label, or more cases of a cell are labelled than judged.

    Source: as `post_stratified`; stratified sampling, Cochran (1977), chapter 5.

    >>> rare = JudgedSample(Confusion(tp=8, fn=2, fp=3, tn=27), flagged=30, judged=100)
    >>> common = JudgedSample(Confusion(tp=1, fn=1, fp=2, tn=36), flagged=90, judged=900)
    >>> round(post_stratified_by_cell([rare, common]).value, 4)
    0.0785
    """
    if not cells:
        raise ValueError("stratified labels need at least one cell")
    judged = sum(cell.judged for cell in cells)
    parts = [_cell(cell, confidence) for cell in cells]
    weights = [cell.judged / judged for cell in cells]
    value = math.fsum(weight * part.value for weight, part in zip(weights, parts, strict=True))
    variance = math.fsum(weight**2 * part.variance for weight, part in zip(weights, parts, strict=True))
    if all(part.interval == "logit" for part in parts):
        low, high = (float(end) for end in logit_limits(value, variance, confidence))
        return PostStratified(value, low, high, variance, "logit")
    low, high = square_and_add(weights, parts)
    return PostStratified(
        value, low, high, variance, "wilson" if len(parts) == 1 and parts[0].interval == "wilson" else "mover"
    )


def labels_only(cells: Sequence[JudgedSample], confidence: float = 0.95) -> PostStratified:
    """theta from random labels alone, without the judge: the share of failures, weighted by the cells' shares.

    With one cell it is Wilson's interval; with more the cells' Jeffreys limits are squared and added with weights W^2.
    Raises ValueError as `post_stratified_by_cell` does.

    >>> labels_only([JudgedSample(Confusion(tp=79, fn=90, fp=15, tn=416), flagged=647, judged=4000)])
    PostStratified(value=0.2816..., low=0.2471..., high=0.3189..., variance=0.0003..., interval='wilson')
    """
    if not cells:
        raise ValueError("stratified labels need at least one cell")
    judged = sum(cell.judged for cell in cells)
    parts = [_from_labels(cell.labelled, confidence, alone=len(cells) == 1) for cell in cells]
    if len(parts) == 1:
        return parts[0]
    weights = [cell.judged / judged for cell in cells]
    value = math.fsum(weight * part.value for weight, part in zip(weights, parts, strict=True))
    variance = math.fsum(weight**2 * part.variance for weight, part in zip(weights, parts, strict=True))
    return PostStratified(value, *square_and_add(weights, parts), variance, "mover")


def square_and_add(weights: Sequence[float], parts: Sequence[PostStratified]) -> tuple[float, float]:
    """Limits of a weighted sum of independent estimates from their own limits (MOVER), cut at 0 and 1.

    >>> part = PostStratified(0.2, 0.1, 0.4, 0.005, "mover")
    >>> low, high = square_and_add([0.5, 0.5], [part, part])
    >>> round(low, 4), round(high, 4)
    (0.1293, 0.3414)
    """
    value = math.fsum(weight * part.value for weight, part in zip(weights, parts, strict=True))
    below = math.fsum((weight * (part.value - part.low)) ** 2 for weight, part in zip(weights, parts, strict=True))
    above = math.fsum((weight * (part.high - part.value)) ** 2 for weight, part in zip(weights, parts, strict=True))
    return max(value - math.sqrt(below), 0.0), min(value + math.sqrt(above), 1.0)


def _cell(cell: JudgedSample, confidence: float) -> PostStratified:
    labelled = cell.labelled
    if 0 in (labelled.tp + labelled.fp, labelled.fn + labelled.tn):
        cell.check_labelled_among_judged()
        return _from_labels(labelled, confidence, alone=True)
    return post_stratified(labelled, cell.flagged, cell.judged, confidence)


def _from_labels(labelled: Confusion, confidence: float, *, alone: bool) -> PostStratified:
    failures, labels = labelled.tp + labelled.fn, labelled.judged
    if not labels:
        raise ValueError("a cell with judged cases has no label, so nothing is known of its failures")
    share = failures / labels
    low, high = (wilson_limits if alone else jeffreys_limits)(failures, labels, confidence)
    return PostStratified(share, float(low), float(high), share * (1.0 - share) / labels, "wilson")
