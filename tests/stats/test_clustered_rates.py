"""Corrected rates of rows that repeat a case. Positive = the judge reports a failure."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from stats.cell_strata import post_stratified_by_cell
from stats.clustered_rates import ClusteredRate, post_stratified_by_case, rogan_gladen_by_case
from stats.confusion import Confusion
from stats.post_stratified import JudgedSample, post_stratified
from stats.rogan_gladen import lang_reiczigel, rogan_gladen

Floats = NDArray[np.float64]
NAN = float("nan")


def rows(rng: np.random.Generator, n: int = 600, labelled: int = 200) -> tuple[Floats, Floats]:
    """Verdicts and labels of independent rows, theta .25, TPR .8, TNR .9."""
    y = (rng.random(n) < 0.25).astype(float)
    f = np.where(y == 1.0, rng.random(n) < 0.8, rng.random(n) >= 0.9).astype(float)
    return f, np.where(np.arange(n) < labelled, y, NAN)


def table_of(f: Floats, y: Floats) -> Confusion:
    return Confusion(*(int(((y == failure) & (f == flag)).sum()) for failure, flag in ((1, 1), (1, 0), (0, 1), (0, 0))))


def width(found: ClusteredRate) -> float:
    return found.estimate.high - found.estimate.low


def test_the_estimate_is_that_of_the_rows() -> None:
    f, y = rows(np.random.default_rng(1))
    cases = np.arange(600) // 3
    found, table = post_stratified_by_case(f, y, cases.tolist()), table_of(f, y)
    assert found.estimate.value == pytest.approx(post_stratified(table, int(f.sum()), 600).value, abs=1e-12)
    assert (found.rows, found.cases, found.labelled_rows, found.labelled_cases) == (600, 200, 200, 67)
    label = ~np.isnan(y)
    elsewhere = rogan_gladen_by_case(f, cases.tolist(), f[label], y[label], (cases[label] + 1000).tolist())
    point = float(rogan_gladen(f.mean(), table.tp / (table.tp + table.fn), table.tn / (table.fp + table.tn)))
    assert elsewhere.estimate.value == pytest.approx(point, abs=1e-12)
    assert (elsewhere.estimate.estimator, elsewhere.estimate.interval) == ("Rogan-Gladen", "Lang-Reiczigel")


def test_with_one_row_a_case_the_intervals_are_nearly_those_of_independent_rows() -> None:
    """The design effect is at least 1 and near it; t with 199 degrees of freedom is 1.972."""
    f, y = rows(np.random.default_rng(2))
    found, table = post_stratified_by_case(f, y, range(600)), table_of(f, y)
    independent = post_stratified(table, int(f.sum()), 600)
    assert found.design_effect == pytest.approx(1.0, abs=0.06)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((independent.low, independent.high), abs=3e-3)
    counts = (int(f.sum()), 600, table.tp, table.tp + table.fn, table.tn, table.fp + table.tn)
    plain, label = lang_reiczigel(*counts), ~np.isnan(y)
    other = rogan_gladen_by_case(f, range(600), f[label], y[label], range(1000, 1200))
    assert (other.estimate.low, other.estimate.high) == pytest.approx((plain.low, plain.high), abs=6e-3)


def test_copies_tell_nothing_new() -> None:
    """Every row four times under its case's name: the interval stays, up to the smaller correction for few cases."""
    f, y = rows(np.random.default_rng(3))
    once = post_stratified_by_case(f, y, range(600))
    copies = post_stratified_by_case(np.repeat(f, 4), np.repeat(y, 4), np.repeat(np.arange(600), 4).tolist())
    assert once.design_effect is not None
    assert copies.design_effect == pytest.approx(4.0 * once.design_effect, rel=0.06)
    assert width(copies) == pytest.approx(width(once), rel=0.03)
    naive = post_stratified_by_case(np.repeat(f, 4), np.repeat(y, 4), range(2400))
    assert width(naive) < 0.55 * width(copies)


