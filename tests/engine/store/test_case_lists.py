"""Lists of cases: pages by position, the next open one, counts, and what a search finds."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import Refused
from engine.importing.records import TraceRecord
from engine.judging.criterion import Criterion
from engine.store import case_search, cases, criteria, drafts, labels, piles, traces
from engine.store.case_search import CaseQuery, parse
from engine.store.drafts import Draft
from engine.store.labels import Label, Mark
from engine.store.store import Store
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace

COUNT = 60
CRITERION = Criterion("numbers", "Is every number supported?", "You check numbers.", "all stand there", "one does not")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Every case marked at random or not at all, under the criterion and under another that must not be mixed in."""
    with Store(Workspace(tmp_path_factory.mktemp("lists") / "ws")) as opened:
        for name in ("numbers", "tone"):
            opened.call(criteria.add, Criterion(name, *list(vars(CRITERION).values())[1:5]))
        opened.call(traces.add, "src", [
            TraceRecord(f"T-{i:03d}", f"Question {i} about {('kettle', 'Ofen')[i % 2]}", f"answer {i}",
                        metadata={"language": ("de", "en", "fr")[i % 3], "a/b~c": i % 4}) for i in range(COUNT)
        ])  # fmt: skip
        rng = random.Random(5)
        for i in range(COUNT):
            for name in ("numbers", "tone"):
                for _ in range(rng.randrange(3)):
                    mark = rng.choice(list(Mark))
                    opened.call(labels.add, Label(f"T-{i:03d}", name, mark, "why", "Ada", "hand"))
            if rng.random() < 0.2:
                opened.call(drafts.save, Draft(f"T-{i:03d}", "numbers", "", "half a thought"))
            if rng.random() < 0.3:
                opened.call(piles.put, "numbers", f"T-{i:03d}", rng.choice((piles.BUILD, piles.SEALED)))
        yield opened


def everything(store: Store) -> list[cases.CaseRow]:
    return store.call(cases.page, "numbers", range(COUNT))


def test_a_page_holds_what_each_case_is_now(store: Store) -> None:
    rows = everything(store)
    assert [row.position for row in rows] == list(range(COUNT))
    for row in rows:
        case = store.call(cases.get, row.trace_id, "numbers")
        assert case is not None and case == store.call(cases.at, row.position, "numbers")
        assert row.mark == (str(case.label.mark) if case.label else "")
        assert row.draft == (case.draft is not None) and row.pile == case.pile
        assert row.metadata == case.trace.metadata and case.trace.request.startswith(row.request)
    assert {row.mark for row in rows} >= {"", "PASS", "FAIL", "DEFERRED"} and any(row.draft for row in rows)


@pytest.mark.parametrize("positions", [range(3), range(10, 45), [0, 7, 8, 59], [5], range(50, 99), []])
def test_a_page_is_what_was_asked_for(store: Store, positions: range | list[int]) -> None:
    known = {row.position: row for row in everything(store)}
    assert store.call(cases.page, "numbers", positions) == [known[p] for p in positions if p in known]


