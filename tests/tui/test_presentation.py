"""Presentation as text: durations, figures that are not final, why a run waits."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from engine.judging.judge import Judge
from engine.runs.protocol import RunState, RunStatus
from engine.store.outcomes import CUT_OFF
from engine.store.runs import Run
from engine.sweeping.items import ItemOutcome
from engine.sweeping.overview import SweepStanding
from engine.sweeping.results import PromptScore, SweepResults
from engine.sweeping.sweep import Sweep
from stats.confusion import Confusion
from stats.rank_agreement import all_pairs
from stats.ranks import fair_ranks
from stats.subsets import score_matrix
from tui.presentation.judge_view import Version, version_row
from tui.presentation.lines import plain, whole_number, width_of, wrap
from tui.presentation.run_view import duration, estimate_text, money, queued_text, run_lines
from tui.presentation.sweep_view import (
    cell_width_for,
    corner_text,
    digits,
    heads,
    item_lines,
    item_row,
    items_title,
    legend_lines,
    order_text,
    protocol_text,
    score_readout,
    standing_line,
)


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


def run_of(**values: Any) -> Run:
    return replace(
        Run("20261130-1", "sweep", "s", "", "", "m", "cpu", "done", needed=96, cached=64, awaited=32), **values
    )


def test_a_run_that_took_over_from_another_one_says_what_it_runs_itself() -> None:
    waits = plain(run_lines(run_of(status="waiting"), None, [], 80))
    assert "96 needed, 64 cached, 32 pending in another run, 0 to run" in waits
    took_over = RunState(RunStatus.RUNNING, planned=32)
    assert "96 needed, 64 cached, 32 to run" in plain(run_lines(run_of(status="running"), took_over, [], 80))
    assert "96 needed, 64 cached, 32 brought by another run, 0 run here" in plain(run_lines(run_of(), None, [], 80))


def test_a_run_says_what_it_has_used_and_only_where_there_is_something() -> None:
    gpus = [{"name": "A GPU", "used": 3 * 2**30, "total": 8 * 2**30, "load": 97}, {"name": "torn", "used": -1}, "?"]
    state = RunState(
        RunStatus.RUNNING, planned=4, done=1, prompt_tokens=1200, cached_tokens=480, completion_tokens=300, cost=0.0125,
        extra={"gpus": gpus},
    )  # fmt: skip
    shown = plain(run_lines(run_of(status="running"), state, [], 80))
    assert "tokens   1,200 prompt, 480 reused (40 %), 300 generated" in shown
    assert "cost     0.0125 so far, an estimated 0.0500 for all requests of the run" in shown
    assert "gpu      A GPU: 3.0 of 8.0 GiB in use, load 97 %" in shown and "torn" not in shown
    done = replace(state, status=RunStatus.DONE, done=4)
    ended = plain(run_lines(run_of(), done, [], 80))
    assert "cost     0.0125\n" in ended and "gpu " not in ended
    bare = plain(run_lines(run_of(), replace(done, cost=0.0, prompt_tokens=0), [], 80))
    assert "cost" not in bare and "reused" not in bare


@pytest.mark.parametrize(
    ("amount", "shown"),
    [(0.0, "0.0000"), (0.00001, "below 0.0001"), (0.0042, "0.0042"), (1.0, "1.00"), (1234.5, "1,234.50")],
)
def test_money_is_shown_without_a_currency(amount: float, shown: str) -> None:
    assert money(amount) == shown


@pytest.mark.parametrize(
    ("planned", "said"),
    [
        ({"to_run": 0, "estimated_from": None}, ""),
        ({"to_run": 5}, ""),
        ({"to_run": 5, "estimated_from": None}, "; no earlier run of this model here to estimate the time from"),
        (
            {"to_run": 5, "seconds": 840.0, "cost": None, "estimated_from": {"run": "r1", "requests": 200}},
            "; estimated: 14 min, from 200 requests of run r1",
        ),
        (
            {"to_run": 5, "seconds": 8.4, "cost": 1.234, "estimated_from": {"run": "r1", "requests": 1}},
            "; estimated: 8 s and a cost of 1.23, from 1 request of run r1",
        ),
    ],
)
def test_an_estimate_says_from_what_and_none_is_invented(planned: dict[str, Any], said: str) -> None:
    assert estimate_text(planned) == said


def test_one_of_something_is_no_plural() -> None:
    planned = {"prompts": 1, "items": 1, "seeds": [1], "ks": [1], "needed": 1, "cached": 0, "awaited": 0, "to_run": 1}
    assert order_text(planned).startswith("1 prompt × 1 item, 1 seed × k 1: ")
    assert order_text({**planned, "repeats": 3}).startswith("1 prompt × 1 item × 3 repeats, 1 seed")
    sweep = Sweep("d", 1, "exact", "m", (("p", "a"),), 1, (1,), (1,), {"max_tokens": 1})
    assert protocol_text(sweep) == "1 prompt · 1 item · 1 seed × k 1 · exact · greedy, 1 token"
    weighed = replace(sweep, scorer="likelihood")
    assert protocol_text(weighed) == "1 prompt · 1 item · 1 seed × k 1 · likelihood · of ABCD"


@pytest.mark.parametrize("count", [5, 20, 99, 100, 150, 1000])
def test_heads_stand_over_their_cells(count: int) -> None:
    width = cell_width_for(count, 76)
    (head,) = heads(count, width)
    assert [head.text[i * width : (i + 1) * width] for i in range(count)] == [
        f"{number:>{width - 1}} " for number in range(1, count + 1)
    ]


@pytest.mark.parametrize("width", [3, 4])
def test_a_figure_in_a_cell_is_whole_or_a_sign_that_is_no_number(width: int) -> None:
    for hundredths in range(-100, 101):
        shown = digits(hundredths / 100, width)
        assert len(shown) < width, "a gap is left"
        assert shown == str(hundredths) or not shown.lstrip("-").isdigit()
    assert digits(1.0, 3) == "**" in corner_text("%", 3)


def swept(*names: str) -> SweepResults:
    """A sweep of prompts of these names, one condition, with a figure of the longest kind in each column."""
    sweep = Sweep("d", 500, "exact", "m", tuple((name, name) for name in names), 500, (1,), (500,))
    outcomes = np.tile(np.arange(500)[:, None] % 2, (1, len(names))).astype(float)
    scores = tuple(PromptScore(n, n, 1.5, 250.0, 500, 0.5, 0.4, 0.6, 498, 497) for n in names)
    matrix = score_matrix(outcomes, sweep.conditions)
    ranks = fair_ranks(matrix.means)
    agreement = all_pairs(ranks, 1)
    return SweepResults(run_of(), sweep, 500, 500, scores, outcomes, matrix, ranks, agreement, 1)


@pytest.mark.parametrize("name", ["a", "check-the-steps", "n" * 32, "n" * 33, "n" * 4000, "名前" * 40])
@pytest.mark.parametrize("width", [77, 97])
def test_long_names_give_way_to_the_figures(name: str, width: int) -> None:
    found = swept(name, "b")
    for cut_off in ({}, {name: 123}):
        head, first, second = legend_lines(found, width, cut_off)
        assert len({width_of(shown) for shown in (head, first, second)}) == 1
        assert width_of(first) <= width
        assert "250 of 500        498     497" in plain([first])
        assert plain([first]).endswith("123") == bool(cut_off)
    readout = score_readout(found, 0, 0, width)
    assert cell_len(readout) <= width
    assert readout.endswith(": 250 of 500 right (.500), coverage 500 of 500")
    items = [ItemOutcome("i", "t", "a", 1.0, "x" * 300, False, "whole reply", "", "x" * 300, ())] * 500
    title = items_title(found, 0, 0, items, width)
    assert cell_len(title) <= width
    assert title.endswith(" · seed 1, k 500: 500 right, 0 wrong, 0 no answer")
    assert plain(item_lines(items[0], width)).split("\n")[1].endswith("by whole reply   right")
    standing = SweepStanding(run_of(created_at=datetime(2026, 11, 30, 12)), name + " × m", (name, "b", "c"), 12, 15)
    shown = plain([standing_line(standing, width)])
    assert cell_len(shown) <= width
    assert " lead, on top in 12 of 15  " in shown
    assert re.search(r"  \d\d \w+ \d\d:\d\d$", shown), "sweeps of one dataset and model are told apart"


@given(st.text("abc  é日\t-", max_size=80), st.integers(4, 24))
def test_text_is_wrapped_at_blanks_and_loses_nothing_but_them(text: str, width: int) -> None:
    pieces = wrap(text, width)
    assert all(cell_len(piece) <= width for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    words = [word for word in text.split() if cell_len(word) <= width // 2]
    assert all(any(word in piece for piece in pieces) for word in words)


def test_a_line_of_several_megabytes_is_wrapped_like_any_other() -> None:
    pieces = wrap("  " + "parcel and order " * 50_000, 40)
    assert all(piece.startswith("  ") and len(piece) <= 40 for piece in pieces)
    assert " ".join(piece.strip() for piece in pieces).split() == ["parcel", "and", "order"] * 50_000


def test_likelihoods_stand_in_place_of_a_reply() -> None:
    likelihoods = {"A": math.log(0.25), "B": math.log(0.5)}
    item = ItemOutcome("i", "text", "A", 0.0, "B", False, "likeliest", "", "B", (), likelihoods=likelihoods)
    assert "REPLY\nB  .500\nA  .250\n.250 for all other beginnings of a reply" in plain(item_lines(item, 77))


def test_a_reply_that_was_cut_off_is_marked_where_it_ends() -> None:
    item = ItemOutcome("i", "text", "yes", 0.0, "maybe", False, "whole reply", CUT_OFF, "maybe it", ())
    assert "cut off" in plain([item_row(item, 77)])
    assert "maybe it\n… cut off here" in plain(item_lines(item, 77))
    assert "cut off" not in plain([item_row(replace(item, problem=""), 77), *item_lines(replace(item, problem=""), 77)])
