"""Simulated rates. Positive = the judge reports a failure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stats.confusion import Confusion
from stats.post_stratified import post_stratified
from stats.prevalence_draws import (
    by_judge_draws,
    equal_tailed,
    flat_draws,
    highest_density,
    jeffreys_draws,
    melded_interval,
)
from stats.rogan_gladen import lang_reiczigel

COUNTS = (80, 400, 30, 40, 78, 80)


def test_the_same_counts_give_the_same_draws_and_another_seed_others() -> None:
    for draw in (jeffreys_draws, flat_draws):
        assert np.array_equal(draw(*COUNTS), draw(*COUNTS))
        assert not np.array_equal(draw(*COUNTS), draw(*COUNTS, seed=1))
    assert melded_interval(*COUNTS) == melded_interval(*COUNTS)


def test_the_ends_hold_from_seed_to_seed() -> None:
    """What is said of the number of draws: the ends vary by about 1 % of the width."""
    intervals = [equal_tailed(jeffreys_draws(*COUNTS, seed=seed)) for seed in range(20)]
    width = np.mean([interval.high - interval.low for interval in intervals])
    for ends in ([interval.low for interval in intervals], [interval.high for interval in intervals]):
        assert np.std(ends) < 0.015 * width


def test_jeffreys_is_near_lang_reiczigel_with_many_labels() -> None:
    counts = (800, 4000, 300, 400, 780, 800)
    simulated, closed = equal_tailed(jeffreys_draws(*counts)), lang_reiczigel(*counts)
    assert (simulated.low, simulated.high) == pytest.approx((closed.low, closed.high), abs=3e-3)


def test_draws_follow_the_betas_of_their_counts() -> None:
    """A judge known to be perfect leaves p alone: Beta(k + 1/2, n - k + 1/2)."""
    betaincinv = pytest.importorskip("scipy.special").betaincinv
    interval = equal_tailed(jeffreys_draws(30, 100, 10**9, 10**9, 10**9, 10**9, draws=200_000))
    expected = (betaincinv(30.5, 70.5, 0.025), betaincinv(30.5, 70.5, 0.975))
    assert (interval.low, interval.high) == pytest.approx(expected, abs=2e-3)
    interval = equal_tailed(flat_draws(30, 100, 10**9, 10**9, 10**9, 10**9, draws=200_000))
    expected = (betaincinv(31, 71, 0.025), betaincinv(31, 71, 0.975))
    assert (interval.low, interval.high) == pytest.approx(expected, abs=2e-3)


def test_flat_draws_have_the_posterior_by_quadrature() -> None:
    """Mean of theta under flat priors, by a grid over theta, TPR and TNR."""
    betaincinv = pytest.importorskip("scipy.special").betaincinv
    middles = (np.arange(120) + 0.5) / 120
    tpr, tnr = betaincinv(11, 3, middles)[:, None], betaincinv(32, 4, middles)[None, :]
    thetas = np.linspace(0.0, 0.4, 161)
    likelihood = []
    for theta in thetas:
        p = theta * tpr + (1 - theta) * (1 - tnr)
        likelihood.append(np.exp(43 * np.log(p) + 257 * np.log1p(-p) + 123.3).mean())
    mean = float(np.average(thetas, weights=likelihood))
    assert float(flat_draws(43, 300, 10, 12, 31, 34, draws=200_000).mean()) == pytest.approx(mean, abs=1e-3)


def test_a_worthless_judge_leaves_everything_open() -> None:
    """With TPR + TNR surely below 1 no draw says anything of theta."""
    draws = jeffreys_draws(200, 400, 10, 400, 10, 400)
    assert equal_tailed(draws).low == pytest.approx(0.025, abs=5e-3)
    assert equal_tailed(draws).high == pytest.approx(0.975, abs=5e-3)
    melded = melded_interval(200, 400, 10, 400, 10, 400)
    assert (melded.low, melded.high) == (0.0, 1.0)
    with pytest.raises(ValueError, match="hardly any draw"):
        flat_draws(200, 400, 10, 400, 10, 400)


def test_melded_is_the_widest() -> None:
    for counts in (COUNTS, (40, 400, 12, 15, 78, 80), (51, 509, 23, 41, 187, 195)):
        melded, closed = melded_interval(*counts), lang_reiczigel(*counts)
        simulated = equal_tailed(jeffreys_draws(*counts))
        assert melded.high - melded.low > max(closed.high - closed.low, simulated.high - simulated.low)


def test_by_judge_draws_belong_together() -> None:
    """p = TPR theta + (1 - TNR)(1 - theta) within each draw, around the post-stratified estimate."""
    labelled = Confusion(tp=40, fn=4, fp=10, tn=46)
    drawn = by_judge_draws(labelled, flagged=300, judged=2000)
    p = drawn.tpr * drawn.theta + (1 - drawn.tnr) * (1 - drawn.theta)
    assert float(p.mean()) == pytest.approx(0.15, abs=1e-3)
    assert float(p.std()) == pytest.approx((0.15 * 0.85 / 2000) ** 0.5, rel=0.03)
    closed, simulated = post_stratified(labelled, 300, 2000), equal_tailed(drawn.theta)
    assert (simulated.low, simulated.high) == pytest.approx((closed.low, closed.high), abs=0.02)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=60), st.sampled_from([0.5, 0.8, 0.95]))
def test_the_shortest_interval_holds_its_share_and_is_no_wider(draws: list[float], confidence: float) -> None:
    shortest = highest_density(draws, confidence)
    inside = sum(shortest.low <= draw <= shortest.high for draw in draws)
    assert inside >= confidence * len(draws) - 1e-9
    # No run of as many draws is shorter.
    held, count = sorted(draws), int(np.ceil(confidence * len(draws) - 1e-9))
    widths = [held[i + count - 1] - held[i] for i in range(len(held) - count + 1)]
    assert shortest.high - shortest.low == min(widths)


def test_equal_tails_are_quantiles() -> None:
    draws = np.random.default_rng(3).normal(size=1001)
    interval = equal_tailed(draws, 0.9)
    assert (interval.low, interval.high) == (np.quantile(draws, 0.05), np.quantile(draws, 0.95))


def test_impossible_input_is_refused() -> None:
    for draw in (jeffreys_draws, flat_draws, melded_interval):
        with pytest.raises(ValueError, match="between 0 and its total"):
            draw(11, 10, 5, 10, 5, 10)
        with pytest.raises(ValueError, match="between 0 and its total"):
            draw(5, 10, -1, 10, 5, 10)
    for interval in (equal_tailed, highest_density):
        with pytest.raises(ValueError, match="at least one draw"):
            interval([])
        with pytest.raises(ValueError, match="no nan"):
            interval([0.1, float("nan")])
        with pytest.raises(ValueError, match="confidence"):
            interval([0.1], 1.0)


def test_few_draws_are_no_sign_that_the_rates_do_not_fit() -> None:
    assert flat_draws(80, 400, 30, 40, 78, 80, draws=50).shape == (50,)
