"""Take the pictures of README and docs afresh: ``uv run python tools/pictures.py [NAME...]``.

The demo workspace is half measured, and swept, with the embedded model in a folder of its own (some minutes on two cores);
the app is driven by keys and each screen exported as SVG to docs/pictures.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from engine.runs.queue import STATE_VARIABLE

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
SIZE = (100, 34)
MEASURED = 48
KEYS: dict[str, tuple[str, ...]] = {
    "label": ("1", "f"),
    "audit": ("3",),
    "sweep": ("5",),
    "ranking": ("6",),
}
"""What is pressed from Home to come to each picture."""
DRAFT = "Says that the parcel is on its way, although tracking found no such order."


def main() -> None:
    """Make the workspace, then the pictures that are named (all by default)."""
    names = sys.argv[1:] or list(KEYS)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {STATE_VARIABLE: f"{folder}/state", "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        workspace = Path(folder) / "support"
        _command("demo", "--no-open", "--workspace", str(workspace))
        if {"sweep", "ranking"} & set(names):
            _sweep(workspace)
        if "audit" in names:
            _measure_half(workspace)
        for name in names:
            (PICTURES / f"{name}.svg").write_text(asyncio.run(_picture(workspace, KEYS[name])), "utf-8")
            print(f"docs/pictures/{name}.svg")


def _command(*arguments: str) -> str:
    command = [sys.executable, "-c", "from tui.cli.main import main; main()", *arguments]
    return subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout


def _measure_half(workspace: Path) -> None:
    """As much of a round that a few failures are among it; what is left is cancelled, so that no process stays."""
    where = ("--workspace", str(workspace))
    run_id = json.loads(_command("judge", *where, "--criterion", "resolved", "--no-follow", "--json"))["run"]
    while json.loads(_command("runs", *where, "--json"))["runs"][0]["done"] < MEASURED:
        time.sleep(2.0)
    _command("runs", "cancel", run_id, *where)
    while json.loads(_command("runs", *where, "--json"))["runs"][0]["status"] != "cancelled":
        time.sleep(0.5)


def _sweep(workspace: Path) -> None:
    import sample_data

    _command(
        "sweep", "--workspace", str(workspace), "--prompts", str(sample_data.path("reviews_prompts.jsonl")),
        "--dataset", str(sample_data.path("reviews_items.jsonl")), "--limit", "8", "--items", "45", "--k", "10,20",
    )  # fmt: skip


async def _picture(workspace: Path, keys: tuple[str, ...]) -> str:
    from textual.widgets import TextArea

    from tui.app import EvaldeskApp

    app = EvaldeskApp(workspace, start="home", is_demo=True)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(2.0)
        for key in keys:
            await pilot.press(key)
            await pilot.pause(1.0)
        if isinstance(app.screen.focused, TextArea):
            app.screen.focused.insert(DRAFT)
        await pilot.pause(1.0)
        return app.export_screenshot(title="evaldesk")


if __name__ == "__main__":
    main()
