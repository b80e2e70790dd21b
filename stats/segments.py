"""The failure rate by cell: where the system fails more often than elsewhere, and whether that is more than chance.

A cell is one value of one dimension, or one combination of two or three. Each cell is tested against the rest of the
cases (not against the total, which it is part of) by Fisher's exact test. Given how many cases fail in all, that asks
how often a cell of this size would hold so few or so many of them if failures fell on cases at random. The answer is
exact for cells of three cases too, where a normal approximation is not; small cells make it cautious. Looking at many
cells finds something by chance, so the p-values are adjusted by Benjamini and Hochberg.

>>> cells = ["de"] * 12 + ["en"] * 40
>>> failed = [1] * 9 + [0] * 3 + [1] * 8 + [0] * 32
>>> german, english = segments(cells, failed)
>>> german.key, german.rate.k, german.rate.n, german.rest.k, german.rest.n, round(german.p_value, 4)
('de', 9, 12, 8, 40, 0.0008)
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.confusion import Verdict
from stats.intervals import IntervalMethod, Proportion, as_count, proportion
from stats.multiplicity import benjamini_hochberg

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

LABELS_FOR_CORRECTION: Final = 15
"""The labels of each class, FAIL and PASS, that a cell needs before its rate may be corrected for the judge's errors."""

_SAME: Final = 1e-10


@dataclass(frozen=True)
class Segment:
    """One cell: failures of its cases, beside those of all other cases.

    missing: cases of the cell without an outcome; in no rate.
    p_value: Fisher's exact test of the cell against the rest, two-sided; nan where one of them is empty: not tested.
    adjusted: the p-value by Benjamini and Hochberg over all tested cells.
    labels_fail, labels_pass: the expert's labels in the cell. correctable: both are at `LABELS_FOR_CORRECTION` or above.
    """

    key: Hashable
    rate: Proportion
    rest: Proportion
    missing: int
    p_value: float
    adjusted: float
    labels_fail: int
    labels_pass: int

    @property
    def correctable(self) -> bool:
        """Whether the cell has labels enough for a corrected rate of its own."""
        return min(self.labels_fail, self.labels_pass) >= LABELS_FOR_CORRECTION


def segments(
    cells: Sequence[Hashable],
    failed: ArrayLike,
    labels: Sequence[Verdict | None] | None = None,
    grid: Sequence[Hashable] = (),
    confidence: float = 0.95,
    method: IntervalMethod = "wilson",
) -> list[Segment]:
    """The segments of N cases, in order of ``grid`` and then of first appearance.

    ``cells`` [N] are the cases' cells: a value, or a tuple of values for two or three dimensions. ``failed`` [N] is 1
    (fails), 0 or nan (no outcome). ``labels`` [N] are the expert's labels, None where there is none. ``grid`` names
    cells that are to be listed whether they have a case or not: a cell that was never tested has no rate.

    Raises ValueError when the lengths differ, another number is among the outcomes, a label is none of 'PASS', 'FAIL'
    and None, the method is unknown, or ``confidence`` is not strictly between 0 and 1.

    >>> [(x.key, x.rate.n, x.missing) for x in segments(["b", "a", "b"], [1, 0, float("nan")], grid=["a", "c"])]
    [('a', 1, 0), ('c', 0, 0), ('b', 1, 1)]
    """
    outcomes = np.asarray(failed, dtype=np.float64)
    given: Sequence[Verdict | None] = [None] * len(cells) if labels is None else labels
    if outcomes.shape != (len(cells),) or len(given) != len(cells):
        raise ValueError(
            f"{len(cells)} cells need as many outcomes and labels, got the shape {outcomes.shape} and {len(given)}"
        )
    known = ~np.isnan(outcomes)
    if not np.isin(outcomes[known], (0.0, 1.0)).all():
        raise ValueError("an outcome must be 1 (fails), 0 or nan (none)")
    for label in set(given):
        if label not in ("PASS", "FAIL", None):
            raise ValueError(f"a label must be 'PASS', 'FAIL' or None, got {label!r}")
    position = {key: i for i, key in enumerate(dict.fromkeys((*grid, *cells)))}
    of_case = np.array([position[key] for key in cells], dtype=np.int64)

    def count(which: NDArray[np.bool_]) -> list[int]:
        return [int(n) for n in np.bincount(of_case[which], minlength=len(position))]

    failures, cases, missing = count(known & (outcomes == 1.0)), count(known), count(~known)
    labels_fail, labels_pass = (
        count(np.array([label == verdict for label in given], dtype=bool)) for verdict in ("FAIL", "PASS")
    )
    all_failures, all_cases = sum(failures), sum(cases)
    p_values = [fisher_exact(k, n, all_failures - k, all_cases - n) for k, n in zip(failures, cases, strict=True)]
    adjusted = benjamini_hochberg(p_values)
    return [
        Segment(
            key,
            proportion(failures[i], cases[i], confidence, method),
            proportion(all_failures - failures[i], all_cases - cases[i], confidence, method),
            missing[i],
            p_values[i],
            float(adjusted[i]),
            labels_fail[i],
            labels_pass[i],
        )
        for key, i in position.items()
    ]


def fisher_exact(k: int, n: int, rest_k: int, rest_n: int) -> float:
    """Two-sided p-value of Fisher's exact test of ``k`` of ``n`` against ``rest_k`` of ``rest_n``; nan if one is empty.

    The sum of the probabilities, given the margins, of all tables that are no more likely than the observed one.

    Raises ValueError when a count is no whole number, or k is outside 0..n for either.

    Source: Fisher (1935), Journal of the Royal Statistical Society 98, 39-82.

    >>> round(fisher_exact(3, 4, 1, 4), 4)
    0.4857
    >>> fisher_exact(0, 0, 3, 9)
    nan
    """
    for part, whole in ((k, n), (rest_k, rest_n)):
        if as_count(part) is None or as_count(whole) is None or not 0 <= part <= whole:
            raise ValueError(f"failures must be whole numbers between 0 and the cases, got {part!r} of {whole!r}")
    if not n or not rest_n:
        return math.nan
    k, n, rest_k, rest_n = int(k), int(n), int(rest_k), int(rest_n)
    failures = k + rest_k
    fewest, most = max(0, failures - rest_n), min(failures, n)
    # Each table's probability by that of the one before it, in logarithms and against the likeliest: no factorials.
    held = np.arange(fewest + 1, most + 1, dtype=np.float64)
    steps = np.log((failures - held + 1.0) * (n - held + 1.0) / (held * (rest_n - failures + held)))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    weights = np.exp(logs - logs.max())
    as_unlikely = weights <= weights[k - fewest] * (1.0 + _SAME)
    return min(float(weights[as_unlikely].sum() / weights.sum()), 1.0)
