"""evaldesk models: the models that can be used here; get the small embedded one, add or remove servers, set how a model runs."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from typing import Any

from engine.errors import EvaldeskError
from engine.models.get import get_smollm2
from engine.models.registry import FoundModel, find_models, models_home
from engine.models.server_address import server_address
from engine.models.servers import MAX_PARALLEL, ServerModel, add_server, remove_server, set_model
from engine.models.settings import ModelSettings, all_settings
from tui.cli.output import print_json, print_line
from tui.widgets.literal import visible

_OPTIONS = ("requests_per_minute", "tokens_per_minute", "price_in", "price_out", "timeout")
MAX_CONTEXT = 2**24


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser("models", help="list models, add servers, get the embedded one", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run, action="list")
    actions = parser.add_subparsers(dest="action", metavar="get|add|remove|set")
    get = actions.add_parser("get", help="fetch a model into the models folder")
    get.add_argument("model", choices=["smollm2"])
    add = actions.add_parser("add", help="register a model behind an OpenAI-compatible server")
    add.add_argument("name", help="what it is called here, as in --model NAME")
    add.add_argument("--url", required=True, help="base URL, for example http://127.0.0.1:8000/v1")
    add.add_argument("--model", required=True, help="what the server calls the model")
    add.add_argument(
        "--key-env", default="", metavar="VAR", help="environment variable (or keyring entry) that holds the key"
    )
    add.add_argument("--snapshot", default="", metavar="NAME", help="replies must come from exactly this model")
    _add_numbers(add, "how many requests at once (16)")
    add.add_argument("--requests-per-minute", type=_amount, metavar="N", help="stay below this rate")
    add.add_argument("--tokens-per-minute", type=_amount, metavar="N", help="stay below this rate, replies included")
    add.add_argument("--price-in", type=_amount, metavar="X", help="price of a million prompt tokens")
    add.add_argument("--price-out", type=_amount, metavar="X", help="price of a million reply tokens")
    add.add_argument("--timeout", type=_amount, metavar="S", help="seconds that a request may take (300)")
    remove = actions.add_parser("remove", help="forget a server")
    remove.add_argument("name")
    change = actions.add_parser("set", help="set how a model is run on this machine")
    change.add_argument("name")
    _add_numbers(
        change,
        "requests at once, 0 for the backend's choice; with llamacpp more than 1 means that replies repeat only nearly always",
    )
    change.add_argument(
        "--wait-gpu-memory",
        type=_amount,
        metavar="GIB",
        help="let a run wait until so much memory is free on the GPUs, rather than fail; 0 for no wait",
    )
    for action in (get, add, remove, change):
        # SUPPRESS: the default here must not undo a --json that stands before the action.
        action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="one JSON object")


def run(args: argparse.Namespace) -> int:
    """0 when done."""
    actions = {"get": _get, "add": _add, "remove": _remove, "set": _set, "list": _list}
    return actions[args.action or "list"](args)


def _list(args: argparse.Namespace) -> int:
    settings = all_settings()
    models = [_described(model, settings.get(model.name, ModelSettings())) for model in find_models()]
    if args.json:
        print_json({"models": models, "folder": str(models_home())})
        return 0
    for model in models:
        print_line(f"{model['name']}  {model['problem'] or _facts(model)}  {model['backend']}  {model['path']}")
    if not models:
        print_line("no models; get the small embedded one with: evaldesk models get smollm2")
    print_line(f"models folder: {models_home()}")
    return 0


def _facts(model: dict[str, Any]) -> str:
    if model["source"] == "server":
        return f"{model['details']['model']}  server"
    return f"{model['details'].get('quantisation', '')}  {model['size'] / 2**20:.0f} MB"


def _described(model: FoundModel | ServerModel, settings: ModelSettings) -> dict[str, Any]:
    known = {
        "name": model.name,
        "backend": model.backend,
        "path": str(model.path),
        "size": model.size,
        "source": model.source,
        "parallel": settings.parallel,
        "context_length": settings.context_length,
        "wait_gpu_memory": settings.wait_gpu_memory,
    }
    if isinstance(model, ServerModel):
        known |= {"key_env": model.address.key_env, "options": dict(model.options)}
    try:
        found = model.fingerprint
    except EvaldeskError as error:
        # One damaged file must not hide the others.
        return {**known, "fingerprint": None, "details": {}, "problem": error.what}
    problem = model.problem if isinstance(model, ServerModel) else ""
    return {**known, "fingerprint": found.short, "details": dict(found.details), "problem": problem}


def _get(args: argparse.Namespace) -> int:
    if not args.json:
        get_smollm2(print_line)
        return 0
    path = get_smollm2(lambda line: print(visible(line), file=sys.stderr))
    print_json({"model": "smollm2", "path": str(path)})
    return 0


def _add(args: argparse.Namespace) -> int:
    options = {name: getattr(args, name) for name in _OPTIONS if getattr(args, name) is not None}
    address = server_address(args.url, args.model, args.key_env, args.snapshot)
    settings = ModelSettings(args.context or 0, args.parallel or 0, options, address)
    warning = add_server(args.name, settings)
    model = _described(ServerModel(args.name, address, options), settings)
    if args.json:
        print_json({"added": model, "warning": warning})
        return 0
    print_line(f"{args.name} is {address.model} at {address.url}; try it with --model {args.name}")
    for line in (warning, model["problem"]):
        if line:
            print_line(f"  but: {line}")
    return 0


def _remove(args: argparse.Namespace) -> int:
    name = remove_server(args.name)
    if args.json:
        print_json({"removed": name})
    else:
        print_line(f"{name} is forgotten; what it replied stays in the workspaces")
    return 0


def _set(args: argparse.Namespace) -> int:
    if args.parallel is None and args.context is None and args.wait_gpu_memory is None:
        raise EvaldeskError(
            "it is not said what to set", kept="Nothing was changed.",
            remedy="Give --parallel, --context or --wait-gpu-memory.",
        )  # fmt: skip
    settings = set_model(
        args.name, parallel=args.parallel, context_length=args.context, wait_gpu_memory=args.wait_gpu_memory
    )
    said = {"parallel": settings.parallel, "context_length": settings.context_length}
    if args.json:
        print_json({"model": args.name, **said, "wait_gpu_memory": settings.wait_gpu_memory})
        return 0
    facts = [f"{name} {number or 'chosen by the backend'}" for name, number in said.items()]
    if settings.wait_gpu_memory:
        facts.append(f"loaded once {settings.wait_gpu_memory:g} GiB are free on the GPUs")
    print_line(f"{args.name}: {', '.join(facts)}")
    return 0


def _add_numbers(parser: argparse.ArgumentParser, parallel_help: str) -> None:
    parser.add_argument("--parallel", type=_count(MAX_PARALLEL), metavar="N", help=parallel_help)
    parser.add_argument(
        "--context",
        type=_count(MAX_CONTEXT),
        metavar="N",
        help="tokens that a request may use, 0 for the backend's choice",
    )


def _count(most: int) -> Callable[[str], int]:
    def count(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text} is no whole number from 0 to {most}")
        return int(text)

    return count


def _amount(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not 0 <= amount < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no number from 0 on")
    return amount
