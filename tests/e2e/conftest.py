"""A demo workspace made once by the command itself, a home of its own for every test, and apps that are always ended."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.e2e.realterm import EVALDESK, PtyApp, TmuxApp, isolated_environment

HOME_SHOWN = "6 Measure"
"""What only Home shows."""


class Terminals:
    """Opens terminals in one test's home; all are ended with the test."""

    def __init__(self, home: Path, stack: ExitStack) -> None:
        self.home = home
        self._stack = stack

    def environment(self, **more: str) -> dict[str, str]:
        return isolated_environment(self.home, **more)

    def pty(
        self, *arguments: str | Path, command: Sequence[str] = EVALDESK, columns: int = 80, rows: int = 24, **more: str
    ) -> PtyApp:
        whole = [*command, *(str(argument) for argument in arguments)]
        return self._stack.enter_context(PtyApp(whole, self.environment(**more), self.home, columns=columns, rows=rows))

    def tmux(self, *arguments: str | Path, columns: int = 80, rows: int = 24, **more: str) -> TmuxApp:
        if not TmuxApp.is_available():
            pytest.skip("there is no tmux here")
        whole = [*EVALDESK, *(str(argument) for argument in arguments)]
        return self._stack.enter_context(
            TmuxApp(whole, self.environment(**more), self.home, columns=columns, rows=rows)
        )

    def run(self, *arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        """The command without a terminal."""
        whole = [*EVALDESK, *(str(argument) for argument in arguments)]
        return subprocess.run(
            whole,
            env=self.environment(**more),
            cwd=self.home,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
            check=False,
        )


def rows(workspace: Path, sql: str) -> list[tuple[Any, ...]]:
    """Read a workspace that nobody holds."""
    connection = duckdb.connect(str(workspace / "evaldesk.duckdb"), read_only=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


@pytest.fixture(scope="session")
def demo_made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo workspace as the command makes it; tests work on copies."""
    home = tmp_path_factory.mktemp("demo-home")
    subprocess.run(
        [*EVALDESK, "demo", "--no-open", "--workspace", str(home / "ws")],
        env=isolated_environment(home),
        cwd=home,
        check=True,
        capture_output=True,
    )
    return home / "ws"


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    home = tmp_path / "home"
    home.mkdir()
    with ExitStack() as stack:
        yield Terminals(home, stack)


@pytest.fixture
def workspace(demo_made: Path, tmp_path: Path) -> Path:
    """A copy of the demo workspace that is this test's own."""
    return Path(shutil.copytree(demo_made, tmp_path / "ws"))
