"""E-values of pairs, and races that drop prompts by them."""

from __future__ import annotations

import csv
from fractions import Fraction
from math import comb, log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stats.racing import ALPHA, beaten, e_value, log_e_value, race, wins_needed

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
binary = arrays.arrays(
    np.float64, st.tuples(st.integers(1, 60), st.integers(1, 5)), elements=st.sampled_from([0.0, 1.0])
)


def exact(b: int, c: int) -> Fraction:
    """The mixture in whole numbers: the integral of p^b (1-p)^c over 1/2 to 1, times 2^(n+1)."""
    n = b + c
    term = total = 1  # C(n+1, j), and their sum over j <= b
    for j in range(b):
        term = term * (n + 1 - j) // (j + 1)
        total += term
    return Fraction(total, (n + 1) * comb(n, b))


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 60), st.integers(0, 60))
def test_e_values_are_the_mixture_in_fractions(b: int, c: int) -> None:
    assert float(e_value(b, c)) == pytest.approx(float(exact(b, c)), rel=1e-11)


@pytest.mark.parametrize(("b", "c"), [(0, 2000), (300, 2500), (2500, 300), (900, 1500), (1300, 1200), (0, 1100)])
def test_e_values_far_out(b: int, c: int) -> None:
    """Where the tail of the beta distribution is below what a float holds, and where E is above it."""
    value = exact(b, c)
    assert float(log_e_value(b, c)) == pytest.approx(log(value.numerator) - log(value.denominator), abs=1e-9)


