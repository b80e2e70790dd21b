"""What a model directory (config.json beside *.safetensors) says of itself, read without any model library."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engine.errors import EvaldeskError

_MAX_HEADER = 64 * 2**20


def is_model_directory(path: Path) -> bool:
    """Whether the directory holds config.json and at least one .safetensors file."""
    return (path / "config.json").is_file() and any(path.glob("*.safetensors"))


def read_json(path: Path) -> Mapping[str, Any]:
    """The JSON object in a file, {} where there is no file; raises EvaldeskError for anything that is no JSON."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise EvaldeskError(f"the file cannot be read: {error}", where=str(path)) from error
    return content if isinstance(content, Mapping) else {}


def setting(config: Mapping[str, Any], name: str) -> Any:
    """An entry of config.json, or of its text_config where a model of several parts keeps it; None without."""
    value = config.get(name)
    if value is None and isinstance(inner := config.get("text_config"), Mapping):
        value = inner.get(name)
    return value


def quantisation(directory: Path) -> str:
    """exl3, exl2, gptq, another method by its name, or "" for weights that are not quantised."""
    stated = read_json(directory / "config.json").get("quantization_config")
    if isinstance(stated, Mapping) and isinstance(method := stated.get("quant_method"), str):
        return method.lower()
    if (directory / "quantize_config.json").is_file():
        return "gptq"
    # Early conversions state nothing: the names of the tensors tell.
    for file in sorted(directory.glob("*.safetensors")):
        names = _tensor_names(file)
        for ending, method in ((".trellis", "exl3"), (".q_weight", "exl2"), (".qweight", "gptq")):
            if any(name.endswith(ending) for name in names):
                return method
    return ""


def trained_context(directory: Path) -> int:
    """Tokens that the model was trained to take, 0 where config.json does not say."""
    length = setting(read_json(directory / "config.json"), "max_position_embeddings")
    return length if isinstance(length, int) else 0


def directory_details(directory: Path) -> dict[str, str | int]:
    """name (of the directory), architecture, quantisation ("" for none) and context_length (0 where not said)."""
    architectures = read_json(directory / "config.json").get("architectures")
    return {
        "name": directory.name,
        "architecture": str(architectures[0]) if isinstance(architectures, list) and architectures else "",
        "quantisation": quantisation(directory),
        "context_length": trained_context(directory),
    }


def end_token_ids(directory: Path, id_of: Callable[[str], int | None]) -> tuple[int, ...]:
    """Every token that ends a reply, of config.json, generation_config.json and tokenizer_config.json together.

    Models are often published with one of them only in one of the files, and a reply that is not ended runs on.
    """
    ids: set[int] = set()
    for name in ("config.json", "generation_config.json"):
        stated = setting(read_json(directory / name), "eos_token_id")
        ids.update(one for one in (stated if isinstance(stated, list) else [stated]) if isinstance(one, int))
    token = read_json(directory / "tokenizer_config.json").get("eos_token")
    token = token.get("content") if isinstance(token, Mapping) else token
    if isinstance(token, str) and token and (number := id_of(token)) is not None:
        ids.add(number)
    return tuple(sorted(ids))


def _tensor_names(file: Path) -> list[str]:
    # A .safetensors file begins with the length of its JSON header, eight bytes, least significant first.
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(length)) if length <= _MAX_HEADER else {}
    except (OSError, ValueError, RecursionError):
        return []
    return list(header) if isinstance(header, dict) else []
