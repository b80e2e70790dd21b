"""The seal: what builds a judge and what measures it never share a request, whatever is put, drawn or imported."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from engine.errors import EvaldeskError, Refused
from engine.importing.records import TraceRecord
from engine.judging.criterion import Criterion
from engine.judging.judge import Example, Judge
from engine.store import criteria, judges, labels, piles, traces
from engine.store.labels import Label, Mark
from engine.store.store import Store
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(Workspace(tmp_path / "ws")) as opened:
        opened.call(criteria.add, Criterion("c", "?", "t", "p", "f"))
        opened.call(traces.add, "s", [TraceRecord(f"T-{i:02d}", f"question {i}", f"answer {i}") for i in range(10)])
        yield opened


def twin(store: Store, trace_id: str, of: int) -> None:
    store.call(traces.add, trace_id, [TraceRecord(trace_id, f"QUESTION  {of}?", "another answer")])


def give(tx: Transaction, trace_id: str, mark: Mark = Mark.PASS) -> None:
    labels.add(tx, Label(trace_id, "c", mark, "because", "Ada", "hand"))


def judge_from(tx: Transaction, *trace_ids: str) -> None:
    current = labels.current_of(tx, "c")
    examples = tuple(Example(t, current[t].seq, str(current[t].mark), current[t].critique, t) for t in trace_ids)
    judges.add(tx, Judge("c", 1, "t", "PASS when", examples, "JSON", False, "m"))


def events(store: Store) -> int:
    def count(tx: Transaction) -> int:
        return int(tx.value("SELECT count(*) FROM seal_event"))

    return store.call(count)


def test_a_twin_of_a_build_case_is_not_drawn_and_that_is_said(store: Store) -> None:
    store.call(piles.put, "c", "T-01", "build")
    twin(store, "U-1", 1)
    draw = store.call(piles.draw_sealed, "c", 100, 1)
    assert set(draw.drawn) == {f"T-{i:02d}" for i in range(10)} - {"T-01"}
    assert (draw.twins, draw.labelled, draw.is_short) == (1, 0, True)
    assert "same request" in draw.sentence


def test_what_was_an_example_and_its_twins_are_never_sealed(store: Store) -> None:
    for trace_id, mark in (("T-01", Mark.PASS), ("T-02", Mark.FAIL)):
        store.call(give, trace_id, mark)
        store.call(piles.put, "c", trace_id, "build")
    store.call(judge_from, "T-01", "T-02")
    store.call(piles.put, "c", "T-01", "none")
    twin(store, "U-1", 1)
    twin(store, "U-2", 2)
    for trace_id in ("T-01", "U-1", "U-2"):
        with pytest.raises(Refused, match="example"):
            store.call(piles.put, "c", trace_id, "sealed")
    assert not {"T-01", "T-02", "U-1", "U-2"} & set(store.call(piles.draw_sealed, "c", 100, 1).drawn)


def test_a_case_labelled_before_is_no_random_draw(store: Store) -> None:
    store.call(give, "T-03")
    store.call(give, "T-04")
    store.call(labels.undo, "c")
    draw = store.call(piles.draw_sealed, "c", 100, 1)
    assert "T-03" not in draw.drawn and "T-04" in draw.drawn
    assert (draw.labelled, draw.wanted) == (1, 100)


@pytest.mark.parametrize("wanted", [0, -5])
def test_drawing_nothing_is_wrong_use_and_leaves_no_trace(store: Store, wanted: int) -> None:
    with pytest.raises(EvaldeskError):
        store.call(piles.draw_sealed, "c", wanted, 1)
    assert events(store) == 0
    store.call(piles.draw_sealed, "c", 100, 1)
    assert store.call(piles.draw_sealed, "c", 1, 1).drawn == () and events(store) == 1


def test_a_drawn_case_stays_and_one_put_by_hand_may_go_back(store: Store) -> None:
    drawn = store.call(piles.draw_sealed, "c", 3, 1).drawn
    hand = next(f"T-{i:02d}" for i in range(10) if f"T-{i:02d}" not in drawn)
    for pile in ("none", "build"):
        with pytest.raises(Refused, match=r"drawn.*Take another case"):
            store.call(piles.put, "c", drawn[0], pile)
    store.call(piles.put, "c", hand, "sealed")
    assert not store.call(piles.was_drawn, "c", hand) and store.call(piles.was_drawn, "c", drawn[0])
    store.call(piles.put, "c", hand, "none")
    assert store.call(piles.of_case, "c", hand) == "none"
    with pytest.raises(EvaldeskError, match="no trace"):
        store.call(piles.put, "c", "T-99", "build")


@pytest.mark.parametrize("seed", range(8))
def test_no_sequence_of_steps_puts_one_request_on_both_sides(store: Store, seed: int) -> None:
    dice = random.Random(seed)
    known = [f"T-{i:02d}" for i in range(10)]
    for step in range(40):
        trace_id = dice.choice(known)
        with suppress(EvaldeskError):
            match dice.randrange(6):
                case 0 | 1:
                    store.call(piles.put, "c", trace_id, dice.choice(["build", "sealed", "none"]))
                case 2:
                    store.call(piles.draw_sealed, "c", dice.randint(1, 3), step)
                case 3:
                    twin(store, f"U-{step}", dice.randrange(12))
                    known.append(f"U-{step}")
                case 4:
                    store.call(give, trace_id, dice.choice([Mark.PASS, Mark.FAIL]))
                case _:
                    build = store.call(piles.build_cases, "c")
                    store.call(judge_from, *[case.trace.trace_id for case in build[:3]])
        assert leaks(store) == []


def leaks(store: Store) -> list[object]:
    def look(tx: Transaction) -> list[object]:
        where = piles.of_criterion(tx, "c")
        groups = dict(tx.rows("SELECT trace_id, group_key FROM trace"))
        sealed = {groups[t] for t, pile in where.items() if pile == "sealed"}
        exposed = {groups[t] for t, pile in where.items() if pile == "build"}
        return sorted(sealed & (exposed | {groups[t] for t in piles.examples_used(tx, "c")}))

    return store.call(look)
