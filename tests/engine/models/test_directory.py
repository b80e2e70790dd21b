"""What a model directory says of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.errors import EvaldeskError
from engine.models.directory import end_token_ids, is_model_directory, quantisation, read_json, trained_context


def directory(folder: Path, config: Any, *tensors: str, **files: Any) -> Path:
    folder.mkdir(exist_ok=True)
    header = json.dumps({name: {} for name in tensors}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    for name, content in {"config": config, **files}.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize(
    ("config", "tensors", "files", "method"),
    [
        ({"quantization_config": {"quant_method": "exl3"}}, ["a.trellis"], {}, "exl3"),
        ({"quantization_config": {"quant_method": "GPTQ"}}, [], {}, "gptq"),
        ({}, ["a.qweight"], {"quantize_config": {"bits": 4}}, "gptq"),
        ({}, ["a.q_weight"], {}, "exl2"),
        ({}, ["a.trellis"], {}, "exl3"),
        ({}, ["a.qweight"], {}, "gptq"),
        ({}, ["a.weight"], {}, ""),
        ({"quantization_config": "?"}, [], {}, ""),
        ([], [], {}, ""),
    ],
)
def test_the_quantisation(tmp_path: Path, config: Any, tensors: list[str], files: dict[str, Any], method: str) -> None:
    assert quantisation(directory(tmp_path / "m", config, *tensors, **files)) == method


def test_damaged_weights_have_no_quantisation_and_damaged_json_is_named(tmp_path: Path) -> None:
    folder = directory(tmp_path / "m", {})
    for content in (b"", b"\xff" * 9, b"\x05" + b"\0" * 7 + b"[1,2]"):
        (folder / "model.safetensors").write_bytes(content)
        assert quantisation(folder) == ""
    (folder / "config.json").write_text("{")
    with pytest.raises(EvaldeskError, match=r"config\.json"):
        quantisation(folder)


def test_what_is_a_model_directory(tmp_path: Path) -> None:
    folder = directory(tmp_path / "m", {})
    assert is_model_directory(folder)
    (folder / "config.json").unlink()
    assert not is_model_directory(folder) and not is_model_directory(tmp_path / "absent")
    assert read_json(folder / "config.json") == {}


def test_the_context_also_of_a_model_of_several_parts(tmp_path: Path) -> None:
    assert trained_context(directory(tmp_path / "a", {"max_position_embeddings": 4096})) == 4096
    assert trained_context(directory(tmp_path / "b", {"text_config": {"max_position_embeddings": 99}})) == 99
    assert trained_context(directory(tmp_path / "c", {"max_position_embeddings": "long"})) == 0


def test_end_tokens_of_all_three_files_are_taken(tmp_path: Path) -> None:
    folder = directory(
        tmp_path / "m", {"eos_token_id": 2}, generation_config={"eos_token_id": [2, 7]},
        tokenizer_config={"eos_token": {"content": "<|eot|>"}},
    )  # fmt: skip
    assert end_token_ids(folder, {"<|eot|>": 9}.get) == (2, 7, 9)
    assert end_token_ids(folder, {}.get) == (2, 7)
    inner = directory(tmp_path / "n", {"text_config": {"eos_token_id": [5]}}, tokenizer_config={"eos_token": "</s>"})
    assert end_token_ids(inner, {"</s>": 5}.get) == (5,)
    assert end_token_ids(directory(tmp_path / "o", {"eos_token_id": None}), {}.get) == ()
