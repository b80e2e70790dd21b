"""Variance components and reliability: against statsmodels, plain loops, published examples."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stats.variance_components import (
    items_for_reliability,
    reliability,
    reliability_interval,
    variance_components,
)

Cube = np.ndarray[tuple[int, int, int], np.dtype[np.float64]]
cubes = arrays.arrays(
    np.float64,
    st.tuples(st.integers(2, 6), st.integers(2, 5), st.integers(1, 3)),
    elements=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
)

TARGETS = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]).T
"""Four judges (rows here, in the place of items) x six targets, Shrout and Fleiss (1979), table 2."""


def by_loops(values: Cube) -> tuple[float, float, float, float]:
    """The four sums of squares, cell by cell."""
    n, m, r = values.shape
    mean = values.mean()
    prompt = item = interaction = within = 0.0
    for i in range(n):
        for p in range(m):
            for t in range(r):
                of_item, of_prompt, cell = values[i].mean(), values[:, p].mean(), values[i, p].mean()
                prompt += (of_prompt - mean) ** 2
                item += (of_item - mean) ** 2
                interaction += (cell - of_item - of_prompt + mean) ** 2
                within += (values[i, p, t] - cell) ** 2
    return prompt, item, interaction, within


@settings(deadline=None)
@given(cubes)
def test_sums_of_squares_by_loops(values: Cube) -> None:
    parts = variance_components(values)
    squares = [parts.ms_prompt, parts.ms_item, parts.ms_interaction, parts.ms_within]
    assert [one.sum_of_squares for one in squares] == pytest.approx(by_loops(values), abs=1e-12)
    n, m, r = values.shape
    assert [one.degrees for one in squares] == [m - 1, n - 1, (n - 1) * (m - 1), n * m * (r - 1)]
    assert sum(one.sum_of_squares for one in squares) == pytest.approx(((values - values.mean()) ** 2).sum(), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [1, 3])
def test_equals_statsmodels(repeats: int) -> None:
    pandas = pytest.importorskip("pandas")
    ols = pytest.importorskip("statsmodels.formula.api").ols
    anova = pytest.importorskip("statsmodels.stats.anova").anova_lm
    values = np.random.default_rng(6).integers(0, 4, (9, 4, repeats)) / 2
    i, p, t = np.indices(values.shape)
    frame = pandas.DataFrame({"y": values.ravel(), "item": i.ravel(), "prompt": p.ravel(), "draw": t.ravel()})
    formula = "y ~ C(prompt) + C(item)" + (" + C(prompt):C(item)" if repeats > 1 else "")
    table = anova(ols(formula, frame).fit())["mean_sq"]
    parts = variance_components(values)
    assert parts.ms_prompt.mean_square == pytest.approx(table["C(prompt)"], rel=1e-12)
    assert parts.ms_item.mean_square == pytest.approx(table["C(item)"], rel=1e-12)
    if repeats > 1:
        assert parts.ms_interaction.mean_square == pytest.approx(table["C(prompt):C(item)"], rel=1e-12)
        assert parts.ms_within.mean_square == pytest.approx(table["Residual"], rel=1e-12)
    else:
        assert parts.ms_interaction.mean_square == pytest.approx(table["Residual"], rel=1e-12)


@settings(deadline=None)
@given(cubes)
def test_components_give_back_the_expected_mean_squares(values: Cube) -> None:
    parts = variance_components(values)
    n, m, r = values.shape
    interaction = r * (parts.interaction or 0.0) + parts.residual
    assert parts.ms_interaction.mean_square == pytest.approx(interaction, abs=1e-12)
    assert parts.ms_prompt.mean_square == pytest.approx(interaction + n * r * parts.prompt, abs=1e-12)
    assert parts.ms_item.mean_square == pytest.approx(interaction + m * r * parts.item, abs=1e-12)
    assert (parts.interaction is None) == (r == 1)


def test_shrout_and_fleiss() -> None:
    """ICC(3,1) .71, ICC(3,4) .91, ICC(2,1) .29, ICC(2,4) .62, and mean squares 11.24, 32.49, 1.02 (their tables 3 and 4)."""
    parts = variance_components(TARGETS)
    squares = [parts.ms_prompt, parts.ms_item, parts.ms_interaction]
    assert [round(one.mean_square, 2) for one in squares] == [11.24, 32.49, 1.02]
    assert [round(reliability(parts, k) or 0, 2) for k in (1, 4)] == [0.71, 0.91]
    assert [round(reliability(parts, k, shared=False) or 0, 2) for k in (1, 4)] == [0.29, 0.62]


def test_an_interval_of_reliability() -> None:
    """F = 11.03 with 5 and 15 degrees; its 97.5 % quantiles 3.576 and (15 and 5) 6.428 give .342 to .946."""
    interval = reliability_interval(variance_components(TARGETS), 1)
    ratio = 11.0272479564
    low, high = ratio / 3.5764153, ratio * 6.4277
    assert interval.low == pytest.approx((low - 1) / (low + 3), abs=1e-4)
    assert interval.high == pytest.approx((high - 1) / (high + 3), abs=1e-4)


@pytest.mark.slow
def test_the_interval_holds_the_true_reliability() -> None:
    """Normal effects, for which it is exact: 95 % of 4,000 replicates, simulation error .0035."""
    stream = np.random.default_rng(4)
    inside = 0
    for _ in range(4000):
        effects = stream.normal(0, 0.3, (1, 6)) + stream.normal(0, 1, (40, 1)) + stream.normal(0, 1, (40, 6))
        interval = reliability_interval(variance_components(effects), 40)
        inside += interval.low <= 0.09 / (0.09 + 1 / 40) <= interval.high
    assert inside / 4000 == pytest.approx(0.95, abs=0.01)


@settings(deadline=None)
@given(cubes, st.data())
def test_order_and_shift_change_nothing_and_scale_squares(values: Cube, data: st.DataObject) -> None:
    n, m, _ = values.shape
    items, prompts = data.draw(st.permutations(range(n))), data.draw(st.permutations(range(m)))
    one, other = variance_components(values), variance_components(10.0 - 2.0 * values[items][:, prompts])
    for name in ("prompt", "item", "residual"):
        assert getattr(other, name) == pytest.approx(4.0 * getattr(one, name), abs=1e-11)


@given(st.floats(0.05, 0.99), st.booleans())
def test_items_for_a_reliability_give_it(target: float, shared: bool) -> None:
    parts = variance_components(TARGETS)
    k = items_for_reliability(parts, target, shared=shared)
    assert reliability(parts, k, shared=shared) == pytest.approx(target, abs=1e-12)


def test_copies_of_one_prompt_have_no_variance_of_their_own() -> None:
    column = np.array([[1.0], [0.0], [1.0], [1.0]])
    parts = variance_components(np.hstack([column] * 3))
    assert (parts.prompt, parts.residual) == (0.0, 0.0)
    assert parts.item == pytest.approx(0.25)
    assert reliability(parts, 10) is None
    assert items_for_reliability(parts) == math.inf


@pytest.mark.parametrize("n", range(30, 60))
def test_rounding_is_not_taken_for_variance(n: int) -> None:
    column = np.random.default_rng(n).integers(0, 2, size=(n, 1)) * 0.7
    alike = variance_components(np.repeat(column, 3, axis=1))
    assert alike.prompt == alike.residual == 0.0
    assert reliability(alike, 50) is None and math.isinf(items_for_reliability(alike))
    apart = variance_components(np.tile([1.0, 0.0, 0.3], (n, 1)))
    assert apart.residual == apart.item == 0.0 and reliability(apart, 1) == 1.0 and items_for_reliability(apart) == 0.0


def test_below_0_is_shown_and_counts_as_0() -> None:
    """Two prompts with the same mean and nothing else in common: the spread of means is below what chance gives."""
    parts = variance_components([[1, 0], [0, 1], [1, 0], [0, 1]])
    assert parts.prompt == pytest.approx(-1 / 6)
    assert reliability(parts, 100) == 0.0
    assert items_for_reliability(parts) == math.inf
    assert reliability_interval(parts, 100).low == 0.0


def test_repeats_even_out_only_their_own_error() -> None:
    values = np.random.default_rng(7).normal(0, 1, (30, 4, 1)) + np.random.default_rng(8).normal(0, 1, (30, 4, 5))
    values += np.array([0.0, 0.5, 1.0, 1.5])[None, :, None]
    parts = variance_components(values)
    assert parts.interaction is not None and parts.interaction > 0.5 and parts.residual == pytest.approx(1.0, abs=0.2)
    once, often = items_for_reliability(parts), items_for_reliability(parts, repeats=5)
    assert often / once == pytest.approx(
        (parts.interaction + parts.residual / 5) / (parts.interaction + parts.residual), abs=1e-12
    )
    single = variance_components(values[:, :, 0])
    with pytest.raises(ValueError, match="one draw"):
        reliability(single, 10, repeats=2)


def test_only_complete_items_count() -> None:
    values = np.random.default_rng(1).random((10, 3))
    values[4, 1] = np.nan
    parts = variance_components(values)
    assert (parts.items, parts.left_out) == (9, 1)
    assert parts.prompt == variance_components(np.delete(values, 4, axis=0)).prompt


def test_impossible_input_is_refused() -> None:
    for values in ([[1, 0]], [[1], [0]], [[np.nan, 1], [0, 1]]):
        with pytest.raises(ValueError, match="two complete items"):
            variance_components(values)
    with pytest.raises(ValueError, match="shape"):
        variance_components([1.0, 0.0])
    with pytest.raises(ValueError, match="finite"):
        variance_components([[1, np.inf], [0, 1]])
    parts = variance_components(TARGETS)
    for target in (0.0, 1.0):
        with pytest.raises(ValueError, match="target"):
            items_for_reliability(parts, target)
    for k in (0, -1, math.nan):
        with pytest.raises(ValueError, match="items"):
            reliability(parts, k)
        with pytest.raises(ValueError, match="items"):
            reliability_interval(parts, k)
    with pytest.raises(ValueError, match="draw a cell"):
        reliability(parts, 1, repeats=0)
    with pytest.raises(ValueError, match="confidence"):
        reliability_interval(parts, 1, confidence=1.0)


def test_16_published_prompts(shared_data: Path) -> None:
    """Reliability .9 near 197 items (design page)."""
    with (shared_data / "ranking/oirl_gsm8k/gsm8k_test_correct.csv").open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    parts = variance_components([[float(cell) for cell in row[1:]] for row in rows])
    assert math.ceil(items_for_reliability(parts, 0.9)) == 197
    assert items_for_reliability(parts, 0.9) == pytest.approx(9 * parts.residual / parts.prompt, rel=1e-12)


def test_two_prompts_with_100_repeats(shared_data: Path) -> None:
    """Game of 24: 7.34 % and 4.03 % right over 100 items x 100 draws (data page)."""
    draws: dict[str, dict[str, list[float]]] = {}
    with (shared_data / "ranking/game24/game24_samples.csv").open(newline="") as file:
        for prompt, item, *cells in list(csv.reader(file))[1:]:
            draws.setdefault(prompt, {})[item] = [float(cell) for cell in cells]
    items = sorted(draws["standard"])
    values = np.array([[draws[prompt][item] for prompt in ("standard", "cot")] for item in items])
    assert values.mean(axis=(0, 2)) == pytest.approx([0.0734, 0.0403], abs=1e-12)
    parts = variance_components(values)
    assert (parts.items, parts.prompts, parts.repeats, parts.left_out) == (100, 2, 100, 0)
    # Binomial error: p (1 - p) R / (R - 1) averaged over the 200 cells.
    shares = values.mean(axis=2)
    assert parts.residual == pytest.approx(float((shares * (1 - shares)).mean()) * 100 / 99, rel=1e-12)
    assert parts.interaction is not None and parts.prompt < parts.item < parts.interaction < parts.residual
