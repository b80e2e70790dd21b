"""How often the intervals of the true failure rate hold the truth, over seeded replicates of each design.

Positive = the judge reports a failure. Cells: theta .05, .10, .20, .35; TPR/TNR .95/.95, .85/.90, .70/.85; 40 and 100
labels; 2,000 judged cases, labels among them. An interval must hold the truth in 93.5 % or more of 2,000 replicates, three
standard errors below 95 %. Where a rate is refused, [0, 1] counts as holding it, and how often that happens is asserted too.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray

from stats.cell_strata import cell_limits, labels_only
from stats.clustered_rates import post_stratified_by_case, rogan_gladen_by_case
from stats.confusion import Confusion
from stats.difference_limits import paired_limits, unpaired_limits
from stats.post_stratified import JudgedSample, logit_limits, post_stratified_limits, post_stratified_moments
from stats.proportion_limits import agresti_coull_limits, wilson_limits
from stats.rate_difference import divided_limits
from stats.rogan_gladen import FEWEST_LABELS, lang_reiczigel_limits, observed_rate, youden_limits

pytestmark = pytest.mark.slow

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

REPLICATES = 2000
JUDGED = 2000
LEAST = 0.935
REPEATS = int(os.environ.get("EVALDESK_COVERAGE_REPLICATES", "500"))
"""Replicates where rows repeat a case, which are worked out one by one; 2,000 with EVALDESK_COVERAGE_REPLICATES=2000."""
LEAST_OF_REPEATS = LEAST if REPEATS >= REPLICATES else 0.925
THETAS = (0.05, 0.10, 0.20, 0.35)
JUDGES = ((0.95, 0.95), (0.85, 0.90), (0.70, 0.85))
CELLS = [(labels, theta, judge) for labels in (40, 100) for theta in THETAS for judge in JUDGES]
Cell = tuple[int, float, tuple[float, float]]


def generator(cell: Cell) -> np.random.Generator:
    """One stream for each cell, so that a cell does not depend on which others are tried."""
    labels, theta, (tpr, tnr) = cell
    return np.random.default_rng([labels, round(1000 * theta), round(1000 * tpr), round(1000 * tnr)])


def held(limits: tuple[Floats, Floats], truth: float) -> float:
    """The share of intervals that hold the truth."""
    return float(((limits[0] <= truth) & (truth <= limits[1])).mean())


def random_labels(rng: np.random.Generator, cell: Cell) -> tuple[Counts, Counts, Counts, Counts, Counts]:
    """tp, fn, fp, tn of a random draw and the flagged of all judged cases, those labelled included."""
    labels, theta, (tpr, tnr) = cell
    shares = [theta * tpr, theta * (1 - tpr), (1 - theta) * (1 - tnr), (1 - theta) * tnr]
    tp, fn, fp, tn = rng.multinomial(labels, shares, REPLICATES).T
    rest = rng.binomial(JUDGED - labels, float(observed_rate(theta, tpr, tnr)), REPLICATES)
    return tp, fn, fp, tn, tp + fp + rest


def by_verdict_labels(
    rng: np.random.Generator, cell: Cell, failures: Counts | int, goods: Counts | int
) -> tuple[Counts, Counts, Counts]:
    """tp and tn of so many failures and good answers, and the flagged of all judged cases."""
    _, theta, (tpr, tnr) = cell
    tp, tn = rng.binomial(failures, tpr, REPLICATES), rng.binomial(goods, tnr, REPLICATES)
    return tp, tn, rng.binomial(JUDGED, float(observed_rate(theta, tpr, tnr)), REPLICATES)


def left_of_a_build_pile(rng: np.random.Generator, cell: Cell, pile: int = 30) -> tuple[Counts, Counts]:
    """Failures and good answers left of random labels after a half/half pile was picked out of them by verdict."""
    labels, theta, _ = cell
    failures = rng.binomial(labels + pile, theta, REPLICATES)
    left = failures - np.minimum(failures, pile // 2)
    return left, labels - left


def rogan_gladen_or_refused(
    tp: Counts, failures: Counts | int, tn: Counts, goods: Counts | int, flagged: Counts
) -> tuple[tuple[Floats, Floats], float]:
    """Lang-Reiczigel's limits with [0, 1] where not identified, and the share of these. As `not_identified` decides."""
    few = np.minimum(failures, goods) < FEWEST_LABELS
    refused = few | (youden_limits(tp, failures, tn, goods)[0] <= 0.0)
    low, high = lang_reiczigel_limits(flagged, JUDGED, tp, failures, tn, goods)
    return (np.where(refused, 0.0, low), np.where(refused, 1.0, high)), float(refused.mean())


