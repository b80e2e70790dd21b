"""A sweep from protocol to tables: each cell once, conditions from one matrix, what the screens show kept as it is."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine import kept_figures, requests
from engine.backends.protocol import Request
from engine.errors import EvaldeskError, Refused
from engine.ranking.outcomes import OutcomeTable
from engine.ranking.ranking import RankingOptions, rank_outcomes
from engine.ranking.ranking_json import ranking_json
from engine.runs import control, locks, queue
from engine.runs.protocol import RunDir
from engine.runs.spool import read_results
from engine.runs.states import observed_state
from engine.store import runs
from engine.store.store import Store
from engine.store.workspace import Workspace
from engine.sweeping import items, ranked, starting
from engine.sweeping.dataset import Dataset, Item
from engine.sweeping.overview import sweep_standings
from engine.sweeping.prompt import Prompt
from engine.sweeping.results import results_json
from engine.sweeping.sweep import Sweep
from stats.ranks import fair_ranks
from stats.subsets import draw
from tests.engine.measuring.conftest import wait_until
from tests.engine.scripted_backend import total
from tests.engine.sweeping.conftest import Sweeper, skilled, sums, with_prompts

KILL_SEEDS = [int(seed) for seed in os.environ.get("EVALDESK_KILL_SEEDS", "1").split(",")]
"""One in the checks; more with EVALDESK_KILL_SEEDS=1,2,3."""


def expected(sweeper: Sweeper) -> np.ndarray:
    """Pool x prompts: what the scripted model gets right, worked out from its texts alone."""
    order = sweeper.order
    pool = [int(i) for i in draw(0, len(order.dataset.items), order.items)]
    matrix = np.zeros((len(pool), len(order.prompts)))
    for row, position in enumerate(pool):
        item = order.dataset.items[position]
        for column, prompt in enumerate(order.prompts):
            said = total(Request("", prompt.messages(item.fields), {}))
            matrix[row, column] = said == f"The answer is {item.answer}."
    return matrix


def test_the_score_matrix_is_the_outcomes_on_each_conditions_items(sweeper: Sweeper) -> None:
    found = sweeper.swept()
    truth = expected(sweeper)
    assert 0 < truth.mean() < 1
    assert [(c.seed, c.k) for c in found.matrix.conditions] == [(s, k) for k in (10, 20) for s in (1, 2, 3)]
    for row, condition in enumerate(found.matrix.conditions):
        on = truth[draw(condition.seed, 30, condition.k)]
        assert found.matrix.sums[row].tolist() == on.sum(axis=0).tolist()
        assert found.matrix.counts[row].tolist() == [condition.k] * 3
        assert found.ranks[row].tolist() == fair_ranks(on.sum(axis=0)).tolist()


def test_only_items_that_some_condition_draws_are_generated_each_once(sweeper: Sweeper) -> None:
    found = sweeper.swept(replace(sweeper.order, ks=(3, 6)))
    touched = {int(i) for c in found.matrix.conditions for i in draw(c.seed, 30, c.k)}
    assert found.run.needed == len(touched) * 3 < 90
    assert len(sweeper.generated()) == len(set(sweeper.generated())) == found.run.needed


def test_the_same_protocol_again_gives_equal_figures_and_generates_nothing(sweeper: Sweeper) -> None:
    first = sweeper.swept()
    count = len(sweeper.generated())
    run = sweeper.start()
    assert (run.status, run.cached, run.to_run) == ("done", first.run.needed, 0)
    again, before = results_json(sweeper.results(run)), results_json(first)
    for name in ("prompts", "score_matrix", "agreement", "sweep"):
        assert again[name] == before[name]
    assert len(sweeper.generated()) == count


def test_more_conditions_on_the_same_items_cost_nothing(sweeper: Sweeper) -> None:
    sweeper.swept(replace(sweeper.order, ks=(30,)))
    count = len(sweeper.generated())
    found = sweeper.swept(replace(sweeper.order, seeds=(7, 8, 9, 10), ks=(5, 10, 15, 20)))
    assert found.run.to_run == 0
    assert len(found.matrix.conditions) == 16
    assert len(sweeper.generated()) == count


def test_repeats_are_asked_each_once_and_their_mean_is_the_outcome(sweeper: Sweeper) -> None:
    order = replace(sweeper.order, temperature=0.7, repeats=3)
    found = sweeper.swept(order)
    assert (found.run.needed, found.sweep.repeats, found.complete) == (30 * 3 * 3, 3, True)
    assert len(sweeper.generated()) == len(set(sweeper.generated())) == 270
    pool = [int(i) for i in draw(0, len(order.dataset.items), order.items)]
    right = np.zeros((30, 3))
    for row, position in enumerate(pool):
        item = order.dataset.items[position]
        for column, prompt in enumerate(order.prompts):
            for seed in range(3):
                said = total(Request("", prompt.messages(item.fields), {"temperature": 0.7, "seed": seed}))
                right[row, column] += said == f"The answer is {item.answer}."
    assert found.outcomes == pytest.approx(right / 3)
    assert set(right.ravel()) == {0, 1, 2, 3}
    flips = (2 * right * (3 - right) / 6).mean(axis=0)
    for score, column in zip(found.scores, range(3), strict=True):
        assert (score.n, score.score_sum) == (30, pytest.approx(right[:, column].sum() / 3))
        assert score.flip_rate == pytest.approx(flips[column])
        assert score.low is not None and score.low < score.mean < score.high
    kept = sweeper.rows("SELECT flip_rate FROM ranking ORDER BY rowid")
    assert [rate for (rate,) in kept] == [score.flip_rate for score in found.scores]
    replies = sweeper.store.call(items.of_cell, found.run.run_id, 1, 10, order.prompts[0].prompt_id)
    assert len(replies) == 30 and {reply.repeat for reply in replies} == {0, 1, 2}
    again = sweeper.start(order)
    assert (again.to_run, again.cached) == (0, 270)
    assert sweeper.start(replace(order, repeats=4)).to_run == 90
    said = ranked.ranked_json(found, 1.0)
    assert (said["repeats"], said["temperature"]) == (3, 0.7) and said["advice"]


def test_what_failed_is_asked_again_alone(sweeper: Sweeper) -> None:
    keys = [request.key for _, request in starting._cells(*_planned(sweeper))]
    run = sweeper.start(fail_keys=keys[3:8])
    sweeper.finish(run)
    first = sweeper.results(run)
    assert sum(score.failed for score in first.scores) == 5
    asked = len(sweeper.generated())
    # The same model as a machine that works again has it.
    sweeper.store.call(lambda tx: tx.execute("UPDATE model SET path = ?", sweeper.model().path))
    started = requests.carry_out(sweeper.store, {"kind": "again", "run": run.run_id})
    assert (started["needed"], started["to_run"]) == (90, 5)
    again = sweeper.store.call(runs.get, started["run"])
    sweeper.finish(again)
    assert len(sweeper.generated()) == asked + 5
    assert sum(score.failed for score in sweeper.results(again).scores) == 0
    waiting = sweeper.start(with_prompts(sweeper.order, *skilled(3)), hold_after=1)
    with pytest.raises(Refused, match="goes on"):
        requests.carry_out(sweeper.store, {"kind": "again", "run": waiting.run_id})
    (sweeper.folder / "gate").touch()


def _planned(sweeper: Sweeper) -> tuple[Sweep, dict[str, Prompt], dict[int, Item]]:
    sweep = starting.sweep_of(sweeper.order, sweeper.model())
    return sweep, {p.prompt_id: p for p in sweeper.order.prompts}, dict(enumerate(sweeper.order.dataset.items))


def test_a_sweep_with_one_repeat_is_the_sweep_that_it_was(sweeper: Sweeper) -> None:
    run = sweeper.start()
    sweeper.finish(run)
    assert sweeper.start(replace(sweeper.order, repeats=1)).sweep_id == run.sweep_id
    assert sweeper.results(run).scores[0].flip_rate is None


def test_repeats_of_greedy_replies_are_refused(sweeper: Sweeper) -> None:
    with pytest.raises(Refused, match="greedy"):
        sweeper.start(replace(sweeper.order, repeats=2))
    for wrong in (replace(sweeper.order, temperature=-0.1), replace(sweeper.order, temperature=2.5)):
        with pytest.raises(Refused, match="temperature"):
            sweeper.start(wrong)
    with pytest.raises(Refused, match="repeats"):
        sweeper.start(replace(sweeper.order, temperature=1.0, repeats=1000))


def test_the_tables_equal_what_the_screens_show(sweeper: Sweeper) -> None:
    found = sweeper.swept()
    names = dict(found.sweep.prompts)
    said = results_json(found)
    assert [
        {"seed": s, "k": k, "prompt": names[p], "sum": total_, "n": n}
        for s, k, p, total_, n in sweeper.rows(
            "SELECT seed, k, prompt_id, score_sum, n FROM score_matrix ORDER BY k, seed, rowid"
        )
    ] == said["score_matrix"]
    assert [
        {"a": {"seed": sa, "k": ka}, "b": {"seed": sb, "k": kb}, "tau_b": t, "rho": r, "top1": o, "topm": m}
        for sa, ka, sb, kb, t, r, o, m in sweeper.rows(
            "SELECT seed_a, k_a, seed_b, k_b, tau_b, rho, top1, topm FROM agreement ORDER BY rowid"
        )
    ] == said["agreement"]
    assert len(said["agreement"]) == 15
    ranking = sweeper.rows(
        "SELECT prompt_id, rank, score_sum, n, mean, low, high, no_answer, failed FROM ranking ORDER BY rowid"
    )
    assert ranking == [
        (s.prompt_id, s.rank, s.score_sum, s.n, s.mean, s.low, s.high, s.no_answer, s.failed) for s in found.scores
    ]
    assert sum(s.no_answer for s in found.scores) > 0


def test_a_sweep_is_ranked_as_a_file_of_its_outcomes_is(sweeper: Sweeper) -> None:
    found = sweeper.swept()
    truth = expected(sweeper)
    names = tuple(name for _, name in found.sweep.prompts)
    table = OutcomeTable("", "wide", names, tuple(map(str, range(len(truth)))), truth)
    from_file = rank_outcomes(table, RankingOptions((1, 2, 3), (10, 20), z=2.0))
    said = ranked.ranked_json(found, 2.0)
    assert said == said | ranking_json(from_file)
    assert said["advice"].startswith("skill-8 leads")


def test_while_it_runs_the_sentence_says_how_far_it_is(sweeper: Sweeper) -> None:
    run = sweeper.start(hold_after=60)
    wait_until(lambda: sweeper.ingest() or sweeper.results(run).done >= 55)
    half = sweeper.results(run)
    text = ranked.sentence(half, ranked.rank_sweep(half, 1.0))
    assert text.startswith(f"So far ({half.done} of {half.needed}): skill-8 leads with ")
    (sweeper.folder / "gate").touch()
    sweeper.finish(run)


def test_the_tables_are_whole_though_nobody_looked(sweeper: Sweeper) -> None:
    runs_ = [sweeper.start(), sweeper.start(replace(sweeper.order, ks=(5, 15)))]
    sweeper.finish(*runs_)
    assert sorted(sweeper.store.call(kept_figures.refresh)) == sorted(run.run_id for run in runs_)
    for run in runs_:
        kept = sweeper.rows(f"SELECT sum(n) FROM ranking WHERE run_id = '{run.run_id}'")
        assert kept == sweeper.rows(f"SELECT count(*) FROM outcome WHERE run_id = '{run.run_id}'")
        assert kept[0][0] == run.needed
    assert sweeper.rows("SELECT count(*) FROM score_matrix WHERE n <> k") == [(0,)]
    assert sweeper.store.call(kept_figures.refresh) == []


def test_home_names_the_winner_and_in_how_many_conditions_it_is_on_top(sweeper: Sweeper) -> None:
    run = sweeper.start()
    sweeper.finish(run)
    (standing,) = sweeper.store.call(sweep_standings)
    found = sweeper.results(run)
    best = max(score.score_sum for score in found.scores)
    assert standing.leaders == tuple(score.name for score in found.scores if score.score_sum == best)
    columns = [i for i, score in enumerate(found.scores) if score.score_sum == best]
    on_top = sum(max(row[columns]) == max(row) for row in found.matrix.sums)
    assert (standing.crowned, standing.conditions) == (on_top, 6)


def test_a_paused_sweep_generates_nothing_that_another_has_brought_meanwhile(sweeper: Sweeper) -> None:
    blocking = sweeper.start(replace(sweeper.order, max_tokens=99), hold_after=0)
    paused = sweeper.start()
    run_dir = RunDir(sweeper.store.workspace.runs / paused.run_id)
    control.pause(run_dir)
    wait_until(lambda: sweeper.ingest() or sweeper.store.call(runs.get, paused.run_id).status == "paused")
    second = sweeper.start()
    assert (second.awaited, second.to_run) == (0, paused.needed)
    (sweeper.folder / "gate").touch()
    wait_until(lambda: observed_state(RunDir(sweeper.store.workspace.runs / second.run_id)).status == "done")
    # Nobody has looked into the spools when it goes on.
    control.resume(run_dir)
    sweeper.finish(blocking, paused, second)
    counts = Counter(sweeper.generated())
    assert set(counts.values()) == {1}
    assert sweeper.results(paused).matrix.sums.tolist() == sweeper.results(second).matrix.sums.tolist()


def test_items_that_render_the_same_request_are_cells_of_their_own(sweeper: Sweeper) -> None:
    items = sums(20).items
    twins = Dataset("twins", (*items, *(replace(item, item_id=f"{item.item_id}-again") for item in items[:5])))
    found = sweeper.swept(replace(sweeper.order, dataset=twins, items=0, ks=(5, 25)))
    assert (found.run.needed, found.needed, found.done) == (60, 75, 75)
    assert found.complete
    assert len(sweeper.generated()) == 60


def test_another_top_set_is_written_too(sweeper: Sweeper) -> None:
    found = sweeper.swept()
    sweeper.results(found.run, top=1)
    assert sweeper.rows("SELECT DISTINCT top FROM agreement") == [(1,)]
    assert sweeper.rows("SELECT count(*) FROM agreement WHERE top1 = topm") == [(15,)]


def test_requests_come_in_blocks_of_items_and_in_a_block_by_prompt(sweeper: Sweeper) -> None:
    run = sweeper.start(hold_after=0)
    cells = sweeper.store.call(runs.cells, run.run_id)
    prompts = [p for p, _ in sweeper.results(run).sweep.prompts]
    begin = 0
    for size in (2, 4, 8, 16):  # small first, so that all prompts can soon be compared
        block = cells[begin : begin + size * 3]
        if len(block) == size * 3:
            assert [cell.prompt_id for cell in block] == [p for p in prompts for _ in range(size)]
            assert len({cell.item for cell in block}) == size
        begin += size * 3
    assert begin > 14 * 3
    first = [cell.item for cell in cells if cell.prompt_id == cells[0].prompt_id]
    assert first != sorted(first), "the order of items is drawn"


def test_while_it_runs_only_what_is_there_counts(sweeper: Sweeper) -> None:
    run = sweeper.start(hold_after=30)
    wait_until(lambda: sweeper.ingest() or sweeper.results(run).done >= 20)
    half = sweeper.results(run)
    assert 0 < half.done < half.needed
    shared = np.flatnonzero(~np.isnan(half.outcomes).any(axis=1))
    assert 0 < len(shared) < len(half.outcomes)
    assert [score.n for score in half.scores] == [len(shared)] * 3
    assert [score.score_sum for score in half.scores] == half.outcomes[shared].sum(axis=0).tolist()
    assert half.matrix.counts.sum() < half.matrix.counts.size * 10
    (sweeper.folder / "gate").touch()
    sweeper.finish(run)
    assert sweeper.results(run).complete


def test_a_failed_request_is_no_wrong_answer(sweeper: Sweeper) -> None:
    run = sweeper.start(hold_after=0)
    lost = sweeper.store.call(runs.cells, run.run_id)[0]
    control.cancel(RunDir(sweeper.store.workspace.runs / run.run_id))
    wait_until(lambda: sweeper.ingest() or sweeper.store.call(runs.get, run.run_id).status == "cancelled")
    found = sweeper.swept(fail_keys=[lost.request_key])
    score = next(s for s in found.scores if s.prompt_id == lost.prompt_id)
    assert (score.failed, score.n) == (1, found.run.needed // 3 - 1)
    assert found.complete
    again = sweeper.start()
    assert again.to_run == 1, "an error is tried again by the next sweep"


def test_enter_on_a_cell_gives_its_items_with_raw_outputs(sweeper: Sweeper) -> None:
    found = sweeper.swept()
    condition, (prompt_id, name) = found.matrix.conditions[3], found.sweep.prompts[1]
    listed = sweeper.store.call(items.of_cell, found.run.run_id, condition.seed, condition.k, prompt_id)
    assert len(listed) == condition.k
    assert sum(item.score or 0 for item in listed) == found.matrix.sums[3, 1]
    assert all(item.messages[0]["content"].startswith(name.replace("-", " ")) for item in listed)
    assert {item.reply for item in listed if item.no_answer} == {"I cannot say."}
    assert [item.score for item in listed] == sorted(item.score or 0 for item in listed), "the wrong ones first"


def test_a_missing_field_is_refused_before_anything_runs(sweeper: Sweeper) -> None:
    order = with_prompts(sweeper.order, *skilled(3), Prompt("typo", "{qestion}"))
    with pytest.raises(Refused, match="no prompt"):
        sweeper.start(replace(sweeper.order, prompts=()))
    with pytest.raises(Refused, match="1,001 seeds"):
        sweeper.start(replace(sweeper.order, seeds=tuple(range(1001))))
    with pytest.raises(Refused, match=r"'typo' asks for \{qestion\}"):
        sweeper.start(order)
    assert sweeper.rows("SELECT count(*) FROM run") == [(0,)]


def test_the_first_item_that_lacks_a_field_is_named_and_what_all_have_is_said(sweeper: Sweeper) -> None:
    items = [Item(f"i{n}", {"question": f"{n} + 1"} | ({"hint": "add"} if n < 3 else {}), "1") for n in range(5)]
    order = replace(sweeper.order, dataset=Dataset("d", tuple(items)), items=0, ks=(2,))
    said = r"prompt 'a' asks for \{hint\}, which item 'i3' \(row 4\) does not have, the first of 2 such\."
    with pytest.raises(Refused, match=said) as told:
        sweeper.start(with_prompts(order, Prompt("a", "{question} {hint}")))
    assert "All items have: question." in str(told.value)
    bare = Dataset("d", (Item("x", {"hint": "a"}, "1"), Item("y", {}, "1")))
    with pytest.raises(Refused, match=r"\{q\}, which no item has\..*No field stands in all items; some have: hint\."):
        sweeper.start(with_prompts(replace(order, dataset=bare), Prompt("a", "{q}")))


@pytest.mark.parametrize("tokens", [-1, 32769])
def test_room_for_a_reply_that_makes_no_sense_is_refused(sweeper: Sweeper, tokens: int) -> None:
    with pytest.raises(Refused, match=f"tokens a reply: {tokens} does not lie between 1 and 32768"):
        sweeper.start(replace(sweeper.order, max_tokens=tokens))


def test_a_reference_that_the_scorer_cannot_read_is_refused_before_anything_runs(sweeper: Sweeper) -> None:
    odd = Dataset("odd", (*sums(20).items, Item("x", {"question": "1 + 1"}, "two")))
    with pytest.raises(EvaldeskError, match="two"):
        sweeper.start(replace(sweeper.order, dataset=odd, items=0, ks=(5,)))
    assert sweeper.rows("SELECT count(*) FROM run") == [(0,)]


@pytest.mark.parametrize(("pool", "ks"), [(41, (10,)), (30, (31,)), (30, (0,)), (30, (10, 10))])
def test_conditions_that_cannot_be_drawn_are_refused(sweeper: Sweeper, pool: int, ks: tuple[int, ...]) -> None:
    with pytest.raises(Refused):
        sweeper.start(replace(sweeper.order, items=pool, ks=ks))


def test_a_plan_keeps_nothing(sweeper: Sweeper) -> None:
    _, plan = sweeper.store.call(starting.plan, sweeper.order, sweeper.model())
    assert (plan.cached, plan.awaited) == (0, 0)
    assert plan.to_run == plan.needed > 0
    for table in ("sweep", "prompt", "dataset", "item", "run", "model"):
        assert sweeper.rows(f"SELECT count(*) FROM {table}") == [(0,)]


def test_two_sweeps_of_the_same_cells_share_them_and_the_second_survives_the_first(sweeper: Sweeper) -> None:
    first = sweeper.start(hold_after=20)
    wait_until(lambda: sweeper.ingest() or sweeper.results(first).done >= 10)
    second = sweeper.start(hold_after=20)
    assert second.awaited + second.cached == second.needed
    control.cancel(RunDir(sweeper.store.workspace.runs / first.run_id))
    (sweeper.folder / "gate").touch()
    sweeper.finish(second)
    found = sweeper.results(second)
    assert found.complete
    assert found.matrix.sums.tolist() == [
        expected(sweeper)[draw(c.seed, 30, c.k)].sum(axis=0).tolist() for c in found.matrix.conditions
    ]


OWNER = """
import sys, time
from pathlib import Path
from engine.store.store import Store
from engine.store.workspace import Workspace
from engine.watch import Watch
with Store(Workspace(Path(sys.argv[1]) / "ws")) as store:
    Watch(store, lambda change: None).start()
    print("open", flush=True)
    time.sleep(600)
