"""Presentation as text: durations, figures that are not final, why a run waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.judging.judge import Judge
from stats.confusion import Confusion
from tui.presentation.judge_view import Version, version_row
from tui.presentation.lines import plain
from tui.presentation.run_view import duration, queued_text
from tui.screens.home import whole_number


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "?"),
        (-3, "0 s"),
        (38.4, "38 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (856, "14 min"),
        (3599, "1 h 00 min"),
        (11_050, "3 h 04 min"),
    ],
)
def test_a_duration_is_no_clock_time(seconds: float | None, shown: str) -> None:
    assert duration(seconds) == shown


def test_a_round_that_is_not_complete_shows_no_rates() -> None:
    judge = Judge("resolved", 1, "task", "criterion", (), "output", False, "model", number=1, change="first")
    confusion = Confusion(tp=1, fn=1, fp=0, tn=2)
    assert "so far 4 of 96" in plain([version_row(Version(judge, confusion, 92))])
    assert "TPR" not in plain([version_row(Version(judge, confusion, 92))])
    assert "TPR 50 %  TNR 100 %" in plain([version_row(Version(judge, confusion))])


def test_a_queued_run_names_the_one_that_goes_first() -> None:
    assert queued_text(None, Path("/w/mine")) == ""
    assert queued_text(Path("/w/mine/runs/r1"), Path("/w/mine")) == "waits for the model: run r1 goes first"
    assert queued_text(Path("/w/other/runs/r1"), Path("/w/mine")) == "waits for the model: run r1 of other goes first"


@pytest.mark.parametrize(
    ("text", "number"), [("12", 12), ("0", 0), ("²", None), ("1" * 5000, None), ("-1", None), ("٣", None), ("", None)]
)
def test_a_number_is_what_a_person_types(text: str, number: int | None) -> None:
    assert whole_number(text) == number
