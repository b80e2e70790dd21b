"""The failure rate by cell."""

from __future__ import annotations

import csv
import math
from collections import Counter
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import fisher_exact as by_scipy

from stats.confusion import Verdict
from stats.intervals import proportion
from stats.multiplicity import benjamini_hochberg
from stats.segments import LABELS_FOR_CORRECTION, fisher_exact, segments

cases = st.lists(
    st.tuples(
        st.sampled_from("abcd"), st.sampled_from([0.0, 1.0, float("nan")]), st.sampled_from(["PASS", "FAIL", None])
    ),
    max_size=50,
)
Cases = list[tuple[str, float, Verdict | None]]


def test_fishers_tea() -> None:
    """Fisher (1935), The Design of Experiments, chapter II: 3 of 4 cups right; one-sided 17/70, so two-sided 34/70."""
    assert fisher_exact(3, 4, 1, 4) == pytest.approx(34 / 70, abs=1e-15)


def test_fisher_equals_scipy_on_random_tables() -> None:
    rng = np.random.default_rng(0)
    for size in (3, 12, 60, 900):
        for _ in range(60):
            n, rest_n = (int(x) for x in rng.integers(1, size, 2))
            k, rest_k = (int(rng.binomial(m, rng.choice([0.0, 0.1, 0.5, 0.9, 1.0]))) for m in (n, rest_n))
            expected = by_scipy([[k, n - k], [rest_k, rest_n - rest_k]]).pvalue
            assert fisher_exact(k, n, rest_k, rest_n) == pytest.approx(expected, abs=1e-12)


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_fisher_is_the_same_from_either_side(n: int, rest_n: int, data: st.DataObject) -> None:
    k, rest_k = data.draw(st.integers(0, n)), data.draw(st.integers(0, rest_n))
    p = fisher_exact(k, n, rest_k, rest_n)
    assert 0.0 < p <= 1.0
    assert fisher_exact(rest_k, rest_n, k, n) == pytest.approx(p, abs=1e-12)
    assert fisher_exact(n - k, n, rest_n - rest_k, rest_n) == pytest.approx(p, abs=1e-12)


def test_fisher_of_many_cases_is_exact_and_quick() -> None:
    assert fisher_exact(5_100, 10_000, 24_500, 50_000) == pytest.approx(
        by_scipy([[5_100, 4_900], [24_500, 25_500]]).pvalue, rel=1e-8
    )


@settings(deadline=None, max_examples=30)
@given(cases)
def test_the_cells_are_counted_as_pandas_counts_them(table: Cases) -> None:
    keys, failed, labels = ([row[i] for row in table] for i in range(3))
    found = segments(keys, failed, cast("list[Verdict | None]", labels))
    frame = pd.DataFrame({"key": keys, "failed": failed, "label": labels})
    assert [segment.key for segment in found] == list(dict.fromkeys(keys))
    for segment in found:
        cell, rest = frame[frame.key == segment.key], frame[frame.key != segment.key]
        assert segment.rate == proportion(int(cell.failed.sum()), int(cell.failed.notna().sum()))
        assert segment.rest == proportion(int(rest.failed.sum()), int(rest.failed.notna().sum()))
        assert segment.missing == cell.failed.isna().sum()
        assert (segment.labels_fail, segment.labels_pass) == tuple((cell.label == x).sum() for x in ("FAIL", "PASS"))
        if segment.rate.n and segment.rest.n:
            expected = fisher_exact(segment.rate.k, segment.rate.n, segment.rest.k, segment.rest.n)
            assert segment.p_value == expected
        else:
            assert math.isnan(segment.p_value)
    adjusted = benjamini_hochberg([segment.p_value for segment in found])
    assert np.array_equal([segment.adjusted for segment in found], adjusted, equal_nan=True)


def test_cells_of_several_dimensions_and_cells_never_tested() -> None:
    found = segments(
        [("de", "refund"), ("en", "refund"), ("de", "refund")],
        [1, 0, 1],
        grid=[("de", "refund"), ("de", "login"), ("en", "refund"), ("en", "login")],
    )
    assert [(segment.rate.k, segment.rate.n) for segment in found] == [(2, 2), (0, 0), (0, 1), (0, 0)]
    assert [segment.rate.value for segment in found] == [1.0, None, 0.0, None]
    assert [math.isnan(segment.adjusted) for segment in found] == [False, True, False, True]


