"""The coverage grid: each trace in one cell, sums, never tested, written ones apart, and the way there and back of requests to write."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import coverage, intake, requests
from engine.coverage import Counts, Grid
from engine.errors import EvaldeskError, Refused
from engine.importing.records import TraceRecord
from engine.intake import IntakeOrder
from engine.judging.criterion import Criterion
from engine.judging.dimension import Dimension, parse_rule
from engine.measuring import overview
from engine.store import case_search, cases, criteria, dimensions, labels, piles, traces
from engine.store.cells import CellRow
from engine.store.labels import Label, Mark
from engine.store.store import Store
from engine.store.workspace import Workspace

COUNT = 240
ALL = slice(None)


TRUTH: list[dict[str, str | None]] = []
"""The value of each case in each dimension, as the fixture made them."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Traces at random over three dimensions (by metadata, by a rule, by hand), some written, some labelled."""
    rng = random.Random(3)
    TRUTH.clear()
    with Store(Workspace(tmp_path_factory.mktemp("coverage") / "ws")) as opened:
        for name in ("numbers", "tone"):
            opened.call(criteria.add, Criterion(name, "Is it?", "task", "yes", "no"))
        made = {name: opened.call(dimensions.add, name) for name in ("language", "topic", "plan")}
        rules = [parse_rule("refunds if request has refund"), parse_rule("bills if request has invoice")]
        opened.call(dimensions.set_rules, made["topic"].dimension_id, rules)
        records, given_labels = [], []
        for i in range(COUNT):
            word, language, plan = (
                rng.choice(("refund", "invoice", "hello")),
                rng.choice(("de", "De", "en", "fr", "", None)),
                rng.randrange(3),
            )
            origin = rng.choice(("", "", "written"))
            metadata = {"language": language, "plan": plan}
            records.append(TraceRecord(f"T-{i:03d}", f"{word} {i}", "a", metadata=metadata, origin=origin))
            topic = {"refund": "refunds", "invoice": "bills"}.get(word)
            if i % 7 == 0:
                topic = rng.choice(("refunds", "Other"))
                opened.call(dimensions.set_by_hand, made["topic"].dimension_id, f"T-{i:03d}", topic, "Ada")
            TRUTH.append({"language": language or None, "topic": topic, "plan": str(plan)})
            for name in ("numbers", "tone"):
                if rng.random() < 0.6:
                    given_labels.append(Label(f"T-{i:03d}", name, rng.choice(list(Mark)), "why", "Ada", "hand"))
        opened.call(traces.add, "src", records)
        opened.call(labels.add_many, given_labels)
        yield opened


def truth(names: tuple[str, ...]) -> Counter[tuple[str | None, ...]]:
    return Counter(
        tuple(value.casefold() if (value := case[name]) is not None else None for name in names) for case in TRUTH
    )


@pytest.mark.parametrize("names", [("language",), ("topic", "language"), ("plan", "topic", "language")])
@pytest.mark.parametrize("at_once", [coverage.AT_ONCE, 50])
def test_each_trace_lies_in_exactly_one_cell(
    store: Store, names: tuple[str, ...], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coverage, "AT_ONCE", at_once)
    known = store.call(dimensions.everyone)
    by = [next(d for d in known if d.name == name) for name in names]
    grid = coverage.count(store, "numbers", by)
    expected = truth(names)
    assert {
        tuple(v.casefold() if v is not None else None for v in key): c.traces for key, c in grid.cells.items()
    } == expected
    assert grid.total.traces == COUNT == grid.total.real + grid.total.written
    marks = {row.trace_id: row.mark for row in store.call(cases.page, "numbers", range(COUNT))}
    real = {f"T-{p:03d}" for p in store.call(case_search.find, "numbers", case_search.parse("is:real"), range(COUNT))}
    assert grid.total.real == len(real)
    assert grid.total.failures == sum(marks[t] == "FAIL" for t in real)
    assert grid.total.labelled == sum(marks[t] in ("PASS", "FAIL") for t in real)
    assert grid.total.written_failures == sum(mark == "FAIL" for t, mark in marks.items() if t not in real)


