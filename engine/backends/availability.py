"""Which backends can run here, and if not, why and what to do; without loading any of their libraries."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BACKENDS = ("exllamav2", "exllamav3", "llamacpp", "openai_api")
IMPORT_LIMIT_S = 60.0

_NOT_YET = "its adapter is not part of this version of evaldesk yet"
_MEANWHILE = "use llamacpp meanwhile"


@dataclass(frozen=True)
class Availability:
    """``reason`` is one line: why not and what to do, or on what it runs. ``version`` is the installed library's."""

    can_run: bool
    reason: str
    version: str | None


def check_backends() -> dict[str, Availability]:
    """All backends by name, in a fixed order. Takes about a second: one library is tried in a process of its own."""
    return {name: check_backend(name) for name in BACKENDS}


def check_backend(name: str) -> Availability:
    """One backend of BACKENDS; raises KeyError for another name."""
    checks: dict[str, Callable[[], Availability]] = {
        "exllamav2": lambda: _exllama("exllamav2"),
        "exllamav3": lambda: _exllama("exllamav3"),
        "llamacpp": _llamacpp,
        "openai_api": _openai_api,
    }
    return checks[name]()


def _llamacpp() -> Availability:
    version = _version("xllamacpp")
    if importlib.util.find_spec("xllamacpp") is None:
        return Availability(False, "the package xllamacpp is not installed; install evaldesk[llamacpp]", None)
    try:
        # In a process of its own: a wheel for another processor ends with SIGILL, not with an exception.
        tried = subprocess.run(
            [sys.executable, "-P", "-c", "import xllamacpp; xllamacpp.Server"],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=IMPORT_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Availability(False, f"the package xllamacpp could not be tried ({error}); reinstall it", version)
    if tried.returncode == 0:
        return Availability(True, "runs in-process; no server is needed", version)
    lines = tried.stderr.strip().splitlines()
    why = lines[-1][:300] if lines and tried.returncode > 0 else f"the process ended with code {tried.returncode}"
    return Availability(False, f"the package xllamacpp does not load here: {why}; reinstall it", version)


def _openai_api() -> Availability:
    version = _version("aiohttp")
    if importlib.util.find_spec("aiohttp") is None:
        return Availability(False, "the package aiohttp is not installed; install evaldesk[openai]", None)
    return Availability(True, "for servers that evaldesk models add registers; none is contacted before a run", version)


def _exllama(package: str) -> Availability:
    version = _version(package)
    reasons = [_NOT_YET]
    if importlib.util.find_spec(package) is None:
        reasons.append(f"the package {package} is not installed")
    if not has_cuda_device():
        reasons.append("no NVIDIA GPU was found")
    return Availability(False, f"{', '.join(reasons)}; {_MEANWHILE}", version)


def has_cuda_device() -> bool:
    """Whether the NVIDIA driver reports a GPU; torch is not asked, for importing it takes seconds."""
    gpus = Path("/proc/driver/nvidia/gpus")
    try:
        if gpus.is_dir() and any(gpus.iterdir()):
            return True
    except OSError:
        pass
    command = shutil.which("nvidia-smi")
    if command is None:
        return False
    try:
        listed = subprocess.run([command, "-L"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return listed.returncode == 0 and "GPU " in listed.stdout


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