def test_a_single_cell_has_nothing_to_be_tested_against() -> None:
    (only,) = segments(["a", "a"], [1, 0])
    assert math.isnan(only.p_value) and math.isnan(only.adjusted)
    assert only.rest.value is None


def test_two_cells_are_one_question() -> None:
    """Each is the other's rest: adjusting for two tests leaves their one p-value as it is."""
    one, other = segments(["a"] * 8 + ["b"] * 9, [1] * 7 + [0] + [1] * 2 + [0] * 7)
    assert one.adjusted == pytest.approx(fisher_exact(7, 8, 2, 9), abs=1e-12)
    assert other.adjusted == pytest.approx(one.adjusted, abs=1e-12)


def test_a_cell_may_be_corrected_from_15_labels_of_each_class_on() -> None:
    labels: list[Verdict | None] = ["FAIL"] * 15 + ["PASS"] * 15 + ["FAIL"] * 14 + ["PASS"] * 40
    enough, too_few = segments(["a"] * 30 + ["b"] * 54, [0] * 84, labels)
    assert (enough.labels_fail, enough.labels_pass, enough.correctable) == (15, 15, True)
    assert (too_few.labels_fail, too_few.labels_pass, too_few.correctable) == (14, 40, False)
    assert LABELS_FOR_CORRECTION == 15


def test_the_segments_of_a_real_file(shared_data: Path) -> None:
    """Rates and counts by segment against a loop of their own."""
    with (shared_data / "audit" / "truescore" / "support_segments.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = segments([row["segment"] for row in rows], [row["v3_judge_passed"] == "0" for row in rows])
    total = Counter(row["segment"] for row in rows)
    failures = Counter(row["segment"] for row in rows if row["v3_judge_passed"] == "0")
    assert len(found) > 1
    for segment in found:
        key = str(segment.key)
        assert (segment.rate.k, segment.rate.n) == (failures[key], total[key])
        assert segment.rate.n + segment.rest.n == len(rows)


@pytest.mark.slow
def test_cells_that_are_all_alike_are_seldom_named() -> None:
    """12 cells of 5 to 60 cases, one rate: in at most 5 % of 2,000 data sets is any cell at or below .05.

    The tests are a little negatively dependent, each cell being in the others' rest, for which Benjamini and Hochberg
    gave no proof.
    """
    rng = np.random.default_rng(0)
    sizes = np.arange(5, 65, 5)
    total = int(sizes.sum())
    known: dict[tuple[int, int, int], float] = {}
    named = 0
    for failures in rng.binomial(sizes, 0.2, size=(2000, sizes.size)):
        everywhere = int(failures.sum())
        p_values = []
        for k, n in zip(failures.tolist(), sizes.tolist(), strict=True):
            if (k, n, everywhere) not in known:
                known[k, n, everywhere] = fisher_exact(k, n, everywhere - k, total - n)
            p_values.append(known[k, n, everywhere])
        named += bool((benjamini_hochberg(p_values) <= 0.05).any())
    assert 0.01 < named / 2000 <= 0.05


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError, match="as many outcomes"):
        segments(["a"], [1, 0])
    with pytest.raises(ValueError, match="as many outcomes"):
        segments(["a"], [1], ["PASS", "FAIL"])
    with pytest.raises(ValueError, match="an outcome must be"):
        segments(["a"], [0.5])
    with pytest.raises(ValueError, match="a label must be"):
        segments(["a"], [1], cast("list[Verdict | None]", ["yes"]))
    for wrong in ((3, 2, 0, 4), (-1, 2, 0, 4), (1, 2, 5, 4), (0.5, 2, 1, 4)):
        with pytest.raises(ValueError, match="whole numbers"):
            fisher_exact(*cast("tuple[int, int, int, int]", wrong))


def test_fishers_test_takes_any_kind_of_whole_number() -> None:
    assert fisher_exact(3.0, 4.0, np.int64(1), np.int8(4)) == fisher_exact(3, 4, 1, 4)  # type: ignore[arg-type]
