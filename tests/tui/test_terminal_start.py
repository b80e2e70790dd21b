"""What the start of the app loads: the first frame waits for neither database nor numbers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.e2e.realterm import isolated_environment

_SHOWS_LOADED = "import json, sys; print(json.dumps(sorted({'duckdb', 'numpy', 'scipy', 'scipy.stats', 'pyarrow', 'xllamacpp', 'rich.traceback'} & set(sys.modules))))"

_TO_THE_SCREENS = """
import asyncio, sys
from pathlib import Path
from tui.app import EvaldeskApp
from tui.screens.opening import OpeningScreen

async def main():
    app = EvaldeskApp(Path(sys.argv[1]), is_demo=True)
    seen = []
    show = app._display
    def first(screen, renderable):
        if not seen and isinstance(screen, OpeningScreen):
            seen.append({'duckdb', 'numpy', 'scipy'} & set(sys.modules))
        return show(screen, renderable)
    app._display = first
    async with app.run_test(size=(80, 24)) as pilot:
        while isinstance(app.screen, OpeningScreen) or not hasattr(app, 'desk'):
            await pilot.pause(0.02)
        await app.action_go('label')
        await pilot.pause()
        print(seen)
        print({'scipy', 'scipy.stats'} & set(sys.modules))
asyncio.run(main())
"""


def run(code: str, home: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=isolated_environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_app_loads_no_database_and_no_numbers(tmp_path: Path) -> None:
    assert run(f"import tui.app\n{_SHOWS_LOADED}", tmp_path) == "[]"


def test_importing_the_command_loads_no_textual_either(tmp_path: Path) -> None:
    code = "import tui.cli.main, sys; print({'textual', 'rich', 'duckdb', 'numpy', 'scipy'} & set(sys.modules))"
    assert run(code, tmp_path) == "set()"


def test_the_first_frame_comes_before_the_database_and_scipy_not_with_home_and_label(tmp_path: Path) -> None:
    lines = run(_TO_THE_SCREENS, tmp_path, str(tmp_path / "ws")).splitlines()
    assert lines == ["[set()]", "set()"]
