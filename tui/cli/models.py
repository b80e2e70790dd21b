"""evaldesk models: the models found on this machine; models get smollm2 brings the small embedded one."""

from __future__ import annotations

import argparse
import sys

from engine.models.get import get_smollm2
from engine.models.registry import find_models, models_home
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
    found = find_models()
    if args.json:
        models = [
            {
                "name": model.name,
                "backend": model.backend,
                "path": str(model.path),
                "size": model.size,
                "source": model.source,
                "fingerprint": model.fingerprint.short,
                "details": dict(model.fingerprint.details),
            }
            for model in found
        ]
        print_json({"models": models, "folder": str(models_home())})
        return 0
    for model in found:
        quantisation = model.fingerprint.details.get("quantisation", "")
        print_line(f"{model.name}  {quantisation}  {model.size / 2**20:.0f} MB  {model.backend}  {model.path}")
    if not found:
        print_line("no models; get the small embedded one with: evaldesk models get smollm2")
    print_line(f"models folder: {models_home()}")
    return 0


def _get(args: argparse.Namespace) -> int:
    if not args.json:
        get_smollm2(print_line)
        return 0
    path = get_smollm2(lambda line: print(visible(line), file=sys.stderr))
    print_json({"model": "smollm2", "path": str(path)})
    return 0
