"""The desk: what the screens share. The only way from a screen to the store, always off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

from engine.runs.protocol import RunState
from engine.store.store import Store
from engine.store.transaction import Transaction

P = ParamSpec("P")
R = TypeVar("R")


@dataclass
class Desk:
    """The open store and where the work stands: one place for state that several screens read."""

    store: Store
    criterion_id: str = ""
    trace_id: str = ""
    run_id: str = ""
    sweep_run_id: str = ""
    expert: str = ""
    is_demo: bool = False
    wanted_cases: str = ""
    """A search that the Label screen is to come up with, once."""
    states: Mapping[str, RunState] = field(default_factory=dict)

    async def do(self, work: Callable[Concatenate[Transaction, P], R], *arguments: P.args, **named: P.kwargs) -> R:
        """Run ``work(transaction, ...)`` in the store's thread and wait for it without blocking the event loop."""
        return await asyncio.wrap_future(self.store.submit(work, *arguments, **named))

    async def meanwhile(
        self, work: Callable[Concatenate[Transaction, P], R], *arguments: P.args, **named: P.kwargs
    ) -> R:
        """The same, after everything that a person is waiting for."""
        return await asyncio.wrap_future(self.store.submit_background(work, *arguments, **named))

    async def later(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run a slow function that is not about the store (files, hashing) in a thread."""
        return await asyncio.to_thread(work, *arguments)
