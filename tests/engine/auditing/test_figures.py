"""The figures under their public names: the same for the screen, the store and --json."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from engine.auditing.figures import PROPORTIONS, figure_rows, figures_json
from stats.confusion import Confusion

tables = st.builds(Confusion, *[st.integers(0, 40)] * 4, *[st.integers(0, 5)] * 3)


def test_the_keys_that_other_tools_rely_on() -> None:
    figures = figures_json(Confusion(tp=8, fn=12, fp=9, tn=171, no_verdict_fail=2, no_verdict_pass=1, unlabelled=5))
    assert figures["positive"] == "the judge reports a failure"
    assert figures["n"] == 203
    expected = {"tp": 8, "fn": 12, "fp": 9, "tn": 171, "no_verdict": 3, "unlabelled": 5}
    assert {name: figures["confusion"][name] for name in expected} == expected
    for name in PROPORTIONS:
        assert figures[name].keys() == {"k", "n", "value", "low", "high"}
    assert figures["kappa"].keys() == {"value", "low", "high"}
    assert next(iter(figures)) == "sentence"


def test_nothing_to_divide_by_is_null_with_its_counts() -> None:
    figures = figures_json(Confusion(0, 0, 0, 3))
    assert figures["tpr"] == {"k": 0, "n": 0, "value": None, "low": None, "high": None}
    assert figures["kappa"] == {"value": None, "low": None, "high": None}
    assert figures["constant_judge"] == "PASS"


@given(tables)
def test_rows_and_json_hold_the_same_numbers(table: Confusion) -> None:
    figures = json.loads(json.dumps(figures_json(table), allow_nan=False))
    rows = {row.name: row for row in figure_rows(table)}
    for name in PROPORTIONS:
        row = rows[name]
        assert figures[name] == {"k": row.k, "n": row.n, "value": row.value, "low": row.low, "high": row.high}
    kappa = rows["kappa"]
    assert figures["kappa"] == {"value": kappa.value, "low": kappa.low, "high": kappa.high}
    for rate in ("tpr", "tnr"):
        for reading in ("as_pass", "as_fail"):
            row = rows[f"{rate}_no_verdict_{reading}"]
            assert figures["no_verdict_bounds"][rate][reading]["k"] == row.k
    counts = figures["confusion"]
    assert figures["n"] == sum(counts[name] for name in ("tp", "fn", "fp", "tn", "no_verdict"))
    assert counts["no_verdict"] == counts["no_verdict_fail"] + counts["no_verdict_pass"]
