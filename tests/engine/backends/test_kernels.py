"""Whether loading a model will compile first."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from engine.backends import kernels


@pytest.fixture(autouse=True)
def _no_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.delenv("TORCH_EXTENSIONS_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("version", ["", "py311_cu130"])
def test_what_was_compiled_is_found_where_torch_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    assert kernels.loading_note("exllamav2") == kernels.COMPILES_ONCE
    folder = tmp_path / "torch_extensions" / version / "exllamav2_ext"
    folder.mkdir(parents=True)
    assert not kernels.are_compiled("exllamav2")
    (folder / "exllamav2_ext.so").write_bytes(b"")
    assert kernels.are_compiled("exllamav2") and not kernels.are_compiled("exllamav3")
    assert kernels.loading_note("exllamav2") == "" == kernels.loading_note("llamacpp")
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "elsewhere"))
    assert not kernels.are_compiled("exllamav2")


def test_an_installed_extension_needs_no_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert kernels.are_compiled("exllamav3")


def test_missing_compilers_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert kernels.missing_compilers() == ["nvcc (the CUDA toolkit)", "a C++ compiler", "ninja"]
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert kernels.missing_compilers() == []
