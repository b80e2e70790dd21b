"""Corrected failure rates when rows repeat a case: epochs of one item, turns of one conversation.

Positive = the judge reports a failure. Such rows are not independent; an interval that takes them so is too short. The
estimates stay what they are, `stats.post_stratified` and `stats.rogan_gladen`. Their variance comes from each row's
influence on the estimate, summed within a case, so that any correlation within a case counts, also between a label and
the judge's verdicts. The design effect (that variance over the one of independent rows, at least 1) then divides every
count, and t with the number of labelled cases - 1 (less one for each further cell) takes the place of z. Where a few
cases hold all there is of TP, FN, FP or TN, their rows are taken for copies of each other: so few cannot show how alike
rows are, and what they show is more often too little (of 40 cases with theta .05, 91 % were covered without this).

>>> flagged = [1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0]
>>> failures = [1, 1, 0, 0, 0, 0, 0, 1, 1, 1, float("nan"), float("nan")]
>>> found = post_stratified_by_case(flagged, failures, cases=[1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6])
>>> round(found.estimate.value, 2), found.labelled_rows, found.labelled_cases
(0.45, 10, 5)
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.cell_strata import cell_limits, cell_moments
from stats.clusters import Labels, numbered
from stats.corrected_rates import RateEstimate, RateInterval, Refusal
from stats.intervals import normal_quantile
from stats.post_stratified import FEWEST_FOR_LOGIT, post_stratified_limits
from stats.rogan_gladen import FEWEST_LABELS, lang_reiczigel, rogan_gladen, youden_limits

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ClusteredRate:
    """A corrected rate with an interval that respects cases, and how much there is behind it.

    rows, cases: judged ones. labelled_rows, labelled_cases: those with a label and a judge verdict. design_effect: how
    many rows of these data tell as much as one independent row; None where there is no estimate.
    """

    estimate: RateEstimate
    rows: int
    cases: int
    labelled_rows: int
    labelled_cases: int
    design_effect: float | None


def post_stratified_by_case(
    flagged: ArrayLike, failures: ArrayLike, cases: Labels, confidence: float = 0.95, *, cells: Labels | None = None
) -> ClusteredRate:
    """theta = (1-p) mu0 + p mu1 from rows grouped by ``cases``; labels random, alone or within the judge's verdicts.

    ``flagged`` [N]: the judge's verdict on each row, 1 = failure, 0 = pass, nan = none; ``failures`` [N]: the expert's,
    nan = not labelled. A row without a verdict is in nothing. ``cells`` [N]: where labels were drawn within cells, so many
    in each, the cell of each row; then theta and its interval are those of `stats.cell_strata`, cells weighted by their
    judged rows. Rows of a case may lie in several cells.

    Refused ('verdict_without_labels', 'cell_without_labels', 'one_case') when a verdict of the judge has no label (a
    cell of several counts with its labels alone then), a cell has none, or there are no more labelled cases than cells.

    Raises ValueError when lengths differ, another number is among the verdicts, or there is no verdict.

    Source: linearisation and clusters, Binder (1983), International Statistical Review 51, 279-292; dividing counts by
    the design effect, Korn and Graubard (1998), Survey Methodology 24, 193-201. Copies where cases are few: of this project,
    chosen for the coverage.

    >>> one_row_each = post_stratified_by_case([1, 1, 0, 0], [1, 0, 1, 0], cases="abcd")
    >>> one_row_each.design_effect >= 1.0
    True
    >>> in_cells = post_stratified_by_case([1, 0, 1, 0] * 4, [1, 0, 1, 1] * 2 + [0, 0, 1, 0] * 2, range(16), cells="x" * 8 + "y" * 8)
    >>> round(in_cells.estimate.value, 2), in_cells.estimate.interval
    (0.5, 'effective-wilson')
    """
    f, cases_of = _verdicts(flagged, cases)
    y, _ = _verdicts(failures, cases)
    cells_of = np.zeros(len(f), dtype=np.int64) if cells is None else numbered(cells)
    if len(cells_of) != len(f):
        raise ValueError(f"each of {len(f)} rows needs one cell, got {len(cells_of)}")
    judged = ~np.isnan(f)
    labelled = judged & ~np.isnan(y)
    f, y = np.where(judged, f, 0.0), np.where(labelled, y, 0.0)
    if not judged.any():
        raise ValueError("a rate needs at least one row with a verdict of the judge")
    sizes = _Sizes.of(judged, labelled, cases_of)
    strata = [inside for inside in (cells_of == cell for cell in range(cells_of.max() + 1)) if judged[inside].any()]
    tables = np.array([_table(f[labelled & inside], y[labelled & inside]) for inside in strata])
    if (tables.sum(axis=1) == 0.0).any():
        return sizes.refused("cell_without_labels" if len(strata) > 1 else "no_labels")
    if len(strata) == 1 and not (tables[0, 0] + tables[0, 2] and tables[0, 1] + tables[0, 3]):
        return sizes.refused("verdict_without_labels")
    if sizes.labelled_cases <= len(strata):
        return sizes.refused("one_case")
    influence, weights = np.zeros(len(f)), np.zeros(len(f))
    for inside, table in zip(strata, tables, strict=True):
        share = judged[inside].sum() / judged.sum()
        influence[inside] = share * _influence(f[inside], y[inside], judged[inside], labelled[inside], table)
        weights[inside] = share * labelled[inside] / table.sum()
    tp, fn, fp, tn = tables.T
    k, n = (np.array([column[inside].sum() for inside in strata]) for column in (f, judged))
    value, independent = (float(part) for part in cell_moments(tp, fn, fp, tn, k, n))
    degrees = sizes.labelled_cases - len(strata)
    effect = _design_effect(influence, cases_of, independent, degrees, weights)
    if _fewest_cases(f[labelled], y[labelled], cases_of[labelled]) < FEWEST_FOR_LOGIT:
        effect = max(effect, _effect_of_copies(weights, cases_of))
    tp, fn, fp, tn, k, n = (count / effect for count in (tp, fn, fp, tn, k, n))
    few, by_t = min(count.min() for count in (tp, fn, fp, tn)) < FEWEST_FOR_LOGIT, _t_confidence(confidence, degrees)
    interval: RateInterval
    if len(strata) == 1:
        low, high = (float(end[0]) for end in post_stratified_limits(tp, fn, fp, tn, k, n, by_t))
        interval = "mover" if few else "logit"
    else:
        low, high = (float(end) for end in cell_limits(tp, fn, fp, tn, k, n, by_t))
        interval = "effective-wilson" if few else "logit"
    return sizes.found(RateEstimate(value, low, high, "post-stratified", interval), effect)


def rogan_gladen_by_case(
    flagged: ArrayLike,
    cases: Labels,
    labelled_flagged: ArrayLike,
    labelled_failures: ArrayLike,
    labelled_cases: Labels,
    confidence: float = 0.95,
) -> ClusteredRate:
    """theta = (p + TNR - 1)/J from rows grouped by case; labels random or by the expert's verdict, also on other data.

    ``flagged`` [N] are the judge's verdicts that p is taken over; ``labelled_flagged`` and ``labelled_failures`` [m] the
    judge's and the expert's on the labelled rows. A case that has the same name in ``cases`` and ``labelled_cases`` is
    one case. Lang-Reiczigel's interval of the divided counts. Refused with fewer than 15 labelled cases that hold a
    failure, or a good answer, and when J of the divided counts may be 0.

    Raises ValueError as `post_stratified_by_case` does.

    >>> found = rogan_gladen_by_case([1, 0, 0, 0], "abcd", [1, 1, 0, 0], [1, 1, 0, 0], "wxyz")
    >>> found.estimate.reason
    'too_few_failures'
    """
    whole = [*cases, *labelled_cases]
    f, _ = _verdicts(
        np.concatenate([np.asarray(flagged, dtype=np.float64), np.asarray(labelled_flagged, dtype=np.float64)]), whole
    )
    y, cases_of = _verdicts(
        np.concatenate([np.full(len(cases), np.nan), np.asarray(labelled_failures, dtype=np.float64)]), whole
    )
    first = np.arange(len(whole)) < len(cases)
    judged, labelled = first & ~np.isnan(f), ~first & ~np.isnan(f) & ~np.isnan(y)
    f, y = np.where(np.isnan(f), 0.0, f), np.where(labelled, y, 0.0)
    tp, fn, fp, tn = _table(f[labelled], y[labelled])
    n, k, m1, m0 = float(judged.sum()), float(f[judged].sum()), tp + fn, fp + tn
    if not judged.any():
        raise ValueError("a rate needs at least one row with a verdict of the judge")
    sizes = _Sizes.of(judged, labelled, cases_of)
    if np.unique(cases_of[labelled & (y == 1.0)]).size < FEWEST_LABELS:
        return sizes.refused("too_few_failures")
    if np.unique(cases_of[labelled & (y == 0.0)]).size < FEWEST_LABELS:
        return sizes.refused("too_few_goods")
    p, tpr, tnr = k / n, tp / m1, tn / m0
    j = tpr + tnr - 1.0
    if j <= 1e-12:
        return sizes.refused("no_better_than_chance")
    theta = float(rogan_gladen(p, tpr, tnr))
    influence = judged * (f - p) / n / j
    influence = influence - labelled * y * theta / j * (f - tpr) / m1
    influence = influence + labelled * (1.0 - y) * (1.0 - theta) / j * (1.0 - f - tnr) / m0
    independent = p * (1.0 - p) / n + theta**2 * tpr * (1.0 - tpr) / m1 + (1.0 - theta) ** 2 * tnr * (1.0 - tnr) / m0
    effect = _design_effect(
        influence, cases_of, independent / j**2, sizes.labelled_cases - 1, labelled.astype(np.float64)
    )
    k, n, tp, m1, tn, m0 = (count / effect for count in (k, n, tp, m1, tn, m0))
    by_t = _t_confidence(confidence, sizes.labelled_cases - 1)
    if float(youden_limits(tp, m1, tn, m0, by_t)[0]) <= 0.0:
        return sizes.refused("no_better_than_chance")
    limits, value = lang_reiczigel(k, n, tp, m1, tn, m0, by_t), min(max(theta, 0.0), 1.0)
    low, high = min(limits.low, value), max(limits.high, value)
    return sizes.found(RateEstimate(value, low, high, "Rogan-Gladen", "Lang-Reiczigel"), effect)


@dataclass(frozen=True)
class _Sizes:
    rows: int
    cases: int
    labelled_rows: int
    labelled_cases: int

    @classmethod
    def of(cls, judged: NDArray[np.bool_], labelled: NDArray[np.bool_], cases_of: NDArray[np.int64]) -> _Sizes:
        return cls(
            int(judged.sum()), np.unique(cases_of[judged]).size, int(labelled.sum()), np.unique(cases_of[labelled]).size
        )

    def found(self, estimate: RateEstimate, effect: float | None) -> ClusteredRate:
        return ClusteredRate(estimate, self.rows, self.cases, self.labelled_rows, self.labelled_cases, effect)

    def refused(self, reason: Refusal) -> ClusteredRate:
        return self.found(RateEstimate(None, 0.0, 1.0, "none", "none", reason), None)


def _verdicts(values: ArrayLike, cases: Labels) -> tuple[Floats, NDArray[np.int64]]:
    held = np.asarray(values, dtype=np.float64)
    if held.shape != (len(cases),):
        raise ValueError(f"each of {len(cases)} rows needs one verdict, got the shape {held.shape}")
    if not np.isin(held[~np.isnan(held)], (0.0, 1.0)).all():
        raise ValueError("a verdict must be 1 (failure), 0 (pass) or nan (none)")
    return held, numbered(cases)


def _table(flagged: Floats, failures: Floats) -> tuple[float, float, float, float]:
    tp = float((flagged * failures).sum())
    return tp, float(failures.sum()) - tp, float(flagged.sum()) - tp, float(((1.0 - flagged) * (1.0 - failures)).sum())


def _influence(f: Floats, y: Floats, judged: NDArray[np.bool_], labelled: NDArray[np.bool_], table: Floats) -> Floats:
    """Each row's influence on theta of its cell; on the labels' own share where a verdict of the judge has no label."""
    tp, fn, fp, tn = table
    m1, m0 = tp + fp, fn + tn
    influence: Floats
    if not (m1 and m0):
        influence = labelled * (y - (tp + fn) / (m1 + m0)) / (m1 + m0)
        return influence
    n, p, mu1, mu0 = float(judged.sum()), float(f.sum()) / float(judged.sum()), tp / m1, fn / m0
    influence = judged * (mu1 - mu0) * (f - p) / n
    influence += labelled * (f * p / m1 * (y - mu1) + (1.0 - f) * (1.0 - p) / m0 * (y - mu0))
    return influence


def _design_effect(
    influence: Floats, cases_of: NDArray[np.int64], independent: float, degrees: int, weights: Floats
) -> float:
    """``degrees`` of freedom of the cases' sums; ``weights`` of labelled rows in the estimate, 0 for others."""
    if independent <= 0.0:
        # Without any disagreement nothing shows how alike the rows of a case are.
        return _effect_of_copies(weights, cases_of)
    sums = np.bincount(cases_of, weights=influence)
    variance = np.unique(cases_of[weights > 0.0]).size / degrees * float((sums**2).sum())
    return max(variance / independent, 1.0)


def _effect_of_copies(weights: Floats, cases_of: NDArray[np.int64]) -> float:
    """The design effect if all rows of a case were copies of one: the mean size of a labelled row's case."""
    sums = np.bincount(cases_of, weights=weights)
    return float((sums**2).sum() / (weights**2).sum())


def _fewest_cases(f: Floats, y: Floats, cases_of: NDArray[np.int64]) -> int:
    """The smallest number of cases that hold a row of TP, of FN, of FP and of TN."""
    return min(np.unique(cases_of[(f == flag) & (y == failure)]).size for flag in (0.0, 1.0) for failure in (0.0, 1.0))


def _t_confidence(confidence: float, degrees: int) -> float:
    """The confidence whose normal quantile is the t quantile of ``confidence`` with so many degrees of freedom."""
    from scipy.special import stdtrit

    normal_quantile(confidence)
    quantile = float(stdtrit(degrees, 0.5 + confidence / 2.0))
    # Beyond 8 the normal distribution has no digits left; so few cases tell nothing anyway.
    return 2.0 * NormalDist().cdf(min(quantile, 8.0)) - 1.0
