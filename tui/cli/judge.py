"""evaldesk judge: measure a judge on the sealed pile, without a screen; resumable, and nothing is generated twice."""

from __future__ import annotations

import argparse
from typing import Any

from engine import requests
from engine.store.workspace import Workspace
from tui.cli.follow_run import follow_run, left_alone_text
from tui.cli.output import print_json, print_line
from tui.presentation.run_view import estimate_text, plan_text


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    from tui.cli.main import add_workspace_option

    parser = subparsers.add_parser("judge", help="measure a judge on the sealed pile", description=__doc__)
    parser.add_argument("--criterion", default="", help="which criterion (not needed where only one has labels)")
    parser.add_argument(
        "--version",
        type=int,
        metavar="N",
        help="judge version (the newest by default; a first one is built where there is none)",
    )
    parser.add_argument(
        "--new", action="store_true", help="build a new version from the criterion and two critiques of the build pile"
    )
    parser.add_argument("--model", default="", help="a model that evaldesk models lists (the embedded one by default)")
    parser.add_argument("--dry-run", action="store_true", help="say what would be generated, start nothing")
    parser.add_argument("--no-follow", action="store_true", help="start the run and leave it to the background")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_workspace_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 when measured, 1 when the gate is not reached or the run did not finish."""
    workspace = Workspace(args.workspace)
    body = {
        "kind": "judge", "criterion": args.criterion, "version": args.version, "new": args.new, "model": args.model,
        "dry_run": args.dry_run,
    }  # fmt: skip
    planned = requests.ask(workspace, body)
    if not args.json:
        plan = plan_text(planned["needed"], planned["cached"], planned["awaited"]) + estimate_text(planned)
        print_line(f"judge v{planned['judge']} for {planned['criterion']}: {plan}")
    if args.dry_run or args.no_follow:
        if args.json:
            print_json(planned)
        elif planned["run"]:
            print_line(left_alone_text(planned))
        return 0
    result = follow_run(workspace, planned["run"], {"kind": "audit", "run": planned["run"]}, quiet=args.json)
    if args.json:
        print_json(result)
    else:
        _print(result)
    return 0 if result["pending"] == 0 and result["gate"]["reached"] else 1


def _print(result: dict[str, Any]) -> None:
    print_line(result["sentence"])
    if result["pending"]:
        print_line(f"run {result['run']} is {result['status']}, {result['pending']} cases are pending")
    table = result["confusion"]
    print_line(
        f"  expert FAIL: judge FAIL {table['tp']}, judge PASS {table['fn']}, no verdict {table['no_verdict_fail']}"
    )
    print_line(
        f"  expert PASS: judge FAIL {table['fp']}, judge PASS {table['tn']}, no verdict {table['no_verdict_pass']}"
    )
    for name in ("tpr", "tnr"):
        rate = result[name]
        if rate["n"]:
            print_line(
                f"  {name.upper()} {rate['k']} of {rate['n']}  {100 * rate['value']:.0f} %  [{100 * rate['low']:.0f}, {100 * rate['high']:.0f}]"
            )
    print_line(f"  positive = {result['positive']}")
    if result["disagreements"]:
        print_line(f"  {len(result['disagreements'])} disagreements: open the Audit screen (evaldesk, then 3)")
