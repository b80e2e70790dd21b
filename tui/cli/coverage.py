"""evaldesk coverage: traces counted for each combination of dimensions, what was never tested, and requests to write for it."""

from __future__ import annotations

import argparse
import sys

from engine import coverage, requests
from engine.coverage import FORMATS, Grid
from engine.errors import EvaldeskError
from engine.judging.dimension import RULE_FORM
from engine.store.workspace import Workspace
from tui.cli.output import print_json, print_line
from tui.presentation.coverage_view import grid_text, value_name


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    from tui.cli.main import add_workspace_option

    parser = subparsers.add_parser(
        "coverage", help="which combinations of dimensions were tested, and which fail", description=__doc__
    )
    parser.add_argument("--rows", default="", metavar="NAME", help="dimension of the rows (the first)")
    parser.add_argument("--columns", default="", metavar="NAME", help="dimension of the columns (the next)")
    parser.add_argument("--tabs", default="", metavar="NAME", help="a third dimension: one grid for each of its values")
    parser.add_argument("--criterion", default="", help="whose labels say what fails (the one worked on last)")
    parser.add_argument("--failing", action="store_true", help="failures of the labelled traces in place of counts")
    parser.add_argument(
        "--dimension",
        action="append",
        default=[],
        metavar="NAME[=FIELD]",
        help="make a metadata field a dimension; may be repeated",
    )
    parser.add_argument(
        "--rule",
        action="append",
        default=[],
        metavar="NAME: RULE",
        help=f"fill a dimension by a rule: {RULE_FORM}; may be repeated",
    )
    parser.add_argument(
        "--empty", action="store_true", help="list the cells that were never tested, as requests to write"
    )
    parser.add_argument(
        "--fewer-than", type=int, default=1, metavar="N", help="with --empty: cells with fewer traces than N (1)"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object")
    for name in FORMATS:
        form.add_argument(f"--{name}", action="store_true", help=f"with --empty: the list as {_FORM_NAMES[name]}")
    add_workspace_option(parser)
    parser.set_defaults(run=run)


_FORM_NAMES = {"jsonl": "JSONL", "csv": "CSV", "md": "a Markdown table"}


def run(args: argparse.Namespace) -> int:
    """0 when done; with --empty 1 when there is such a cell."""
    form = next((name for name in FORMATS if getattr(args, name)), "")
    if form and not args.empty:
        raise EvaldeskError(f"--{form} is a form of the list of empty cells", remedy=f"Say --empty --{form}.")
    if args.fewer_than < 1:
        raise EvaldeskError(f"no cell has fewer than {args.fewer_than} traces", remedy="Give --fewer-than 1 or more.")
    body = {
        "kind": "coverage", "rows": args.rows, "columns": args.columns, "tabs": args.tabs, "criterion": args.criterion,
        "dimensions": args.dimension, "rules": args.rule,
    }  # fmt: skip
    result = requests.ask(Workspace(args.workspace), body)
    grid = Grid.from_json(result)
    thin = grid.thin(args.fewer_than)
    if args.json:
        cells = [{"values": list(key), "traces": counts.traces} for key, counts in thin]
        print_json(
            {"dimensions": result["dimensions"], "fewer_than": args.fewer_than, "cells": cells}
            if args.empty
            else result
        )
    elif form:
        # As it is, for a file: an editor or a spreadsheet reads it, not a terminal.
        text = coverage.work_list(grid, form, args.fewer_than)
        _write(text)
    elif args.empty:
        for key, counts in thin:
            has = f"  ({counts.traces})" if args.fewer_than > 1 else ""
            print_line("  ".join(value_name(value) for value in key) + has)
        less = "no trace" if args.fewer_than == 1 else f"fewer than {args.fewer_than} traces"
        print_line(f"{len(thin):,} of {grid.combinations:,} cells with {less}: {' × '.join(d.name for d in grid.by)}")
    else:
        for text in grid_text(grid, failing=args.failing):
            print_line(text)
    return 1 if args.empty and thin else 0


def _write(text: str) -> None:
    if sys.stdout.isatty():
        for shown in text.splitlines():
            print_line(shown)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
        sys.stdout.buffer.flush()
