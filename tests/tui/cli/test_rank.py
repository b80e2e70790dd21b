"""The command `evaldesk rank`."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tui.cli.main import run


def write(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def grid(n: int = 120, *skill: float) -> list[list[object]]:
    drawn = np.random.default_rng(1).random((n, len(skill))) < skill
    return [[f"i{at}", *map(int, row)] for at, row in enumerate(drawn)]


def as_json(capsys: pytest.CaptureFixture[str], *words: str | Path) -> dict[str, Any]:
    assert run(["rank", *map(str, words), "--json"]) == 0
    figures: dict[str, Any] = json.loads(capsys.readouterr().out)
    return figures


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.csv", ["item_id", "nan", "b", "c"], grid(120, 0.3, 0.5, 0.7))
    shown = as_json(
        capsys, file, "--k", "20,40,900", "--seeds", "4", "--top", "2", "--z", "0.5", "--holdout", "condition"
    )
    assert next(iter(shown)) == "advice"
    assert [score["prompt"] for score in shown["scores"]] == ["c", "b", "nan"]
    assert [row["k"] for row in shown["stability"]] == [20, 40]
    assert shown["stability"][0]["simulated"]["pairs"]["tau_b"] == 6
    assert shown["options"] == {"seeds": [1, 2, 3, 4], "k": [20, 40], "top": 2, "z": 0.5, "holdout": "condition"}
    assert shown["selection"]["loso"]["mean"]["held_out"] == 8
    assert any("900" in note for note in shown["notes"])


def test_long_form_gives_the_same_as_wide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = grid(60, 0.3, 0.5)
    wide = write(tmp_path / "wide.csv", ["item_id", "nan", "b"], rows)
    long = write(
        tmp_path / "long.csv",
        ["score", "prompt", "item"],
        [(row[at], name, row[0]) for row in rows for at, name in ((1, "nan"), (2, "b"))],
    )
    one, other = as_json(capsys, wide, "--k", "20"), as_json(capsys, long, "--k", "20")
    assert one.pop("notes") != other.pop("notes")
    assert one == other


def test_on_a_terminal_of_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = ["item_id", "nan", "a template that goes on and on, with {field} after {field}", "c"]
    assert run(["rank", str(write(tmp_path / "a.csv", names, grid(120, 0.3, 0.5, 0.7))), "--k", "20,40"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("c leads with .")
    text = [" ".join(line.split()) for line in lines]
    assert "rank prompt mean 95 % items ranks best?" in text
    assert any(line.startswith("1 c .") and "] 120 1-" in line for line in text)
    assert "k two seeds tau-b rho top 1 top 3 tied pairs tied top" in text
    assert any(line.startswith("20 expected ") for line in text)
    assert any(line.startswith("10 pairs ") for line in text)
    assert any(line.startswith("LCB is a heuristic, not a confidence interval.") for line in text)


def test_names_from_the_file_are_shown_literally(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.csv", ["id", "[red]x\x1b[31m", "[@click=app.quit]y"], grid(60, 0.3, 0.7))
    assert run(["rank", str(file), "--k", "20"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "[red]x" in out and "[@click=app.quit]y" in out


def test_wrong_input_is_refused_before_anything_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write(tmp_path / "good.csv", ["id", "p", "q"], grid(60, 0.3, 0.7))
    bad = write(tmp_path / "bad.csv", ["id", "p", "q\x1b[2J"], [["a", 1, 0], ["b", 1, "maybe"]])
    for words, said in (
        ([bad], "row 2, column"),
        ([tmp_path / "absent.csv"], "no such file"),
        ([good, "--k", "ten"], "--k"),
        ([good, "--k", "0"], "--k"),
        ([good, "--seeds", "0"], "--seeds"),
        ([good, "--z", "nan"], "--z"),
    ):
        assert run(["rank", *map(str, words), "--json"]) == 2
        captured = capsys.readouterr()
        assert captured.out == "" and "\x1b" not in captured.err
        assert said in captured.err


def test_16_prompts_of_a_published_run_in_seconds(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin = time.perf_counter()
    shown = as_json(capsys, shared_data / "ranking/oirl_gsm8k/gsm8k_test_correct.csv")
    assert time.perf_counter() - begin < 5.0
    assert (shown["scores"][0]["prompt"], shown["scores"][0]["mean"]) == ("nan", 0.248)
    assert round(100 * shown["stability"][0]["ties"]["pairs_share"], 1) == 7.5
