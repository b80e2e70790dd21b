"""A sweep as a person runs it, in a real terminal on the real model: plan, matrix, ranking; and the same without a screen."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from engine.runs import locks
from engine.runs.protocol import RunDir, RunStatus
from engine.runs.spool import read_results
from engine.runs.states import observed_state
from tests.e2e.conftest import HOME_SHOWN, Terminals, rows
from tests.e2e.realterm import TmuxApp
from tests.e2e.test_walk import MODEL_LIMIT_S, no_process_left, wait_until

__all__ = ["no_process_left"]

PROMPTS, ITEMS = 3, 8
KILL_SEEDS = [int(seed) for seed in os.environ.get("EVALDESK_KILL_SEEDS", "1").split(",")]
"""One in the checks; more with EVALDESK_KILL_SEEDS=1,2,3."""


def fill_in(app: TmuxApp, *values: str) -> None:
    """Put values into the form's fields from the number of prompts on; the demo has the ones above filled in."""
    app.send("Tab", "Tab", "Tab", "Tab")
    for value in values:
        app.send("C-u")
        app.type(value)
        app.send("Tab")


def shown_matrix(text: str) -> dict[tuple[int, int], list[int]]:
    """The cells on the screen by condition, in hundredths."""
    found = re.findall(r"^ ?s(\d+) k(\d+) +((?:\d+ *)+)", text, re.MULTILINE)
    return {(int(seed), int(k)): [int(cell) for cell in cells.split()] for seed, k, cells in found}


def stored_matrix(workspace: Path) -> dict[tuple[int, int], list[int]]:
    stored = rows(workspace, "SELECT seed, k, score_sum, n FROM score_matrix ORDER BY k, seed, rowid")
    matrix: dict[tuple[int, int], list[int]] = {}
    for seed, k, total, n in stored:
        assert n == k
        matrix.setdefault((seed, k), []).append(round(100 * total / n))
    return matrix


def command(workspace: Path, prompts: int, items: int, ks: str) -> list[str]:
    import sample_data

    return [
        "sweep", "--prompts", str(sample_data.path("reviews_prompts.jsonl")),
        "--dataset", str(sample_data.path("reviews_items.jsonl")), "--limit", str(prompts), "--items", str(items),
        "--seeds", "3", "--k", ks, "--max-tokens", "24", "--json", "--workspace", str(workspace),
    ]  # fmt: skip


def headless(terminals: Terminals, workspace: Path) -> dict[str, Any]:
    done = terminals.run(*command(workspace, PROMPTS, ITEMS, "4,6"))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_sweep_matrix_ranking_quit_and_the_same_without_a_screen(terminals: Terminals, workspace: Path) -> None:
    app = terminals.tmux(workspace, columns=100, rows=34)
    app.wait_for(HOME_SHOWN)
    app.send("5")
    app.wait_for("Nothing is swept yet")
    app.send("n")
    app.wait_for("reviews_items.jsonl")
    fill_in(app, str(PROMPTS), str(ITEMS), "3", "4,6", "24")
    app.send("Enter")
    app.wait_for(f"{PROMPTS} prompts × {ITEMS} items, 3 seeds × k 4/6: {PROMPTS * ITEMS} needed, 0 cached")
    app.send("Enter")
    app.wait_for(f"done  {PROMPTS * ITEMS}/{PROMPTS * ITEMS}", MODEL_LIMIT_S)
    matrix = shown_matrix(app.wait_for("coverage 4 of 4"))
    assert set(matrix) == {(seed, k) for seed in (1, 2, 3) for k in (4, 6)}
    app.send("Enter")
    app.wait_for("REPLY")
    app.send("Escape")
    app.wait_for("coverage 4 of 4")
    app.send("6")
    app.wait_for("95 % over items")
    ranking = app.text
    app.send("Tab")
    app.wait_for("tau-b in hundredths, all k")
    app.send("o")
    app.wait_for("top-1 in hundredths")
    app.send("Right")
    readout = app.wait_for("seed 1 k 4 – seed 2 k 4")
    app.send("q")
    assert app.wait_exit() == 0

    assert matrix == stored_matrix(workspace)
    for name, total, n in rows(
        workspace, "SELECT p.name, r.score_sum, r.n FROM ranking r JOIN prompt p USING (prompt_id)"
    ):
        assert re.search(rf"{re.escape(name)} .*{total:g} of {n}", ranking), ranking
    (top1,) = rows(workspace, "SELECT top1 FROM agreement WHERE seed_a = 1 AND k_a = 4 AND seed_b = 2 AND k_b = 4")[0]
    assert re.search(rf"top-1 {f'{top1:.2f}'.removeprefix('0')}\b", readout), readout
    assert rows(workspace, "SELECT count(*), count(DISTINCT (prompt_id, item)) FROM outcome") == [(24, 24)]

    again = headless(terminals, workspace)
    assert (again["needed"], again["cached"], again["to_run"], again["complete"]) == (24, 24, 0, True)
    assert rows(workspace, "SELECT count(*) FROM completion") == [(24,)]
    runs = rows(workspace, "SELECT run_id FROM run WHERE kind = 'sweep' ORDER BY created_at")
    for table, columns in (
        ("score_matrix", "seed, k, prompt_id, score_sum, n"),
        ("agreement", "seed_a, k_a, seed_b, k_b, tau_b, rho, top1, topm"),
    ):
        first, second = (
            rows(workspace, f"SELECT {columns} FROM {table} WHERE run_id = '{run}' ORDER BY ALL") for (run,) in runs
        )
        assert first == second
        assert first


