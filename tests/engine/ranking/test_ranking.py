"""From a matrix of outcomes to what is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.errors import EvaldeskError
from engine.ranking.decision import decide
from engine.ranking.outcomes import OutcomeTable
from engine.ranking.ranking import RankingOptions, rank_file, rank_outcomes
from engine.ranking.ranking_json import ranking_json
from stats.stability import pair_probabilities, tied_share


def table(values: Any, *prompts: str) -> OutcomeTable:
    matrix = np.asarray(values, dtype=float)
    names = prompts or tuple(f"p{i}" for i in range(matrix.shape[1]))
    return OutcomeTable("a.csv", "wide", names, tuple(f"i{i}" for i in range(len(matrix))), matrix)


def coins(n: int, *skill: float) -> Any:
    return (np.random.default_rng(0).random((n, len(skill))) < skill).astype(float)


def test_every_figure_has_its_place_in_the_json() -> None:
    ranking = rank_outcomes(table(coins(120, 0.3, 0.5, 0.6, 0.7)), RankingOptions(ks=(20, 60, 500)))
    shown = ranking_json(ranking)
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert (shown["n_items"], shown["n_prompts"]) == (120, 4)
    assert [row["k"] for row in shown["stability"]] == [20, 60]
    for row in shown["stability"]:
        assert row["method"]["tau_b"] == row["method"]["top1"] == "approximate"
        assert row["method"]["ties"]["pairs_share"] == "exact"
        for name in ("tau_b", "rho", "top1", "topm"):
            assert -1.0 <= row["expected"][name] <= 1.0
            assert -1.0 <= row["simulated"][name] <= 1.0
            assert row["simulated"]["std_over_pairs"][name] >= 0.0
            assert row["simulated"]["pairs"][name] == 10
            assert -1.0 <= row["reference"][name] <= 1.0
        assert row["reference"]["top1_share"] <= 1.0
        pairs = pair_probabilities(ranking.table.values, row["k"])
        assert row["ties"]["pairs_share"] == tied_share(pairs)
    assert shown["extractors"] is None
    assert shown["best_set"] == ["p3", "p2"]
    assert shown["rank_intervals"][0] == {"prompt": "p0", "low": 4, "high": 4}
    assert shown["items_needed"]["winner_95"] >= shown["items_needed"]["top_pair"] > 0
    assert shown["reliability"]["at"][1]["k"] == 60 and shown["reliability"]["items_for_90"] > 0
    assert set(shown["selection"]["loso"]) == set(shown["selection"]["folds"]) == {"mean", "lcb", "borda"}
    assert shown["selection"]["loso"]["mean"]["held_out"] == 5
    assert any("left out: k = 500, because there are only 120 items" in note for note in shown["notes"])


def test_scores_come_best_first_and_ties_share_a_rank() -> None:
    values = [[1, 1, 1, 0, np.nan], [0, 1, 1, 0, np.nan], [0, 0, 0, 0, np.nan]]
    ranking = rank_outcomes(table(values, "c", "a", "b", "d", "empty"), RankingOptions(ks=(2,)))
    scores = ranking_json(ranking)["scores"]
    assert [(score["prompt"], score["rank"]) for score in scores] == [
        ("a", 1.5), ("b", 1.5), ("c", 3.0), ("d", 4.0), ("empty", None),
    ]  # fmt: skip
    assert scores[0]["mean"] == pytest.approx(2 / 3) and scores[4]["mean"] is None
    assert ranking.advice.startswith("a and b tie for the lead")


def test_columns_in_another_order_give_the_same_figures() -> None:
    values = coins(80, 0.4, 0.5, 0.55)
    one = ranking_json(rank_outcomes(table(values, "a", "b", "c"), RankingOptions(ks=(20,))))
    other = ranking_json(rank_outcomes(table(values[:, [2, 0, 1]], "c", "a", "b"), RankingOptions(ks=(20,))))
    assert one["scores"] == other["scores"]
    for block in ("expected", "simulated", "reference"):
        for name in ("tau_b", "rho", "top1", "topm"):
            assert one["stability"][0][block][name] == pytest.approx(other["stability"][0][block][name], abs=1e-12)


def test_numbers_that_are_no_proportions_are_simulated() -> None:
    values = coins(60, 0.4, 0.6) * 0.5 + 0.25
    shown = ranking_json(rank_outcomes(table(values), RankingOptions(ks=(20,))))
    row = shown["stability"][0]
    assert {row["method"][name] for name in ("tau_b", "rho", "top1", "topm")} == {"simulated"}
    assert row["method"]["ties"] == {"pairs_share": "simulated", "top_share": "simulated"}
    score = shown["scores"][0]
    assert score["low"] < score["mean"] < score["high"]


def test_all_k_too_large_leaves_means_only() -> None:
    ranking = rank_outcomes(table(coins(30, 0.4, 0.6)))
    shown = ranking_json(ranking)
    assert shown["stability"] == []
    assert shown["selection"] == {"winners": None, "loso": None, "folds": None}
    assert "cannot be said" in ranking.advice


def test_k_equal_to_all_items_is_said_to_prove_nothing() -> None:
    ranking = rank_outcomes(table(coins(50, 0.4, 0.6)))
    assert ranking.protocol.stability[0].expected.tau_b.value == 1.0
    assert any("takes every item" in note for note in ranking.notes)
    assert "cannot be said" in ranking.advice


def test_one_prompt_one_item_one_seed() -> None:
    one = rank_outcomes(table([[1], [0], [1]]), RankingOptions(ks=(1, 2)))
    assert "nothing to rank" in one.advice
    assert one.top == 1 and any("top set" in note for note in one.notes)
    item = rank_outcomes(table([[1, 0]]), RankingOptions(ks=(1,), seeds=(1,)))
    shown = ranking_json(item)
    assert shown["stability"][0]["simulated"]["tau_b"] is None
    assert shown["stability"][0]["reference"]["tau_b"] is None
    assert shown["selection"]["loso"]["mean"]["mean"] is None and shown["selection"]["loso"]["borda"]["mean"] is None


def test_all_tied() -> None:
    ranking = rank_outcomes(table([[1, 1], [0, 0]] * 20), RankingOptions(ks=(10,)))
    row = ranking_json(ranking)["stability"][0]
    assert row["expected"]["tau_b"] is None and row["simulated"]["tau_b"] is None
    assert row["ties"] == {"pairs_share": 1.0, "top_share": 1.0}
    assert row["simulated"]["top1"] == 0.5
    assert "all 2 tie" in ranking.advice
    assert ranking.protocol.rule("mean").choice.winners == (0, 1)
    assert ranking.best_set == ("p0", "p1")


def test_holding_out_a_condition_has_more_parts() -> None:
    values = table(coins(100, 0.4, 0.5, 0.6))
    seed = rank_outcomes(values, RankingOptions(ks=(10, 20), holdout="seed"))
    condition = rank_outcomes(values, RankingOptions(ks=(10, 20), holdout="condition"))
    assert seed.protocol.rule("mean").held_out.parts == 5
    assert condition.protocol.rule("mean").held_out.parts == 10


def test_a_leader_is_said_with_its_own_items() -> None:
    values = coins(120, 0.4, 0.9)
    values[:24, 1] = np.nan
    assert "over 96 items" in rank_outcomes(table(values), RankingOptions(ks=(20,))).advice


def test_prompts_without_common_items_are_not_compared() -> None:
    values = coins(100, 0.6, 0.5)
    values[:50, 0] = values[50:, 1] = np.nan
    advice = rank_outcomes(table(values), RankingOptions(ks=(20, 50))).advice
    assert "but none of 100 items has an outcome of every prompt" in advice and "do not compare" in advice
    values[40:60] = coins(20, 0.6, 0.5)
    advice = rank_outcomes(table(values), RankingOptions(ks=(20, 50))).advice
    assert "but only 20 of 100 items have an outcome of every prompt" in advice and "seeds" not in advice


def test_a_leader_that_common_items_rule_out_is_not_called_the_only_one() -> None:
    values = np.column_stack([np.ones(100), np.ones(100), np.zeros(100)])
    values[:10, 0], values[90:, 1] = 0.0, np.nan
    values[89, 1] = 0.0
    values[:40, 2] = 1.0
    advice = rank_outcomes(table(values, "a", "b", "c"), RankingOptions(ks=(20,))).advice
    assert advice.startswith("b leads with .989 over 90 items")
    assert "and no other may be the best (95 %)" in advice


def test_the_sentence_holds_where_prompts_answered_different_items() -> None:
    alone = np.tile([1.0, np.nan], (50, 1))
    shared = np.repeat([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]], [30, 10, 20], axis=0)
    values = np.vstack([alone, shared])
    ranking = rank_outcomes(table(values, "easy", "hard"), RankingOptions(ks=(20,)))
    assert ranking.best_first[0].prompt == "easy" and ranking.best_set == ("hard",)
    assert ranking.advice.startswith("easy leads with ") and "only hard may be the best" in ranking.advice
    assert f"over {ranking.best_first[0].mean.n} items" in ranking.advice


def test_the_top_pair_is_the_same_whatever_the_order_of_the_prompts() -> None:
    first, steady = np.array([1] * 60 + [0] * 40), np.array([1] * 50 + [0] * 50)
    apart = np.array([0] * 30 + [1] * 50 + [0] * 20)
    one = decide(np.column_stack([first, steady, apart]).astype(float), [10])
    other = decide(np.column_stack([first, apart, steady]).astype(float), [10])
    assert one is not None and other is not None
    assert one.top_pair == other.top_pair and one.winner_items >= one.top_pair


def test_prompts_that_never_differ_by_chance_take_one_item() -> None:
    found = decide(np.tile([1.0, 0.0], (10, 1)), [5])
    assert found is not None and found.reliability == {5: 1.0} and found.reliable_items == 1


def test_items_that_nobody_answered_say_nothing_of_other_subsets() -> None:
    values = np.vstack([coins(60, 0.4, 0.6), np.full((30, 2), np.nan)])
    ranking = rank_outcomes(table(values), RankingOptions(ks=(10,)))
    assert (
        ranking.protocol.stability[0].expected
        == rank_outcomes(table(values[:60]), RankingOptions(ks=(10,))).protocol.stability[0].expected
    )
    assert "over 60 items" in ranking.advice
    empty = rank_outcomes(table(np.full((8, 2), np.nan)), RankingOptions(ks=(4,)), settled=False)
    assert empty.advice == "There is nothing to rank: no prompt has outcomes."
    json.dumps(ranking_json(empty), allow_nan=False)


def test_impossible_options_are_refused_by_their_names() -> None:
    for options, name in (
        ({"seeds": ()}, "--seeds"), ({"seeds": range(1001)}, "--seeds"), ({"ks": ()}, "--k"), ({"ks": (0, 5)}, "--k"),
        ({"top": 0}, "--top"), ({"z": -1.0}, "--z"), ({"z": float("nan")}, "--z"),
    ):  # fmt: skip
        with pytest.raises(EvaldeskError, match=name):
            RankingOptions(**options)  # type: ignore[arg-type]


def test_16_prompts_of_a_published_run(shared_data: Path) -> None:
    ranking = rank_file(shared_data / "ranking/oirl_gsm8k/gsm8k_test_correct.csv")
    shown = ranking_json(ranking)
    first = shown["scores"][0]
    assert (first["prompt"], first["mean"], first["rank"]) == ("nan", 0.248, 1.0)
    assert (round(first["low"], 4), round(first["high"], 4)) == (0.2222, 0.2757)
    at_50 = shown["stability"][0]
    assert at_50["ties"]["pairs_share"] == pytest.approx(0.075, abs=0.0006)
    assert at_50["expected"]["rho"] == pytest.approx(0.591, abs=0.005)
    assert "the high correlation is no stable choice" in shown["advice"]
