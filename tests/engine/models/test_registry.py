"""Which models are found, and in what order."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import EvaldeskError
from engine.models import registry
from engine.models.registry import SMOLLM2, default_model, find_models, model_by_name
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


def test_a_copy_beside_the_package_is_listed_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    carried = gguf(home / "carried.bin", b"w").rename(home / f"{SMOLLM2}.Q4_1.gguf")
    monkeypatch.setattr(registry, "_package_files", lambda: [carried])
    assert [model.source for model in find_models()] == ["package"]
