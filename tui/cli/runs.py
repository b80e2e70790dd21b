"""evaldesk runs: the runs of a workspace; pause, resume or cancel one, or follow it."""

from __future__ import annotations

import argparse
import contextlib
from dataclasses import asdict
from typing import Any

from engine import requests
from engine.errors import EvaldeskError
from engine.runs import control
from engine.runs.following import follow
from engine.runs.protocol import RunDir, RunStatus
from engine.runs.states import observed_state, read_description
from engine.store.workspace import Workspace
from tui.cli.output import print_json, print_line

_DONE = {"pause": "paused", "resume": "resumed", "cancel": "cancelled", "follow": "followed"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    from tui.cli.main import add_workspace_option

    parser = subparsers.add_parser("runs", help="list runs; pause, resume, cancel or follow one", description=__doc__)
    parser.add_argument("action", nargs="?", choices=("pause", "resume", "cancel", "follow"))
    parser.add_argument(
        "run_id", nargs="?", metavar="ID", help="run id, or the beginning of it that no other run shares"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_workspace_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 done, 1 when a followed run did not finish. Works on the run's own files, whoever owns the workspace."""
    workspace = Workspace(args.workspace)
    if args.action is None:
        return _list(workspace, as_json=args.json)
    if args.run_id is None:
        raise EvaldeskError(f"which run is to be {_DONE[args.action]} is not said", remedy="evaldesk runs lists them.")
    run_dir = _find(workspace, args.run_id)
    if args.action == "follow":
        for state in follow(run_dir, 0.5):
            print_line(
                f"{state.status} {state.done + state.failed}/{state.planned}  {state.tokens_per_s:.0f} tok/s  {state.message}"
            )
        return 0 if observed_state(run_dir).status == "done" else 1
    before = observed_state(run_dir).status
    {"pause": control.pause, "resume": control.resume, "cancel": control.cancel}[args.action](run_dir)
    if before == _DONE[args.action]:
        print_line(f"{run_dir.run_id} is {before} already")
        return 0
    print_line(f"{run_dir.run_id}: {args.action} is asked for")
    if args.action == "resume" and before is RunStatus.CANCELLED:
        # A cancelled run is not looked at any more; whoever owns the workspace is to read its results again.
        with contextlib.suppress(EvaldeskError):
            requests.ask(workspace, {"kind": "settle"})
    return 0


def _find(workspace: Workspace, beginning: str) -> RunDir:
    found = [run_dir for run_dir in _all(workspace) if run_dir.run_id.startswith(beginning)]
    exact = [run_dir for run_dir in found if run_dir.run_id == beginning]
    if len(exact or found) != 1:
        raise EvaldeskError(
            f"{'several runs begin' if found else 'no run begins'} with {beginning!r}",
            where=str(workspace.runs),
            remedy="evaldesk runs lists them.",
        )
    return (exact or found)[0]


def _all(workspace: Workspace) -> list[RunDir]:
    if not workspace.runs.is_dir():
        return []
    return [RunDir(path) for path in sorted(workspace.runs.iterdir(), reverse=True) if (path / "state.json").exists()]


def _list(workspace: Workspace, *, as_json: bool) -> int:
    rows: list[dict[str, Any]] = []
    for run_dir in _all(workspace):
        state = observed_state(run_dir)
        row = {"run": run_dir.run_id, "title": "", **asdict(state), "status": str(state.status)}
        try:
            row["title"] = read_description(run_dir).title
        except EvaldeskError as error:  # this run's own fault; the others are listed all the same
            row["message"] = str(error)
        rows.append(row)
    if as_json:
        print_json({"runs": rows})
        return 0
    if not rows:
        print_line(f"no runs in {workspace.path}")
    for row in rows:
        eta = f"  {row['eta_s']:.0f} s left" if row["eta_s"] is not None and row["status"] == "running" else ""
        print_line(
            f"{row['run']}  {row['status']:<11} {row['done'] + row['failed']:>5}/{row['planned']:<5}{eta}  {row['title']}  {row['message']}".rstrip()
        )
    return 0
