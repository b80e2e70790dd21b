"""The fast forms of the ranking statistics against pandas, scipy and plain loops, in one run on the same numbers."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats as scipy_stats

from stats.rank_agreement import mean_over_pairs
from stats.rank_correlation import kendall_tau_b
from stats.ranks import fair_ranks
from stats.resampling import bootstrap
from stats.stability import stability

SCIPY_ROWS = 40
"""Rows whose pairs scipy compares one by one; its time is scaled to all pairs."""


def run() -> dict[str, dict[str, Any]]:
    """Ratios of the two sides' best times, the fast one's of more calls because it is short, measured one after the other on this machine, and what a summary takes."""
    generator = np.random.default_rng(0)
    figures: dict[str, dict[str, Any]] = {}
    for n_prompts, times in ((20, 3), (200, 1)):
        scores = generator.integers(0, 300, (1000, n_prompts)).astype(float)
        figures[f"taub_{n_prompts}_vs_pandas"] = _all_pairs(scores, times)
    figures |= _summary(generator)
    figures["bootstrap_vs_loop"] = _bootstrap(generator)
    figures["stability_ms"] = _stability(generator)
    return figures


def _all_pairs(scores: np.ndarray[Any, np.dtype[np.float64]], times: int) -> dict[str, Any]:
    ranks, frame = fair_ranks(scores), pd.DataFrame(scores).T
    ours = _best(lambda: kendall_tau_b(ranks), 10 * times)
    pandas = _best(lambda: frame.corr(method="kendall"), times)
    some = scores[:SCIPY_ROWS]
    pairs = [(a, b) for a in range(SCIPY_ROWS) for b in range(a)]
    scipy = _best(lambda: [scipy_stats.kendalltau(some[a], some[b]) for a, b in pairs], 1)
    scipy *= len(scores) * (len(scores) - 1) / 2 / len(pairs)
    np.testing.assert_allclose(kendall_tau_b(ranks[:50]), frame.iloc[:, :50].corr(method="kendall"), atol=1e-12)
    return {
        "value": pandas / ours,
        "unit": "times",
        "reference": f"goal 20; tau-b of 1,000 rankings, {1e3 * ours:.1f} ms, pandas {1e3 * pandas:,.0f} ms, scipy pair by pair "
        f"{scipy:,.0f} s (from {len(pairs):,} pairs)",
    }


def _summary(generator: np.random.Generator) -> dict[str, dict[str, Any]]:
    scores = generator.integers(0, 300, (10_000, 200)).astype(float)

    def summarise() -> None:
        mean_over_pairs(fair_ranks(scores), 3)

    cpu = time.process_time()
    seconds = _best(summarise, 1)
    cpu = time.process_time() - cpu
    few = _best(lambda: mean_over_pairs(fair_ranks(scores[:1000]), 3), 3)
    tracemalloc.start()
    summarise()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "summary_10k_s": {
            "value": seconds,
            "unit": "s",
            "reference": f"goal 3; from scores of 10,000 x 200 to all means over pairs, {cpu:.2f} s of processor time; of "
            f"1,000 x 200 {1e3 * few:.0f} ms",
        },
        "summary_10k_mb": {
            "value": peak / 2**20,
            "unit": "MiB",
            "reference": "goal 512; peak of what is allocated meanwhile, arrays of numpy included (tracemalloc); the scores "
            f"themselves take {scores.nbytes / 2**20:.0f}",
        },
    }


def _bootstrap(generator: np.random.Generator) -> dict[str, Any]:
    outcomes = (generator.random((1319, 20)) < np.linspace(0.2, 0.8, 20)).astype(float)

    def loop() -> None:
        for _ in range(10_000):
            outcomes[generator.integers(0, 1319, 1319)].mean(axis=0)

    ours, looped = _best(lambda: bootstrap(outcomes, 10_000), 10), _best(loop, 2)
    return {
        "value": looped / ours,
        "unit": "times",
        "reference": f"goal 4; 10,000 draws of 1,319 x 20, {1e3 * ours:.0f} ms, rows by index in a numpy loop {1e3 * looped:,.0f} ms",
    }


def _stability(generator: np.random.Generator) -> dict[str, Any]:
    outcomes = (generator.random((1319, 20)) < np.linspace(0.2, 0.8, 20)).astype(float)
    return {
        "value": 1e3 * _best(lambda: stability(outcomes, 100, 3), 5),
        "unit": "ms",
        "reference": "every figure of 1,319 x 20 at one k",
    }


def _best(work: Callable[[], object], times: int) -> float:
    """Seconds of the fastest of several calls."""
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)
