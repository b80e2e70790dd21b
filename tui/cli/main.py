"""The command ``evaldesk``: opens the app, or does one thing without a screen.

Exit codes: 0 done, 1 a finding (a gate not reached, a run that failed), 2 wrong use or input.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from engine.errors import EvaldeskError
from engine.store.workspace import DEFAULT_DIRECTORY
from tui.widgets.literal import visible

COMMANDS = ("demo", "import", "judge", "sweep", "runs", "audit", "rank", "seal", "snapshot", "models", "doctor")
_MODULES = {"import": "import_file"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the command; exits with the documented code."""
    os.umask(0o077)  # traces and critiques are private: also what DuckDB writes beside its file is for the owner only
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Carry out one command line; returns the exit code and shows no traceback unless --debug asks for it."""
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    try:
        return _dispatch(arguments)
    except EvaldeskError as error:
        if debug:
            raise
        print(f"evaldesk: {visible(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("evaldesk: interrupted; runs go on in the background (evaldesk runs)", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if debug:
            raise
        print(
            f"evaldesk: unexpected {type(error).__name__}: {visible(str(error))}\n{_log_traceback()}", file=sys.stderr
        )
        return 2


def _log_traceback() -> str:
    """Write where it happened to the log file, never to the user; returns where to look."""
    from engine.runs.queue import state_home

    try:
        path = state_home() / "evaldesk.log"
        with path.open("a", encoding="utf-8") as log:
            log.write(traceback.format_exc())
    except (OSError, EvaldeskError):
        return "Run it again with --debug to see where."
    return f"Where it happened stands in {path}; --debug shows it."


def _dispatch(arguments: list[str]) -> int:
    first = next((argument for argument in arguments if not argument.startswith("-")), "")
    if first not in COMMANDS and not {"-h", "--help", "--version"} & set(arguments):
        return _open(arguments)
    parser = argparse.ArgumentParser(
        prog="evaldesk",
        description="Label traces, build a judge, measure it on sealed human labels. Without a command: open the app on DIR.",
        epilog=f"evaldesk [DIR] opens the app on a workspace (./{DEFAULT_DIRECTORY} by default). --debug shows tracebacks.",
    )
    parser.add_argument("--version", action="version", version=f"evaldesk {importlib.metadata.version('evaldesk')}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in COMMANDS:
        # One module a command, imported only when it is the one (or for the list of all).
        if first in ("", name) or first not in COMMANDS:
            importlib.import_module(f"tui.cli.{_MODULES.get(name, name)}").add_parser(subparsers)
    parsed = parser.parse_args(arguments)
    return int(parsed.run(parsed))


def _open(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="evaldesk", description="Open the app on a workspace.")
    parser.add_argument(
        "directory", nargs="?", type=Path, metavar="DIR", help=f"workspace, ./{DEFAULT_DIRECTORY} by default"
    )
    add_workspace_option(parser)
    parsed = parser.parse_args(arguments)
    return open_app(parsed.directory or parsed.workspace)


def open_app(workspace: Path, *, is_demo: bool = False, start: str = "") -> int:
    """Open the app; Textual is imported only here."""
    from tui import terminal

    terminal.check()
    terminal.prepare_environment()
    from tui.app import run as run_app

    return run_app(workspace, is_demo=is_demo, start=start)


def add_workspace_option(parser: argparse.ArgumentParser) -> None:
    """--workspace DIR, the same for every command that works on one."""
    parser.add_argument(
        "--workspace",
        type=Path,
        default=Path(DEFAULT_DIRECTORY),
        metavar="DIR",
        help=f"workspace directory (./{DEFAULT_DIRECTORY})",
    )