def test_the_next_open_case_is_the_first_behind_and_then_before(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    open_ones = [row.position for row in everything(store) if row.is_open]
    for looked_at in (cases._LOOKED_AT, 4):
        monkeypatch.setattr(cases, "_LOOKED_AT", looked_at)
        for after in range(-1, COUNT):
            for among in (range(COUNT), [p for p in range(COUNT) if p % 3]):
                of_these = [p for p in open_ones if p in among]
                expected = next((p for p in of_these if p > after), of_these[0])
                assert store.call(cases.next_open, "numbers", after, among) == expected
    decided = [p for p in range(COUNT) if p not in open_ones]
    assert store.call(cases.next_open, "numbers", 3, decided) is None


def test_the_counts_are_those_of_the_rows(store: Store) -> None:
    marks = [row.mark for row in everything(store)]
    found = store.call(cases.progress, "numbers")
    assert (found.total, found.passes, found.failures) == (COUNT, marks.count("PASS"), marks.count("FAIL"))
    assert (found.deferred, found.not_applicable) == (marks.count("DEFERRED"), marks.count("NOT_APPLICABLE"))
    assert (found.defects, found.drafts) == (marks.count("DEFECT"), sum(row.draft for row in everything(store)))
    assert store.call(piles.free, "numbers") == sum(row.pile == "none" for row in everything(store))


@pytest.mark.parametrize(
    ("typed", "belongs"),
    [
        ("KETTLE", lambda row: "kettle" in row.request),
        ("question 1", lambda row: "Question 1" in row.request),
        ("T-00", lambda row: row.position < 10),
        ("is:fail", lambda row: row.mark == "FAIL"),
        ("is:labelled", lambda row: row.mark in ("PASS", "FAIL")),
        ("is:open", lambda row: row.is_open),
        ("is:draft in:none", lambda row: row.draft and row.pile == "none"),
        ("in:sealed is:pass", lambda row: row.pile == "sealed" and row.mark == "PASS"),
        ("language=DE kettle", lambda row: row.metadata["language"] == "de" and "kettle" in row.request),
        ("a/b~c=2", lambda row: row.metadata["a/b~c"] == 2),
        ("language=xx", lambda row: False),
        ("", lambda row: True),
    ],
)
def test_a_search_finds_the_cases_that_are_all_this(store: Store, typed: str, belongs: object) -> None:
    expected = [row.position for row in everything(store) if belongs(row)]  # type: ignore[operator]
    found = [store.call(case_search.find, "numbers", parse(typed), range(start, start + 25)) for start in (0, 25, 50)]
    assert [position for piece in found for position in piece] == expected


def test_a_disagreement_is_the_newest_judgement_against_the_label(store: Store) -> None:
    def judge(tx: Transaction) -> None:
        tx.insert("judge", judge_id="j", criterion_id="numbers", criterion_version=1, number=1, parent_id="", change="", task="",
                  criterion_text="", examples="[]", output="", quote_required=False, model_id="m", sampling="{}", reason_chars=9,
                  created_at="2026-01-01")  # fmt: skip
        for seq, position, verdict in (
            (1, 0, "FAIL"),
            (2, 0, "PASS"),
            (3, 1, "PASS"),
            (4, 1, "FAIL"),
            (5, 2, "NO_VERDICT"),
        ):
            tx.insert("judgement", seq=seq, run_id="r", judge_id="j", trace_id=f"T-{position:03d}", trace_version=1,
                      request_key="k", verdict=verdict, reason="", quote="", problem="", created_at="2026-01-01")  # fmt: skip

    for position in (0, 1):
        store.call(labels.add, Label(f"T-{position:03d}", "numbers", Mark.PASS, "why", "Ada", "hand"))
    store.call(judge)
    assert store.call(case_search.find, "numbers", parse("is:disagreement"), range(COUNT)) == [1]
    assert store.call(case_search.find, "numbers", parse("is:no-verdict"), range(COUNT)) == [2]
    assert store.call(case_search.find, "tone", parse("is:disagreement"), range(COUNT)) == []


def test_what_is_typed_is_read_as_conditions_and_text() -> None:
    assert parse('say "is:fail" now') == CaseQuery("say is:fail now")
    assert parse('in:build city="New York" is:Open is:draft x=') == CaseQuery(
        "x=", ("open", "draft"), ("build",), (("city", "New York"),)
    )
    assert parse("https://x.org a:b 1=2") == CaseQuery("https://x.org a:b", (), (), (("1", "2"),))
    assert parse("is: in:") == CaseQuery("is: in:")
    for wrong in ("is:good", "in:the"):
        with pytest.raises(Refused, match="no case is"):
            parse(wrong)


def test_an_older_version_of_a_trace_stands_in_no_list(tmp_path: Path) -> None:
    def renew(tx: Transaction) -> None:
        tx.execute(
            "INSERT INTO trace SELECT * REPLACE (2 AS version, 'another answer' AS response) FROM trace WHERE position = 1"
        )
        tx.insert("superseded", trace_id="T-1", version=1)

    with Store(Workspace(tmp_path / "ws")) as opened:
        opened.call(criteria.add, CRITERION)
        opened.call(traces.add, "src", [TraceRecord(f"T-{i}", f"q {i}", f"answer {i}") for i in range(3)])
        opened.call(renew)
        assert [row.trace_id for row in opened.call(cases.page, "numbers", range(5))] == ["T-0", "T-1", "T-2"]
        assert opened.call(case_search.find, "numbers", parse("answer 1"), range(5)) == []
        assert opened.call(case_search.find, "numbers", parse("another"), range(5)) == [1]
        case = opened.call(cases.at, 1, "numbers")
        assert case is not None and (case.trace.version, opened.call(traces.count)) == (2, 3)
