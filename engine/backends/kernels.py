"""The CUDA kernels of exllamav2 and exllamav3: their packages hold the sources, and the first import compiles them."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

EXLLAMA = ("exllamav2", "exllamav3")
COMPILES_ONCE = "compiling kernels, once, takes minutes"


def are_compiled(package: str) -> bool:
    """Whether the package's extension is installed, or lies where torch keeps what it compiled for this user."""
    name = f"{package}_ext"
    try:
        if importlib.util.find_spec(name) is not None:
            return True
    except ValueError:
        # Something else is imported under this name.
        return True
    # torch's own choice of a folder: <cache>/py311_cu130/<name>/<name>.so
    named = os.environ.get("TORCH_EXTENSIONS_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = Path(named) if named else cache / "torch_extensions"
    return any(home.glob(f"{name}/{name}.so")) or any(home.glob(f"*/{name}/{name}.so"))


def missing_compilers() -> list[str]:
    """What compiling needs and is not found: nvcc, a C++ compiler, ninja."""
    cuda = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    missing = []
    if shutil.which("nvcc") is None and not Path(cuda, "bin", "nvcc").is_file():
        missing.append("nvcc (the CUDA toolkit)")
    if shutil.which(os.environ.get("CXX") or "c++") is None and shutil.which("g++") is None:
        missing.append("a C++ compiler")
    if shutil.which("ninja") is None and importlib.util.find_spec("ninja") is None:
        missing.append("ninja")
    return missing


def loading_note(backend: str) -> str:
    """What loading a model does first, once and for minutes; "" where it does not."""
    return COMPILES_ONCE if backend in EXLLAMA and not are_compiled(backend) else ""
