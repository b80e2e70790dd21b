"""Auditing files: what counts as what, how values are read, and what is refused."""

from __future__ import annotations

import csv
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.auditing.audit_file import audit_file
from engine.errors import EvaldeskError
from stats.confusion import Confusion


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_jsonl(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


class TestRealFiles:
    """Known values of the folder of real inputs."""

    def test_ragas_without_naming_anything(self, shared_data: Path) -> None:
        audit = audit_file(shared_data / "audit/ragas/ragas-annotated.jsonl")
        assert audit.confusion == Confusion(tp=9, fn=2, fp=3, tn=7)

    def test_ragas_by_json_pointer(self, shared_data: Path) -> None:
        file = shared_data / "audit/ragas/ragas-annotated.jsonl"
        audit = audit_file(file, human="human", judge="/judges/ragas-judge/verdict")
        assert audit.confusion == Confusion(tp=9, fn=2, fp=3, tn=7)

    def test_truescore_counts_the_unlabelled(self, shared_data: Path) -> None:
        audit = audit_file(shared_data / "audit/truescore/support_eval.csv")
        assert audit.confusion == Confusion(tp=79, fn=90, fp=15, tn=416, unlabelled=3400)
        assert audit.as_json()["n"] == 600
        assert audit.as_json()["values"]["human"] == {"1": "PASS", "0": "FAIL"}

    def test_arena_has_two_judges_and_one_answer_missing(self, shared_data: Path) -> None:
        file = shared_data / "audit/arena_gemini_pro/arena-gemini-2.5-pro.jsonl"
        with pytest.raises(EvaldeskError, match=r"2 fields could hold the judge's verdict"):
            audit_file(file)
        mini = audit_file(file, judge="/judges/gpt-4o-mini/verdict").as_json()
        assert (round(mini["tpr"]["value"], 3), round(mini["tnr"]["value"], 3)) == (0.844, 0.169)
        assert mini["confusion"]["no_verdict"] == 1
        assert mini["n"] == 277
        other = audit_file(file, judge="/judges/gpt-5.2/verdict").as_json()
        assert (round(other["tpr"]["value"], 3), round(other["tnr"]["value"], 3)) == (0.697, 0.538)

    def test_truescore_labels_joined_with_another_files_judge(self, shared_data: Path) -> None:
        folder = shared_data / "audit/truescore"
        audit = audit_file(folder / "support_eval.csv", folder / "support_segments.csv", on="example_id",
                           judge="v3_judge_passed")  # fmt: skip
        assert audit.human.file == "support_eval.csv"
        assert audit.judge.file == "support_segments.csv"
        assert audit.confusion.labelled == 600
        assert audit.confusion.unlabelled == 3400


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("pass", "fail"),
        ("PASS", "FAIL"),
        ("true", "false"),
        ("True", "False"),
        ("1", "0"),
        ("1.0", "0.0"),
        (1, 0),
        ("accept", "reject"),
        (" Pass ", "fail "),
    ],
)
def test_every_way_to_write_a_verdict(tmp_path: Path, good: object, bad: object) -> None:
    rows = [(bad, bad)] * 3 + [(bad, good)] * 2 + [(good, bad)] + [(good, good)] * 4
    audit = audit_file(write_csv(tmp_path / "a.csv", ("human", "judge"), rows))
    assert audit.confusion == Confusion(tp=3, fn=2, fp=1, tn=4)
    assert sorted(audit.as_json()["values"]["human"].values()) == ["FAIL", "PASS"]


def test_json_booleans_and_numbers(tmp_path: Path) -> None:
    rows = [{"human": True, "judge": 1}, {"human": False, "judge": 1}, {"human": False, "judge": 0}, {"human": None}]
    audit = audit_file(write_jsonl(tmp_path / "a.jsonl", rows))
    assert audit.confusion == Confusion(tp=1, fn=1, fp=0, tn=1, unlabelled=1)


