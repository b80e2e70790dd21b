"""Blind repeats: what is drawn, what counts, what is taken back, and that labels stay as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import Refused
from engine.importing.records import TraceRecord
from engine.judging.criterion import Criterion
from engine.measuring.consistency import consistency
from engine.store import blind_repeats, criteria, labels, traces
from engine.store.labels import Label, Mark
from engine.store.store import Store
from engine.store.workspace import Workspace

CRITERION = Criterion("numbers", "Is every number supported?", "You check numbers.", "all stand there", "one does not")
MARKS = [Mark.FAIL, Mark.PASS, Mark.PASS, Mark.FAIL, Mark.PASS, Mark.DEFERRED, Mark.NOT_APPLICABLE]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Five verdicts of Ada, one of Bob, one case deferred, one that the criterion does not apply to, two without a label."""
    with Store(Workspace(tmp_path / "ws")) as opened:
        opened.call(criteria.add, CRITERION)
        opened.call(traces.add, "src", [TraceRecord(f"T-{i}", f"question {i}", f"answer {i}") for i in range(10)])
        given = [Label(f"T-{i}", "numbers", mark, f"critique {i}", "Ada", "hand") for i, mark in enumerate(MARKS)]
        opened.call(labels.add_many, [*given, Label("T-7", "numbers", Mark.PASS, "mine", "Bob", "hand")])
        yield opened


def drawn(store: Store, wanted: int = 20, seed: int = 1) -> blind_repeats.Sample:
    return store.call(blind_repeats.draw, "numbers", "Ada", wanted, seed)


def test_only_the_experts_own_verdicts_are_drawn_in_random_order(store: Store) -> None:
    sample = drawn(store)
    assert sorted(sample.left) == [0, 1, 2, 3, 4] and sample.total == 5
    assert store.call(blind_repeats.open_sample, "numbers") == sample
    with pytest.raises(Refused, match="still being read"):
        drawn(store)


def test_the_order_depends_on_the_seed_and_a_sample_is_as_large_as_wanted(tmp_path: Path) -> None:
    orders = set()
    for seed in range(8):
        with Store(Workspace(tmp_path / f"ws{seed}")) as opened:
            opened.call(criteria.add, CRITERION)
            opened.call(traces.add, "src", [TraceRecord(f"T-{i}", f"q {i}", "a") for i in range(6)])
            opened.call(
                labels.add_many, [Label(f"T-{i}", "numbers", Mark.PASS, "why", "Ada", "hand") for i in range(6)]
            )
            orders.add(drawn(opened, 3, seed).left)
    assert all(len(order) == 3 for order in orders) and len(orders) > 3


def test_whoever_gave_no_label_has_none_to_repeat_and_is_told_who_did(store: Store) -> None:
    with pytest.raises(Refused, match="no label that counts is by Eve; there are labels by Ada, Bob"):
        store.call(blind_repeats.draw, "numbers", "Eve", 5, 1)


def test_verdicts_are_kept_taken_back_and_count_for_nothing_else(store: Store) -> None:
    before = store.call(labels.all_rows)
    sample = drawn(store)
    for position in sample.left[:2]:
        store.call(blind_repeats.decide, sample.sample_id, f"T-{position}", "PASS", "again", 1.5)
    assert store.call(blind_repeats.take_back, sample.sample_id) == f"T-{sample.left[1]}"
    left = store.call(blind_repeats.open_sample, "numbers")
    assert left is not None and left.left == sample.left[1:]
    assert store.call(blind_repeats.take_back, sample.sample_id) == f"T-{sample.left[0]}"
    assert store.call(blind_repeats.take_back, sample.sample_id) is None
    assert store.call(labels.all_rows) == before
    with pytest.raises(Refused, match="no verdict"):
        store.call(blind_repeats.decide, sample.sample_id, "T-0", "MAYBE", "", 0.0)


def test_the_figures_are_over_what_was_decided_both_times(store: Store) -> None:
    assert store.call(consistency, "numbers").figures is None
    sample = drawn(store)
    said = {0: "PASS", 1: "PASS", 2: "FAIL", 3: "FAIL", 4: "UNDECIDED"}
    for position in sample.left:
        store.call(blind_repeats.decide, sample.sample_id, f"T-{position}", said[position], f"now {position}", 1.0)
    assert store.call(blind_repeats.open_sample, "numbers") is None
    found = store.call(consistency, "numbers")
    assert found.figures is not None
    assert (found.figures.agreement.k, found.figures.agreement.n, found.undecided) == (2, 4, 1)
    assert (found.figures.fail_flips.k, found.figures.fail_flips.n) == (1, 2)
    assert (found.figures.pass_flips.k, found.figures.pass_flips.n) == (1, 2)
    assert {(flip.trace_id, flip.first, flip.verdict, flip.first_critique, flip.critique) for flip in found.flipped} == {
        ("T-0", "FAIL", "PASS", "critique 0", "now 0"), ("T-2", "PASS", "FAIL", "critique 2", "now 2"),
    }  # fmt: skip
    assert found.days == (0, 0.0, 0)


def test_a_relabelled_case_is_compared_with_the_label_that_it_had_when_it_was_drawn(store: Store) -> None:
    sample = drawn(store)
    store.call(labels.add, Label("T-0", "numbers", Mark.PASS, "another view", "Ada", "hand"))
    store.call(blind_repeats.decide, sample.sample_id, "T-0", "PASS", "", 1.0)
    [repeat] = store.call(blind_repeats.repeats, "numbers")
    assert (repeat.first, repeat.flipped) == ("FAIL", True)


def test_another_sample_prefers_cases_that_were_not_repeated_and_the_newest_verdict_counts(store: Store) -> None:
    first = drawn(store, 3)
    for position in first.left:
        store.call(blind_repeats.decide, first.sample_id, f"T-{position}", "PASS", "", 1.0)
    second = drawn(store, 3, seed=2)
    fresh = {0, 1, 2, 3, 4} - set(first.left)
    assert set(second.left[:2]) == fresh
    again = second.left[2]
    for position in second.left:
        store.call(blind_repeats.decide, second.sample_id, f"T-{position}", "FAIL", "", 1.0)
    found = {repeat.trace_id: repeat.verdict for repeat in store.call(blind_repeats.repeats, "numbers")}
    assert len(found) == 5 and found[f"T-{again}"] == "FAIL"


def test_what_is_typed_is_kept_for_its_case_alone(store: Store) -> None:
    sample = drawn(store)
    store.call(blind_repeats.keep_draft, sample.sample_id, "T-1", "FAIL", "half a [thought]")
    assert store.call(blind_repeats.draft, sample.sample_id, "T-1") == ("FAIL", "half a [thought]")
    assert store.call(blind_repeats.draft, sample.sample_id, "T-2") == ("", "")
