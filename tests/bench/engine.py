"""What the run machinery costs: a run against the bare library on the same requests, and what planning spares."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import sample_data
from engine.runs.plan_file import read_plan
from engine.runs.protocol import RunDir
from engine.runs.spool import read_results
from tests.bench import bare_aiohttp, bare_llamacpp, instant_server
from tests.e2e.latency import measure_latency
from tests.e2e.realterm import EVALDESK, PtyApp, isolated_environment

REQUESTS = 10_000
AT_ONCE = 64

Figures = dict[str, dict[str, Any]]


def run() -> Figures:
    """Ratios taken in one run, one side after the other; start this on an otherwise idle machine."""
    with tempfile.TemporaryDirectory(prefix="evaldesk-bench-") as folder:
        home = Path(folder)
        return _against_a_bare_loop(home) | _against_the_bare_library(home) | _prefixes(home) | _protocol(home)


def _against_a_bare_loop(home: Path) -> Figures:
    """10,000 requests to a server that answers at once: a bare aiohttp loop before and after, a run with the app open between."""
    workspace, environment = home / "served", isolated_environment(home)
    files = _numbered(home, REQUESTS // 20)
    serving = [sys.executable, "-m", instant_server.__name__]
    with subprocess.Popen(serving, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout and server.stdin
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        _command(home, "models", "add", "instant", "--url", url, "--model", instant_server.MODEL,
                 "--parallel", str(AT_ONCE), "--json")  # fmt: skip
        _command(home, "sweep", *files, "--limit", "1", "--seeds", "1", "--k", "1", "--items", "1", "--model", "instant", "--json",
                 "--workspace", str(workspace))  # fmt: skip
        bare = [_bare_loop(url)]
        with PtyApp([*EVALDESK, str(workspace)], environment, home, columns=120, rows=40) as app:
            app.wait_for("evaldesk  Home")
            _command(home, "sweep", *files, "--seeds", "1", "--k", str(REQUESTS // 20), "--model", "instant", "--no-follow",
                     "--json", "--workspace", str(workspace))  # fmt: skip
            app.send("5")
            app.wait_for(f"/{REQUESTS}", 60)
            pressed: list[float] = []
            while f"done  {REQUESTS}/{REQUESTS}" not in app.text:
                pressed.append(measure_latency(app, ("l", "h"), 2).max_ms)
            ended = time.time()
        bare.append(_bare_loop(url))
        server.stdin.close()
    newest = max((workspace / "runs").iterdir(), key=lambda path: path.name)
    lines, _ = read_results(RunDir(newest).results)
    first, last = min(line["at"] for line in lines), max(line["at"] for line in lines)
    ours, spooled = len(lines) / (ended - first), len(lines) / (last - first)
    return {
        "server_requests_per_s": {
            "value": ours,
            "unit": "a second",
            "reference": f"{len(lines):,} requests, {AT_ONCE} at once, until the open app shows the last one; in the spool {spooled:,.0f} a second",
        },
        "server_ratio_to_bare": {
            "value": 2 * ours / sum(bare),
            "unit": "times",
            "reference": f"goal 0.4; a bare aiohttp loop {bare[0]:,.0f} and {bare[1]:,.0f} requests a second",
        },
        "server_key_ms": {
            "value": statistics.median(pressed),
            "unit": "ms",
            "reference": f"the slower of two keys on the Sweep screen meanwhile, median of {len(pressed)}; slowest {max(pressed):.0f}",
        },
    }


def _bare_loop(url: str) -> float:
    command = [sys.executable, "-m", bare_aiohttp.__name__, url, str(REQUESTS), str(AT_ONCE)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _numbered(home: Path, count: int) -> tuple[str, ...]:
    """Options that name 20 prompts and so many sums as files."""
    items, prompts = home / "items.jsonl", home / "prompts.jsonl"
    items.write_text("".join(f'{{"question": "{n} + 7", "answer": "{n + 7}"}}\n' for n in range(count)))
    prompts.write_text("".join(f'{{"name": "p{n}", "template": "Way {n}: {{question}}"}}\n' for n in range(20)))
    return ("--prompts", str(prompts), "--dataset", str(items), "--scorer", "number")


def _against_the_bare_library(home: Path) -> Figures:
    """The same 200 requests, in plan order: bare, as a run, bare again; and with the library's own defaults."""
    run_dir = _swept(home, home / "small", "--items", "10", "--k", "10", "--max-tokens", "24")
    lines, _ = read_results(run_dir.results)
    assert len(lines) == 200
    before, as_it_comes = _bare(run_dir, "exact"), _bare(run_dir, "defaults")
    # Measured between the two: a machine that becomes faster or slower does so for both.
    again = _swept(home, home / "again", "--items", "10", "--k", "10", "--max-tokens", "24")
    lines, _ = read_results(again.results)
    ours = len(lines) / (lines[-1]["at"] - lines[0]["at"] + lines[0]["seconds"])
    after = _bare(run_dir, "exact")
    return {
        "llamacpp_ratio_to_bare": {
            "value": 2 * ours / (before + after),
            "unit": "times",
            "reference": f"goal 0.95; a run {ours:.2f} requests/s, the bare library one request after the other {before:.2f} and {after:.2f}",
        },
        "llamacpp_ratio_to_defaults": {
            "value": ours / as_it_comes,
            "unit": "times",
            "reference": f"flash attention, which costs exact replies: {as_it_comes:.2f} requests/s; its gain is on short prompts",
        },
    }


