"""What works here and what does not: backends, models, terminal, disk, and what could end a run behind one's back."""

from __future__ import annotations

import importlib.metadata
import locale
import os
import platform
import re
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.backends.availability import check_backends
from engine.errors import EvaldeskError
from engine.models.registry import GET_REMEDY, find_models, models_home
from engine.models.servers import ServerModel
from engine.network_folders import network_file_system

LOW_DISK_BYTES = 2**30
_LIBRARIES = ("textual", "rich", "duckdb", "numpy", "scipy")
_LOGIND = (Path("/etc/systemd/logind.conf"), Path("/etc/systemd/logind.conf.d"), Path("/run/systemd/logind.conf.d"))
_SYSTEMD = Path("/run/systemd/system")
_KILLS = re.compile(r"^\s*KillUserProcesses\s*=\s*(\S+)", re.MULTILINE)
_TRUE = {"yes", "true", "on", "1"}


def diagnose() -> dict[str, Any]:
    """Everything that was checked, fit for JSON, with ``findings``: one line for each thing to do something about.

    ``backends`` is {name: {can_run, reason, version}}. Takes about a second.
    """
    findings: list[str] = []
    backends = {name: asdict(state) for name, state in check_backends().items()}
    if not any(state["can_run"] for state in backends.values()):
        findings.append(f"No backend can run here. llamacpp: {backends['llamacpp']['reason']}.")
    return {
        "evaldesk": _version("evaldesk"),
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "platform": platform.platform(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "backends": backends,
        "models": _models(findings),
        "terminal": _terminal(findings),
        "state": _state(findings),
        "processes": _processes(findings),
        "findings": findings,
    }


def _models(findings: list[str]) -> dict[str, Any]:
    listed: list[dict[str, Any]] = []
    try:
        found = find_models()
    except EvaldeskError as error:
        findings.append(str(error))
        found = []
    for model in found:
        entry = {"name": model.name, "backend": model.backend, "path": str(model.path), "size": model.size}
        try:
            problem = model.problem if isinstance(model, ServerModel) else ""
            entry |= {"fingerprint": model.fingerprint.short, "problem": problem}
            if problem:
                findings.append(f"The server {model.name} cannot be used: {problem}.")
        except EvaldeskError as error:
            entry |= {"fingerprint": None, "problem": str(error)}
            findings.append(f"A model cannot be used: {error}")
        listed.append(entry)
    if not found:
        findings.append(f"No model was found. {GET_REMEDY}.")
    return {"folder": str(models_home()), "found": listed}


def _terminal(findings: list[str]) -> dict[str, Any]:
    kind = os.environ.get("TERM", "")
    encoding = locale.getpreferredencoding(False)
    utf8 = encoding.lower().replace("-", "") == "utf8"
    tty = sys.stdin.isatty() and sys.stdout.isatty()
    columns, lines = shutil.get_terminal_size()
    if tty and kind in ("", "dumb"):
        findings.append(f"TERM is {kind or 'not set'}: the app cannot draw. Set it, for example TERM=xterm-256color.")
    if not utf8:
        findings.append(f"The locale's encoding is {encoding}, not UTF-8: set LANG to C.UTF-8 or another UTF-8 locale.")
    if tty and (columns < 80 or lines < 24):
        findings.append(f"The terminal is {columns} x {lines}; the app wants at least 80 x 24.")
    return {
        "term": kind,
        "tty": tty,
        "encoding": encoding,
        "utf8": utf8,
        "colours": _colours(kind),
        "columns": columns,
        "lines": lines,
    }


def _colours(kind: str) -> str:
    if "NO_COLOR" in os.environ:
        return "none"
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") or kind.endswith("-direct"):
        return "truecolor"
    if "256" in kind:
        return "256"
    return "none" if kind in ("", "dumb") else "16"


def _state(findings: list[str]) -> dict[str, Any]:
    from engine.runs.queue import state_home

    path, writable, free = "", False, None
    try:
        home = state_home()
        path = str(home)
        free = shutil.disk_usage(home).free
        with tempfile.NamedTemporaryFile(dir=home):
            writable = True
    except EvaldeskError as error:
        findings.append(str(error))
    except OSError as error:
        findings.append(f"The state folder cannot be written ({error.strerror or error}): {path}")
    try:
        here = shutil.disk_usage(Path.cwd()).free
    except OSError:
        here = None
    for place, number in (("with the state folder", free), ("of this directory", here)):
        if number is not None and number < LOW_DISK_BYTES:
            findings.append(f"Only {number // 2**20} MB are free on the disk {place}.")
            break
    network = {"state": network_file_system(Path(path)) if path else "", "here": network_file_system(Path.cwd())}
    for place, kind in (("The state folder", network["state"]), ("This directory", network["here"])):
        if kind:
            findings.append(
                f"{place} lies on a network file system ({kind}), where locks may not hold and a database may be damaged: "
                f"{'set EVALDESK_STATE_DIR to a local folder' if place == 'The state folder' else 'keep workspaces on a local disk'}."
            )
    return {"path": path, "writable": writable, "free_bytes": free, "free_bytes_here": here, "network": network}


def _processes(findings: list[str]) -> dict[str, Any]:
    kills = _kills_user_processes()
    if kills:
        findings.append(
            "systemd ends all processes of a user at logout here (KillUserProcesses=yes): runs would stop with the SSH "
            "session. loginctl enable-linger keeps them."
        )
    return {"cores": os.cpu_count(), "kill_user_processes": kills}


def _kills_user_processes() -> bool | None:
    """What the readable configuration of logind says, later files first to last; None where systemd does not run."""
    if not _SYSTEMD.is_dir():
        return None
    files = [_LOGIND[0], *(file for folder in _LOGIND[1:] if folder.is_dir() for file in sorted(folder.glob("*.conf")))]
    kills = False
    for file in files:
        try:
            said = _KILLS.findall(file.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue
        if said:
            kills = said[-1].lower() in _TRUE
    return kills


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
