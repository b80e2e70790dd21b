"""Reading outcomes: wide and long form, what names items, what is missing, and what is refused."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EvaldeskError
from engine.ranking.outcomes import outcome, read_outcomes


def write_csv(path: Path, *rows: Sequence[object]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def write_jsonl(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def refused(path: Path) -> str:
    with pytest.raises(EvaldeskError) as caught:
        read_outcomes(path)
    assert caught.value.exit_code == 2
    assert caught.value.remedy and caught.value.kept == "Nothing was ranked."
    assert str(caught.value).startswith(path.name)
    return caught.value.what


class TestWide:
    def test_rows_are_items_and_columns_prompts(self, tmp_path: Path) -> None:
        table = read_outcomes(write_csv(tmp_path / "a.csv", ["item_id", "nan", "CoT"], ["g-0", 1, 0], ["g-1", "", 0.5]))
        assert (table.form, table.prompts, table.items) == ("wide", ("nan", "CoT"), ("g-0", "g-1"))
        assert table.values[:, 1].tolist() == [0.0, 0.5]
        assert table.values[0, 0] == 1.0 and math.isnan(table.values[1, 0])
        assert any("1 of 4 outcomes are missing" in note for note in table.notes)

    @pytest.mark.parametrize("header", ["id", "Item ID", "question-id", "index", "Unnamed: 0", "idx"])
    def test_a_column_that_is_called_like_an_id_is_one_wherever_it_stands(self, tmp_path: Path, header: str) -> None:
        table = read_outcomes(write_csv(tmp_path / "a.csv", ["p", header, "q"], [1, 7, 0], [0, 3, 1]))
        assert (table.prompts, table.items) == (("p", "q"), ("7", "3"))

    def test_a_first_column_of_texts_names_the_items(self, tmp_path: Path) -> None:
        table = read_outcomes(write_csv(tmp_path / "a.csv", ["question", "p"], ["what?", 1], ["why?", 0]))
        assert (table.prompts, table.items) == (("p",), ("what?", "why?"))

    def test_a_first_column_that_counts_up_names_the_items(self, tmp_path: Path) -> None:
        table = read_outcomes(write_csv(tmp_path / "a.csv", ["", "p"], [0, 1], [1, 0], [2, 0]))
        assert (table.prompts, table.items) == (("p",), ("0", "1", "2"))

    def test_a_first_column_of_outcomes_is_a_prompt(self, tmp_path: Path) -> None:
        for column in ([0, 1, 0], [0, 1, 1], [0.5, 0.25, 1], ["true", "false", "True"], [0, 1, ""]):
            rows = [[value, 1] for value in column]
            table = read_outcomes(write_csv(tmp_path / "a.csv", ["first", "p"], *rows))
            assert table.prompts == ("first", "p"), column
            assert table.items == ("row 1", "row 2", "row 3")

    def test_jsonl_and_parquet(self, tmp_path: Path) -> None:
        lines = write_jsonl(
            tmp_path / "a.jsonl", {"id": "a", "p": True, "q": 0}, {"q": 1, "id": "b"}, {"id": "c", "p": None, "q": "0"}
        )
        table = read_outcomes(lines)
        assert (table.prompts, table.items) == (("p", "q"), ("a", "b", "c"))
        assert np.array_equal(table.values, [[1, 0], [np.nan, 1], [np.nan, 0]], equal_nan=True)
        parquet = tmp_path / "a.parquet"
        duckdb.sql(
            "SELECT * FROM (VALUES ('a', 1::DOUBLE, true), ('b', 'nan'::DOUBLE, false), ('c', NULL, NULL)) t(id, nan, q)"
        ).write_parquet(str(parquet))
        table = read_outcomes(parquet)
        assert table.prompts == ("nan", "q")
        assert np.array_equal(table.values, [[1, 1], [np.nan, 0], [np.nan, np.nan]], equal_nan=True)

    def test_a_bad_cell_is_named_by_row_and_column(self, tmp_path: Path) -> None:
        what = refused(write_csv(tmp_path / "a.csv", ["id", "p", "q"], ["a", 1, 0], ["b", "yes?", 0], ["c", 1, "n/a"]))
        assert "row 2, column 'p' holds 'yes?'" in what
        assert "row 3, column 'q' holds 'n/a'" in what and "blank cell" in what
        many = [["x", "?"]] * 9
        assert "and 4 more cells" in refused(
            write_csv(tmp_path / "b.csv", ["id", "p"], *[[i, "?"] for i, _ in enumerate(many)])
        )
        assert "holds a list" in refused(write_jsonl(tmp_path / "c.jsonl", {"id": 1, "p": [1]}))

    def test_an_item_that_comes_twice_is_named_with_both_rows(self, tmp_path: Path) -> None:
        what = refused(write_csv(tmp_path / "a.csv", ["id", "p"], ["a", 1], ["b", 0], ["a", 0]))
        assert "item 'a' stands in row 1 and again in row 3" in what

    def test_a_prompt_without_outcomes_is_kept_and_said(self, tmp_path: Path) -> None:
        table = read_outcomes(write_csv(tmp_path / "a.csv", ["id", "p", "q"], ["a", 1, ""], ["b", 0, " "]))
        assert table.prompts == ("p", "q")
        assert any("not ranked: 'q'" in note for note in table.notes)

    def test_files_with_nothing_in_them(self, tmp_path: Path) -> None:
        assert "no rows" in refused(write_csv(tmp_path / "a.csv", ["id", "p"]))
        assert "no columns" in refused(write_jsonl(tmp_path / "d.jsonl", {}, {}))
        assert "no column of outcomes" in refused(write_csv(tmp_path / "b.csv", ["id"], ["x"]))
        assert "every cell is blank" in refused(write_csv(tmp_path / "c.csv", ["id", "p"], ["x", ""]))

    def test_a_row_that_cannot_be_read_refuses_the_file(self, tmp_path: Path) -> None:
        assert "row 2 has 3 cells" in refused(write_csv(tmp_path / "a.csv", ["id", "p"], ["x", 1], ["y", 1, 1]))


class TestLong:
    ROWS = (("nan", "i1", 1), ("CoT", "i1", 0), ("CoT", "i2", ""), ("nan", "i3", 0.5))

    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
    def test_columns_in_any_order(self, tmp_path: Path, order: tuple[int, ...]) -> None:
        names = ("prompt", "item", "score")
        rows = [[row[i] for i in order] for row in self.ROWS]
        table = read_outcomes(write_csv(tmp_path / "a.csv", [names[i] for i in order], *rows))
        assert (table.form, table.prompts, table.items) == ("long", ("nan", "CoT"), ("i1", "i2", "i3"))
        nan = np.nan
        assert np.array_equal(table.values, [[1, 0], [nan, nan], [0.5, nan]], equal_nan=True)

    def test_prompts_and_items_may_be_numbers_and_other_columns_are_said(self, tmp_path: Path) -> None:
        file = write_jsonl(
            tmp_path / "a.jsonl",
            {"prompt": 1, "item": 10, "correct": True, "text": "long"},
            {"prompt": 2, "item": 10, "correct": False, "text": "longer"},
        )
        table = read_outcomes(file)
        assert (table.prompts, table.items, table.values.tolist()) == (("1", "2"), ("10",), [[1.0, 0.0]])
        assert any("not used: 'text'" in note for note in table.notes)

    def test_an_outcome_that_comes_twice_is_refused(self, tmp_path: Path) -> None:
        what = refused(write_csv(tmp_path / "a.csv", ["prompt", "item", "score"], ["p", "a", 1], ["p", "a", 1]))
        assert "in row 1 and again in row 2" in what

    def test_blank_names_and_bad_scores_are_named(self, tmp_path: Path) -> None:
        what = refused(
            write_csv(tmp_path / "a.csv", ["prompt", "item", "score"], ["", "a", 1], ["p", "", 1], ["p", "b", "x"])
        )
        assert "row 1, column 'prompt' is blank" in what
        assert "row 2, column 'item' is blank" in what
        assert "row 3, column 'score' holds 'x'" in what

    def test_names_of_prompts_without_a_score_are_no_wide_table(self, tmp_path: Path) -> None:
        what = refused(write_csv(tmp_path / "a.csv", ["prompt", "item_id", "s0", "s1"], ["p", "a", 0, 1]))
        assert "no column was recognised as a score" in what


def test_cells() -> None:
    for text, value in (
        ("1", 1.0),
        (" 0 ", 0.0),
        ("-2.5e-1", -0.25),
        (".5", 0.5),
        ("TRUE", 1.0),
        (True, 1.0),
        (3, 3.0),
    ):
        assert outcome(text) == value
    for blank in (None, "", "  "):
        assert math.isnan(outcome(blank))
    for bad in (
        "nan",
        "NaN",
        "inf",
        "1_000",
        "1,5",
        "0x1",
        "\N{ARABIC-INDIC DIGIT ONE}",
        "1e999",
        10**400,
        [],
        {},
        "-",
    ):
        with pytest.raises(ValueError):
            outcome(bad)


@given(st.text(max_size=12))
def test_a_text_is_a_number_a_blank_or_refused(text: str) -> None:
    try:
        value = outcome(text)
    except ValueError:
        return
    assert math.isfinite(value) or not text.strip()


def test_real_files(shared_data: Path) -> None:
    folder = shared_data / "ranking"
    table = read_outcomes(folder / "oirl_gsm8k/gsm8k_test_correct.csv")
    assert table.prompts[:2] == ("nan", "CoT") and table.values.shape == (1000, 16)
    assert table.values.sum(axis=0)[:3].tolist() == [248.0, 240.0, 246.0]
    assert read_outcomes(folder / "openai_gsm8k/gsm8k_correct.csv").values.shape == (1319, 4)
    assert "no column was recognised as a score" in refused(folder / "game24/game24_samples.csv")