"""
"""What of the app owns a workspace: the store and the watch thread."""


def open_owner(folder: Path) -> subprocess.Popen[str]:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "open\n"
    return owner


def end(owner: subprocess.Popen[str]) -> None:
    owner.kill()
    owner.wait()
    assert owner.stdout is not None
    owner.stdout.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", KILL_SEEDS)
def test_app_supervisor_and_worker_killed_at_random_moments_leave_the_matrix_of_an_undisturbed_sweep(
    private_state: Path, seed: int
) -> None:
    rng = random.Random(seed)
    workspace = Workspace(private_state / "ws")
    with Store(workspace) as store:
        sweeper = Sweeper(store, private_state)
        run, truth, order = sweeper.start(seconds=0.2), expected(sweeper), sweeper.order
    run_dir = RunDir(workspace.runs / run.run_id)
    owner, kills = open_owner(private_state), 0
    moments = sorted(rng.sample(range(2, int(0.6 * run.needed)), 4))
    for moment, victim in zip(moments, ["app", *rng.sample(["app", "supervisor", "worker"], 3)], strict=True):
        wait_until(lambda moment=moment: len(read_results(run_dir.results)[0]) >= moment)
        time.sleep(rng.uniform(0.0, 0.3))
        if victim == "app":
            end(owner)
            owner = open_owner(private_state)
            kills += 1
            continue
        lock = run_dir.lock if victim == "worker" else queue.device_lock("cpu")
        pid = locks.holder(lock)[0] if lock.exists() and locks.is_held(lock) else 0
        if pid > 1:
            os.kill(pid, signal.SIGKILL)
            kills += 1
            wait_until(lambda lock=lock, pid=pid: not locks.is_held(lock) or locks.holder(lock)[0] != pid)
        # What R does on the Runs screen, for the case that both are gone.
        with suppress(EvaldeskError):  # the run may have ended meanwhile
            control.resume(run_dir)
    wait_until(lambda: observed_state(run_dir).status == "done")
    end(owner)
    assert kills >= 2
    with Store(workspace) as store:
        sweeper = Sweeper(store, private_state)
        sweeper.finish(run)
        found = sweeper.results(run)
        assert found.matrix.sums.tolist() == [
            truth[draw(c.seed, order.items, c.k)].sum(axis=0).tolist() for c in found.matrix.conditions
        ]
        assert sweeper.rows("SELECT count(*), count(DISTINCT (prompt_id, item)) FROM outcome") == [
            (run.needed, run.needed)
        ]
        assert sweeper.rows("SELECT count(*), count(DISTINCT request_key) FROM completion") == [
            (run.needed, run.needed)
        ]