def test_e_values_by_quadrature() -> None:
    """The likelihood ratio averaged over chances from 1/2 to 1; twenty nodes integrate such a polynomial exactly."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    p = 0.75 + nodes / 4.0
    for b, c in ((9, 2), (3, 3), (2, 8)):
        mixture = float((weights / 4.0 * 2.0 * (2.0 * p) ** b * (2.0 * (1.0 - p)) ** c).sum())
        assert float(e_value(b, c)) == pytest.approx(mixture, rel=1e-12)


@given(st.integers(0, 80), st.integers(0, 80), st.floats(0.0, 0.5))
def test_no_item_raises_the_evidence_on_average_unless_the_one_is_better(b: int, c: int, p: float) -> None:
    """The step of a test supermartingale: at a chance p <= 1/2 of a win E does not grow; at 1/2 it stays if E is a mean."""
    expected = p * float(exact(b + 1, c)) + (1 - p) * float(exact(b, c + 1))
    assert expected <= float(exact(b, c)) * (1 + 1e-12)
    assert exact(b + 1, c) / 2 + exact(b, c + 1) / 2 == exact(b, c)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 300), st.floats(1.01, 1e6))
def test_fewest_wins_that_reach_the_threshold(n: int, threshold: float) -> None:
    wins = np.arange(n + 1)
    reached = log_e_value(wins, n - wins) >= log(threshold)
    assert reached.tolist() == (wins >= wins_needed(300, threshold)[n]).tolist()


def test_wins_needed_of_a_few_items() -> None:
    """Two prompts, 5 %: E must reach 20. 7 of 7: 127.5/4 = 31.9, 6 of 6: 18.1; 16 of 20: 2089605/(21 x 4845) = 20.5."""
    needed = wins_needed(40, 20.0)
    assert needed[:8].tolist() == [1, 2, 3, 4, 5, 6, 7, 7]
    assert needed[[10, 20, 40]].tolist() == [10, 16, 29]
    with pytest.raises(ValueError, match="read-only"):
        needed[0] = 0


def item_by_item(outcomes: Matrix, alpha: float, seed: int) -> tuple[list[int], list[int]]:
    """The definition: after each item, drop whoever is beaten by one who is still in the race."""
    order = np.argsort(np.random.PCG64(seed).random_raw(len(outcomes)), kind="stable")
    m = outcomes.shape[1]
    alive, dropped_at = set(range(m)), [0] * m
    won = np.zeros((m, m), dtype=int)
    for done, item in enumerate(order, start=1):
        if len(alive) == 1:
            break
        for i in alive:
            for j in alive:
                won[i, j] += outcomes[item, i] > outcomes[item, j]
        out = {j for j in alive for i in alive if exact(int(won[i, j]), int(won[j, i])) * Fraction(alpha) >= m - 1}
        for j in out if out != alive else ():
            dropped_at[j] = done
            alive.remove(j)
    return sorted(alive), dropped_at


@settings(deadline=None, max_examples=20)
@given(binary, st.integers(0, 3))
def test_a_race_is_its_definition(outcomes: Matrix, seed: int) -> None:
    found = race(outcomes, alpha=0.4, seed=seed)
    survivors, dropped_at = item_by_item(outcomes, 0.4, seed)
    assert list(found.survivors) == survivors
    assert found.dropped_at.tolist() == dropped_at
    for prompt, by in enumerate(found.dropped_by):
        assert (by == -1) == (prompt in survivors)


@settings(deadline=None, max_examples=20)
@given(binary, st.integers(0, 3))
def test_who_is_dropped_in_a_race_is_beaten_by_what_was_seen(outcomes: Matrix, seed: int) -> None:
    """A running race knows the outcomes up to each drop only, and comes to the same."""
    found = race(outcomes, alpha=0.4, seed=seed)
    order = np.argsort(np.random.PCG64(seed).random_raw(len(outcomes)), kind="stable")
    seen = outcomes[order].copy()
    last = max(found.dropped_at) if len(found.survivors) == 1 else len(outcomes)
    for prompt, at in enumerate(found.dropped_at):
        seen[at or last :, prompt] = np.nan
    assert set(beaten(seen, alpha=0.4)) == set(range(outcomes.shape[1])) - set(found.survivors)
    assert found.outcomes == int((~np.isnan(seen)).sum())
    assert found.share == found.outcomes / outcomes.size


@settings(deadline=None, max_examples=20)
@given(binary, st.data())
def test_permuting_prompts_permutes_the_race(outcomes: Matrix, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(outcomes.shape[1])))
    one, other = race(outcomes, alpha=0.4), race(outcomes[:, order], alpha=0.4)
    assert {order[i] for i in other.survivors} == set(one.survivors)
    assert one.dropped_at[order].tolist() == other.dropped_at.tolist()
    assert one.outcomes == other.outcomes


def test_a_clear_race() -> None:
    outcomes = np.array([[1.0, 0.0, 1.0]] * 50)
    found = race(outcomes)
    # (M-1)/alpha = 40: 8 of 8 give (2^9 - 1)/9 = 56.8, 7 of 7 31.9.
    assert (found.survivors, found.dropped_at.tolist()) == ((0, 2), [0, 8, 0])
    assert found.outcomes == 50 + 8 + 50
    alone = race(outcomes[:, :2])
    assert (alone.survivors, alone.dropped_at.tolist(), alone.dropped_by.tolist()) == ((0,), [0, 7], [-1, 0])
    assert alone.outcomes == 14  # nothing is left to find out
    single = race(outcomes[:, :1])
    assert (single.survivors, single.outcomes) == ((0,), 0)


def test_missing_outcomes_say_nothing_and_circles_drop_nobody() -> None:
    half = np.array([[1.0, 0.0], [1.0, np.nan]] * 30)
    found = race(half)
    assert found.survivors == (0,)
    assert found.outcomes < 30
    assert beaten(np.array([[1.0, np.nan]] * 30)) == ()
    # Each beats the next on two items of three: nobody is best, and nobody is named as beaten.
    circle = np.array([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0], [2.0, 1.0, 3.0]] * 200)
    assert (log_e_value(400, 200) > log(2 / ALPHA)) and beaten(circle) == ()
    assert len(race(circle).survivors) == 1  # in a race one falls first, and with it what it had to say later


def new_items(skill: Matrix, n_items: int, generator: np.random.Generator) -> Matrix:
    """0/1 outcomes of prompts on fresh items, whose hardness half of the outcomes share."""
    shape = (n_items, len(skill))
    own, shared = generator.random(shape), generator.random((n_items, 1))
    return (np.where(generator.random(shape) < 0.5, shared, own) < skill).astype(float)


def test_looking_after_every_item_costs_nothing_in_error() -> None:
    """Two prompts equally good, 300 items, looked at after each: the one falls in at most 5 % of 300 datasets.

    A one-sided sign test at 5 % after each item drops it in about 21 %: what the e-values are for.
    """
    from scipy.special import bdtrc

    generator, replicates = np.random.default_rng(11), 300
    fell, fell_by_sign_test = 0, 0
    for _ in range(replicates):
        outcomes = new_items(np.array([0.6, 0.6]), 300, generator)
        fell += 0 not in race(outcomes).survivors
        other = (outcomes[:, 1] > outcomes[:, 0]).cumsum()
        differing = other + (outcomes[:, 0] > outcomes[:, 1]).cumsum()
        fell_by_sign_test += bool((bdtrc(other - 1.0, differing, 0.5) <= 0.05).any())
    assert 0.0 < fell / replicates <= ALPHA
    assert 0.15 < fell_by_sign_test / replicates < 0.27


@pytest.mark.slow
def test_type_one_error_of_several_prompts() -> None:
    """Four equally good prompts and four worse ones; alpha .2 leaves room to see it held: 3,000 races."""
    generator = np.random.default_rng(12)
    for skill in ([0.5] * 4 + [0.4] * 4, [0.9] * 4, [0.1] * 6):
        lost = sum(0 not in race(new_items(np.array(skill), 300, generator), 0.2).survivors for _ in range(1000))
        assert 0 < lost / 1000 <= 0.2


def matrices(shared_data: Path) -> dict[str, Matrix]:
    found = {}
    for name in ("oirl_gsm8k/gsm8k_test_correct.csv", "openai_gsm8k/gsm8k_correct.csv"):
        with (shared_data / "ranking" / name).open(newline="") as file:
            found[name.split("/")[0]] = np.array(
                [[float(cell) for cell in row[1:]] for row in list(csv.reader(file))[1:]]
            )
    with (shared_data / "ranking/game24/game24_samples.csv").open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    prompts = list(dict.fromkeys(row[0] for row in rows))
    found["game24"] = np.array([[float(row[2]) for row in rows if row[0] == prompt] for prompt in prompts]).T
    return found


def replay(outcomes: Matrix, times: int) -> tuple[int, float]:
    """(in how many races every best prompt stayed, the mean share of outcomes that they needed)."""
    best = set(np.flatnonzero(outcomes.sum(axis=0) == outcomes.sum(axis=0).max()).tolist())
    races = [race(outcomes, seed=seed) for seed in range(times)]
    return sum(best <= set(one.survivors) for one in races), float(np.mean([one.share for one in races]))


def test_replays_of_real_matrices(shared_data: Path) -> None:
    for name, outcomes in matrices(shared_data).items():
        assert replay(outcomes, 10)[0] == 10, name


@pytest.mark.slow
def test_400_replays_of_real_matrices_keep_the_best_prompt(shared_data: Path) -> None:
    """The first 100 seeds of each keep it in all races, as the design says; of 400 on the 16 close prompts one loses it.

    That is far within the 5 % that are allowed, but more than never (4 of 2,000 seeds). Shares of all outcomes that were
    needed: 73 % with ten prompts that cannot be told apart, 5 % with a clear leader, everything with 100 hard items.
    """
    expected = {"oirl_gsm8k": (399, 0.727), "openai_gsm8k": (400, 0.054), "game24": (400, 1.0)}
    for name, outcomes in matrices(shared_data).items():
        assert replay(outcomes, 100)[0] == 100, name
        kept, share = replay(outcomes, 400)
        assert (kept, share) == (expected[name][0], pytest.approx(expected[name][1], abs=0.002)), name


def test_impossible_input_is_refused() -> None:
    for wins, losses in ((-1, 0), (0.5, 1), (0, -2)):
        with pytest.raises(ValueError, match="whole"):
            log_e_value(wins, losses)
    for alpha in (0.0, 1.0):
        with pytest.raises(ValueError, match="alpha"):
            race([[1, 0]], alpha)
        with pytest.raises(ValueError, match="alpha"):
            beaten([[1, 0]], alpha)
    with pytest.raises(ValueError, match="above 1"):
        wins_needed(5, 1.0)
    with pytest.raises(ValueError, match="0 or more"):
        wins_needed(-1, 2.0)
