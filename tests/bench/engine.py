"""What the run machinery costs: a run against the bare library on the same requests, and what planning spares."""

from __future__ import annotations

import json
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
from tests.bench import bare_llamacpp
from tests.e2e.realterm import EVALDESK, isolated_environment

Figures = dict[str, dict[str, Any]]


def run() -> Figures:
    """Ratios taken in one run, one side after the other; start this on an otherwise idle machine."""
    with tempfile.TemporaryDirectory(prefix="evaldesk-bench-") as folder:
        home = Path(folder)
        return _against_the_bare_library(home) | _prefixes(home) | _protocol(home)


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
    items = home / "items.jsonl"
    items.write_text("".join(f'{{"question": "{n} + {n}", "answer": "{2 * n}"}}\n' for n in range(500)))
    prompts = home / "prompts.jsonl"
    prompts.write_text("".join(f'{{"name": "p{n}", "template": "Way {n}: {{question}}"}}\n' for n in range(20)))
    files = (
        "--prompts",
        str(prompts),
        "--dataset",
        str(items),
        "--scorer",
        "number",
        "--seeds",
        "5",
        "--k",
        "50,100,200",
    )
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