def test_copies_tell_nothing_new_about_rogan_gladen() -> None:
    f, y = rows(np.random.default_rng(4))
    label = ~np.isnan(y)
    once = rogan_gladen_by_case(f, range(600), f[label], y[label], range(1000, 1200))
    many = rogan_gladen_by_case(
        np.repeat(f, 4),
        np.repeat(np.arange(600), 4).tolist(),
        np.repeat(f[label], 4),
        np.repeat(y[label], 4),
        np.repeat(np.arange(1000, 1200), 4).tolist(),
    )
    assert width(many) == pytest.approx(width(once), rel=0.05)
    # Labelled rows that are among the judged ones move p and TPR together, which in part cancels: less than four times.
    among = rogan_gladen_by_case(
        np.repeat(f, 4),
        np.repeat(np.arange(600), 4).tolist(),
        np.repeat(f[label], 4),
        np.repeat(y[label], 4),
        np.repeat(np.arange(200), 4).tolist(),
    )
    assert many.design_effect is not None
    assert among.design_effect is not None
    assert 1.0 < among.design_effect < many.design_effect


def test_the_variance_is_the_jackknifes() -> None:
    """Leaving out one case at a time, an independent way to the same variance, agrees with the influence within 5 %."""
    rng = np.random.default_rng(5)
    f, y = rows(rng, 800, 400)
    cases = np.arange(800) // 4
    found = post_stratified_by_case(f, y, cases.tolist())
    without = []
    for case in range(100):
        kept = cases != case
        table = table_of(f[kept], y[kept])
        without.append(post_stratified(table, int(f[kept].sum()), int(kept.sum())).value)
    # Only the 100 labelled cases move the estimate to speak of; p, over 800 rows, adds its own part.
    spread = np.array(without) - np.mean(without)
    jackknife = 99 / 100 * float((spread**2).sum())
    independent = post_stratified(table_of(f, y), int(f.sum()), 800).variance
    effect = max(jackknife / independent, 1.0)
    assert found.design_effect == pytest.approx(effect, rel=0.05)


def test_labels_that_all_agree_count_once_a_case() -> None:
    """No variance to see: rows of a case are taken for copies."""
    cases = np.repeat(np.arange(10), 4).tolist()
    found = post_stratified_by_case([1.0, 0.0] * 20, [1.0, 0.0] * 20, cases)
    assert found.estimate.value == 0.5
    # mu1 = 1 and mu0 = 0 leave p, of which the design effect is at least 1.
    assert found.design_effect is not None
    assert found.design_effect >= 1.0
    pure = post_stratified_by_case([1.0, 0.0] * 20, [0.0] * 40, cases)
    assert (pure.estimate.value, pure.design_effect) == (0.0, pytest.approx(4.0))
    alone = post_stratified_by_case([1.0, 0.0] * 20, [0.0] * 40, range(40))
    assert alone.design_effect == 1.0
    assert pure.estimate.high > alone.estimate.high > 0.0


def test_rows_without_a_verdict_are_in_nothing() -> None:
    f, y = rows(np.random.default_rng(6))
    found = post_stratified_by_case(f, y, range(600))
    more = post_stratified_by_case(np.append(f, [NAN, NAN]), np.append(y, [1.0, NAN]), range(602))
    assert more == found


def test_refusals() -> None:
    one = post_stratified_by_case([1, 0, 1, 0], [1, 0, NAN, NAN], [1, 1, 2, 2])
    assert (one.estimate.reason, one.estimate.low, one.estimate.high) == ("one_case", 0.0, 1.0)
    none = post_stratified_by_case([1, 0, 1, 0], [1, NAN, 1, NAN], [1, 1, 2, 2])
    assert (none.estimate.reason, none.design_effect) == ("verdict_without_labels", None)
    # 40 failures as rows, but of 2 cases.
    f, y = np.repeat([1.0, 1.0, 0.0, 0.0], [38, 2, 38, 2]), np.repeat([1.0, 0.0, 0.0, 1.0], [38, 2, 38, 2])
    few = rogan_gladen_by_case(f, range(80), f, y, np.repeat([0, 1, 2, 3], 20).tolist())
    assert (few.estimate.value, few.estimate.reason, few.labelled_cases) == (None, "too_few_failures", 4)
    f, y = np.append(f, [1.0] * 20), np.append(y, [1.0] * 20)
    few = rogan_gladen_by_case(f, range(100), f, y, [*np.repeat([0, 1, 2, 3], 20).tolist(), *range(10, 30)])
    assert few.estimate.reason == "too_few_goods"


