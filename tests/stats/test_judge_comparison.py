"""Judges against one expert on the same cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stats.confusion import Verdict, rates, tabulate
from stats.judge_comparison import NoVerdict, compare_all, compare_judges, right_or_wrong
from stats.multiplicity import holm
from stats.paired import mcnemar

verdicts = st.sampled_from(["PASS", "FAIL", None])
rows = st.lists(st.tuples(verdicts, verdicts, verdicts), max_size=40)
Rows = list[tuple[Verdict | None, Verdict | None, Verdict | None]]


def columns(table: Rows) -> tuple[list[Verdict | None], ...]:
    return tuple([row[i] for row in table] for i in range(3))


@settings(deadline=None)
@given(rows)
def test_with_all_verdicts_given_the_differences_are_those_of_the_rates(table: Rows) -> None:
    complete = [row for row in table if None not in row]
    expert, first, second = columns(complete)
    comparison = compare_judges(expert, first, second)
    one, other = rates(tabulate(expert, first)), rates(tabulate(expert, second))
    for name in ("agreement", "tpr", "tnr"):
        part, before, after = getattr(comparison, name), getattr(one, name), getattr(other, name)
        assert (part.n, part.first, part.second) == (before.n, before.k, after.k)
        if part.n:
            assert part.difference == pytest.approx(after.value - before.value, abs=1e-12)


@settings(deadline=None)
@given(rows)
def test_failures_and_good_answers_make_up_the_whole(table: Rows) -> None:
    expert, first, second = columns(table)
    comparison = compare_judges(expert, first, second)
    for name in ("n", "first", "second", "gained", "lost", "left_out"):
        parts = [getattr(part, name) for part in (comparison.tpr, comparison.tnr)]
        assert getattr(comparison.agreement, name) == sum(parts)
    assert comparison.agreement.gained == len(comparison.gained)
    assert comparison.agreement.left_out == len(comparison.left_out)
    for i in comparison.gained:
        assert second[i] == expert[i] != first[i] is not None
    for i in comparison.lost:
        assert first[i] == expert[i] != second[i] is not None
    for i in comparison.left_out:
        assert expert[i] is not None and None in (first[i], second[i])


@settings(deadline=None)
@given(rows, st.sampled_from(["PASS", "FAIL"]))
def test_a_missing_verdict_read_one_way_is_as_if_it_had_been_given(table: Rows, read: Verdict) -> None:
    expert, first, second = columns(table)
    given_ = [[verdict or read for verdict in judge] for judge in (first, second)]
    found, expected = compare_judges(expert, first, second, read), compare_judges(expert, *given_)
    assert (found.agreement, found.tpr, found.tnr) == (expected.agreement, expected.tpr, expected.tnr)
    assert found.left_out.size == 0


def test_a_judge_that_cries_wolf_gains_failures_and_loses_good_answers() -> None:
    expert: list[Verdict | None] = ["FAIL"] * 20 + ["PASS"] * 80
    careful: list[Verdict | None] = ["FAIL"] * 10 + ["PASS"] * 90
    wolf: list[Verdict | None] = ["FAIL"] * 60 + ["PASS"] * 40
    comparison = compare_judges(expert, careful, wolf)
    assert (comparison.tpr.difference, comparison.tnr.difference) == (0.5, -0.5)
    assert comparison.agreement.difference == -0.3
    assert comparison.tpr.p_value == mcnemar(10, 0)
    assert comparison.gained.tolist() == list(range(10, 20))
    assert comparison.lost.tolist() == list(range(20, 60))


def test_several_judges_are_adjusted_over_all_pairs() -> None:
    rng = np.random.default_rng(0)
    expert = rng.choice(["PASS", "FAIL"], 300).tolist()
    judges = [np.where(rng.random(300) < share, expert, "PASS").tolist() for share in (0.5, 0.7, 0.9)]
    pairs = compare_all(expert, judges)
    assert [(pair.first, pair.second) for pair in pairs] == [(0, 1), (0, 2), (1, 2)]
    for name in ("agreement", "tpr", "tnr"):
        raw = [getattr(pair.comparison, name).p_value for pair in pairs]
        assert [getattr(pair, f"{name}_p") for pair in pairs] == pytest.approx(holm(raw).tolist(), abs=1e-15)
    assert pairs[1].comparison.tpr == compare_judges(expert, judges[0], judges[2]).tpr


def test_one_judge_alone_makes_no_pair() -> None:
    assert compare_all(["FAIL"], [["PASS"]]) == []


def test_two_real_judges_each_near_chance(shared_data: Path) -> None:
    """gpt-5.2 against gpt-4o-mini: TPR .844 -> .697, TNR .169 -> .538, one case without a verdict of the first."""
    path = shared_data / "audit" / "arena_gemini_pro" / "arena-gemini-2.5-pro.jsonl"
    cases = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def read(verdict: str | None) -> Verdict | None:
        return cast("Verdict", verdict.upper()) if verdict in ("pass", "fail") else None

    expert = [read(case["human"]) for case in cases]
    first, second = (
        [read(case["judges"].get(name, {}).get("verdict")) for case in cases] for name in ("gpt-4o-mini", "gpt-5.2")
    )
    comparison = compare_judges(expert, first, second)
    tpr, tnr = comparison.tpr, comparison.tnr
    assert (comparison.agreement.n, len(comparison.left_out)) == (276, 1)
    assert (tpr.first, tpr.n, tnr.first, tnr.n) == (178, 211, 11, 65)
    assert (tpr.second / tpr.n, tnr.second / tnr.n) == pytest.approx((0.697, 0.538), abs=2e-3)
    assert tpr.interval is not None and tpr.interval.high < 0.0
    assert tnr.interval is not None and tnr.interval.low > 0.0
    assert max(tpr.p_value, tnr.p_value) < 1e-3


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        compare_judges(["PASS"], ["PASS"], ["PASS", "FAIL"])
    with pytest.raises(ValueError, match="a verdict must be"):
        compare_judges(["PASS"], cast("list[Verdict | None]", ["pass"]), ["PASS"])
    with pytest.raises(ValueError, match="no_verdict"):
        right_or_wrong(["PASS"], [None], cast("NoVerdict", "none"))
    with pytest.raises(ValueError, match="confidence"):
        compare_judges(["PASS"], ["PASS"], ["FAIL"], confidence=95)
