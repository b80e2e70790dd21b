"""What the store promises about labels, drafts, undo, piles and the seal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import Refused, WorkspaceBusy
from engine.importing.records import TraceRecord
from engine.judging.criterion import Criterion
from engine.judging.judge import Example, Judge
from engine.store import criteria, judges, labels, piles, traces
from engine.store.labels import Label, Mark
from engine.store.store import Store
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace

CRITERION = Criterion("numbers", "Is every number supported?", "You check numbers.", "all stand there", "one does not")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(Workspace(tmp_path / "ws")) as opened:
        opened.call(criteria.add, CRITERION)
        opened.call(traces.add, "src", [TraceRecord(f"T-{i:03d}", f"question {i}", f"answer {i}") for i in range(40)])
        yield opened


def label(
    trace_id: str, mark: Mark = Mark.PASS, critique: str = "the number stands in the passage", **more: object
) -> Label:
    return Label(trace_id, "numbers", mark, critique, "Ada", "random", **more)  # type: ignore[arg-type]


def test_importing_a_trace_again_adds_nothing_and_other_content_is_refused(store: Store) -> None:
    added, same, refused = store.call(
        traces.add,
        "again",
        [TraceRecord("T-001", "question 1", "answer 1"), TraceRecord("T-002", "question 2", "another answer", row=2)],
    )
    assert (added, same) == (0, 1)
    assert [(r.row, r.field) for r in refused] == [(2, "id")]
    kept = store.call(traces.get, "T-002")
    assert kept is not None and kept.response == "answer 2"


def test_a_verdict_without_a_critique_is_not_saved_as_a_label(store: Store) -> None:
    with pytest.raises(Refused):
        store.call(labels.add, label("T-001", critique="  "))
    assert store.call(labels.current, "T-001", "numbers") is None


def test_a_changed_mind_is_a_new_row_and_the_old_one_stays(store: Store) -> None:
    store.call(labels.add, label("T-001", Mark.PASS))
    store.call(labels.add, label("T-001", Mark.FAIL, "39 stands nowhere"))
    current = store.call(labels.current, "T-001", "numbers")
    assert current is not None and current.mark is Mark.FAIL
    assert [row.mark for row, _ in store.call(labels.all_rows)] == [Mark.PASS, Mark.FAIL]


def test_undo_goes_back_step_by_step_over_several_cases(store: Store) -> None:
    store.call(labels.add, label("T-001", Mark.PASS))
    store.call(labels.add, label("T-002", Mark.FAIL))
    store.call(labels.add, label("T-001", Mark.FAIL))
    undone = [store.call(labels.undo, "numbers") for _ in range(4)]
    assert [(step[0].trace_id, step[1].mark if step[1] else None) for step in undone[:3] if step] == [
        ("T-001", Mark.PASS), ("T-002", None), ("T-001", None),
    ]  # fmt: skip
    assert undone[3] is None
    withdrawn = store.call(labels.current, "T-002", "numbers")
    assert withdrawn is not None and withdrawn.mark is Mark.WITHDRAWN


def test_undo_passes_over_what_a_newer_import_has_replaced(store: Store) -> None:
    store.call(labels.add, label("T-002", Mark.FAIL))
    store.call(labels.add, label("T-001", Mark.DEFERRED, ""))
    store.call(labels.add_many, [label("T-001", Mark.PASS, source_id="file")])
    undone = [store.call(labels.undo, "numbers") for _ in range(2)]
    assert [step[0].trace_id if step else None for step in undone] == ["T-002", None]
    current = store.call(labels.current, "T-001", "numbers")
    assert current is not None and current.mark is Mark.PASS


def test_a_withdrawn_a_deferred_and_an_inapplicable_label_count_nowhere(store: Store) -> None:
    for trace_id, mark in (("T-001", Mark.DEFERRED), ("T-002", Mark.NOT_APPLICABLE), ("T-003", Mark.WITHDRAWN)):
        store.call(piles.put, "numbers", trace_id, "sealed")
        store.call(labels.add, label(trace_id, mark, ""))
    assert store.call(piles.measuring_cases, "numbers") == []
    assert store.call(piles.counts, "numbers")["sealed"].unlabelled == 3


def test_the_sealed_draw_is_random_repeatable_and_takes_whole_groups(store: Store, tmp_path: Path) -> None:
    store.call(traces.add, "twins", [TraceRecord(f"U-{i}", "Question  7!", f"other {i}") for i in range(3)])
    drawn = store.call(piles.draw_sealed, "numbers", 20, 5).drawn
    assert 20 <= len(drawn) <= 23
    twins = {"T-007", "U-0", "U-1", "U-2"}
    assert twins <= set(drawn) or not twins & set(drawn)
    again = store.call(piles.draw_sealed, "numbers", 100, 6).drawn
    assert not set(drawn) & set(again)
    assert len(drawn) + len(again) == 43


def test_a_group_moves_whole_into_a_pile(store: Store) -> None:
    store.call(traces.add, "twins", [TraceRecord("U-1", "QUESTION 7", "other")])
    assert set(store.call(piles.put, "numbers", "U-1", "build")) == {"U-1", "T-007"}


def seal_and_label(store: Store) -> None:
    for number in range(6):
        pile = "sealed" if number < 3 else "build"
        store.call(piles.put, "numbers", f"T-{number:03d}", pile)
        store.call(labels.add, label(f"T-{number:03d}", Mark.FAIL if number % 2 else Mark.PASS))


def judge_from(store: Store, *trace_ids: str) -> Judge:
    def work(tx: Transaction) -> Judge:
        examples = []
        for trace_id in trace_ids:
            given = labels.current(tx, trace_id, "numbers")
            assert given is not None
            examples.append(Example(trace_id, given.seq, str(given.mark), given.critique, "case"))
        return judges.add(
            tx, Judge("numbers", 1, "You check numbers.", "PASS when ...", tuple(examples), "JSON", False, "model")
        )

    return store.call(work)


def test_judge_building_sees_the_build_pile_only(store: Store) -> None:
    seal_and_label(store)
    assert {case.trace.trace_id for case in store.call(piles.build_cases, "numbers")} == {"T-003", "T-004", "T-005"}
    with pytest.raises(Refused, match="build pile"):
        judge_from(store, "T-001", "T-004")


def test_an_example_is_taken_over_word_for_word(store: Store) -> None:
    seal_and_label(store)
    with pytest.raises(Refused, match="word for word"):
        store.call(
            judges.add,
            Judge(
                "numbers",
                1,
                "t",
                "c",
                (Example("T-003", 1, "FAIL", "my own words", ""), Example("T-004", 1, "PASS", "x", "")),
                "o",
                False,
                "m",
            ),
        )


def test_a_case_that_was_an_example_can_never_be_sealed(store: Store) -> None:
    seal_and_label(store)
    judge_from(store, "T-003", "T-004")
    store.call(piles.put, "numbers", "T-003", "none")
    with pytest.raises(Refused, match="example"):
        store.call(piles.put, "numbers", "T-003", "sealed")


def test_after_a_measured_round_nothing_leaves_the_sealed_pile(store: Store) -> None:
    seal_and_label(store)
    store.call(piles.put, "numbers", "T-000", "none")
    store.call(lambda tx: piles.record(tx, "numbers", "measured", run_id="r"))
    for pile in ("build", "none"):
        with pytest.raises(Refused, match="measured"):
            store.call(piles.put, "numbers", "T-001", pile)
    assert store.call(piles.of_criterion, "numbers")["T-001"] == "sealed"


def test_imported_labels_without_critique_measure_but_never_build(store: Store) -> None:
    store.call(piles.put, "numbers", "T-001", "sealed")
    store.call(piles.put, "numbers", "T-002", "build")
    store.call(
        labels.add_many, [label("T-001", critique="", source_id="file"), label("T-002", critique="", source_id="file")]
    )
    assert [case.trace.trace_id for case in store.call(piles.measuring_cases, "numbers")] == ["T-001"]
    assert store.call(piles.build_cases, "numbers") == []


def test_cases_labelled_by_hand_stay_out_of_sealed_figures(store: Store) -> None:
    store.call(piles.put, "numbers", "T-001", "sealed")
    store.call(labels.add_many, [Label("T-001", "numbers", Mark.FAIL, "because", "Ada", "hand")])
    assert store.call(piles.measuring_cases, "numbers") == []


def test_a_failed_piece_of_work_leaves_nothing_behind(store: Store) -> None:
    def half(tx: Transaction) -> None:
        labels.add(tx, label("T-001"))
        raise Refused("on purpose")

    with pytest.raises(Refused):
        store.call(half)
    assert store.call(labels.current, "T-001", "numbers") is None
    assert not store.workspace.labels.exists()


def test_a_second_owner_is_told_who_has_the_workspace(store: Store) -> None:
    with pytest.raises(WorkspaceBusy) as caught:
        Store(store.workspace)
    assert caught.value.pid > 0 and caught.value.host and "snapshot" in str(caught.value)
