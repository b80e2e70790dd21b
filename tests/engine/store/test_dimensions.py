"""Dimensions: what fills them, which of hand, rule and metadata counts, and that a search finds the cases of a value."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EvaldeskError, Refused
from engine.importing.records import TraceRecord
from engine.judging.dimension import Rule, parse_rule
from engine.store import case_search, dimensions, traces
from engine.store.store import Store
from engine.store.workspace import Workspace

REQUESTS = ("Where is my refund?", "Gib mir die Rückgabe zurück", "refunds are slow", "MONEY\n back please", "hello")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(Workspace(tmp_path / "ws")) as opened:
        opened.call(traces.add, "src", [
            TraceRecord(f"T-{i}", request, "a", metadata={"language": ("de", "en", "DE", " en ", None)[i], "plan": i % 2, "id": f"x{i}",
                                                          "tags": ["a", "b"], "a/b": bool(i % 2)})
            for i, request in enumerate(REQUESTS)
        ])  # fmt: skip
        yield opened


def value(store: Store, trace_id: str, name: str) -> tuple[str | None, str]:
    found = next(v for v in store.call(dimensions.of_case, trace_id) if v.dimension.name == name)
    return found.value, found.source


def test_a_hand_wins_over_a_rule_and_a_rule_over_metadata_and_undo_goes_back_through_all(store: Store) -> None:
    language = store.call(dimensions.add, "language")
    assert [value(store, f"T-{i}", "language")[0] for i in range(5)] == ["de", "en", "DE", "en", None]
    store.call(dimensions.set_rules, language.dimension_id, [parse_rule("german if request has rückgabe")])
    assert value(store, "T-1", "language") == ("german", "rule")
    assert value(store, "T-0", "language") == ("de", "metadata")
    for said in ("fr", "it"):
        store.call(dimensions.set_by_hand, language.dimension_id, "T-1", said, "Ada")
    assert value(store, "T-1", "language") == ("it", "hand")
    taken = []
    while (undone := store.call(dimensions.undo, "T-1", "Ada")) is not None:
        taken.append((undone[1], *value(store, "T-1", "language")))
    assert taken == [("it", "fr", "hand"), ("fr", "german", "rule")]
    store.call(dimensions.set_by_hand, language.dimension_id, "T-1", "es", "Ada")
    assert store.call(dimensions.undo, "T-1", "Ada") and value(store, "T-1", "language") == ("german", "rule")
    rows = store.call(lambda tx: tx.rows("SELECT value, author, undoes > 0 FROM dimension_value ORDER BY seq"))
    assert (
        len(rows) == 6
        and {row[1] for row in rows} == {"Ada"}
        and [row[2] for row in rows] == [False, False, True, True, False, True]
    )
    assert store.call(dimensions.undo, "T-0", "Ada") is None


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("x if request has refund, money back", {"T-0", "T-3"}),
        ("x if request has RÜCKGABE", {"T-1"}),
        ("x if request has ückgabe", set()),
        ("x if request matches refunds?", {"T-0", "T-2"}),
        ("x if request matches (?i)^money", {"T-3"}),
        ("x if plan is 1", {"T-1", "T-3"}),
        ("x if a/b is TRUE", {"T-1", "T-3"}),
        ("x if nothing is 1", set()),
        ("x if request has '; DROP TABLE trace; --", set()),
    ],
)
def test_a_rule_compares_text(store: Store, rule: str, expected: set[str]) -> None:
    found = store.call(dimensions.add, "topic")
    store.call(dimensions.set_rules, found.dimension_id, [parse_rule(rule)])
    assert {f"T-{i}" for i in range(5) if value(store, f"T-{i}", "topic")[0] == "x"} == expected
    assert store.call(dimensions.everyone)[0].rules == (parse_rule(rule),)


def test_the_first_rule_that_matches_counts(store: Store) -> None:
    found = store.call(dimensions.add, "topic")
    rules = [parse_rule("a if request has money"), parse_rule("b if request matches .")]
    store.call(dimensions.set_rules, found.dimension_id, rules)
    assert [value(store, f"T-{i}", "topic")[0] for i in range(5)] == ["b", "b", "b", "a", "b"]


@pytest.mark.parametrize(
    "wrong", ["", "x", "x if request", "if request has a", "x if request has , ,", "x request has a"]
)
def test_what_is_no_rule_is_said_with_the_form_of_one(wrong: str) -> None:
    with pytest.raises(EvaldeskError, match="The form: VALUE if request has WORD"):
        parse_rule(wrong)


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.text(min_size=1),
    st.sampled_from(("has", "is", "matches")),
    st.text(min_size=1),
)
def test_a_rule_that_was_read_is_read_again_as_the_same(value: str, where: str, how: str, what: str) -> None:
    try:
        rule = parse_rule(f"{value} if {where} {how} {what}")
    except EvaldeskError:
        return
    assert isinstance(rule, Rule) and parse_rule(rule.text) == rule


def test_a_wrong_regular_expression_is_refused_and_nothing_changes(store: Store) -> None:
    found = store.call(dimensions.add, "topic")
    with pytest.raises(EvaldeskError, match="no regular expression"):
        store.call(dimensions.set_rules, found.dimension_id, [parse_rule("x if request matches (a")])
    assert store.call(dimensions.everyone) == [found]


def test_dimensions_are_named_once_renamed_ordered_and_removed_and_what_they_were_stays(store: Store) -> None:
    made = [store.call(dimensions.add, name) for name in ("language", "plan", "tags")]
    for taken in ("Language", "  plan "):
        with pytest.raises(Refused, match="already"):
            store.call(dimensions.add, taken)
    with pytest.raises(EvaldeskError, match="a name needs"):
        store.call(dimensions.add, "  ")
    store.call(dimensions.move, made[2].dimension_id, -1)
    store.call(dimensions.move, made[0].dimension_id, -1)
    store.call(dimensions.rename, made[0].dimension_id, "tongue [b]")
    assert [d.name for d in store.call(dimensions.everyone)] == ["tongue [b]", "tags", "plan"]
    assert value(store, "T-0", "tongue [b]") == ("de", "metadata")
    assert value(store, "T-0", "tags")[0] is not None  # a list is a value too, though none to choose
    store.call(dimensions.remove, made[1].dimension_id)
    assert [d.name for d in store.call(dimensions.everyone)] == ["tongue [b]", "tags"]
    assert store.call(dimensions.add, "plan").dimension_id != made[1].dimension_id
    with pytest.raises(EvaldeskError, match="Dimensions in this workspace: tongue"):
        store.call(dimensions.get, "colour")
    assert store.call(lambda tx: tx.value("SELECT count(*) FROM dimension WHERE name = 'language'")) == 1


def test_candidates_are_fields_with_a_few_values_that_are_no_dimension_yet(store: Store) -> None:
    assert [(c.field, c.filled) for c in store.call(dimensions.candidates)] == [
        ("a/b", 5),
        ("id", 5),
        ("plan", 5),
        ("language", 4),
    ]
    store.call(dimensions.add, "Plan", "plan")
    found = store.call(dimensions.candidates)
    assert [c.field for c in found] == ["a/b", "id", "language"]
    assert dict(found[2].values) == {"de": 1, "en": 2, "DE": 1}
    store.call(traces.add, "more", [TraceRecord(f"M-{i}", "q", "a", metadata={"id": f"y{i}"}) for i in range(30)])
    assert [c.field for c in store.call(dimensions.candidates)] == ["a/b", "language"]


def test_a_search_knows_what_rules_and_hands_say_and_several_conditions_at_once(store: Store) -> None:
    topic, language = store.call(dimensions.add, "user topic"), store.call(dimensions.add, "tongue", "language")
    store.call(dimensions.set_rules, topic.dimension_id, [parse_rule('say "it" if request matches refund')])
    store.call(dimensions.set_by_hand, language.dimension_id, "T-4", "EN", "Ada")

    def find(*conditions: tuple[str, str | None]) -> list[int]:
        typed = " ".join(case_search.condition(name, value) for name, value in conditions)
        return store.call(case_search.find, "", case_search.parse(typed), range(5))

    assert find(("user topic", 'SAY "it"')) == [0, 2]
    assert find(("tongue", "en")) == [1, 3, 4]
    assert find(("language", "en")) == [1]  # the field itself, as it stands
    assert find(("User Topic", 'say "it"'), ("tongue", "de")) == [0, 2]
    assert find(("user topic", None)) == [1, 3, 4]
    assert find(("language", None)) == [4] and find(("nothing", None)) == [0, 1, 2, 3, 4]
    assert find(("user topic", None), ("tongue", "en"), ("plan", "1")) == [1, 3]


@given(st.text(min_size=1), st.text())
def test_any_name_and_value_can_be_written_as_a_condition(name: str, value: str) -> None:
    assert case_search.parse(case_search.condition(name, value)).dimensions == ((name, value),)
    both = f"{case_search.condition(name, value)} late {case_search.condition(value or 'x', name)}"
    assert case_search.parse(both) == case_search.CaseQuery("late", (), (), ((name, value), (value or "x", name)))
