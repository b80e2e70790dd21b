"""The command ``evaldesk``: opens the app, or does one thing without a screen.

Exit codes: 0 done, 1 a finding (a gate not reached, a run that failed), 2 wrong use or input.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import importlib
import importlib.metadata
import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from engine.errors import EvaldeskError
from engine.store.workspace import DEFAULT_DIRECTORY
from tui.widgets.literal import visible

COMMANDS = (
    "demo", "import", "criterion", "seal", "judge", "sweep", "runs", "audit", "rank", "coverage", "snapshot", "models", "doctor",
)  # fmt: skip
_INSTEAD = {
    "status": "runs", "run": "runs", "pause": "runs", "resume": "runs", "cancel": "runs",
    "measure": "judge", "export": "snapshot", "help": "--help", "version": "--version",
}  # fmt: skip
"""Words that people try, and the command that does it."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What an output file says that takes no more; files of evaldesk's own are named by their errors."""
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
        code = _dispatch(arguments)
        # What the output refuses is to be told here, not by the interpreter at its end.
        sys.stdout.flush()
        return code
    except EvaldeskError as error:
        if debug:
            raise
        print(f"evaldesk: {visible(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("evaldesk: interrupted; runs go on in the background (evaldesk runs)", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Who reads has seen enough.
        _drop_output()
        return 0
    except Exception as error:
        if debug:
            raise
        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            _drop_output()
            print(f"evaldesk: the output cannot be written: {error.strerror or error}", file=sys.stderr)
            return 2
        print(
            f"evaldesk: unexpected {type(error).__name__}: {visible(str(error))}\n{_log_traceback()}", file=sys.stderr
        )
        return 2


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
    parser.add_argument("directory", nargs="?", metavar="DIR", help=f"workspace, ./{DEFAULT_DIRECTORY} by default")
    add_workspace_option(parser)
    parsed = parser.parse_args(arguments)
    if parsed.directory is None:
        return open_app(parsed.workspace)
    _check_directory(parsed.directory)
    return open_app(Path(parsed.directory))


def _check_directory(name: str) -> None:
    """Raise EvaldeskError for a file, and for a mistyped command: neither is meant as a workspace."""
    path = Path(name)
    if path.is_dir():
        return
    if path.exists():
        raise EvaldeskError(
            "this is a file, not a workspace directory", where=name, kept="Nothing was changed.",
            remedy=f"Bring it into a workspace with: evaldesk import {shlex.quote(name)}",
        )  # fmt: skip
    if not name or path.is_absolute() or os.sep in name:
        return
    meant = _INSTEAD.get(name.lower(), name)
    close = [meant] if meant in COMMANDS else difflib.get_close_matches(meant.lower(), [*COMMANDS, *_INSTEAD], 1, 0.7)
    if close:
        command = _INSTEAD.get(close[0], close[0])
        raise EvaldeskError(
            f"there is no command {name!r}", kept="Nothing was changed.",
            remedy=f"Did you mean: evaldesk {command}? To make a workspace of that name: evaldesk ./{shlex.quote(name)}",
        )  # fmt: skip


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
