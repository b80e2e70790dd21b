"""evaldesk runs: the runs of a workspace; pause, resume, cancel or follow one, or ask again what failed in it."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from engine import requests
from engine.errors import EvaldeskError
from engine.runs import control
from engine.runs.following import follow
from engine.runs.gpu_use import GpuUse, gpu_use
from engine.runs.protocol import RunDir, RunStatus
from engine.runs.states import observed_state, read_description
from engine.store import runs
from engine.store.workspace import Workspace
from tui.cli.follow_run import PlainLines, state_text
from tui.cli.output import print_json, print_line
from tui.presentation.run_view import cost_text, gpu_text, plan_text, tokens_text

_DONE = {"pause": "paused", "resume": "resumed", "cancel": "cancelled", "follow": "followed", "again": "started again"}
_STEER = {"pause": control.pause, "resume": control.resume, "cancel": control.cancel}
_PATIENCE_S = 5.0
"""An owner that does not answer, suspended say, keeps nobody from the folder's own account for longer."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    from tui.cli.main import add_workspace_option

    parser = subparsers.add_parser(
        "runs", help="list runs; pause, resume, cancel, follow or start one again", description=__doc__
    )
    parser.add_argument("action", nargs="?", choices=("pause", "resume", "cancel", "follow", "again"))
    parser.add_argument(
        "run_id", nargs="?", metavar="ID", help="run id, or the beginning of it that no other run shares"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_workspace_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 done, 1 when a followed run did not finish. A run with a folder is steered by its files, whoever owns the workspace."""
    workspace = Workspace(args.workspace)
    if args.action is None:
        return _list(workspace, as_json=args.json)
    if args.run_id is None:
        raise EvaldeskError(f"which run is to be {_DONE[args.action]} is not said", remedy="evaldesk runs lists them.")
    row = _find(workspace, args.run_id)
    if args.action == "follow":
        return _follow(workspace, row)
    if args.action == "again":
        started = requests.ask(workspace, {"kind": "again", "run": row["run"]})
        print_line(
            f"{row['run']} again: {plan_text(started['needed'], started['cached'], started['awaited'])}, run {started['run']}"
        )
        return 0
    _steer(workspace, row, args.action)
    return 0


def _steer(workspace: Workspace, row: Mapping[str, Any], action: str) -> None:
    run_id, before = row["run"], row["status"]
    run_dir = RunDir(workspace.runs / run_id)
    by_files = run_dir.state.exists() and before != runs.WAITING
    if by_files:
        _STEER[action](run_dir)
    else:
        requests.ask(workspace, {"kind": "runs", "action": action, "run": run_id})
    if before == _DONE[action]:
        print_line(f"{run_id} is {before} already")
        return
    print_line(f"{run_id}: {action} is asked for")
    if by_files and action == "resume" and before == RunStatus.CANCELLED:
        # A cancelled run is not looked at any more; whoever owns the workspace is to read its results again.
        with contextlib.suppress(EvaldeskError):
            requests.ask(workspace, {"kind": "settle"})


def _follow(workspace: Workspace, row: Mapping[str, Any]) -> int:
    lines = PlainLines()
    run_dir = RunDir(workspace.runs / row["run"])
    if run_dir.state.exists() and row["status"] != runs.WAITING:
        for state in follow(run_dir, 0.5):
            lines.show(state_text(state), state)
        return 0 if observed_state(run_dir).status == "done" else 1
    while True:
        lines.show(_row_text(row))
        if row["status"] not in runs.ACTIVE:
            return 0 if row["status"] == "done" else 1
        time.sleep(1.0)
        row = _find(workspace, row["run"])


def _find(workspace: Workspace, beginning: str) -> dict[str, Any]:
    found = [row for row in _rows(workspace) if row["run"].startswith(beginning)]
    exact = [row for row in found if row["run"] == beginning]
    if len(exact or found) != 1:
        raise EvaldeskError(
            f"{'several runs begin' if found else 'no run begins'} with {beginning!r}",
            where=str(workspace.path),
            remedy="evaldesk runs lists them.",
        )
    return (exact or found)[0]


def _rows(workspace: Workspace) -> list[dict[str, Any]]:
    """The runs that the store knows, newest first, with the live states of their folders; the folders alone where it
    cannot be asked."""
    try:
        stored = requests.ask(workspace, {"kind": "runs"}, patience_s=_PATIENCE_S)["runs"]
    except EvaldeskError:
        return list(_folders(workspace))
    live = {row["run"]: row for row in _folders(workspace)}
    rows = []
    for run in stored:
        found = live.pop(run["run"], {})
        counted = found.get("done", 0) + found.get("failed", 0)
        finished = run["needed"] if run["status"] == "done" else max(run["settled"], run["cached"] + counted)
        # Where its own part is done, or there is none, only the store knows how the run stands.
        settled = not found or run["status"] in ("done", "cancelled", runs.WAITING)
        waits = f"waits for {' and '.join(run['waits_for'])}" if run["waits_for"] else ""
        rows.append(
            found
            | {name: run[name] for name in ("run", "kind", "title", "needed", "cached", "awaited")}
            | {
                "status": run["status"] if settled else found["status"],
                "finished": min(finished, run["needed"]),
                "eta_s": found.get("eta_s"),
                "message": waits or found.get("message", ""),
            }
        )
    return rows + list(live.values())


def _folders(workspace: Workspace) -> Iterator[dict[str, Any]]:
    """What the folder of each run says of it, newest first."""
    if not workspace.runs.is_dir():
        return
    for path in sorted(workspace.runs.iterdir(), reverse=True):
        run_dir = RunDir(path)
        if not run_dir.state.exists():
            continue
        state = observed_state(run_dir)
        row = {"run": run_dir.run_id, "title": "", **asdict(state), "status": str(state.status)}
        row |= {"finished": state.done + state.failed, "needed": state.planned}
        row |= {"prefix_reuse": state.cached_tokens / state.prompt_tokens if state.prompt_tokens else None}
        row |= {"gpus": [asdict(gpu) for gpu in gpu_use(state)]}
        try:
            row["title"] = read_description(run_dir).title
        except EvaldeskError as error:  # this run's own fault; the others are listed all the same
            row["message"] = str(error)
        yield row


def _list(workspace: Workspace, *, as_json: bool) -> int:
    rows = _rows(workspace)
    if as_json:
        print_json({"runs": rows})
        return 0
    if not rows:
        print_line(f"no runs in {workspace.path}")
    for row in rows:
        print_line(_row_text(row))
        if used := _used_text(row):
            print_line(f"    {used}")
    return 0


def _row_text(row: Mapping[str, Any]) -> str:
    eta = f"  {row['eta_s']:.0f} s left" if row["eta_s"] is not None and row["status"] == "running" else ""
    return f"{row['run']}  {row['status']:<11} {row['finished']:>5}/{row['needed']:<5}{eta}  {row['title']}  {row['message']}".rstrip()


def _used_text(row: Mapping[str, Any]) -> str:
    """What a run has used; "" for one that has generated nothing here."""
    parts = []
    if row.get("prompt_tokens"):
        parts.append(tokens_text(row["prompt_tokens"], row["cached_tokens"], row["completion_tokens"]))
    if row.get("cost"):
        parts.append(f"cost {cost_text(row['cost'])}")
    parts += [gpu_text(GpuUse(**gpu)) for gpu in row.get("gpus", ())]
    return "; ".join(parts)
