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

from engine.backends.kernels import COMPILES_ONCE, are_compiled, missing_compilers

BACKENDS = ("exllamav2", "exllamav3", "llamacpp", "openai_api")
IMPORT_LIMIT_S = 60.0

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
    # In a process of its own: a wheel for another processor ends with SIGILL, not with an exception.
    why = _import_problem("import xllamacpp; xllamacpp.Server")
    if not why:
        return Availability(True, "runs in-process; no server is needed", version)
    return Availability(False, f"the package xllamacpp does not load here: {why}; reinstall it", version)


def _exllama(package: str) -> Availability:
    version = _version(package)
    reasons = []
    if importlib.util.find_spec(package) is None:
        reasons.append(f"the package {package} is not installed")
    if not (has_gpu := has_cuda_device()):
        reasons.append("no NVIDIA GPU was found")
    if reasons:
        remedy = f"install evaldesk[{package}]" if has_gpu else _MEANWHILE
        return Availability(False, f"{', '.join(reasons)}; {remedy}", version)
    compiled = are_compiled(package)
    if not compiled and (missing := missing_compilers()):
        return Availability(
            False, f"its kernels are not compiled, and these are missing: {', '.join(missing)}", version
        )
    # An import compiles the kernels where that was not done yet: then only what it builds on is tried.
    wanted = package if compiled else "torch"
    why = _import_problem(f"import torch, {wanted}; torch.cuda.init()")
    if why:
        return Availability(False, f"{wanted} does not work here: {why}", version)
    return Availability(True, f"runs on the GPU; {_how(package)}{'' if compiled else f'; {COMPILES_ONCE}'}", version)


def _how(package: str) -> str:
    if package == "exllamav3":
        return "batches"
    flash = _version("flash-attn")
    if flash is None:
        return "one request at a time, for flash-attn is not installed"
    return f"batches, if flash-attn {flash} is 2.5.7 or newer and the GPU of compute capability 8.0 or more"


def _import_problem(code: str) -> str:
    """The last line that trying ``code`` in a process of its own says, "" where it works; any exception is possible."""
    try:
        tried = subprocess.run(
            [sys.executable, "-P", "-c", code],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=IMPORT_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it could not be tried ({error})"
    if tried.returncode == 0:
        return ""
    lines = tried.stderr.strip().splitlines()
    return lines[-1][:300] if lines and tried.returncode > 0 else f"the process ended with code {tried.returncode}"


def _openai_api() -> Availability:
    version = _version("aiohttp")
    if importlib.util.find_spec("aiohttp") is None:
        return Availability(False, "the package aiohttp is not installed; install evaldesk[openai]", None)
    return Availability(True, "for servers that evaldesk models add registers; none is contacted before a run", version)


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