def test_the_cases_of_a_cell_are_those_that_its_conditions_find(store: Store) -> None:
    by = store.call(dimensions.everyone)[:2]
    grid = coverage.count(store, "numbers", by)
    assert None in grid.axes[0] and None in grid.axes[1] and len(grid.axes[0]) == 4
    for row in grid.axes[0]:
        for column in grid.axes[1]:
            typed = " ".join(case_search.condition(d.name, v) for d, v in zip(by, (row, column), strict=True))
            found = store.call(case_search.find, "numbers", case_search.parse(typed), range(COUNT))
            assert len(found) == grid.at(row, column).traces


VALUES = st.one_of(st.none(), st.sampled_from(["a", "b", "B", "10", "9", "ß", "x y"]).map(lambda v: (v.lower(), v)))
ROWS = st.builds(
    CellRow, st.tuples(VALUES, VALUES), *[st.integers(0, 5)] * 2, *[st.integers(0, 3)] * 4
)  # fmt: skip
BY = (Dimension("1", "one", "one"), Dimension("2", "two", "two"))


@given(st.lists(ROWS, max_size=12))
def test_margins_are_sums_and_what_is_thin_is_not_in_use(rows: list[CellRow]) -> None:
    grid = coverage.arrange("c", BY, rows)
    total = sum((row.real + row.written for row in rows), 0)
    assert grid.total.traces == total
    assert sum(grid.at(row, ALL).traces for row in grid.axes[0]) == total == grid.at(ALL, ALL).traces
    assert sum(grid.at(ALL, column).traces for column in grid.axes[1]) == total
    for fewer_than in (1, 4):
        thin = dict(grid.thin(fewer_than))
        assert all(counts.traces < fewer_than and None not in key for key, counts in thin.items())
        for row in grid.axes[0]:
            for column in grid.axes[1]:
                if row is not None and column is not None:
                    assert ((row, column) in thin) == (grid.at(row, column).traces < fewer_than)
    assert len(thin) <= grid.combinations
    assert Grid.from_json(json.loads(json.dumps(grid.as_json()))).cells == grid.cells


def test_values_are_in_order_and_spelt_as_most_traces_spell_them() -> None:
    def row(value: str | None, count: int) -> CellRow:
        return CellRow(((value.lower(), value) if value is not None else None,), count, 0, 0, 0, 0, 0)

    grid = coverage.arrange(
        "c", BY[:1], [row("10", 1), row("b", 1), row(None, 1), row("9", 1), row("B", 2), row("a", 1)]
    )
    assert grid.axes == (("9", "10", "a", "B", None),) and grid.at("B").real == 3


def test_three_dimensions_have_a_grid_for_each_tab_and_one_over_all(store: Store) -> None:
    by = store.call(dimensions.everyone)
    grid = coverage.count(store, "numbers", by)
    flat = grid.flat()
    assert flat.cells == coverage.count(store, "numbers", by[:2]).cells
    for row in flat.axes[0]:
        for column in flat.axes[1]:
            assert sum((grid.tab(v).at(row, column) for v in grid.axes[2]), Counts()) == flat.at(row, column)


def test_too_many_values_are_no_grid() -> None:
    rows = [CellRow(((str(i), str(i)),), 1, 0, 0, 0, 0, 0) for i in range(coverage.MOST_VALUES + 1)]
    with pytest.raises(Refused, match="one has 201 values, and a grid takes 200"):
        coverage.arrange("c", BY[:1], rows)


def test_dimensions_are_chosen_by_place() -> None:
    known = [Dimension(str(i), name, name) for i, name in enumerate("abcd")]

    def names(*said: str) -> str:
        return "".join(d.name for d in coverage.chosen(known, *said))

    assert names() == "ab" and names("", "a") == "ba" and names("", "", "a") == "bca" and names("D", "c", "b") == "dcb"
    assert [d.name for d in coverage.chosen(known[:1])] == ["a"]
    for wrong, why in ((("a", "A"), "named twice"), (("x",), "there is no dimension 'x'")):
        with pytest.raises(Refused, match=why):
            coverage.chosen(known, *wrong)


