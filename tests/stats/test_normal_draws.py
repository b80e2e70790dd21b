"""Seeded normal vectors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest, norm

from stats.normal_draws import normal_root, standard_normal


def test_the_stream_is_the_quantiles_of_raw_outputs() -> None:
    """Not numpy's own normal numbers, which may be others with its next version."""
    raw = np.random.PCG64(7).random_raw(6)
    uniform = [((int(bits) >> 11) + 0.5) / 2**53 for bits in raw]
    assert standard_normal(2, 3, seed=7).ravel() == pytest.approx(norm.ppf(uniform), abs=1e-12)


def test_they_are_standard_normal() -> None:
    assert kstest(standard_normal(1, 100_000, seed=0)[0], "norm").pvalue > 0.001


def test_draws_have_the_covariance_also_a_singular_one() -> None:
    covariance = np.array([[2.0, 1.0, 3.0], [1.0, 1.0, 2.0], [3.0, 2.0, 5.0]])
    root = normal_root(covariance)
    assert root @ root.T == pytest.approx(covariance)
    first, second, both = root @ standard_normal(3, 50_000, seed=1)
    assert np.cov([first, second, both]) == pytest.approx(covariance, abs=0.1)
    assert both == pytest.approx(first + second, abs=1e-6)
