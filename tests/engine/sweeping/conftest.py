"""A workspace in which a model that adds, well or badly as its prompt says, is swept."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from engine import orphans
from engine.runs.ingest import ingest
from engine.store import runs
from engine.store.models import Model
from engine.store.runs import Run
from engine.store.store import Store
from engine.store.workspace import Workspace
from engine.sweeping import results, starting
from engine.sweeping.dataset import Dataset, Item
from engine.sweeping.prompt import Prompt
from engine.sweeping.results import SweepResults
from engine.sweeping.starting import SweepOrder
from tests.engine.measuring.conftest import BACKEND, private_state, wait_until

__all__ = ["private_state"]


def sums(count: int) -> Dataset:
    """Additions with their results, no two alike."""
    rng = random.Random(4)
    pairs = [(rng.randrange(1000), number) for number in range(count)]
    return Dataset("sums", tuple(Item(f"i{b}", {"question": f"{a} + {b}"}, str(a + b)) for a, b in pairs))


def skilled(*skills: int) -> tuple[Prompt, ...]:
    """Prompts under which the scripted model is right that often in ten."""
    return tuple(Prompt(f"skill-{skill}", f"skill {skill}: {{question}}") for skill in skills)


@dataclass
class Sweeper:
    """A workspace and what it takes to sweep in it."""

    store: Store
    folder: Path

    def model(self, **script: Any) -> Model:
        script = {
            "sums": True,
            "seconds": 0.002,
            "side_file": str(self.folder / "generated"),
            "gate": str(self.folder / "gate"),
        } | script
        return Model("scripted", "scripted", BACKEND, json.dumps(script))

    @property
    def order(self) -> SweepOrder:
        return SweepOrder(skilled(2, 5, 5 + 3), sums(40), "number", items=30, seeds=(1, 2, 3), ks=(10, 20))

    def start(self, order: SweepOrder | None = None, **script: Any) -> Run:
        return self.store.call(starting.start, self.store.workspace, order or self.order, self.model(**script))

    def ingest(self) -> None:
        while self.store.call(ingest, self.store.workspace).more:
            pass
        self.store.call(orphans.adopt, self.store.workspace)

    def finish(self, *wanted: Run) -> None:
        def done() -> bool:
            self.ingest()
            return all(self.store.call(runs.get, run.run_id).status == "done" for run in wanted)

        wait_until(done)

    def results(self, run: Run, top: int = results.DEFAULT_TOP) -> SweepResults:
        return self.store.call(results.measure, run.run_id, None, top)[0]

    def swept(self, order: SweepOrder | None = None, **script: Any) -> SweepResults:
        run = self.start(order, **script)
        self.finish(run)
        return self.results(run)

    def generated(self) -> list[str]:
        side = self.folder / "generated"
        return side.read_text().splitlines() if side.exists() else []

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.store.call(lambda tx: tx.rows(sql))


@pytest.fixture
def sweeper(private_state: Path) -> Iterator[Sweeper]:
    with Store(Workspace(private_state / "ws")) as store:
        yield Sweeper(store, private_state)


def with_prompts(order: SweepOrder, *prompts: Prompt) -> SweepOrder:
    return replace(order, prompts=prompts)
