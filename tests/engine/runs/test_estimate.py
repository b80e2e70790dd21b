"""What a run would take is said from an earlier run of the model, and not at all where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.models.server_address import server_address
from engine.models.settings import ModelSettings, changing_settings
from engine.runs.estimate import Estimate, busy_seconds, estimate
from engine.runs.protocol import RunDir
from engine.runs.spool import Spool
from engine.store import completions, runs
from engine.store.models import Model
from engine.store.runs import Run
from engine.store.store import Store
from engine.store.workspace import Workspace

ADDRESS = server_address("http://127.0.0.1:8000", "m")
SERVED = Model(ADDRESS.fingerprint.short, "served", "openai_api", ADDRESS.url)
LOCAL = Model("f" * 16, "local", "llamacpp", "/models/local.gguf")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("EVALDESK_CONFIG_DIR", str(tmp_path / "config"))
    with Store(Workspace(tmp_path / "ws")) as store:
        yield store


def served(**options: float) -> None:
    with changing_settings() as settings:
        settings["served"] = ModelSettings(options=options, server=ADDRESS)


def line(number: int, at: float, seconds: float, **more: Any) -> dict[str, Any]:
    tokens = {"prompt_tokens": 1000, "completion_tokens": 50}
    return {"key": f"k{number}", "at": at, "seconds": seconds, **tokens, **more}


def ran(store: Store, run_id: str, model: Model, lines: list[dict[str, Any]], kind: str = "sweep") -> None:
    """A run of the past, with these results."""
    run_dir = RunDir(store.workspace.runs / run_id)
    run_dir.path.mkdir(parents=True)
    spool = Spool(run_dir.results)
    spool.append(lines)
    spool.close()
    store.call(runs.add, Run(run_id, kind, run_id, "", "", model.model_id, "cpu", "done", len(lines), 0, 0), [])
    store.call(completions.add, run_id, [one | {"key": f"{run_id}-{one['key']}"} for one in lines])


def ask(store: Store, model: Model, to_run: int, kind: str = "sweep") -> Estimate | None:
    return store.call(estimate, store.workspace, model, kind, to_run)


def test_without_an_earlier_run_of_this_model_nothing_is_said(store: Store) -> None:
    assert ask(store, LOCAL, 100) is None
    ran(store, "r1", Model("e" * 16, "other", "llamacpp", "/models/other.gguf"), [line(0, 10.0, 1.0)])
    ran(store, "r2", LOCAL, [line(0, 10.0, 1.0, error="broken")])
    assert ask(store, LOCAL, 100) is None


def test_requests_side_by_side_count_once_and_a_pause_not_at_all(store: Store) -> None:
    pair = [line(0, 12.0, 2.0), line(1, 12.0, 2.0)]
    ran(store, "r1", LOCAL, [*pair, line(2, 9000.0, 1.0), line(3, 9001.0, 1.0)])
    # Four requests in 2 + 1 + 1 seconds of work.
    assert ask(store, LOCAL, 30) == Estimate(30.0, None, "r1", 4)


def test_what_overlaps_in_part_is_joined() -> None:
    assert busy_seconds([line(0, 10.0, 4.0), line(1, 9.0, 1.0), line(2, 12.0, 3.0)]) == 6.0
    assert busy_seconds([]) == 0.0


def test_a_run_of_the_same_kind_goes_first_then_the_newest_whose_folder_is_there(store: Store) -> None:
    ran(store, "r1", LOCAL, [line(0, 10.0, 4.0)], "judge")
    ran(store, "r2", LOCAL, [line(0, 10.0, 2.0)], "judge")
    ran(store, "r3", LOCAL, [line(0, 10.0, 1.0)])
    assert ask(store, LOCAL, 10, "judge") == Estimate(20.0, None, "r2", 1)
    assert ask(store, LOCAL, 10) == Estimate(10.0, None, "r3", 1)
    shutil.rmtree(store.workspace.runs / "r2")
    assert ask(store, LOCAL, 10, "judge") == Estimate(40.0, None, "r1", 1)


def test_only_the_newest_requests_count(store: Store) -> None:
    slow, quick = [line(n, 100.0 * n, 90.0) for n in range(50)], [line(n, 1e5 + n, 1.0) for n in range(50, 250)]
    ran(store, "r1", LOCAL, slow + quick)
    assert ask(store, LOCAL, 7) == Estimate(pytest.approx(7.0), None, "r1", 200)


def test_prices_give_a_cost_and_rate_limits_bound_the_speed(store: Store) -> None:
    served()
    ran(store, "r1", SERVED, [line(n, 10.0 + n, 1.0) for n in range(4)])
    assert ask(store, SERVED, 60) == Estimate(60.0, None, "r1", 4)
    served(price_in=2.0, price_out=8.0)
    found = ask(store, SERVED, 60)
    assert found is not None and found.cost == pytest.approx(60 * (1000 * 2.0 + 50 * 8.0) / 1e6)
    served(requests_per_minute=2)
    assert ask(store, SERVED, 60) == Estimate(1800.0, None, "r1", 4)
    served(tokens_per_minute=10_500)
    assert ask(store, SERVED, 60) == Estimate(360.0, None, "r1", 4)
