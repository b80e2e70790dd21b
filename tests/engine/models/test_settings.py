"""The settings of models: what is read from models.json, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.errors import EvaldeskError
from engine.models.settings import ModelSettings, all_settings, model_settings


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVALDESK_CONFIG_DIR", str(tmp_path))
    return tmp_path / "models.json"


def test_without_a_file_the_backend_chooses(file: Path) -> None:
    assert all_settings() == {} and model_settings("any") == ModelSettings(0, 0, {})


def test_what_is_set_is_read_by_name(file: Path) -> None:
    file.write_text(json.dumps({"big {model}": {"parallel": 4, "options": {"cache": "q8"}}}))
    assert model_settings("big {model}") == ModelSettings(0, 4, {"cache": "q8"})
    assert model_settings("other") == ModelSettings()


@pytest.mark.parametrize(
    "held",
    [
        "{",
        "[]",
        {"m": 3},
        {"m": {"paralel": 4}},
        {"m": {"parallel": -1}},
        {"m": {"parallel": True}},
        {"m": {"options": []}},
        {"m": {"wait_gpu_memory": -1}},
        {"m": {"wait_gpu_memory": "20"}},
    ],
)
def test_a_damaged_file_is_named_with_what_to_do(file: Path, held: Any) -> None:
    file.write_text(held if isinstance(held, str) else json.dumps(held))
    with pytest.raises(EvaldeskError) as refused:
        all_settings()
    assert str(file) in refused.value.where and refused.value.remedy