@pytest.mark.parametrize("cell", CELLS)
def test_random_labels_post_stratified(cell: Cell) -> None:
    tp, fn, fp, tn, flagged = random_labels(generator(cell), cell)
    assert held(post_stratified_limits(tp, fn, fp, tn, flagged, JUDGED), cell[1]) >= LEAST


def test_why_small_counts_do_not_get_the_logit_interval() -> None:
    """The logit interval by itself holds the truth in about 82 % where a good judge leaves a cell empty, and the labels'
    Wilson interval in its place below 5 labels of a class hardly mends it: the cell that is empty is another."""
    cell = (40, 0.20, (0.95, 0.95))
    tp, fn, fp, tn, flagged = random_labels(generator(cell), cell)
    moments = post_stratified_moments(tp, fn, fp, tn, flagged, JUDGED)
    low, high = logit_limits(*moments)
    assert held((low, high), 0.20) < 0.87
    few = np.minimum.reduce([tp + fn, fp + tn, tp + fp, fn + tn]) < 5
    alone = wilson_limits(tp + fn, 40)
    mended = np.where(few, alone[0], low), np.where(few, alone[1], high)
    assert held(mended, 0.20) < 0.87


def test_labels_alone_exactly() -> None:
    """Without replicates: the binomial sum. Agresti and Coull's interval holds; Wilson's swings around 95 % with n and theta,
    and with 40 labels is at 92.8 % at theta .20 and 93.3 % at .35."""
    agresti_coull, wilson = (_covered(limits) for limits in (agresti_coull_limits, wilson_limits))
    assert min(agresti_coull.values()) > 0.94
    assert {cell for cell, share in wilson.items() if share < LEAST} == {(40, 0.20), (40, 0.35)}
    assert min(wilson.values()) > 0.925


def _covered(limits: Callable[..., tuple[Floats, Floats]]) -> dict[tuple[int, float], float]:
    covered = {}
    for labels in (40, 100):
        k = np.arange(labels + 1)
        ways = np.array([float(comb(labels, int(count))) for count in k])
        low, high = limits(k, labels)
        for theta in THETAS:
            chances = ways * theta**k * (1 - theta) ** (labels - k)
            covered[labels, theta] = float(chances[(low <= theta) & (theta <= high)].sum())
    return covered


@pytest.mark.parametrize("cell", CELLS)
def test_labels_half_and_half_by_verdict(cell: Cell) -> None:
    """Lang-Reiczigel. Refused in 3-4 % with 20 + 20 labels and a judge of .70/.85, else next to never."""
    half = cell[0] // 2
    tp, tn, flagged = by_verdict_labels(generator(cell), cell, half, half)
    limits, refused = rogan_gladen_or_refused(tp, half, tn, half, flagged)
    assert held(limits, cell[1]) >= LEAST
    assert refused <= (0.06 if cell[0] == 40 and cell[2] == (0.70, 0.85) else 0.002)


@pytest.mark.parametrize("cell", [*CELLS, *((300, theta, judge) for theta in THETAS for judge in JUDGES)])
def test_labels_left_of_a_half_and_half_build_pile(cell: Cell) -> None:
    """Lang-Reiczigel. What is left has few failures: with 40 labels nine in ten are refused even at theta .35, with 100
    all at .10, eight in ten at .20, none at .35; with 300 labels few from .20 on."""
    labels, theta, _ = cell
    rng = generator(cell)
    failures, goods = left_of_a_build_pile(rng, cell)
    tp, tn, flagged = by_verdict_labels(rng, cell, failures, goods)
    limits, refused = rogan_gladen_or_refused(tp, failures, tn, goods, flagged)
    assert held(limits, theta) >= LEAST
    expected = {40: (1.0, 1.0, 1.0, 0.90), 100: (1.0, 1.0, 0.79, 0.0), 300: (1.0, 0.29, 0.0, 0.0)}[labels]
    assert refused == pytest.approx(expected[THETAS.index(theta)], abs=0.04)


