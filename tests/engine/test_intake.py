"""Importing again: a known file adds nothing, and nothing decided here is replaced."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import intake
from engine.importing.records import TraceRecord
from engine.intake import IntakeOrder, IntakeReport
from engine.judging.criterion import Criterion
from engine.store import criteria, labels, traces
from engine.store.labels import Label, Mark
from engine.store.store import Store
from engine.store.workspace import Workspace


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(Workspace(tmp_path / "ws")) as opened:
        opened.call(criteria.add, Criterion("c", "?", "t", "p", "f"))
        opened.call(traces.add, "s", [TraceRecord(f"T-{i}", f"q {i}", "a") for i in range(3)])
        yield opened


def bring(store: Store, path: Path, *rows: tuple[str, str, str]) -> IntakeReport:
    lines = [json.dumps({"id": t, "label": verdict, "expert": expert, "critique": ""}) for t, verdict, expert in rows]
    if lines:
        path.write_text("\n".join(lines), "utf-8")
    content = intake.read_file(IntakeOrder(path, kind="labels", criterion_id="c", how_drawn="random"))
    return store.call(intake.keep, content)


def marks(store: Store) -> dict[str, str]:
    return {trace_id: str(label.mark) for trace_id, label in store.call(labels.current_of, "c").items()}


def test_two_experts_on_one_trace_come_in_once(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "two.jsonl"
    assert bring(store, file, ("T-0", "PASS", "Ada"), ("T-0", "FAIL", "Bob")).labels_added == 2
    again = bring(store, file)
    assert (again.labels_added, again.labels_same) == (0, 2)
    assert len(store.call(labels.all_rows)) == 2


def test_an_older_file_again_does_not_bring_back_what_it_said(store: Store, tmp_path: Path) -> None:
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    bring(store, old, ("T-0", "PASS", "Ada"))
    bring(store, new, ("T-0", "FAIL", "Ada"))
    assert bring(store, old).labels_added == 0
    assert marks(store) == {"T-0": "FAIL"}


def test_a_label_whose_trace_was_missing_comes_in_later(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "early.jsonl"
    assert len(bring(store, file, ("T-0", "PASS", "Ada"), ("T-9", "FAIL", "Ada")).refused) == 1
    store.call(traces.add, "late", [TraceRecord("T-9", "q 9", "a")])
    assert bring(store, file).labels_added == 1
    assert bring(store, file).labels_added == 0
    assert marks(store) == {"T-0": "PASS", "T-9": "FAIL"}


@pytest.mark.parametrize("mark", [Mark.PASS, Mark.FAIL, Mark.NOT_APPLICABLE, Mark.DEFECT])
def test_a_decision_made_here_is_not_replaced(store: Store, tmp_path: Path, mark: Mark) -> None:
    store.call(labels.add, Label("T-0", "c", mark, "decided here", "Ada", "hand"))
    report = bring(store, tmp_path / "x.jsonl", ("T-0", "FAIL" if mark is Mark.PASS else "PASS", "Bob"))
    assert (report.labels_added, len(report.refused)) == (0, 1)
    assert marks(store) == {"T-0": str(mark)}