def _bare(run_dir: RunDir, mode: str) -> float:
    command = [sys.executable, "-m", bare_llamacpp.__name__, str(run_dir.path), mode]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(json.loads(said)["requests_per_s"])


def _prefixes(home: Path) -> Figures:
    """20 prompts over 50 items: what came from the prefix cache, and what the same sweep generates once more."""
    workspace = home / "prefixes"
    options = ("--items", "50", "--k", "50", "--max-tokens", "4")
    lines, _ = read_results(_swept(home, workspace, *options).results)
    tokens, cached = (sum(line[name] for line in lines) for name in ("prompt_tokens", "cached_tokens"))
    again = _sweep(home, workspace, *options, "--dry-run")
    return {
        "prefix_tokens_reused_share": {
            "value": cached / tokens,
            "unit": "share",
            "reference": f"{cached:,} of {tokens:,} prompt tokens in {len(lines):,} requests; the cases themselves are never shared",
        },
        "generated_again": {
            "value": float(again["to_run"]),
            "unit": "requests",
            "reference": f"goal 0; the same sweep once more, {again['needed']:,} needed",
        },
    }


def _protocol(home: Path) -> Figures:
    """5 seeds x {50, 100, 200} x 20 prompts on 500 items, planned only."""
    files = (*_numbered(home, 500), "--seeds", "5", "--k", "50,100,200")
    planned = _command(home, "sweep", *files, "--dry-run", "--json", "--workspace", str(home / "protocol"))["needed"]
    naive = 5 * (50 + 100 + 200) * 20
    return {
        "protocol_saved_share": {
            "value": 1.0 - planned / naive,
            "unit": "share",
            "reference": f"{naive:,} naive, {planned:,} planned, {naive - planned:,} saved",
        }
    }


def _swept(home: Path, workspace: Path, *options: str) -> RunDir:
    _sweep(home, workspace, *options)
    [path] = (workspace / "runs").iterdir()
    run_dir = RunDir(path)
    assert len(read_plan(run_dir)) == len(read_results(run_dir.results)[0])
    time.sleep(1.0)
    return run_dir


def _sweep(home: Path, workspace: Path, *options: str) -> dict[str, Any]:
    files = (
        "--prompts", str(sample_data.path("reviews_prompts.jsonl")), "--dataset", str(sample_data.path("reviews_items.jsonl")),
    )  # fmt: skip
    return _command(home, "sweep", *files, "--seeds", "1", *options, "--json", "--workspace", str(workspace))


def _command(home: Path, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [*EVALDESK, *arguments], env=isolated_environment(home), check=True, capture_output=True, text=True
    )
    said: dict[str, Any] = json.loads(done.stdout)
    return said
