"""evaldesk criterion: write a criterion, or the next version of one, without a screen."""

from __future__ import annotations

import argparse

from engine import requests
from engine.store.workspace import Workspace
from tui.cli.output import print_json, print_line


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    from tui.cli.main import add_workspace_option

    parser = subparsers.add_parser("criterion", help="write a criterion", description=__doc__)
    parser.add_argument("action", choices=("add",), help="add one; of an ID that is there, the next version")
    parser.add_argument("criterion_id", metavar="ID", help="its short name, as --criterion takes it")
    parser.add_argument("--question", required=True, help="one fixed question about the response")
    parser.add_argument("--pass-when", required=True, metavar="TEXT", help="when an answer passes")
    parser.add_argument("--fail-when", required=True, metavar="TEXT", help="when it fails")
    parser.add_argument(
        "--edge-case", action="append", default=[], metavar="TEXT",
        help="an edge case as it was resolved, with its why; may be repeated",
    )  # fmt: skip
    parser.add_argument("--quote-required", action="store_true", help="the judge has to quote a passage of the context")
    parser.add_argument("--author", default="", help="the one person who decides")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_workspace_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 when the workspace holds it."""
    body = {
        "kind": "criterion", "criterion": args.criterion_id, "question": args.question, "pass_when": args.pass_when,
        "fail_when": args.fail_when, "edge_cases": args.edge_case, "quote_required": args.quote_required,
        "author": args.author,
    }  # fmt: skip
    result = requests.ask(Workspace(args.workspace), body, create=True)
    if args.json:
        print_json(result)
    else:
        state = "" if result["changed"] else " is here already, with the same content"
        print_line(f"criterion {result['criterion']}, version {result['version']}{state}")
    return 0
