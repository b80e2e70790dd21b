"""evaldesk demo: a sample workspace, ready to press keys in."""

from __future__ import annotations

import argparse
from pathlib import Path

DEMO_DIRECTORY = "evaldesk-demo.d"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser("demo", help="make a sample workspace and open it", description=__doc__)
    parser.add_argument(
        "--workspace",
        type=Path,
        default=Path(DEMO_DIRECTORY),
        metavar="DIR",
        help=f"where to make it (./{DEMO_DIRECTORY})",
    )
    parser.add_argument("--no-open", action="store_true", help="make the workspace without opening the app")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Make the workspace where it is missing, then open the app on the first case that is to be labelled."""
    if args.no_open:
        from engine import demo
        from engine.store.store import Store
        from engine.store.workspace import Workspace

        with Store(Workspace(args.workspace), program="evaldesk demo") as store:
            demo.fill(store)
        print(f"The sample workspace is in {args.workspace}. Open it with: evaldesk {args.workspace}")
        return 0
    from tui.cli.main import open_app

    fresh = not (args.workspace / "evaldesk.duckdb").exists()
    return open_app(args.workspace, is_demo=True, start="label" if fresh else "")
