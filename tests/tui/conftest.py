"""A demo workspace for every test, made once and copied, and the app driven by keys alone."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from engine import demo
from engine.runs import queue
from engine.store.store import Store
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace
from tui.app import EvaldeskApp
from tui.screens.desk_screen import DeskScreen


@pytest.fixture(scope="session")
def demo_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "ws"
    with Store(Workspace(path)) as store:
        demo.fill(store)
    return path


@pytest.fixture
def demo_workspace(demo_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(queue.STATE_VARIABLE, str(tmp_path / "state"))
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    path = tmp_path / "ws"
    shutil.copytree(demo_template, path)
    return path


def screen_text(app: EvaldeskApp) -> str:
    """What stands on the screen, without styles."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


class Desk:
    """The app under test: press keys, wait for text, look into the store."""

    def __init__(self, app: EvaldeskApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
        await self.settle()

    async def type(self, text: str) -> None:
        names = {
            " ": "space",
            ".": "full_stop",
            ",": "comma",
            "/": "slash",
            "-": "minus",
            "_": "underscore",
            "'": "apostrophe",
            ":": "colon",
        }
        await self.press(*[names.get(character, character) for character in text])

    async def settle(self) -> None:
        """Let what the keys have set off run its course; whatever takes longer is waited for by what it shows."""
        await self.pilot.pause()

    async def wait_for(self, condition: str | Callable[[], Any], patience_s: float = 30.0) -> None:
        steps = int(patience_s / 0.05)
        for _ in range(steps):
            found = condition in self.text if isinstance(condition, str) else condition()
            if found:
                return
            await self.pilot.pause(0.05)
        raise AssertionError(f"waited in vain for {condition!r} on:\n{self.text}")

    @property
    def text(self) -> str:
        return screen_text(self.app)

    def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        def work(tx: Transaction) -> list[tuple[Any, ...]]:
            return tx.rows(sql, *parameters)

        return self.app.desk.store.call(work)


@asynccontextmanager
async def open_desk(workspace: Path, start: str = "label", size: tuple[int, int] = (80, 24)) -> AsyncIterator[Desk]:
    """The app on a workspace, ready on its first screen."""
    app = EvaldeskApp(workspace, start=start)
    async with app.run_test(size=size, notifications=True) as pilot:
        desk = Desk(app, pilot)
        await desk.wait_for(lambda: isinstance(app.screen, DeskScreen))
        await desk.settle()
        yield desk
