"""evaldesk doctor: what works here, what does not and why."""

from __future__ import annotations

import argparse
from typing import Any

from engine.doctor import diagnose
from tui.cli.output import print_json, print_line


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser("doctor", help="what works here and what does not", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """0 when at least one backend can run, else 1."""
    found = diagnose()
    if args.json:
        print_json(found)
    else:
        _print(found)
    return 0 if any(state["can_run"] for state in found["backends"].values()) else 1


def _print(found: dict[str, Any]) -> None:
    libraries = ", ".join(f"{name} {version or 'missing'}" for name, version in found["libraries"].items())
    print_line(f"evaldesk {found['evaldesk']}, Python {found['python']['version']}, {libraries}")
    print_line("backends")
    for name, state in found["backends"].items():
        print_line(
            f"  {'yes' if state['can_run'] else 'no ':3} {name} {state['version'] or ''}".rstrip()
            + f": {state['reason']}"
        )
    print_line("models")
    for model in found["models"]["found"]:
        size = f"{model['size'] / 2**20:.0f} MB" if model["size"] else "server"
        print_line(f"  {model['name']} ({size}): {model['problem'] or model['path']}")
    print_line(f"  folder: {found['models']['folder']}")
    terminal = found["terminal"]
    print_line(
        f"terminal  TERM={terminal['term']}, {'a terminal' if terminal['tty'] else 'not a terminal'}, "
        f"{terminal['encoding']}, colours: {terminal['colours']}, {terminal['columns']} x {terminal['lines']}"
    )
    state = found["state"]
    free = "unknown" if state["free_bytes"] is None else f"{state['free_bytes'] / 2**30:.1f} GB"
    print_line(f"state     {state['path']} ({'writable' if state['writable'] else 'not writable'}, {free} free)")
    print_line()
    for finding in found["findings"] or ["nothing to do"]:
        print_line(f"- {finding}")
