"""The sentence on top of a ranking."""

from __future__ import annotations

import pytest

from engine.ranking.advice import Headline, advise, headline, number, percent


def said(
    *rows: Headline,
    n_items: int = 1000,
    ranked: int = 5,
    leaders: tuple[str, ...] = ("plain",),
    mean: float | None = 0.5,
    settled: bool = True,
    leader_items: tuple[int, ...] = (),
    best_set: tuple[str, ...] | None = None,
    winner_items: int | None = None,
) -> str:
    text = advise(
        n_items=n_items, ranked=ranked, leaders=leaders, mean=mean, headlines=rows, settled=settled, best_set=best_set,
        winner_items=winner_items, leader_items=leader_items,
    )  # fmt: skip
    assert text.endswith(".") and "\n" not in text
    return text


def test_high_correlation_with_an_unstable_top_is_called_no_stable_choice() -> None:
    text = said(Headline(200, 0.85, 0.31, 0.03, 0.2))
    assert "do not ship on the first place" in text
    assert "order the prompts alike (tau-b .85)" in text and "only 31 % of the time" in text
    assert "the high correlation is no stable choice" in text
    assert "20 % of conditions tie several on top" in text and "3.0 % of pairs of prompts tie" in text


def test_low_correlation_does_not_claim_a_high_one() -> None:
    text = said(Headline(200, 0.3, 0.31, 0.03, 0.0))
    assert "agree little" in text and "high correlation" not in text and "do not ship" in text


def test_a_stable_top_is_said_with_its_limits() -> None:
    text = said(Headline(200, 0.9, 0.98, 0.01, 0.0))
    assert "98 % of the time" in text and "not ship" not in text
    assert "other subsets of these items" in text and "0 % of conditions tie" in text


def test_in_between() -> None:
    assert "not safe" in said(Headline(200, 0.9, 0.7, 0.01, 0.1))


def test_the_best_set_comes_first() -> None:
    row = Headline(200, 0.9, 0.98, 0.01, 0.0)
    assert said(row, best_set=("plain",)).startswith(
        "plain leads with .500 over 1,000 items, and no other may be the best (95 %);"
    )
    some = said(row, best_set=("plain", "b", "c"), winner_items=1163)
    assert (
        ", but 3 of 5 may be the best (b and c besides), and plain would need about 1,200 new items to lead again with 95 %, if its lead is real;"
        in some
    )
    assert "any of the 5 may be the best (b, c, d and e besides)," in said(
        row, best_set=("plain", "b", "c", "d", "e"), winner_items=9
    )
    many = said(row, best_set=("plain", *"bcdefgh"), ranked=16, winner_items=2_000_000)
    assert (
        "8 of 16 may be the best (b, c, d and 4 more besides), and plain would need more than 100,000 new items" in many
    )
    tied = said(row, leaders=("a", "b"), best_set=("a", "b"))
    assert tied.startswith("a and b tie for the lead with .500 over 1,000 items, but 2 of 5 may be the best; ")


def test_a_leader_by_its_own_items_that_the_common_ones_rule_out_is_not_called_the_best() -> None:
    row = Headline(200, 0.9, 0.98, 0.01, 0.0)
    assert "on only b may be the best (95 %);" in said(row, best_set=("b",))
    two = said(row, best_set=("b", "c"), winner_items=70)
    assert "on only b and c may be the best" in two and "besides" not in two and "70" not in two


def test_means_are_over_the_items_that_their_prompts_have() -> None:
    row = Headline(200, 0.9, 0.98, 0.01, 0.0)
    assert said(row, leader_items=(40,)).startswith("plain leads with .500 over 40 items;")
    assert "tie for the lead with .500 over 40 to 60 items" in said(row, leaders=("a", "b"), leader_items=(60, 40))


def test_tied_leaders_are_named_and_never_safe() -> None:
    text = said(Headline(200, 0.9, 0.95, 0.01, 0.9), leaders=("a", "b"))
    assert text.startswith("a and b tie for the lead with .500 over 1,000 items; the first place is not safe")
    assert said(Headline(2, 0.9, 0.9, 0, 0), ranked=9, leaders=tuple("abcdef")).startswith("a, b, c and 3 more tie")


def test_it_speaks_of_the_largest_k_up_to_half_of_the_items() -> None:
    rows = [Headline(k, 0.8, 0.2, 0.1, 0.1) for k in (50, 100, 200)]
    assert (headline(rows, 1000) or rows[0]).k == 200
    assert (headline(rows, 200) or rows[0]).k == 100
    assert (headline(rows, 120) or rows[0]).k == 50
    assert (headline(rows, 60) or rows[1]).k == 50
    assert headline(rows, 50) is None


def test_subsets_that_overlap_much_are_said_to_flatter() -> None:
    text = said(Headline(50, 0.95, 0.95, 0.0, 0.0), n_items=60)
    assert "flatters" in text and "share 83 % of their items" in text
    assert "flatters" not in said(Headline(50, 0.95, 0.95, 0.0, 0.0), n_items=1000)


def test_where_there_is_nothing_to_say() -> None:
    assert "nothing to rank" in said(ranked=1)
    assert "no prompt has" in said(ranked=0, leaders=(), mean=None)
    assert "all 2 tie with .500" in said(Headline(50, None, 0.5, 1.0, 1.0), ranked=2, leaders=("a", "b"))
    assert "cannot be said" in said(Headline(10, 1.0, 1.0, 0.0, 0.0), n_items=10)
    assert "cannot be said" in said()
    assert "once more items are answered" in said(settled=False)
    assert "new items" not in said(settled=False, best_set=("plain", "b"), winner_items=9)
    assert "too little is ranked" in said(Headline(50, None, None, None, None))


def test_long_names_are_cut() -> None:
    assert len(said(Headline(50, 0.9, 0.95, 0.0, 0.0), leaders=("x " * 5000,))) < 400


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"), (1.0, "100 %"), (0.14, "14 %"), (0.0746, "7.5 %"), (0.996, "99.6 %"), (0.0001, "< 0.1 %"),
        (0.99999, "> 99.9 %"), (None, "-"),
    ],
)  # fmt: skip
def test_percentages(share: float | None, text: str) -> None:
    assert percent(share) == text


def test_numbers() -> None:
    assert [number(value) for value in (0.2484, 1.0, -0.5, 12.25, None)] == [".248", "1.000", "-.500", "12.250", "-"]
    assert number(-0.001, 2) == ".00"
