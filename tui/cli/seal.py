"""evaldesk seal: draw sealed cases at random from the traces that lie in no pile, before anything is labelled."""

from __future__ import annotations

import argparse

from engine import requests
from engine.store.workspace import Workspace
from tui.cli.output import print_json, print_line


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    from tui.cli.main import add_workspace_option

    parser = subparsers.add_parser("seal", help="draw sealed cases at random", description=__doc__)
    parser.add_argument("count", type=int, metavar="COUNT", help="how many cases")
    parser.add_argument("--criterion", default="")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw (1)")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_workspace_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 when drawn, 1 when there were fewer than wanted."""
    body = {"kind": "seal", "criterion": args.criterion, "count": args.count, "seed": args.seed}
    result = requests.ask(Workspace(args.workspace), body)
    if args.json:
        print_json(result)
    else:
        print_line(f"sealed pile of {result['criterion']}: {result['sentence']}")
    return 1 if result["drawn"] < result["wanted"] else 0