@pytest.mark.parametrize("cell", CELLS)
def test_random_labels_from_earlier_data(cell: Cell) -> None:
    """Lang-Reiczigel, labels at random where theta was .30. With 40 of them three in four are refused for fewer than 15
    failures, with 100 none."""
    labels, theta, _ = cell
    rng = generator(cell)
    failures = rng.binomial(labels, 0.30, REPLICATES)
    tp, tn, flagged = by_verdict_labels(rng, cell, failures, labels - failures)
    limits, refused = rogan_gladen_or_refused(tp, failures, tn, labels - failures, flagged)
    assert held(limits, theta) >= LEAST
    assert refused == pytest.approx(0.80 if labels == 40 else 0.0, abs=0.03)


@pytest.mark.parametrize("cell", CELLS)
def test_labels_drawn_within_the_judges_verdicts(cell: Cell) -> None:
    """Half of the labels on flagged cases, half on passed ones."""
    labels, theta, (tpr, tnr) = cell
    rng, half = generator(cell), labels // 2
    p = float(observed_rate(theta, tpr, tnr))
    tp, fn = (
        rng.binomial(half, theta * tpr / p, REPLICATES),
        rng.binomial(half, theta * (1 - tpr) / (1 - p), REPLICATES),
    )
    flagged = rng.binomial(JUDGED, p, REPLICATES)
    assert held(post_stratified_limits(tp, fn, half - tp, half - fn, flagged, JUDGED), theta) >= LEAST


@pytest.mark.parametrize("cell", CELLS)
def test_labels_balanced_over_cells(cell: Cell) -> None:
    """Four cells of 40, 30, 20 and 10 % of the cases, each with a quarter of the labels, failing .5 to 2.2 times as often as all."""
    labels, theta, (tpr, tnr) = cell
    rng, sizes = generator(cell), np.array([800, 600, 400, 200])
    rates = theta * np.array([0.5, 1.0, 1.4, 2.2])
    truth = float((rates * sizes).sum() / JUDGED)
    columns = []
    for rate, size in zip(rates, sizes, strict=True):
        shares = [rate * tpr, rate * (1 - tpr), (1 - rate) * (1 - tnr), (1 - rate) * tnr]
        tp, fn, fp, tn = rng.multinomial(labels // 4, shares, REPLICATES).T
        rest = rng.binomial(size - labels // 4, float(observed_rate(rate, tpr, tnr)), REPLICATES)
        columns.append((tp, fn, fp, tn, tp + fp + rest))
    tp, fn, fp, tn, flagged = (np.stack(column, axis=-1) for column in zip(*columns, strict=True))
    assert held(cell_limits(tp, fn, fp, tn, flagged, sizes), truth) >= LEAST
    # Unweighted, the small cell that fails most counts too much.
    pooled = post_stratified_limits(*(count.sum(axis=-1) for count in (tp, fn, fp, tn, flagged)), JUDGED)
    if labels == 100 and theta == 0.35:
        assert held(pooled, truth) < 0.9


def drawn(rng: np.random.Generator, count: Counts, total: int, draws: int = 1000) -> Floats:
    """Jeffreys draws, fresh ones for each replicate: shared ones would shift all replicates' limits together."""
    return rng.beta(count[:, None] + 0.5, total - count[:, None] + 0.5, size=(len(count), draws))


def tails(draws: Floats) -> tuple[Floats, Floats]:
    """Equal-tailed limits of each row."""
    low, high = np.quantile(draws, [0.025, 0.975], axis=1)
    return low, high


@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell[1] in (0.05, 0.20)])
def test_jeffreys_draws_under_by_verdict(cell: Cell) -> None:
    rng, half = generator(cell), cell[0] // 2
    tp, tn, flagged = by_verdict_labels(rng, cell, half, half)
    p, tpr, tnr = drawn(rng, flagged, JUDGED), drawn(rng, tp, half), drawn(rng, tn, half)
    j = tpr + tnr - 1
    theta = np.where(j > 0, np.clip((p + tnr - 1) / np.where(j > 0, j, 1.0), 0, 1), rng.random(j.shape[1]))
    assert held(tails(theta), cell[1]) >= LEAST


