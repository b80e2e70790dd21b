"""The true failure rate from labels drawn within cells, a chosen number in each, and from labels without the judge.

Positive = the judge reports a failure. Each cell's labels are random within the cell; its share of all judged cases is
its weight. Left unweighted, a cell that was labelled more than its share would count for more than it is.

>>> from stats.confusion import Confusion
>>> cells = [
...     JudgedSample(Confusion(tp=8, fn=2, fp=3, tn=27), flagged=30, judged=100),
...     JudgedSample(Confusion(tp=1, fn=1, fp=2, tn=36), flagged=90, judged=900),
... ]
>>> round(post_stratified_by_cell(cells).value, 4), round(labels_only(cells).value, 4)
(0.0785, 0.07)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.post_stratified import (
    FEWEST_FOR_LOGIT,
    JudgedSample,
    PostStratified,
    logit_limits,
    post_stratified,
    post_stratified_moments,
)
from stats.proportion_limits import Limits, agresti_coull_limits, wilson_limits

Floats = NDArray[np.float64]


def post_stratified_by_cell(cells: Sequence[JudgedSample], confidence: float = 0.95) -> PostStratified:
    """theta over cells whose labels were drawn at random within each cell, however many in each.

    theta = sum of W theta_c with W the cell's share of all judged cases, theta_c as in `post_stratified`; a cell in which
    one of the judge's verdicts has no label counts with its labels alone. Variance: sum of W^2 var_c. Interval: on the
    logit scale when every cell has 5 or more of each count; otherwise Wilson's for the effective number of labels,
    see `cell_limits`. One cell is `post_stratified`, or without labels of both the judge's verdicts `labels_only`.

    Raises ValueError without a cell, when a cell has no label, or more cases of a cell are labelled than judged.

    Source: as `stats.post_stratified`; stratified sampling, Cochran (1977), chapter 5.

    >>> from stats.confusion import Confusion
    >>> found = post_stratified_by_cell([JudgedSample(Confusion(tp=79, fn=90, fp=15, tn=416), flagged=647, judged=4000)])
    >>> round(found.value, 4), found.interval
    (0.285, 'logit')
    """
    tp, fn, fp, tn, flagged, judged = (np.array(column) for column in zip(*_rows(cells), strict=True))
    for cell in cells:
        cell.check_labelled_among_judged()
    if len(cells) == 1:
        if 0 in (tp[0] + fp[0], fn[0] + tn[0]):
            return labels_only(cells, confidence)
        return post_stratified(cells[0].labelled, cells[0].flagged, cells[0].judged, confidence)
    low, high = cell_limits(tp, fn, fp, tn, flagged, judged, confidence)
    value, variance = cell_moments(tp, fn, fp, tn, flagged, judged)
    enough = np.minimum.reduce([tp, fn, fp, tn]).min() >= FEWEST_FOR_LOGIT
    return PostStratified(
        float(value), float(low), float(high), float(variance), "logit" if enough else "effective-wilson"
    )


def labels_only(cells: Sequence[JudgedSample], confidence: float = 0.95) -> PostStratified:
    """theta from random labels alone, without the judge: the share of failures, weighted by the cells' shares.

    Agresti and Coull's interval; with several cells Wilson's for the effective number of labels, as in `cell_limits`. Raises ValueError
    without a cell or when a cell has no label.

    >>> from stats.confusion import Confusion
    >>> labels_only([JudgedSample(Confusion(tp=79, fn=90, fp=15, tn=416), flagged=647, judged=4000)])
    PostStratified(value=0.2816..., low=0.2471..., high=0.3189..., variance=0.0003..., interval='agresti-coull')
    """
    tp, fn, fp, tn, _, judged = (np.array(column, dtype=np.float64) for column in zip(*_rows(cells), strict=True))
    failures, labels, weights = tp + fn, tp + fn + fp + tn, judged / judged.sum()
    shares, smoothed = failures / labels, (failures + 0.5) / (labels + 1.0)
    value, variance = float((weights * shares).sum()), float((weights**2 * shares * (1.0 - shares) / labels).sum())
    if len(cells) == 1:
        low, high = agresti_coull_limits(failures[0], labels[0], confidence)
        return PostStratified(value, float(low), float(high), variance, "agresti-coull")
    spread = (weights**2 * smoothed * (1.0 - smoothed) / labels).sum()
    low, high = _effective_wilson(np.asarray(value), (weights * smoothed).sum(), spread, confidence)
    return PostStratified(value, float(low), float(high), variance, "effective-wilson")


def cell_moments(
    tp: ArrayLike, fn: ArrayLike, fp: ArrayLike, tn: ArrayLike, flagged: ArrayLike, judged: ArrayLike
) -> tuple[Floats, Floats]:
    """theta and its variance over cells, for arrays of counts [..., cells].

    Counts are not checked here, as `JudgedSample` does: TP, FN, FP, TN are whole or effective, flagged and judged count
    labelled cases too. A cell without labels counts as one that never fails.

    >>> theta, variance = cell_moments([8, 1], [2, 1], [3, 2], [27, 36], [30, 90], [100, 900])
    >>> round(float(theta), 4), round(float(variance), 5)
    (0.0785, 0.00111)
    """
    size = np.asarray(judged, dtype=np.float64)
    weights = size / size.sum(axis=-1, keepdims=True)
    values, variances = post_stratified_moments(tp, fn, fp, tn, flagged, judged)
    return (weights * values).sum(axis=-1), (weights**2 * variances).sum(axis=-1)


def cell_limits(
    tp: ArrayLike,
    fn: ArrayLike,
    fp: ArrayLike,
    tn: ArrayLike,
    flagged: ArrayLike,
    judged: ArrayLike,
    confidence: float = 0.95,
) -> Limits:
    """The interval of `post_stratified_by_cell` for several cells, for arrays of counts [..., cells] with labels in each.

    With a count below 5 anywhere: Wilson's interval for theta of n' labels, n' = theta~ (1 - theta~)/var~ the effective
    number. theta~ and var~ are theta and its variance with mu1 and mu0 of each cell drawn in by half a label on either
    side, (TP + 1/2)/(TP + FP + 1) and likewise; without that, a cell in which the few labels agree would count as known.
    Squaring and adding the cells' limits, as for one sample, covers as little as 91 % here: the lower limit of a cell
    without a failure adds nothing.

    Source: Wilson's interval with an effective number, Korn and Graubard (1998), Survey Methodology 24, 193-201, and Dean
    and Pagano (2015), Journal of Survey Statistics and Methodology 3, 484-503. The half labels are of this project,
    chosen for the coverage.

    Raises ValueError when ``confidence`` is not strictly between 0 and 1; counts are not checked, as in `cell_moments`.

    >>> low, high = cell_limits([8, 1], [2, 1], [3, 2], [27, 36], [30, 90], [100, 900])
    >>> round(float(low), 3), round(float(high), 3)
    (0.034, 0.172)
    """
    a, b, c, d, k, n = np.broadcast_arrays(
        *(np.asarray(count, dtype=np.float64) for count in (tp, fn, fp, tn, flagged, judged))
    )
    value, variance = cell_moments(a, b, c, d, k, n)
    m1, m0, p, weights = a + c, b + d, k / n, n / n.sum(axis=-1, keepdims=True)
    mu1, mu0, alone = (a + 0.5) / (m1 + 1.0), (b + 0.5) / (m0 + 1.0), (m1 == 0.0) | (m0 == 0.0)
    labels = np.maximum(m1 + m0, 1.0)
    share = (a + b + 0.5) / (labels + 1.0)
    smoothed = (weights * np.where(alone, share, (1.0 - p) * mu0 + p * mu1)).sum(axis=-1)
    spread = (mu1 - mu0) ** 2 * p * (1.0 - p) / n
    spread = (
        spread
        + (1.0 - p) ** 2 * mu0 * (1.0 - mu0) / np.maximum(m0, 1.0)
        + p**2 * mu1 * (1.0 - mu1) / np.maximum(m1, 1.0)
    )
    spread = (weights**2 * np.where(alone, share * (1.0 - share) / labels, spread)).sum(axis=-1)
    low, high = _effective_wilson(value, smoothed, spread, confidence)
    enough = (np.minimum(np.minimum(a, b), np.minimum(c, d)) >= FEWEST_FOR_LOGIT).all(axis=-1)
    by_logit = logit_limits(value, variance, confidence)
    return np.where(enough, by_logit[0], low), np.where(enough, by_logit[1], high)


def _effective_wilson(value: Floats, smoothed: Floats, spread: Floats, confidence: float) -> Limits:
    size = smoothed * (1.0 - smoothed) / spread
    return wilson_limits(np.minimum(value * size, size), size, confidence)


def _rows(cells: Sequence[JudgedSample]) -> list[tuple[int, int, int, int, int, int]]:
    if not cells:
        raise ValueError("stratified labels need at least one cell")
    if not all(cell.labelled.judged for cell in cells):
        raise ValueError("a cell with judged cases has no label, so nothing is known of its failures")
    tables = [(cell.labelled, cell.flagged, cell.judged) for cell in cells]
    return [(table.tp, table.fn, table.fp, table.tn, flagged, judged) for table, flagged, judged in tables]
