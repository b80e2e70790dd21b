"""How the app answers in a real terminal while a model is at work beside it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import sample_data
from engine.runs import locks
from tests.e2e.latency import Latency, measure_latency
from tests.e2e.realterm import EVALDESK, PtyApp, isolated_environment

KEYS = 200
BARE_APP = "from textual.app import App\nfrom textual.widgets import Static\nclass A(App):\n    def compose(self):\n        yield Static('READY')\nA().run()"


def run() -> dict[str, dict[str, Any]]:
    """Key to last byte on every screen with live figures during a llamacpp run; first frame against a bare Textual app."""
    with tempfile.TemporaryDirectory(prefix="evaldesk-bench-") as folder:
        home = Path(folder)
        environment = isolated_environment(home)
        workspace = home / "ws"
        subprocess.run(
            [*EVALDESK, "demo", "--no-open", "--workspace", str(workspace)],
            env=environment,
            check=True,
            capture_output=True,
        )
        figures = {"first_frame_s": _first_frame(home, environment, workspace)}
        # The later rounds wait for the first; they give the list of runs something to move over.
        for _ in range(4):
            subprocess.run(
                [*EVALDESK, "judge", "--workspace", str(workspace), "--no-follow"],
                env=environment,
                check=True,
                capture_output=True,
            )
        try:
            figures |= _latencies(home, environment, workspace)
        finally:
            _end_runs(workspace)
        figures |= _sweep_latencies(home, environment)
        return figures


def _sweep_latencies(home: Path, environment: dict[str, str]) -> dict[str, dict[str, Any]]:
    workspace = home / "swept"
    files = [
        "--prompts",
        str(sample_data.path("reviews_prompts.jsonl")),
        "--dataset",
        str(sample_data.path("reviews_items.jsonl")),
    ]
    subprocess.run(
        [*EVALDESK, "sweep", *files, "--k", "50,100,200", "--max-tokens", "24", "--no-follow", "--workspace", str(workspace)],
        env=environment, check=True, capture_output=True,
    )  # fmt: skip
    figures: dict[str, dict[str, Any]] = {}
    try:
        with PtyApp([*EVALDESK, str(workspace)], environment, home, columns=120, rows=40) as app:
            app.wait_for("evaldesk  Home")
            app.send("5")
            app.wait_for("tok/s", 300)
            time.sleep(10.0)
            for name, key, shown in (("sweep", "5", "coverage"), ("ranking", "6", "tau-b in hundredths")):
                app.send(key)
                app.wait_for(shown, 60)
                time.sleep(1.0)
                figures |= _figures(name, measure_latency(app, ("l", "j", "h", "k"), KEYS))
            app.send("4")
            figures["sweep_was_going"] = _going("running" in app.wait_for("tok/s"))
    finally:
        _end_runs(workspace)
    return figures


def _latencies(home: Path, environment: dict[str, str], workspace: Path) -> dict[str, dict[str, Any]]:
    figures: dict[str, dict[str, Any]] = {}
    with PtyApp([*EVALDESK, str(workspace)], environment, home, columns=120, rows=40) as app:
        app.wait_for("6 Measure")
        app.send("4")
        app.wait_for("running", 300)
        # Every key has something to show: another case, another disagreement, another run.
        for name, key, shown, keys in (
            ("label", "1", "REQUEST", ("j",)), ("runs", "4", "tok/s", ("j", "k")), ("audit", "3", _three_disagreements, ("j", "k")),
        ):  # fmt: skip
            app.send(key)
            app.wait_for(shown, 300)
            app.settle(0.1, 5) if name == "label" else time.sleep(1.0)
            figures |= _figures(name, measure_latency(app, keys, KEYS))
        app.send("4")
        figures["run_was_going"] = _going("running" in app.wait_for("tok/s"))
    return figures


def _figures(name: str, found: Latency) -> dict[str, dict[str, Any]]:
    reference = "goal: p95 below 100 ms over 200 keys, a llamacpp run beside it"
    return {
        f"{name}_key_p50_ms": {"value": found.p50_ms, "unit": "ms", "reference": reference},
        f"{name}_key_p95_ms": {"value": found.p95_ms, "unit": "ms", "reference": reference},
        f"{name}_key_bytes": {"value": found.bytes_per_key, "unit": "bytes", "reference": "a TextArea letter 11,604"},
    }


def _going(is_running: bool) -> dict[str, Any]:
    return {"value": float(is_running), "unit": "1 = yes", "reference": "the figures count only with 1"}


def _three_disagreements(text: str) -> bool:
    return len(re.findall("expert (?:FAIL|PASS)  judge", text)) >= 3


def _first_frame(home: Path, environment: dict[str, str], workspace: Path) -> dict[str, Any]:
    own = _seconds_to([*EVALDESK, str(workspace)], environment, home, "evaldesk")
    bare = _seconds_to([sys.executable, "-c", BARE_APP], environment, home, "READY")
    return {"value": own, "unit": "s", "reference": f"a bare Textual app {bare:.2f} s"}


def _seconds_to(command: list[str], environment: dict[str, str], home: Path, text: str) -> float:
    started = time.perf_counter()
    with PtyApp(command, environment, home, columns=120, rows=40) as app:
        app.wait_for(text)
        return time.perf_counter() - started


def _end_runs(workspace: Path) -> None:
    home = workspace.parent
    for lock in [*home.glob("evaldesk-state/devices/*/lock"), *workspace.glob("runs/*/lock")]:
        while locks.is_held(lock):
            pid = locks.holder(lock)[0]
            if pid > 1:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    break
            time.sleep(0.1)
    shutil.rmtree(workspace, ignore_errors=True)
