"""evaldesk import: traces and labels from a CSV, JSONL, JSON or Parquet file into the workspace."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from engine import requests
from engine.importing.mapping import ORIGINS, parse_map_options
from engine.importing.reading import preview
from engine.store.labels import HOW_DRAWN
from engine.store.workspace import Workspace
from tui.cli.output import print_json, print_line

_SHOWN_REFUSALS = 20


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    from tui.cli.main import add_workspace_option

    parser = subparsers.add_parser("import", help="bring traces and labels in from a file", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument(
        "--as", dest="kind", choices=("traces", "labels"), help="what the file holds (found out by default)"
    )
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="FIELD=PATH",
        help="where a field stands: a column, a dotted path or a JSON Pointer; may be repeated",
    )
    parser.add_argument("--values", metavar="V=PASS,W=FAIL", help="how the label's values are to be read")
    parser.add_argument("--criterion", default="", help="which criterion the labels answer")
    parser.add_argument("--expert", default="", help="who gave the labels")
    parser.add_argument("--drawn", default="", choices=HOW_DRAWN, help="how the labelled cases were drawn")
    parser.add_argument(
        "--origin",
        default="",
        choices=ORIGINS,
        help="where the requests come from: real use (the default), or written for cells of the coverage grid; a column says it with --map origin=COLUMN",
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would come in, keep nothing")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_workspace_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 when every row came in, 1 when some were refused."""
    results = [_dry_run(args, path) if args.dry_run else _take_in(args, path) for path in args.files]
    if args.json:
        print_json(results[0] if len(results) == 1 else {"files": results})
    else:
        for path, result in zip(args.files, results, strict=True):
            _print(path, result, args.dry_run, criterion=args.criterion, drawn=args.drawn)
    return 1 if any(result["refused"] for result in results) else 0


def _dry_run(args: argparse.Namespace, path: Path) -> dict[str, Any]:
    mapping = parse_map_options(args.map) if args.map else None
    look = preview(path, mapping=mapping, kind=args.kind, values=args.values)
    return look.to_json() | {"labels": look.n_labels}


def _take_in(args: argparse.Namespace, path: Path) -> dict[str, Any]:
    body = {
        "kind": "import", "path": str(path.absolute()), "map": args.map, "as": args.kind, "values": args.values,
        "criterion": args.criterion, "expert": args.expert, "drawn": args.drawn, "origin": args.origin,
    }  # fmt: skip
    return requests.ask(Workspace(args.workspace), body, create=True)


def _print(path: Path, result: dict[str, Any], dry_run: bool, *, criterion: str, drawn: str) -> None:
    refused = result["refused"]
    if dry_run:
        print_line(
            f"{path}: {result['format']}, {result['encoding']}: {result['accepted']:,} {result['kind']} would come in, {len(refused):,} rows refused"
        )
        if result["labels"]:
            missing = [option for option, said in (("--criterion ID", criterion), ("--drawn HOW", drawn)) if not said]
            needs = f"; to import them, say {' and '.join(missing)}" if missing else ""
            print_line(f"  {result['labels']:,} of them with a label{needs}")
        for case in result["sample"][:1]:
            for name in ("request", "response", "label", "critique"):
                if case.get(name):
                    print_line(f"  {name}: {' '.join(str(case[name]).split())[:200]}")
    else:
        labels = f", {result['labels_added']:,} labels" if result["labels_added"] else ""
        same = (
            f", {result['same'] + result['labels_same']:,} were here already"
            if result["same"] + result["labels_same"]
            else ""
        )
        written = f" ({result['written']:,} written for the coverage grid)" if result.get("written") else ""
        print_line(f"{path}: {result['added']:,} traces added{written}{labels}{same}, {len(refused):,} rows refused")
    for refusal in refused[:_SHOWN_REFUSALS]:
        print_line(f"  row {refusal['row']}, {refusal['field']}: {refusal['reason']}")
    if len(refused) > _SHOWN_REFUSALS:
        print_line(f"  and {len(refused) - _SHOWN_REFUSALS:,} more (--json lists all)")
