"""One expert's verdicts against their own, given again blind."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.confusion import Verdict
from stats.intervals import proportion
from stats.kappa import cohens_kappa
from stats.self_consistency import WORKING_BAR, self_consistency

verdicts = st.sampled_from(["PASS", "FAIL", None])
rows = st.lists(st.tuples(verdicts, verdicts), max_size=40)
Verdicts = list[Verdict | None]


def of(stayed_fail: int, to_pass: int, to_fail: int, stayed_pass: int) -> tuple[Verdicts, Verdicts]:
    first: Verdicts = ["FAIL"] * (stayed_fail + to_pass) + ["PASS"] * (to_fail + stayed_pass)
    second: Verdicts = ["FAIL"] * stayed_fail + ["PASS"] * to_pass + ["FAIL"] * to_fail + ["PASS"] * stayed_pass
    return first, second


def test_flips_are_counted_by_the_first_verdict() -> None:
    """Of 20 repeats 3 failures became PASS and 1 pass became FAIL: 4 of 20, 3 of 8, 1 of 12."""
    consistency = self_consistency(*of(5, 3, 1, 11))
    assert consistency.flips == proportion(4, 20)
    assert consistency.agreement == proportion(16, 20)
    assert consistency.fail_flips == proportion(3, 8)
    assert consistency.pass_flips == proportion(1, 12)
    assert consistency.kappa == cohens_kappa(5, 3, 1, 11)
    assert consistency.flipped.tolist() == [5, 6, 7, 8]


@given(rows)
def test_the_parts_make_up_the_whole(table: list[tuple[Verdict | None, Verdict | None]]) -> None:
    first, repeat = [a for a, _ in table], [b for _, b in table]
    consistency = self_consistency(first, repeat)
    both = [pair for pair in table if None not in pair]
    assert consistency.flips.n == consistency.agreement.n == len(both)
    assert consistency.fail_flips.n == sum(a == "FAIL" for a, _ in both)
    assert consistency.fail_flips.k + consistency.pass_flips.k == consistency.flips.k == consistency.flipped.size
    assert consistency.agreement.k + consistency.flips.k == len(both)
    assert [table[i] for i in consistency.flipped] == [pair for pair in both if pair[0] != pair[1]]
    again = self_consistency([a for a, _ in both], [b for _, b in both])
    assert (again.flips, again.kappa) == (consistency.flips, consistency.kappa)


def test_the_bar_is_on_the_point_of_kappa() -> None:
    at_bar = self_consistency(*of(1, 1, 0, 2))
    assert at_bar.kappa.value == WORKING_BAR
    assert at_bar.reaches_bar is True
    assert self_consistency(*of(10, 10, 1, 20)).reaches_bar is False
    assert self_consistency(*of(10, 0, 0, 0)).reaches_bar is None


def test_an_expert_who_never_flips_has_kappa_1_and_no_interval_from_it() -> None:
    consistency = self_consistency(*of(6, 0, 0, 9))
    assert (consistency.kappa.value, consistency.kappa.low) == (1.0, None)
    assert consistency.flips.high is not None and consistency.flips.high > 0.1


def test_interval_and_confidence_are_the_callers() -> None:
    consistency = self_consistency(*of(5, 3, 1, 11), confidence=0.9, method="jeffreys")
    assert consistency.flips == proportion(4, 20, 0.9, "jeffreys")
    assert consistency.kappa == cohens_kappa(5, 3, 1, 11, 0.9)


def test_impossible_input_is_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        self_consistency(["PASS"], [])
    with pytest.raises(ValueError, match="a verdict must be"):
        self_consistency(["PASS"], cast("Verdicts", ["flip"]))
    with pytest.raises(ValueError, match="confidence"):
        self_consistency(["PASS"], ["PASS"], confidence=1.0)