def test_parquet(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "a.parquet"
    values = "(true, true), (false, true), (false, false), (NULL, true), (true, NULL)"
    duckdb.execute(f"COPY (SELECT * FROM (VALUES {values}) t(human, judge)) TO '{path}' (FORMAT parquet)")
    assert audit_file(path).confusion == Confusion(tp=1, fn=1, fp=0, tn=1, no_verdict_pass=1, unlabelled=1)


def test_a_blank_label_is_unlabelled_and_a_blank_or_unknown_judge_value_no_verdict(tmp_path: Path) -> None:
    rows = [("fail", ""), ("fail", "maybe"), ("pass", "n/a"), ("", "pass"), ("  ", ""), ("pass", "pass")]
    audit = audit_file(write_csv(tmp_path / "a.csv", ("human", "judge"), rows))
    assert audit.confusion == Confusion(0, 0, 0, 1, no_verdict_fail=2, no_verdict_pass=1, unlabelled=2)
    assert any("'maybe' (1)" in note and "'n/a' (1)" in note for note in audit.notes)


def test_an_unknown_human_value_is_refused_with_its_row(tmp_path: Path) -> None:
    rows = [("pass", "pass"), ("maybe", "pass"), ("fail", "fail")] + [("unsure", "pass")] * 9
    with pytest.raises(EvaldeskError, match=r"row 2: 'maybe'.*row 4: 'unsure'.*and 5 more rows") as caught:
        audit_file(write_csv(tmp_path / "a.csv", ("human", "judge"), rows))
    assert caught.value.exit_code == 2
    assert caught.value.where == "a.csv"


class TestColumnsNamedLikeFailures:
    rows = (("1", "1"), ("1", "0"), ("0", "1"), ("0", "0"), ("0", "0"))

    def test_flags_are_not_guessed(self, tmp_path: Path) -> None:
        file = write_csv(tmp_path / "a.csv", ("human_error", "judge_error"), self.rows)
        with pytest.raises(EvaldeskError, match=r"human_error.*--values 1=FAIL,0=PASS"):
            audit_file(file, human="human_error", judge="judge_error")

    def test_one_statement_serves_both_sides(self, tmp_path: Path) -> None:
        file = write_csv(tmp_path / "a.csv", ("human_error", "judge_error"), self.rows)
        audit = audit_file(file, values="1=FAIL,0=PASS")
        assert audit.confusion == Confusion(tp=1, fn=1, fp=1, tn=2)
        assert audit.as_json()["values"] == {side: {"1": "FAIL", "0": "PASS"} for side in ("human", "judge")}

    def test_one_statement_is_refused_for_fields_that_say_the_opposite(self, tmp_path: Path) -> None:
        file = write_csv(tmp_path / "a.csv", ("human_error", "judge_passed"), self.rows)
        with pytest.raises(EvaldeskError, match="only one is named like a failure"):
            audit_file(file, values="1=FAIL,0=PASS")
        audit = audit_file(file, values="1=FAIL,0=PASS", values_judge="1=PASS,0=FAIL")
        assert audit.confusion == Confusion(tp=1, fn=1, fp=2, tn=1)

    def test_only_the_judges_column_needs_a_statement(self, tmp_path: Path) -> None:
        rows = [("fail", "1"), ("pass", "0"), ("fail", "0")]
        file = write_csv(tmp_path / "a.csv", ("human", "judge_defect"), rows)
        with pytest.raises(EvaldeskError, match="--values-judge 1=FAIL"):
            audit_file(file)
        assert audit_file(file, values="1=FAIL,0=PASS").confusion == Confusion(tp=1, fn=1, fp=0, tn=1)
        assert audit_file(file, values_judge="1=FAIL,0=PASS").confusion == Confusion(tp=1, fn=1, fp=0, tn=1)

    def test_a_judge_that_writes_words_needs_none(self, tmp_path: Path) -> None:
        file = write_csv(tmp_path / "a.csv", ("human_error", "judge_error"), [("fail", "pass"), ("pass", "pass")])
        assert audit_file(file).confusion == Confusion(tp=0, fn=1, fp=0, tn=1)


def test_stated_words(tmp_path: Path) -> None:
    rows = [("good", "ok"), ("bad", "ok"), ("bad", "not ok")]
    file = write_csv(tmp_path / "a.csv", ("human", "judge"), rows)
    audit = audit_file(file, values="good=PASS,bad=FAIL", values_judge="ok=PASS,not ok=FAIL")
    assert audit.confusion == Confusion(tp=1, fn=1, fp=0, tn=1)


class TestFindingTheFields:
    def test_common_names(self, tmp_path: Path) -> None:
        for human, judge in (("label", "verdict"), ("Expert", "judgeVerdict"), ("human_passed", "judge_passed")):
            file = write_csv(tmp_path / "a.csv", ("id", human, judge, "note"), [("1", "fail", "pass", "why")])
            audit = audit_file(file)
            assert (audit.human.path, audit.judge.path) == (human, judge)

    def test_the_judges_reason_is_not_taken_for_its_verdict(self, tmp_path: Path) -> None:
        rows = [{"human": "pass", "judges": {"a": {"reason": "It fails.", "verdict": "fail"}}}]
        assert audit_file(write_jsonl(tmp_path / "a.jsonl", rows)).judge.path == "judges.a.verdict"

    def test_a_missing_field_is_answered_with_those_that_are_there(self, tmp_path: Path) -> None:
        file = write_csv(tmp_path / "a.csv", ("id", "human", "judge"), [("1", "fail", "pass")])
        with pytest.raises(EvaldeskError, match=r"no field 'expert'; found: id, human, judge"):
            audit_file(file, human="expert")
        with pytest.raises(EvaldeskError, match=r"no field was recognised as the judge's verdict; found: id, human, x"):
            audit_file(write_csv(tmp_path / "b.csv", ("id", "human", "x"), [("1", "fail", "pass")]))

    def test_a_judge_that_speaks_another_language_gave_no_verdict_and_this_is_said(self, tmp_path: Path) -> None:
        rows = [("fail", "schlecht"), ("pass", "gut"), ("pass", "gut")]
        audit = audit_file(write_csv(tmp_path / "a.csv", ("human", "judge"), rows))
        assert audit.confusion == Confusion(0, 0, 0, 0, no_verdict_fail=1, no_verdict_pass=2)
        assert audit.sentence.startswith("There is nothing to measure: the judge gave no verdict on any of 3")
        assert "'gut' (2), 'schlecht' (1)" in audit.notes[0]

    def test_two_that_fit_are_not_guessed_between(self, tmp_path: Path) -> None:
        file = write_csv(tmp_path / "a.csv", ("human", "expert", "judge"), [("fail", "fail", "pass")])
        with pytest.raises(EvaldeskError, match="2 fields could hold the human verdict: human, expert"):
            audit_file(file)

    def test_one_field_is_not_both_sides_under_any_spelling(self, tmp_path: Path) -> None:
        file = write_csv(tmp_path / "a.csv", ("human", "judge"), [("fail", "pass")])
        for judge in ("human", "/human"):
            with pytest.raises(EvaldeskError, match="the same field"):
                audit_file(file, human="human", judge=judge)

    def test_an_object_is_no_verdict(self, tmp_path: Path) -> None:
        rows = [{"human": "pass", "judges": {"a": {"verdict": "fail"}}}]
        with pytest.raises(EvaldeskError, match=r"row 1 holds an object in '/judges'"):
            audit_file(write_jsonl(tmp_path / "a.jsonl", rows), judge="/judges")

    def test_a_judge_absent_from_some_rows_gave_no_verdict_there(self, tmp_path: Path) -> None:
        rows = [{"human": "fail", "judges": {"a": {"verdict": "fail"}}}, {"human": "fail", "judges": {}}]
        audit = audit_file(write_jsonl(tmp_path / "a.jsonl", rows), judge="/judges/a/verdict")
        assert audit.confusion == Confusion(1, 0, 0, 0, no_verdict_fail=1)


class TestTwoFiles:
    def test_joined_by_id_in_any_order(self, tmp_path: Path) -> None:
        labels = write_csv(tmp_path / "labels.csv", ("id", "label"), [("1", "fail"), ("2", "pass"), ("3", "")])
        judged = write_jsonl(
            tmp_path / "judged.jsonl",
            [{"id": 3, "verdict": "pass"}, {"id": 2, "verdict": "pass"}, {"id": 1, "verdict": None}],
        )
        expected = Confusion(0, 0, 0, 1, no_verdict_fail=1, unlabelled=1)
        assert audit_file(labels, judged, on="id").confusion == expected
        assert audit_file(judged, labels, on="id").confusion == expected

    def test_rows_without_a_partner_are_counted_and_named(self, tmp_path: Path) -> None:
        labels = write_csv(
            tmp_path / "l.csv", ("id", "human"), [("1", "fail"), ("2", "pass"), ("9", "fail"), ("8", "")]
        )
        judged = write_csv(tmp_path / "j.csv", ("id", "judge"), [("1", "fail"), ("2", "pass"), ("3", "pass")])
        audit = audit_file(labels, judged, on="id")
        assert audit.confusion == Confusion(1, 0, 0, 1, unlabelled=1)
        assert audit.as_json()["join"] == {"matched": 2, "human_only": 2, "judge_only": 1}
        assert any("2 rows of l.csv have no partner" in note and "1 labelled" in note for note in audit.notes)

    def test_a_doubled_id_is_refused(self, tmp_path: Path) -> None:
        labels = write_csv(tmp_path / "l.csv", ("id", "human"), [("1", "fail"), ("1", "pass")])
        judged = write_csv(tmp_path / "j.csv", ("id", "judge"), [("1", "fail")])
        with pytest.raises(EvaldeskError, match="'1' in rows 1 and 2"):
            audit_file(labels, judged, on="id")

    def test_no_id_in_common_is_refused(self, tmp_path: Path) -> None:
        labels = write_csv(tmp_path / "l.csv", ("id", "human"), [("a", "fail")])
        judged = write_csv(tmp_path / "j.csv", ("id", "judge"), [("b", "fail")])
        with pytest.raises(EvaldeskError, match="no id stands in both"):
            audit_file(labels, judged, on="id")
        with pytest.raises(EvaldeskError, match="no field 'nr'"):
            audit_file(labels, judged, on="nr")

    def test_both_files_and_the_id_go_together(self, tmp_path: Path) -> None:
        file = write_csv(tmp_path / "l.csv", ("id", "human", "judge"), [("a", "fail", "fail")])
        with pytest.raises(EvaldeskError, match="--on"):
            audit_file(file, file)
        with pytest.raises(EvaldeskError, match="--on"):
            audit_file(file, on="id")


def test_an_unreadable_row_is_not_left_out_unsaid(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"human": "pass", "judge": "pass"}\n{"human": "fail", "jud\n', encoding="utf-8")
    with pytest.raises(EvaldeskError, match="row 2"):
        audit_file(file)


CELLS = ["pass", "fail", "", "??"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(CELLS[:3]), st.sampled_from(CELLS)), min_size=1, max_size=60))
def test_every_row_is_counted_exactly_once(rows: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # A leading column keeps a row with two blanks from being a blank line.
        file = write_csv(Path(folder) / "a.csv", ("id", "human", "judge"), [(i, *row) for i, row in enumerate(rows)])
        confusion = audit_file(file, human="human", judge="judge").confusion
    counts = Counter(rows)
    assert confusion.labelled + confusion.unlabelled == len(rows)
    assert confusion.tp == counts["fail", "fail"]
    assert confusion.tn == counts["pass", "pass"]
    assert confusion.no_verdict_fail == counts["fail", ""] + counts["fail", "??"]
    assert confusion.unlabelled == sum(count for (human, _), count in counts.items() if not human)
