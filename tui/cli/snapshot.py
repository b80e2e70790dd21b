"""evaldesk snapshot: a copy of the database that opens anywhere, written by whoever owns the workspace."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine import requests
from engine.store.workspace import Workspace
from tui.cli.output import print_line


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    from tui.cli.main import add_workspace_option

    parser = subparsers.add_parser("snapshot", help="write a copy of the database", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT.duckdb")
    add_workspace_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 when written."""
    result = requests.ask(Workspace(args.workspace), {"kind": "snapshot", "path": str(args.out.absolute())})
    print_line(f"written: {result['path']}")
    return 0