# -- requests to write ------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Store]:
    """Two dimensions, one filled by a rule; of the four cells two were never tested."""
    with Store(Workspace(tmp_path / "ws")) as opened:
        opened.call(criteria.add, Criterion("numbers", "Is it?", "task", "yes", "no"))
        opened.call(traces.add, "src", [
            TraceRecord("T-0", "my refund", "a", metadata={"language": "de"}), TraceRecord("T-1", "where | is it", "a", metadata={"language": "en"}),
        ])  # fmt: skip
        opened.call(dimensions.add, "language")
        topic = opened.call(dimensions.add, "topic")
        rules = [parse_rule("refund if request has refund"), parse_rule("a | b if request matches .")]
        opened.call(dimensions.set_rules, topic.dimension_id, rules)
        yield opened


def grid_of(store: Store) -> Grid:
    return coverage.count(store, "numbers", store.call(dimensions.everyone))


def test_cells_that_were_never_tested_are_a_list_to_fill_in(small: Store) -> None:
    grid = grid_of(small)
    assert [key for key, _ in grid.thin()] == [("de", "a | b"), ("en", "refund")]
    assert len(grid.thin(2)) == 4
    rows = [json.loads(line) for line in coverage.work_list(grid, "jsonl").splitlines()]
    assert rows[1] == {
        "metadata": {"language": "en", "topic": "refund"},
        "request": "",
        "response": "",
        "origin": "written",
    }
    assert coverage.work_list(grid, "csv").splitlines() == [
        "language,topic,request,response,origin", "de,a | b,,,written", "en,refund,,,written",
    ]  # fmt: skip
    assert coverage.work_list(grid, "md").splitlines()[2] == "| de | a \\| b | 0 |  |"


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_filled_in_list_comes_back_into_its_cells_and_stays_apart(small: Store, tmp_path: Path, form: str) -> None:
    path = tmp_path / f"todo.{form}"
    text = coverage.work_list(grid_of(small), form)
    # The first request has a word of the other cell's rule in it: it stays where it was written for.
    answers = iter(["no refund, just asking", "the money"])
    if form == "jsonl":
        rows = [{**json.loads(line), "request": next(answers), "response": "r"} for line in text.splitlines()]
        path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    else:
        table = list(csv.DictReader(io.StringIO(text)))
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, table[0].keys())
            writer.writeheader()
            writer.writerows({**row, "request": next(answers), "response": "r"} for row in table)
    report = small.call(intake.keep, intake.read_file(IntakeOrder(path, expert="Ada")))
    assert (report.added, report.written, report.refused) == (2, 2, ())
    grid = grid_of(small)
    assert not grid.thin() and grid.at("de", "a | b") == grid.at("en", "refund") == Counts(written=1)
    assert (grid.total.real, grid.total.written) == (2, 2)
    again = small.call(intake.keep, intake.read_file(IntakeOrder(path, expert="Ada")))
    assert (again.added, again.same, again.written) == (0, 2, 0) and grid_of(small).cells == grid.cells


