"""The command `evaldesk audit`."""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.errors import EvaldeskError
from tui.cli import audit


def call(*words: str | Path) -> int:
    parser = argparse.ArgumentParser()
    audit.add_parser(parser.add_subparsers())
    args = parser.parse_args(["audit", *map(str, words)])
    code: int = args.run(args)
    return code


def write(path: Path, rows: Sequence[tuple[str, str]], header: tuple[str, str] = ("human", "judge")) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


WORKED = [("fail", "fail")] * 8 + [("fail", "pass")] * 12 + [("pass", "fail")] * 9 + [("pass", "pass")] * 171
ALWAYS_PASS = [("fail", "pass")] * 20 + [("pass", "pass")] * 180


def as_json(capsys: pytest.CaptureFixture[str], *words: str | Path) -> dict[str, Any]:
    code = call(*words, "--json")
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    figures: dict[str, Any] = json.loads(out)
    assert code == (0 if figures["gate"]["reached"] else 1)
    return figures


def test_the_worked_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = as_json(capsys, write(tmp_path / "a.csv", WORKED))
    assert (figures["tpr"]["k"], figures["tpr"]["n"], figures["tpr"]["value"]) == (8, 20, 0.4)
    assert (figures["tnr"]["k"], figures["tnr"]["n"], figures["tnr"]["value"]) == (171, 180, 0.95)
    assert figures["agreement"]["value"] == 0.895
    assert figures["baseline_agreement"]["value"] == 0.9
    assert figures["gate"]["reached"] is None
    assert figures["gate"]["failures_needed"] == 5
    assert figures["constant_judge"] is None
    assert next(iter(figures)) == "sentence"


def test_a_judge_that_always_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = as_json(capsys, write(tmp_path / "a.csv", ALWAYS_PASS))
    assert figures["agreement"]["value"] == 0.9
    assert (figures["tpr"]["k"], figures["tpr"]["n"], figures["tpr"]["value"]) == (0, 20, 0.0)
    assert figures["constant_judge"] == "PASS"
    assert "constant judge" in figures["sentence"]


def test_on_a_terminal_of_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert call(write(tmp_path / "a.csv", WORKED)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("The judge caught 8 of 20 failures (40 %)")
    text = [" ".join(line.split()) for line in lines]
    assert "judge FAIL judge PASS no verdict all" in text
    assert "expert FAIL 8 12 0 20" in text
    assert "expert PASS 9 171 0 180" in text
    assert "positive = the judge reports a failure" in text
    assert "TPR 8 of 20 40 % [22, 61] failures caught (recall)" in text
    assert "TNR 171 of 180 95 % [91, 97] good answers passed" in text
    assert any(line.startswith("always-PASS 180 of 200 90 %") for line in text)
    assert "gate: TPR >= 80 % on >= 25 failures: not enough failures: 5 more" in text


def test_missing_verdicts_are_shown_with_their_bounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(write(tmp_path / "a.csv", [*WORKED, ("fail", ""), ("fail", "?"), ("", "pass")])) == 1
    text = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "expert FAIL 8 12 2 22" in text
    assert "not labelled 1" in text
    assert any(line.startswith("2 without a verdict: all as PASS: TPR 36 %") for line in text)


def test_names_from_the_file_are_shown_literally(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "[red]a.csv", WORKED, ("x[/x]human\x1b[31m", "[@click=app.quit]judge"))
    assert call(file, "--human", "x[/x]human\x1b[31m", "--judge", "[@click=app.quit]judge") == 1
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "[/x]human" in out
    assert "[@click=app.quit]judge" in out


@pytest.mark.parametrize(
    ("caught", "missed", "code"),
    [(20, 5, 0), (19, 6, 1), (20, 4, 1), (0, 0, 1)],
    ids=["reached", "missed", "few", "none"],
)
def test_the_exit_code_says_whether_the_gate_is_reached(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caught: int, missed: int, code: int
) -> None:
    rows = [("fail", "fail")] * caught + [("fail", "pass")] * missed + [("pass", "pass")] * 9
    file = write(tmp_path / "a.csv", rows)
    assert call(file) == call(file, "--json") == code
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["confusion"]["tp"] == caught


def test_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = write(tmp_path / "l.csv", [("1", "fail"), ("2", "pass")], ("id", "label"))
    judged = write(tmp_path / "j.csv", [("2", "pass"), ("1", "pass")], ("id", "verdict"))
    figures = as_json(capsys, labels, judged, "--on", "id")
    assert (figures["confusion"]["fn"], figures["confusion"]["tn"]) == (1, 1)
    assert figures["join"] == {"matched": 2, "human_only": 0, "judge_only": 0}


def test_wrong_input_is_refused_before_anything_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file, human in (
        (write(tmp_path / "a.csv", [("maybe", "pass")] * 2), "human"),
        (write(tmp_path / "b.csv", [("1", "1")], ("human_error", "judge")), "human_error"),
        (write(tmp_path / "c.csv", WORKED), "nothing"),
        (tmp_path / "absent.csv", "human"),
    ):
        with pytest.raises(EvaldeskError) as caught:
            call(file, "--human", human, "--json")
        assert caught.value.exit_code == 2
        assert caught.value.remedy
        assert capsys.readouterr().out == ""


def test_real_files(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = as_json(capsys, shared_data / "audit/ragas/ragas-annotated.jsonl")
    assert [figures["confusion"][name] for name in ("tp", "fn", "fp", "tn")] == [9, 2, 3, 7]
    assert figures["kappa"]["value"] == pytest.approx(0.52, abs=0.005)
