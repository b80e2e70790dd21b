"""Codes of cases and their failure modes: nothing is lost, everything can be taken back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from engine.errors import Refused
from engine.importing.records import TraceRecord
from engine.judging.criterion import Criterion
from engine.store import codes, criteria, labels, snapshot, traces
from engine.store.labels import Label, Mark
from engine.store.store import Store
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace

CRITERION = Criterion("numbers", "Is every number supported?", "You check numbers.", "all stand there", "one does not")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(Workspace(tmp_path / "ws")) as opened:
        opened.call(criteria.add, CRITERION)
        opened.call(traces.add, "src", [TraceRecord(f"T-{i:03d}", f"question {i}", f"answer {i}") for i in range(12)])
        yield opened


def label(store: Store, number: int, mark: Mark = Mark.FAIL) -> None:
    store.call(labels.add, Label(f"T-{number:03d}", "numbers", mark, "the price stands nowhere", "Ada", "hand"))


def give(store: Store, number: int, code: str) -> codes.Act:
    return store.call(codes.toggle, "numbers", f"T-{number:03d}", code, "Ada")


def of(store: Store, number: int) -> tuple[str, ...]:
    return store.call(codes.of_case, "numbers", f"T-{number:03d}")


def merge(store: Store, mode: str, into: str) -> codes.Act:
    return store.call(codes.merge, "numbers", mode, into, "Ada")


def modes(store: Store) -> dict[str, str]:
    return store.call(codes.modes, "numbers")


def undo(store: Store) -> codes.Act | None:
    return store.call(codes.undo, "numbers", "Ada")


def rows(store: Store, table: str) -> int:
    def count(tx: Transaction) -> int:
        return int(tx.value(f"SELECT count(*) FROM {table}"))

    return store.call(count)


def test_a_case_keeps_its_codes_in_the_order_in_which_they_were_given_and_over_a_relabel(store: Store) -> None:
    label(store, 1)
    give(store, 1, "wrong price")
    give(store, 1, "no source")
    label(store, 1, Mark.PASS)
    assert of(store, 1) == ("wrong price", "no source")
    [case] = store.call(codes.cases, "numbers")
    assert (case.verdict, case.codes, case.number) == ("PASS", ("wrong price", "no source"), 1)


def test_a_code_given_twice_is_taken_off_and_both_rows_stay(store: Store) -> None:
    assert give(store, 1, "wrong price").present
    assert not give(store, 1, "wrong price").present
    assert of(store, 1) == () and rows(store, "code") == 2


@pytest.mark.parametrize("again", ["Wrong Price", "  wrong   price ", "WRONG\nPRICE"])
def test_capitals_and_blanks_make_no_other_code(store: Store, again: str) -> None:
    give(store, 1, "wrong price")
    assert give(store, 2, again).codes == ("wrong price",)
    [used] = store.call(codes.used, "numbers")
    assert (used.code, used.cases) == ("wrong price", 2)


@pytest.mark.parametrize("text", ["", "  \n ", "w" * 61])
def test_what_is_no_short_name_is_refused_and_nothing_changes(store: Store, text: str) -> None:
    with pytest.raises(Refused):
        give(store, 1, text)
    assert rows(store, "code") == 0


def test_codes_are_offered_by_how_many_cases_have_them_and_only_under_their_criterion(store: Store) -> None:
    for number in (1, 2, 3):
        give(store, number, "wrong price")
    give(store, 1, "no source")
    give(store, 2, "tone")
    give(store, 2, "tone")
    assert [(u.code, u.cases) for u in store.call(codes.used, "numbers")] == [("wrong price", 3), ("no source", 1)]
    assert store.call(codes.used, "other") == []


def test_a_merge_gathers_codes_under_a_failure_mode_and_loses_none(store: Store) -> None:
    for number, code in enumerate(["price made up", "wrong price", "no source"]):
        label(store, number)
        give(store, number, code)
    merge(store, "price made up", "wrong price")
    merge(store, "wrong price", "prices")
    assert modes(store) == {"no source": "no source", "price made up": "prices", "wrong price": "prices"}
    assert [case.codes for case in store.call(codes.cases, "numbers")] == [
        ("price made up",),
        ("wrong price",),
        ("no source",),
    ]
    assert [case.failure_modes for case in store.call(codes.cases, "numbers")] == [
        ("prices",),
        ("prices",),
        ("no source",),
    ]


def test_merging_into_a_code_that_was_merged_itself_follows_it(store: Store) -> None:
    for number, code in enumerate(["a", "b", "c"]):
        give(store, number, code)
    merge(store, "a", "prices")
    merge(store, "b", "a")
    assert modes(store) == {"a": "prices", "b": "prices", "c": "c"}


def test_a_failure_mode_can_take_back_the_name_of_one_of_its_codes(store: Store) -> None:
    give(store, 1, "wrong price")
    merge(store, "wrong price", "prices")
    merge(store, "prices", "wrong price")
    assert modes(store) == {"wrong price": "wrong price"}
    merge(store, "wrong price", "Wrong price")
    assert modes(store) == {"wrong price": "Wrong price"}


def test_a_merged_code_can_be_taken_out_again(store: Store) -> None:
    give(store, 1, "a")
    give(store, 2, "b")
    merge(store, "b", "a")
    store.call(codes.split, "numbers", "b", "Ada")
    assert modes(store) == {"a": "a", "b": "b"}
    with pytest.raises(Refused, match="called a itself"):
        store.call(codes.split, "numbers", "a", "Ada")


@pytest.mark.parametrize(("mode", "into"), [("nowhere", "a"), ("a", "a"), ("a", ""), ("a", "w" * 61)])
def test_a_merge_that_changes_nothing_is_refused(store: Store, mode: str, into: str) -> None:
    give(store, 1, "a")
    with pytest.raises(Refused):
        merge(store, mode, into)
    assert rows(store, "code_merge") == 0


def test_undo_goes_back_over_merges_and_codes_one_key_at_a_time(store: Store) -> None:
    give(store, 1, "a")
    give(store, 2, "b")
    merge(store, "b", "a")
    merge(store, "a", "prices")
    undone = undo(store)
    assert undone is not None and (set(undone.codes), undone.failure_mode) == ({"a", "b"}, "a")
    assert modes(store) == {"a": "a", "b": "a"}
    undo(store)
    assert modes(store) == {"a": "a", "b": "b"}
    assert undo(store) == codes.Act(("b",), "T-002", present=False)
    assert (of(store, 1), of(store, 2)) == (("a",), ())
    give(store, 1, "a")
    undone = undo(store)
    assert undone is not None and undone.present and of(store, 1) == ("a",)
    undo(store)
    assert of(store, 1) == () and undo(store) is None
    assert rows(store, "code") + rows(store, "code_merge") == 12, "undo appends, nothing is deleted"


def test_label_numbers_follow_the_first_verdict_and_skip_what_does_not_count(store: Store) -> None:
    for number in (5, 2, 7):
        label(store, number)
    label(store, 5, Mark.PASS)
    store.call(labels.add, Label("T-002", "numbers", Mark.DEFECT, "", "Ada", "hand"))
    give(store, 2, "a")
    assert [(case.trace_id, case.number) for case in store.call(codes.cases, "numbers")] == [("T-005", 1), ("T-007", 2)]


def test_a_snapshot_and_the_next_start_hold_codes_and_merges(store: Store, tmp_path: Path) -> None:
    give(store, 1, "wrong price")
    merge(store, "wrong price", "prices")
    store.call(snapshot.write, tmp_path / "copy.duckdb")
    with duckdb.connect(str(tmp_path / "copy.duckdb"), read_only=True) as copy:
        assert copy.execute("SELECT code, expert FROM code").fetchall() == [("wrong price", "Ada")]
        assert copy.execute("SELECT failure_mode FROM code_merge").fetchall() == [("prices",)]
    store.close()
    with Store(Workspace(tmp_path / "ws")) as again:
        assert modes(again) == {"wrong price": "prices"}


def test_hostile_text_is_a_code_like_any_other(store: Store) -> None:
    text = "[@click=app.quit]x[/x] %s {0} \u202egnp'; DROP TABLE code; --"
    give(store, 1, text)
    merge(store, text, "[/x] $x")
    assert of(store, 1) == (text,) and modes(store) == {text: "[/x] $x"}