def start_from_the_screen(app: TmuxApp) -> None:
    app.wait_for(HOME_SHOWN)
    app.send("5")
    app.wait_for("Nothing is swept yet")
    app.send("n")
    app.wait_for("reviews_items.jsonl")
    fill_in(app, "4", "15", "3", "5,10", "24")
    app.send("Enter")
    app.wait_for("56 needed, 0 cached")
    app.send("Enter")
    app.wait_for("/56")


def goes_on(run_dir: RunDir, before: int) -> bool:
    """Whether results still come by themselves; not when worker and supervisor are both gone."""
    interrupted_since = 0.0

    def decided() -> bool | None:
        nonlocal interrupted_since
        if observed_state(run_dir).status == RunStatus.DONE or len(read_results(run_dir.results)[0]) > before + 4:
            return True
        if observed_state(run_dir).status != RunStatus.INTERRUPTED:
            interrupted_since = 0.0
            return None
        interrupted_since = interrupted_since or time.monotonic()
        return False if time.monotonic() - interrupted_since > 3.0 else None

    found: list[bool | None] = []
    wait_until(lambda: found.append(decided()) or found[-1] is not None)
    return bool(found[-1])


@pytest.mark.slow
@pytest.mark.parametrize("seed", KILL_SEEDS)
def test_app_supervisor_and_worker_killed_at_random_moments_give_the_matrix_of_an_undisturbed_sweep(
    terminals: Terminals, workspace: Path, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    app = terminals.tmux(workspace, columns=100, rows=34)
    start_from_the_screen(app)
    [run_path] = wait_until(lambda: list((workspace / "runs").iterdir()))
    run_dir = RunDir(run_path)
    moments = sorted(rng.sample(range(1, 40), 3))
    for moment, victim in zip(moments, rng.sample(["app", "supervisor", "worker"], 3), strict=True):
        wait_until(lambda moment=moment: len(read_results(run_dir.results)[0]) >= moment)
        time.sleep(rng.uniform(0.0, 0.5))
        if victim == "app":
            os.kill(app.pid, signal.SIGKILL)
            app.wait_exit()
            app = terminals.tmux(workspace, columns=100, rows=34)
            app.wait_for("evaldesk  Sweep")
            continue
        lock = run_dir.lock
        if victim == "supervisor":
            [lock] = (terminals.home / "evaldesk-state/devices").glob("*/lock")
        before = len(read_results(run_dir.results)[0])
        if locks.is_held(lock):
            os.kill(locks.holder(lock)[0], signal.SIGKILL)
        if not goes_on(run_dir, before):
            app.send("4")
            app.wait_for(lambda text: "evaldesk  Runs" in text and "interrupted" in text)
            app.send("R")
            app.wait_for("Queued again")
            app.send("5")
    app.wait_for("done  56/56", MODEL_LIMIT_S)
    app.send("q")
    assert app.wait_exit() == 0
    assert rows(workspace, "SELECT count(*), count(DISTINCT (prompt_id, item)) FROM outcome") == [(56, 56)]
    assert rows(workspace, "SELECT count(*), count(DISTINCT request_key) FROM completion") == [(56, 56)]

    disturbed = stored_matrix(workspace)
    replies = "SELECT request_key, text FROM completion ORDER BY ALL"
    of_disturbed = rows(workspace, replies)
    done = terminals.run(*command(workspace, prompts=4, items=15, ks="5,10"))
    assert done.returncode == 0, done.stderr
    again = json.loads(done.stdout)
    assert (again["needed"], again["to_run"], again["complete"]) == (56, 0, True)
    of_again = rows(
        workspace,
        f"SELECT seed, k, score_sum FROM score_matrix WHERE run_id = '{again['run']}' ORDER BY k, seed, rowid",
    )
    assert [round(100 * total / k) for _, k, total in of_again] == [cell for row in disturbed.values() for cell in row]
    assert rows(workspace, "SELECT count(*) FROM completion") == [(56,)]

    undisturbed = tmp_path / "undisturbed"
    done = terminals.run(*command(undisturbed, prompts=4, items=15, ks="5,10"))
    assert done.returncode == 0, done.stderr
    assert rows(undisturbed, replies) == of_disturbed
    assert stored_matrix(undisturbed) == disturbed