def in_cells(rng: np.random.Generator, rows_per_case: int) -> tuple[Floats, Floats, list[int], list[int]]:
    """Verdicts, labels, cases and cells of 200 cases in cells of 120 and 80, the first 60 of each labelled."""
    cells = np.repeat([0, 1], [120, 80])
    y = (rng.random(200) < np.where(cells == 0, 0.2, 0.5)).astype(float)
    f = np.where(y == 1.0, rng.random(200) < 0.8, rng.random(200) >= 0.8).astype(float)
    labels = np.where((np.arange(200) < 60) | (np.arange(200) >= 140), y, NAN)
    return (
        *(np.repeat(column, rows_per_case) for column in (f, labels)),
        *(np.repeat(column, rows_per_case).tolist() for column in (np.arange(200), cells)),
    )  # type: ignore[return-value]


def test_labels_drawn_within_cells() -> None:
    f, y, cases, cells = in_cells(np.random.default_rng(8), 1)
    samples = []
    for cell in (0, 1):
        inside = np.array(cells) == cell
        samples.append(JudgedSample(table_of(f[inside], y[inside]), int(f[inside].sum()), int(inside.sum())))
    independent = post_stratified_by_cell(samples)
    found = post_stratified_by_case(f, y, cases, cells=cells)
    assert found.estimate.value == pytest.approx(independent.value, abs=1e-12)
    assert found.design_effect == pytest.approx(1.0, abs=0.06)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((independent.low, independent.high), abs=5e-3)
    assert found.estimate.interval == independent.interval
    f, y, cases, cells = in_cells(np.random.default_rng(8), 3)
    copies = post_stratified_by_case(f, y, cases, cells=cells)
    assert copies.estimate.value == pytest.approx(independent.value, abs=1e-12)
    assert width(copies) == pytest.approx(width(found), rel=0.05)
    # One cell for all is no cell; a name that no judged row has counts for nothing.
    assert post_stratified_by_case(f, y, cases, cells=["all"] * 600) == post_stratified_by_case(f, y, cases)
    f, y = np.append(f, NAN), np.append(y, 1.0)
    assert post_stratified_by_case(f, y, [*cases, 999], cells=[*cells, 9]).estimate == copies.estimate


def test_cells_are_refused_without_labels_or_with_too_few_cases() -> None:
    none = post_stratified_by_case([1, 0, 1, 0], [1, 0, NAN, NAN], "abcd", cells="xxyy")
    assert none.estimate.reason == "cell_without_labels"
    few = post_stratified_by_case([1, 0, 1, 0], [1, 0, 1, 0], "aabb", cells="xxyy")
    assert few.estimate.reason == "one_case"
    alone = post_stratified_by_case([1, 0, 1, 0], [1, 0, 1, NAN], "abcd", cells="xxyy")
    assert alone.estimate.value == pytest.approx(0.75)
    with pytest.raises(ValueError, match="one cell"):
        post_stratified_by_case([1, 0], [1, 0], "ab", cells="x")


def test_where_few_cases_hold_the_failures_rows_are_taken_for_copies() -> None:
    """40 labelled cases of 4 rows; three of them hold the four misses, on different rows: nothing alike to be seen."""
    f, y = np.zeros(400), np.where(np.arange(400) < 160, 0.0, NAN)
    f[:160:8], y[:160:8] = 1.0, 1.0
    f[4:160:8] = 1.0
    y[[1, 18, 19, 35]] = 1.0
    found = post_stratified_by_case(f, y, np.repeat(np.arange(100), 4).tolist())
    assert found.design_effect == pytest.approx(4.0)
    y[[49, 66, 83]] = 1.0
    more = post_stratified_by_case(f, y, np.repeat(np.arange(100), 4).tolist())
    assert more.design_effect is not None
    assert more.design_effect < 3.0


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError, match="needs one verdict"):
        post_stratified_by_case([1, 0], [1, 0], [1])
    with pytest.raises(ValueError, match="must be 1"):
        post_stratified_by_case([2, 0], [1, 0], [1, 2])
    with pytest.raises(ValueError, match="needs one verdict"):
        rogan_gladen_by_case([1, 0], [1, 2], [1], [1, 0], [1])


def test_a_rate_without_a_verdict_of_the_judge_is_refused() -> None:
    nothing, labels = [float("nan")] * 4, [1] * 16 + [0] * 16
    with pytest.raises(ValueError, match="verdict of the judge"):
        rogan_gladen_by_case(nothing, "abcd", labels, labels, range(32))
    with pytest.raises(ValueError, match="verdict of the judge"):
        post_stratified_by_case(nothing, nothing, "abcd")