def test_the_origin_of_a_file_is_said_for_all_its_rows_or_by_a_column(small: Store, tmp_path: Path) -> None:
    def take(rows: list[dict[str, object]], **order: object) -> intake.IntakeReport:
        path = tmp_path / "t.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
        return small.call(intake.keep, intake.read_file(IntakeOrder(path, **order)))  # type: ignore[arg-type]

    one = {"id": "A", "request": "q1", "response": "r"}
    assert take([one], origin="written").written == 1
    assert (
        take(
            [
                one | {"id": "B", "origin": "Written"},
                one | {"id": "C", "origin": ""},
                one | {"id": "D", "origin": "real"},
            ]
        ).written
        == 1
    )
    # An airport is metadata.
    assert take([one | {"id": "E", "origin": "VIE"}, one | {"id": "F", "origin": "written"}]).written == 0
    trace = small.call(traces.get, "E")
    assert trace is not None and trace.metadata == {"origin": "VIE"}
    wrong = take(
        [one | {"id": "G", "made": "w"}, one | {"id": "H", "made": "written"}],
        mapping=intake.FieldMapping(origin="made"),
    )
    assert wrong.written == 1 and "'w' is none of real, written" in wrong.refused[0].reason
    with pytest.raises(EvaldeskError, match="no origin of requests"):
        take([one], origin="invented")


def test_written_cases_are_in_no_figure_of_real_use(small: Store) -> None:
    small.call(
        traces.add,
        "mine",
        [TraceRecord(f"W-{i}", f"written {i}", "a", metadata={"language": "de"}) for i in range(30)],
        origin="written",
    )
    standing = small.call(overview.standings)[0]
    assert (standing.progress.total, standing.progress.written) == (32, 30)
    assert small.call(piles.free, "numbers") == 2
    drawn = small.call(piles.draw_sealed, "numbers", 30, 1)
    assert set(drawn.drawn) == {"T-0", "T-1"}
    for trace_id in ("T-0", "W-1", "W-2"):
        small.call(labels.add, Label(trace_id, "numbers", Mark.FAIL, "why", "Ada", "random"))
    # Put there by hand all the same: in no count and in no measurement.
    small.call(piles.put, "numbers", "W-1", piles.SEALED)
    sealed = small.call(piles.counts, "numbers")[piles.SEALED]
    assert (sealed.failures, sealed.passes, sealed.unlabelled) == (1, 0, 1)
    assert [case.trace.trace_id for case in small.call(piles.measuring_cases, "numbers")] == ["T-0"]
    found = grid_of(small).at("de", ALL)
    assert (found.real, found.labelled, found.failures, found.written, found.written_failures) == (1, 1, 1, 30, 2)


def test_a_share_is_said_from_ten_labels_on() -> None:
    assert Counts(real=12, labelled=12, failures=9).share == 0.75
    assert Counts(real=12, labelled=9, failures=9).share is None
    assert Counts(real=12, written=90, labelled=0, written_labelled=90, written_failures=90).share is None


def test_a_request_makes_dimensions_and_rules_and_gives_the_grid(small: Store) -> None:
    asked = {
        "kind": "coverage",
        "dimensions": ["Language", "region=plan"],
        "rules": ["region: west if request has where"],
        "columns": "region",
    }
    for _ in range(2):
        found = requests.carry_out(small, asked)
    assert [d["name"] for d in found["dimensions"]] == ["language", "region"] and found["criterion"] == "numbers"
    assert found["values"] == [["de", "en"], ["west", None]] and found["never_tested"] == [["de", "west"]]
    assert len(small.call(dimensions.get, "region").rules) == 1
    with pytest.raises(Refused, match="no dimension 'nope'"):
        requests.carry_out(small, {"kind": "coverage", "rows": "nope"})


def test_without_a_dimension_the_fields_that_could_be_one_are_named(tmp_path: Path) -> None:
    with Store(Workspace(tmp_path / "ws")) as opened:
        with pytest.raises(Refused, match="Import traces with metadata"):
            requests.carry_out(opened, {"kind": "coverage"})
        records = [TraceRecord(f"T-{i}", "q", f"{i}", metadata={"city": "GW"[i % 2]}) for i in range(4)]
        opened.call(traces.add, "src", records)
        with pytest.raises(Refused, match=r"--dimension FIELD; fields of the traces: city \(2 values\)"):
            requests.carry_out(opened, {"kind": "coverage"})
        found = requests.carry_out(opened, {"kind": "coverage", "dimensions": ["city"]})
        assert found["criterion"] == "" and [cell["real"] for cell in found["cells"]] == [2, 2]
