"""How models are to be run on this machine, and which servers there are: models.json in the user's configuration folder.

By the model's name. It is the user's, not a workspace's, since what fits depends on the machine. Of an entry only a server's
URL, model and snapshot say what a reply is supposed to be, so request keys know of nothing else; and no secret is in it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import EvaldeskError
from engine.models.server_address import ServerAddress, server_address
from engine.runs.durable import replace_file
from engine.runs.locks import wait_lock

CONFIG_VARIABLE = "EVALDESK_CONFIG_DIR"
SERVER_BACKEND = "openai_api"

_NUMBERS = ("context_length", "parallel")
_SERVER = ("url", "model", "key_env", "snapshot")


@dataclass(frozen=True)
class ModelSettings:
    """Of one model. 0 and {} let the backend choose; ``options`` is what its adapter alone understands.

    ``server`` is None for a model whose files lie on this machine. ``wait_gpu_memory``: GiB that have to be free on the GPUs
    before a run loads the model, 0 for no such wait.
    """

    context_length: int = 0
    parallel: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    server: ServerAddress | None = None
    wait_gpu_memory: float = 0.0

    @property
    def spec_options(self) -> dict[str, Any]:
        """The options as engine.backends.protocol.ModelSpec carries them: a server's address, its URL aside, among them."""
        address = asdict(self.server) if self.server is not None else {}
        return dict(self.options) | {name: value for name, value in address.items() if value and name != "url"}


def settings_file() -> Path:
    """models.json in $EVALDESK_CONFIG_DIR or the user's configuration folder; may not exist."""
    named = os.environ.get(CONFIG_VARIABLE, "")
    if named:
        return Path(named).expanduser().absolute() / "models.json"
    from platformdirs import user_config_path

    return user_config_path("evaldesk") / "models.json"


def all_settings() -> dict[str, ModelSettings]:
    """What is set, by the model's name; raises EvaldeskError naming the file, and the entry, that is not as it should be."""
    path = settings_file()
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, str(error)) from error
    if not isinstance(entries, dict):
        raise _unreadable(path, "it must be one JSON object, model names to settings")
    return {name: _settings(entry, f"{path}, {name}") for name, entry in entries.items()}


def model_settings(name: str) -> ModelSettings:
    """What is set for the model of this name; the backend's choice throughout where nothing is."""
    return all_settings().get(name, ModelSettings())


@contextmanager
def changing_settings() -> Iterator[dict[str, ModelSettings]]:
    """All settings, to be changed in place; written at the end, whole or not at all, while nobody else changes them."""
    path = settings_file()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error
    lock = wait_lock(path.with_name(f".{path.name}.lock"))
    try:
        settings = all_settings()
        yield settings
        text = json.dumps({name: _entry(settings[name]) for name in settings}, ensure_ascii=False, indent=2)
        replace_file(path, [text.encode("utf-8", "backslashreplace"), b"\n"])
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        lock.release()


def _settings(entry: Any, where: str) -> ModelSettings:
    known = {*_NUMBERS, *_SERVER, "options", "backend", "wait_gpu_memory"}
    if not isinstance(entry, dict) or set(entry) - known or not isinstance(entry.get("options", {}), dict):
        raise _unreadable(where, f"an entry may hold {', '.join(sorted(known))}")
    numbers = {name: entry.get(name, 0) for name in _NUMBERS}
    if not all(type(number) is int and 0 <= number < 2**31 for number in numbers.values()):
        raise _unreadable(where, "context_length and parallel are whole numbers, 0 for the backend's choice")
    wait = entry.get("wait_gpu_memory", 0)
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait < math.inf:
        raise _unreadable(where, "wait_gpu_memory is a number of GiB, 0 for no wait")
    return ModelSettings(
        **numbers, options=entry.get("options", {}), server=_server(entry, where), wait_gpu_memory=float(wait)
    )


def _server(entry: Mapping[str, Any], where: str) -> ServerAddress | None:
    if "backend" not in entry and not set(entry) & set(_SERVER):
        return None
    said = {name: entry.get(name, "") for name in _SERVER}
    if entry.get("backend") != SERVER_BACKEND or not all(isinstance(text, str) for text in said.values()):
        raise _unreadable(where, f"a server has the backend {SERVER_BACKEND}, and texts in {', '.join(_SERVER)}")
    try:
        return server_address(**said)
    except EvaldeskError as error:
        raise _unreadable(where, error.what) from error


def _entry(settings: ModelSettings) -> dict[str, Any]:
    said: dict[str, Any] = {
        name: getattr(settings, name) for name in (*_NUMBERS, "options", "wait_gpu_memory") if getattr(settings, name)
    }
    if settings.server is None:
        return said
    address = {name: value for name, value in asdict(settings.server).items() if value}
    return {"backend": SERVER_BACKEND, **address, **said}


def _unreadable(where: Path | str, why: str) -> EvaldeskError:
    return EvaldeskError(
        f"the settings of models cannot be read: {why}", where=str(where), remedy="Correct the file, or move it away."
    )


def _unwritable(path: Path, error: OSError) -> EvaldeskError:
    return EvaldeskError(
        f"the settings of models cannot be written ({error.strerror or type(error).__name__})",
        where=str(path), kept="They are as they were.", remedy="Make the folder writable, or free some space.",
    )  # fmt: skip
