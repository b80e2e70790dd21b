"""The expert's desk with very many traces, and with a very large one: launch, keys, bytes, memory."""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from engine.store.store import Store
from tests.bench import large_workspace
from tests.bench.terminal import BARE_APP
from tests.e2e.latency import measure_latency
from tests.e2e.realterm import ENTER, EVALDESK, PtyApp, isolated_environment

SIZES = (100_000, 1_000_000)
KEYS = 100
ROWS = 40
BIG_TRACE = 5_000_000

Figures = dict[str, dict[str, Any]]


def run() -> Figures:
    """Everything for both sizes; a figure of the larger workspace ends in _1m."""
    with tempfile.TemporaryDirectory(prefix="evaldesk-bench-") as folder:
        home = Path(folder)
        figures: Figures = {}
        for size in SIZES:
            workspace = large_workspace.make(home / f"ws{size}", size)
            ending = "" if size == SIZES[0] else "_1m"
            found = _with_many_traces(home, workspace.path)
            figures |= {f"{name}{ending}": figure for name, figure in found.items()}
        return figures | _with_a_big_trace(home)


def _with_many_traces(home: Path, workspace: Path) -> Figures:
    environment = isolated_environment(home)
    opened, bare = [], []
    for _ in range(3):
        opened.append(_seconds_to([*EVALDESK, str(workspace)], environment, home, "REQUEST"))
        bare.append(_seconds_to([sys.executable, "-c", BARE_APP], environment, home, "READY"))
    with PtyApp([*EVALDESK, str(workspace)], environment, home, columns=120, rows=ROWS) as app:
        _wait_for_label(app)
        keys = measure_latency(app, ("j",), KEYS)
        pages = measure_latency(app, ("\x1b[6~",), KEYS)
        app.send("f")
        app.wait_for("FAIL draft")
        app.settle(0.2)
        letters = measure_latency(app, tuple("the answer names no date "), KEYS)
        verdicts = [_verdict_bytes(app) for _ in range(20)]
        rss = _rss_mb(app.process.pid)
    open_s, bare_s = statistics.median(opened), statistics.median(bare)
    return {
        "open_s": _figure(open_s, "s", f"launch to the case on the Label screen; a bare Textual app {bare_s:.2f} s"),
        "open_ratio": _figure(open_s / bare_s, "times", "goal: at most 2"),
        "key_p95_ms": _figure(keys.p95_ms, "ms", f"goal: below 50; next case, p50 {keys.p50_ms:.0f}"),
        "page_p95_ms": _figure(pages.p95_ms, "ms", f"page down in the list, p50 {pages.p50_ms:.0f}"),
        "verdict_bytes": _figure(statistics.median(verdicts), "bytes", "goal: below 2,000; the next case's own text left out"),
        "critique_key_bytes": _figure(letters.bytes_per_key, "bytes", "goal: below 2,000; a plain TextArea 11,604"),
        "critique_key_p95_ms": _figure(letters.p95_ms, "ms", "a letter in the critique box"),
        "rss_mb": _figure(rss, "MB", "goal: below 400"),
    }  # fmt: skip


def _with_a_big_trace(home: Path) -> Figures:
    workspace = large_workspace.make(home / "big", 50)
    with Store(workspace) as store:
        store.call(large_workspace.big_trace, BIG_TRACE)
    with PtyApp([*EVALDESK, str(workspace.path)], isolated_environment(home), home, columns=120, rows=ROWS) as app:
        _wait_for_label(app)
        app.send("/")
        app.settle(0.2, 5)
        app.send("T-0000000")
        app.settle(0.2, 5)
        sent = app.send(ENTER)
        app.wait_for("handed over", 60)
        opened = time.perf_counter() - sent
        app.settle(0.3, 10)
        scrolls = measure_latency(app, (" ",), 50)
    return {
        "big_trace_open_s": _figure(opened, "s", "goal: below 1; a response of 5 MB"),
        "big_trace_scroll_p95_ms": _figure(scrolls.p95_ms, "ms", f"eight lines further, p50 {scrolls.p50_ms:.0f}"),
    }


def _wait_for_label(app: PtyApp) -> None:
    app.wait_for("REQUEST", 60)
    app.settle(0.3, 10)


def _verdict_bytes(app: PtyApp) -> int:
    """What saving a verdict writes besides the next case: all that does not go to the place where a case is read."""
    app.send("Names no date.")
    app.settle(0.2)
    mark = app.mark
    app.send(ENTER)
    app.settle(0.3, 5)
    written = b"".join(chunk.data for chunk in app.since(mark))
    pieces = re.split(rb"(?=\x1b\[\d+;\d+H)", written)
    outside = sum(len(piece) for piece in pieces if not _is_in_case(piece))
    app.send("f")
    app.wait_for("FAIL draft")
    return outside


def _is_in_case(piece: bytes) -> bool:
    place = re.match(rb"\x1b\[(\d+);(\d+)H", piece)
    return place is not None and 2 <= int(place[1]) <= ROWS - 6 and int(place[2]) > 30


def _seconds_to(command: list[str], environment: dict[str, str], home: Path, text: str) -> float:
    started = time.perf_counter()
    with PtyApp(command, environment, home, columns=120, rows=ROWS) as app:
        app.wait_for(text, 60)
        return time.perf_counter() - started


def _rss_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024


def _figure(value: float, unit: str, reference: str) -> dict[str, Any]:
    return {"value": value, "unit": unit, "reference": reference}
