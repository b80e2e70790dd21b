"""Which models are found, and in what order."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from engine.errors import EvaldeskError
from engine.models import registry
from engine.models.registry import SMOLLM2, default_model, find_models, model_by_name
from tests.engine.models.test_directory import directory
from tests.engine.models.test_fingerprint import gguf


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVALDESK_MODELS_DIR", str(tmp_path))
    monkeypatch.setattr(registry, "_package_files", lambda: [])
    return tmp_path


def test_without_any_model_it_says_how_to_get_one(home: Path) -> None:
    for ask in (default_model, lambda: model_by_name("smollm2")):
        with pytest.raises(EvaldeskError, match="evaldesk models get smollm2"):
            ask()


def test_the_embedded_model_comes_first_then_by_name(home: Path) -> None:
    for name in ("zeta", "alpha", f"{SMOLLM2}.Q4_1"):
        gguf(home / f"{name}.gguf", b"w")
    (home / "notes.txt").write_text("x")
    assert [model.name for model in find_models()] == [SMOLLM2, "alpha", "zeta"]
    assert default_model().name == SMOLLM2 == model_by_name("SmolLM2").name
    assert model_by_name("ALPHA").path == home / "alpha.gguf"


def test_a_model_in_several_files_is_one_model_with_one_fingerprint(home: Path) -> None:
    for number in (1, 2):
        gguf(home / f"big-{number:05d}-of-00002.gguf", b"w" * number)
    (model,) = find_models()
    before = model.fingerprint.short
    gguf(home / "big-00002-of-00002.gguf", b"other")
    assert find_models()[0].fingerprint.short != before


@pytest.mark.parametrize(
    ("config", "tensor", "backend", "method"),
    [
        ({"quantization_config": {"quant_method": "exl3"}}, "a.trellis", "exllamav3", "exl3"),
        ({"quantization_config": {"quant_method": "exl2"}}, "a.q_weight", "exllamav2", "exl2"),
        ({"quantization_config": {"quant_method": "gptq"}}, "a.qweight", "exllamav2", "gptq"),
        ({}, "a.weight", "exllamav2", ""),
    ],
)
def test_a_model_directory_is_found_and_run_by_who_knows_its_weights(
    home: Path, config: dict[str, Any], tensor: str, backend: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    folder = directory(home / "my-model", config, tensor)
    gguf(home / "other.gguf", b"w")
    (home / "notes").mkdir()
    found = {model.name: model for model in find_models()}
    assert set(found) == {"my-model", "other"}
    model = found["my-model"]
    assert (model.backend, model.quantisation, model.path, model.source) == (backend, method, folder, "models folder")
    assert model.size == (folder / "model.safetensors").stat().st_size
    assert model.fingerprint.details["quantisation"] == method


def test_weights_that_are_not_quantised_go_to_exllamav3_where_it_is_the_only_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name == "exllamav3" else None)
    directory(home / "plain", {})
    directory(home / "gptq", {"quantization_config": {"quant_method": "gptq"}})
    assert {model.name: model.backend for model in find_models()} == {"plain": "exllamav3", "gptq": "exllamav2"}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert {model.backend for model in find_models()} == {"exllamav2"}


def test_a_damaged_directory_hides_no_other_model(home: Path) -> None:
    directory(home / "good", {})
    (directory(home / "bad", {}) / "config.json").write_text("{")
    assert [model.name for model in find_models()] == ["bad", "good"]
    with pytest.raises(EvaldeskError, match=r"config\.json"):
        _ = find_models()[0].fingerprint


def test_a_copy_beside_the_package_is_listed_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    carried = gguf(home / "carried.bin", b"w").rename(home / f"{SMOLLM2}.Q4_1.gguf")
    monkeypatch.setattr(registry, "_package_files", lambda: [carried])
    assert [model.source for model in find_models()] == ["package"]