@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell[1] in (0.05, 0.20)])
def test_tpr_and_tnr_of_labels_drawn_within_the_judges_verdicts(cell: Cell) -> None:
    """As `rates_by_judge` has them: quantiles of the draws, reaching 1 where no error of the kind is labelled."""
    labels, theta, (tpr, tnr) = cell
    rng, half, truth = generator(cell), labels // 2, float(observed_rate(theta, tpr, tnr))
    tp = rng.binomial(half, theta * tpr / truth, REPLICATES)
    fn = rng.binomial(half, theta * (1 - tpr) / (1 - truth), REPLICATES)
    p = drawn(rng, rng.binomial(JUDGED, truth, REPLICATES), JUDGED)
    caught, missed = p * drawn(rng, tp, half), (1 - p) * drawn(rng, fn, half)
    low, high = tails(caught / (caught + missed))
    assert held((low, np.where(fn == 0, 1.0, high)), tpr) >= LEAST
    passed, alarms = 1 - p - missed, p - caught
    low, high = tails(passed / (passed + alarms))
    assert held((low, np.where(tp == half, 1.0, high)), tnr) >= LEAST


@pytest.mark.parametrize(("labels", "theta"), [(labels, theta) for labels in (40, 100) for theta in THETAS])
def test_labels_alone_balanced_over_cells(labels: int, theta: float) -> None:
    """The same four cells without the judge."""
    rng, sizes = np.random.default_rng([labels, round(1000 * theta)]), (800, 600, 400, 200)
    rates = [theta * factor for factor in (0.5, 1.0, 1.4, 2.2)]
    failures = rng.binomial(labels // 4, rates, size=(REPLICATES, 4))
    intervals = [
        labels_only(
            [
                JudgedSample(Confusion(0, int(k), 0, labels // 4 - int(k)), 0, size)
                for k, size in zip(row, sizes, strict=True)
            ]
        )
        for row in failures
    ]
    low, high = np.array([found.low for found in intervals]), np.array([found.high for found in intervals])
    assert held((low, high), theta) >= LEAST


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("labels", [40, 100])
@pytest.mark.parametrize("gap", [0.0, 0.03, 0.10])
def test_differences_of_two_systems(gap: float, labels: int, judge: tuple[float, float]) -> None:
    """1,000 cases for each system at theta .20 and .20 - gap, on different cases and on the same ones."""
    tpr, tnr = judge
    rng, half = np.random.default_rng([labels, round(100 * gap), round(100 * tpr)]), labels // 2
    tp, tn = rng.binomial(half, tpr, REPLICATES), rng.binomial(half, tnr, REPLICATES)
    j_low, j_high = youden_limits(tp, half, tn, half)
    known, j = j_low > 0.0, (tp + tn) / half - 1.0
    safe = [np.where(known, part, 1.0) for part in (j, j_low, j_high)]
    first, second = (float(observed_rate(theta, tpr, tnr)) for theta in (0.20, 0.20 - gap))
    k1, k2 = rng.binomial(1000, first, REPLICATES), rng.binomial(1000, second, REPLICATES)
    limits = divided_limits((k2 - k1) / 1000, *unpaired_limits(k1, 1000, k2, 1000), *safe)
    assert held((np.where(known, limits[0], -1.0), np.where(known, limits[1], 1.0)), -gap) >= LEAST
    # Paired: the verdicts on the two answers to a case agree more often than by chance.
    both = first * second + 0.4 * second * (1 - first)
    shares = [both, first - both, second - both, 1 - first - second + both]
    a, b, c, d = rng.multinomial(1000, shares, REPLICATES).T
    limits = divided_limits((c - b) / 1000, *paired_limits(a, b, c, d), *safe)
    assert held((np.where(known, limits[0], -1.0), np.where(known, limits[1], 1.0)), -gap) >= LEAST


ROWS = 4


def repeating_rows(rng: np.random.Generator, rates: Floats, judge: tuple[float, float]) -> tuple[Floats, Floats]:
    """Failures and the judge's verdicts [cases x ROWS] of cases that fail in ``rates`` [cases], alike within a case.

    Two rows of a case have a correlation of .5 in failing; in half of the cases the judge errs alike on all rows.
    """
    tpr, tnr = judge
    own = rng.beta(rates, 1.0 - rates)
    y = rng.random((len(rates), ROWS)) < own[:, None]
    alike = rng.random(len(rates)) < 0.5
    u = np.where(alike[:, None], rng.random((len(rates), 1)), rng.random((len(rates), ROWS)))
    return y.astype(float).ravel(), np.where(y, u < tpr, u >= tnr).astype(float).ravel()


@pytest.mark.parametrize("cell", CELLS)
def test_rows_that_repeat_a_case(cell: Cell) -> None:
    """300 cases of 4 rows; the labels are so many cases with all their rows. Rogan-Gladen is refused with fewer than 15
    cases that hold a failure. Taken for independent rows the post-stratified interval holds the truth in less than 85 %."""
    labels, theta, judge = cell
    rng, n = generator(cell), labels * ROWS
    cases = np.repeat(np.arange(300), ROWS)
    covered = {"by case": 0, "rogan-gladen": 0, "independent": 0}
    for _ in range(REPEATS):
        y, f = repeating_rows(rng, np.full(300, theta), judge)
        by_case = post_stratified_by_case(f, np.where(np.arange(len(y)) < n, y, np.nan), cases)
        rates = rogan_gladen_by_case(f, cases, f[:n], y[:n], cases[:n])
        table = [int(((y[:n] == failed) & (f[:n] == flag)).sum()) for failed, flag in ((1, 1), (1, 0), (0, 1), (0, 0))]
        low, high = post_stratified_limits(*table, int(f.sum()), len(f))
        covered["by case"] += by_case.estimate.low <= theta <= by_case.estimate.high
        covered["rogan-gladen"] += rates.estimate.low <= theta <= rates.estimate.high
        covered["independent"] += float(low) <= theta <= float(high)
    assert covered["by case"] >= LEAST_OF_REPEATS * REPEATS
    assert covered["rogan-gladen"] >= LEAST_OF_REPEATS * REPEATS
    assert covered["independent"] < 0.85 * REPEATS


@pytest.mark.parametrize("cell", CELLS)
def test_rows_that_repeat_a_case_balanced_over_cells(cell: Cell) -> None:
    """The four cells of `test_labels_balanced_over_cells`, with 300 cases of 4 rows."""
    labels, theta, judge = cell
    rng, sizes = generator(cell), np.array([120, 90, 60, 30])
    rates = theta * np.array([0.5, 1.0, 1.4, 2.2])
    truth, cases = float((rates * sizes).sum() / 300), np.repeat(np.arange(300), ROWS)
    cells = np.repeat(np.arange(4), sizes)
    drawn_cases = np.concatenate([np.arange(size) < labels // 4 for size in sizes])
    labelled, cells_of, covered = np.repeat(drawn_cases, ROWS), np.repeat(cells, ROWS), 0
    for _ in range(REPEATS):
        y, f = repeating_rows(rng, rates[cells], judge)
        found = post_stratified_by_case(f, np.where(labelled, y, np.nan), cases, cells=cells_of).estimate
        covered += found.low <= truth <= found.high
    assert covered >= LEAST_OF_REPEATS * REPEATS


def test_never_post_stratified_after_a_draw_by_verdict() -> None:
    """Why the table says never. Post-stratified with 100 labels half and half: 0-14 % up to theta .20. With what is left
    of a half/half build pile of 30, theta .10: 6-16 % with 100 labels, 26-68 % with 40 (the design page has 8-34 %
    from a trial of its own)."""
    for theta in (0.05, 0.10, 0.20):
        for judge in JUDGES:
            cell = (100, theta, judge)
            tp, tn, flagged = by_verdict_labels(generator(cell), cell, 50, 50)
            assert held(post_stratified_limits(tp, 50 - tp, 50 - tn, tn, flagged, JUDGED), theta) < 0.2
    for labels, most in ((40, 0.7), (100, 0.2)):
        for judge in JUDGES:
            cell = (labels, 0.10, judge)
            rng = generator(cell)
            failures, goods = left_of_a_build_pile(rng, cell)
            tp, tn, flagged = by_verdict_labels(rng, cell, failures, goods)
            limits = post_stratified_limits(tp, failures - tp, goods - tn, tn, flagged, JUDGED)
            assert held(limits, 0.10) < most
