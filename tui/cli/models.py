"""evaldesk models: the models found on this machine; models get smollm2 brings the small embedded one."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from engine.errors import EvaldeskError
from engine.models.get import get_smollm2
from engine.models.registry import FoundModel, find_models, models_home
from tui.cli.output import print_json, print_line
from tui.widgets.literal import visible


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser("models", help="list models, or get the embedded one", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run, action="list")
    actions = parser.add_subparsers(dest="action", metavar="get")
    get = actions.add_parser("get", help="fetch a model into the models folder")
    get.add_argument("model", choices=["smollm2"])
    # SUPPRESS: the default here must not undo a --json that stands before "get".
    get.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="one JSON object")


def run(args: argparse.Namespace) -> int:
    """0 when listed or fetched."""
    if args.action == "get":
        return _get(args)
    models = [_described(model) for model in find_models()]
    if args.json:
        print_json({"models": models, "folder": str(models_home())})
        return 0
    for model in models:
        facts = model["problem"] or f"{model['details'].get('quantisation', '')}  {model['size'] / 2**20:.0f} MB"
        print_line(f"{model['name']}  {facts}  {model['backend']}  {model['path']}")
    if not models:
        print_line("no models; get the small embedded one with: evaldesk models get smollm2")
    print_line(f"models folder: {models_home()}")
    return 0


def _described(model: FoundModel) -> dict[str, Any]:
    known = {
        "name": model.name,
        "backend": model.backend,
        "path": str(model.path),
        "size": model.size,
        "source": model.source,
    }
    try:
        found = model.fingerprint
    except EvaldeskError as error:
        # One damaged file must not hide the others.
        return {**known, "fingerprint": None, "details": {}, "problem": error.what}
    return {**known, "fingerprint": found.short, "details": dict(found.details), "problem": ""}


def _get(args: argparse.Namespace) -> int:
    if not args.json:
        get_smollm2(print_line)
        return 0
    path = get_smollm2(lambda line: print(visible(line), file=sys.stderr))
    print_json({"model": "smollm2", "path": str(path)})
    return 0
