"""evaldesk sweep: score prompts on a dataset, without a screen; resumable, and nothing is generated twice."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from engine import requests
from engine.errors import EvaldeskError
from engine.store.workspace import Workspace
from engine.sweeping.sweep import check_number
from tui.cli.follow_run import follow_run, left_alone_text
from tui.cli.output import print_json, print_line
from tui.presentation.ranking_view import RULES
from tui.presentation.sweep_view import order_text, ranking_row

DEFAULT_SEEDS = 5


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    from tui.cli.main import add_workspace_option

    parser = subparsers.add_parser("sweep", help="score prompts on a dataset", description=__doc__)
    parser.add_argument(
        "--prompts", nargs="+", type=Path, required=True, metavar="FILE",
        help="prompts: JSONL, CSV, JSON or Parquet (name, template), text files (one prompt each), or a folder of these",
    )  # fmt: skip
    parser.add_argument(
        "--dataset", type=Path, required=True, metavar="FILE", help="items, one a row, with a reference answer"
    )
    parser.add_argument(
        "--answer", default="", metavar="COLUMN", help="the column with the reference answer (found by itself)"
    )
    parser.add_argument(
        "--scorer",
        default="exact",
        choices=("exact", "number", "choice", "likelihood"),
        help="how a reply is read, or likelihood: which option letter the model finds likeliest (exact)",
    )
    parser.add_argument("--items", type=int, metavar="N", help="draw from N items of the dataset (all of them)")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N prompts")
    parser.add_argument("--seeds", type=int, default=DEFAULT_SEEDS, metavar="N", help="seeds 1 to N (5)")
    parser.add_argument(
        "--k", default="", metavar="K,K", help="subset sizes (50,100,200 where there are so many items)"
    )
    parser.add_argument("--max-tokens", type=int, metavar="N", help="room for a reply (32; 512 for numbers)")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="of decoding (0, greedy)")
    parser.add_argument(
        "--repeats",
        type=int,
        metavar="R",
        help="ask each item so often (1); more need a temperature, and show the flip rate",
    )
    parser.add_argument("--top", type=int, default=3, metavar="M", help="size of the top set that is compared (3)")
    parser.add_argument("--z", type=float, default=1.0, help="how strongly LCB punishes a spread over conditions (1)")
    parser.add_argument("--model", default="", help="a model that evaldesk models lists (the embedded one by default)")
    parser.add_argument("--dry-run", action="store_true", help="say what would be generated, start nothing")
    parser.add_argument("--no-follow", action="store_true", help="start the run and leave it to the background")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_workspace_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 when every cell has an outcome, 1 when the run did not finish or requests failed."""
    if args.top < 1 or not 0.0 <= args.z < math.inf:
        raise EvaldeskError("a sweep takes a top set of at least one, and a z from 0 on")
    for name in ("items", "limit", "seeds", "max_tokens", "repeats"):
        if getattr(args, name) is not None:
            check_number(name, getattr(args, name), f"--{name.replace('_', '-')}")
    workspace = Workspace(args.workspace)
    body = {
        "kind": "sweep", "prompts": [str(path.absolute()) for path in args.prompts], "dataset": str(args.dataset.absolute()),
        "answer": args.answer, "scorer": args.scorer, "items": args.items, "limit": args.limit,
        "seeds": list(range(1, args.seeds + 1)), "ks": numbers(args.k), "max_tokens": args.max_tokens, "model": args.model,
        "temperature": args.temperature, "repeats": args.repeats, "dry_run": args.dry_run,
    }  # fmt: skip
    planned = requests.ask(workspace, body, create=True)
    if not args.json:
        print_line(order_text(planned))
    if args.dry_run or args.no_follow:
        if args.json:
            print_json(planned)
        elif planned["run"]:
            print_line(left_alone_text(planned))
        return 0
    question = {"kind": "ranking", "run": planned["run"], "top": args.top, "z": args.z}
    result = follow_run(workspace, planned["run"], question, quiet=args.json)
    if args.json:
        print_json(result)
    else:
        _print(result)
    return 0 if result["complete"] and not any(prompt["failed"] for prompt in result["prompts"]) else 1


def numbers(text: str) -> list[int]:
    """Whole numbers out of ``50,100``; raises EvaldeskError for anything else."""
    try:
        return [int(part) for part in text.replace(" ", "").split(",") if part]
    except ValueError:
        raise EvaldeskError(
            f"{text!r} is no list of whole numbers", remedy="Write them like this: 50,100,200."
        ) from None


def _print(result: dict[str, Any]) -> None:
    if result["advice"]:
        print_line(result["advice"])
    if not result["complete"]:
        print_line(
            f"run {result['run']} is {result['status']}, {result['needed'] - result['done']} requests are pending"
        )
    width = max((len(prompt["name"]) for prompt in result["prompts"]), default=0)
    for prompt in result["prompts"]:
        print_line(ranking_row(prompt, min(width, 40)))
    for rule, winners in (result["selection"]["winners"] or {}).items():
        print_line(f"  {RULES[rule]} chooses {', '.join(winners or ()) or 'nothing'}")
