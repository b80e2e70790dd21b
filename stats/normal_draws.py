"""Seeded normal vectors with a given covariance, the same with every version of numpy.

>>> covariance = np.array([[4.0, 2.0], [2.0, 1.0]])
>>> draws = normal_root(covariance) @ standard_normal(2, 5, seed=0)
>>> draws.round(6).tolist()[0] == (2.0 * draws[1]).round(6).tolist()
True
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def standard_normal(rows: int, columns: int, seed: int) -> Floats:
    """[rows, columns], independent standard normal numbers.

    From raw 64-bit outputs of PCG64, whose stream never changes between versions of numpy, unlike that of numpy's own
    normal numbers.

    >>> standard_normal(1, 3, seed=0).shape
    (1, 3)
    """
    from scipy.special import ndtri

    raw = np.random.PCG64(seed).random_raw(rows * columns).reshape(rows, columns)
    normal: Floats = ndtri(((raw >> np.uint64(11)) + 0.5) * 2.0**-53)
    return normal


def normal_root(covariance: Floats) -> Floats:
    """[M, M], the symmetric R with R R' = ``covariance`` [M, M]: R times standard normal columns has that covariance.

    Unlike a triangular root it exists where prompts depend on each other linearly.

    >>> normal_root(np.array([[4.0, 0.0], [0.0, 9.0]]))
    array([[2., 0.],
           [0., 3.]])
    """
    values, vectors = np.linalg.eigh(covariance)
    root: Floats = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root
