"""How models are to be run on this machine: models.json in the user's configuration folder, by the model's name.

It is the user's, not a workspace's, since what fits depends on the machine. Nothing in it changes what a reply is supposed
to be, so request keys do not know of it; and no secret is in it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import EvaldeskError

CONFIG_VARIABLE = "EVALDESK_CONFIG_DIR"


@dataclass(frozen=True)
class ModelSettings:
    """Of one model. 0 and {} let the backend choose; ``options`` is what its adapter alone understands."""

    context_length: int = 0
    parallel: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)


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


def _settings(entry: Any, where: str) -> ModelSettings:
    known = {"context_length", "parallel", "options"}
    if not isinstance(entry, dict) or set(entry) - known or not isinstance(entry.get("options", {}), dict):
        raise _unreadable(where, f"an entry may hold {', '.join(sorted(known))}")
    numbers = {name: entry.get(name, 0) for name in ("context_length", "parallel")}
    if not all(type(number) is int and 0 <= number < 2**31 for number in numbers.values()):
        raise _unreadable(where, "context_length and parallel are whole numbers, 0 for the backend's choice")
    return ModelSettings(**numbers, options=entry.get("options", {}))


def _unreadable(where: Path | str, why: str) -> EvaldeskError:
    return EvaldeskError(
        f"the settings of models cannot be read: {why}", where=str(where), remedy="Correct the file, or move it away."
    )
