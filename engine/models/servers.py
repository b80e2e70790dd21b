"""Models behind servers: registered by command, listed beside the local ones, and not asked before a run starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from engine.errors import EvaldeskError
from engine.models.fingerprint import Fingerprint
from engine.models.server_address import ServerAddress, sends_key_in_clear
from engine.models.server_key import find_key
from engine.models.settings import SERVER_BACKEND, ModelSettings, all_settings, changing_settings

GPU_BACKENDS = ("exllamav2", "exllamav3")
MAX_NAME = 120
MAX_PARALLEL = 1024


@dataclass(frozen=True)
class ServerModel:
    """One model that a server offers; the counterpart of engine.models.registry.FoundModel."""

    name: str
    address: ServerAddress
    options: Mapping[str, Any] = field(default_factory=dict)
    backend: str = SERVER_BACKEND
    size: int = 0
    source: str = "server"

    @property
    def path(self) -> str:
        """The base URL: what a ModelSpec names as path."""
        return self.address.url

    @property
    def fingerprint(self) -> Fingerprint:
        """Of the address; the server is not asked."""
        return self.address.fingerprint

    @property
    def problem(self) -> str:
        """Why it cannot be used from here, "" if nothing is known against it; the server is not asked."""
        from engine.backends.availability import check_backend

        state = check_backend(self.backend)
        if not state.can_run:
            return state.reason
        try:
            find_key(self.address.key_env)
        except EvaldeskError as error:
            return error.what
        return ""


def server_models() -> list[ServerModel]:
    """All registered servers, in the order of models.json."""
    return [
        ServerModel(name, settings.server, settings.options)
        for name, settings in all_settings().items()
        if settings.server is not None
    ]


def add_server(name: str, settings: ModelSettings) -> str:
    """Keep a server under a name of its own; returns a warning, or "". Raises EvaldeskError when the name is taken or no name."""
    from engine.models.registry import SMOLLM2, find_models

    assert settings.server is not None
    if not name.strip() or not name.isprintable() or len(name) > MAX_NAME:
        raise _unchanged(f"a model's name is printable and has 1 to {MAX_NAME} characters")
    taken = {model.name.casefold() for model in find_models()} | {SMOLLM2.casefold(), "smollm2"}
    if name.casefold() in taken:
        raise _unchanged(
            f"there is a model called {name!r} already", "Take another name, or remove that one with: models remove."
        )
    with changing_settings() as known:
        known[name] = settings
    if sends_key_in_clear(settings.server):
        return f"{settings.server.url} is not encrypted: whoever is on the way can read the key"
    return ""


def remove_server(name: str) -> str:
    """Forget a server, letter case aside; returns its name. Raises EvaldeskError when there is none of this name."""
    with changing_settings() as known:
        found = next((other for other in known if other.casefold() == name.casefold()), "")
        if not found or known[found].server is None:
            raise _unchanged(
                f"there is no server called {name!r}", "evaldesk models lists them; a local model goes with its file."
            )
        del known[found]
    return found


def set_model(
    name: str, *, parallel: int | None = None, context_length: int | None = None, wait_gpu_memory: float | None = None
) -> ModelSettings:
    """Set how a model found here is run, 0 for the backend's choice and no wait; returns what is set now.

    Raises EvaldeskError when there is no such model, or it lies on no GPU of this machine and shall wait for one (GiB).
    """
    from engine.models.registry import model_by_name

    model = model_by_name(name)
    full = model.name
    if wait_gpu_memory and model.backend not in GPU_BACKENDS:
        raise _unchanged(
            f"{full} is run by {model.backend}, which puts nothing on a GPU of this machine: there is no memory to wait for"
        )
    with changing_settings() as known:
        settings = known.get(full, ModelSettings())
        settings = replace(
            settings,
            parallel=settings.parallel if parallel is None else parallel,
            context_length=settings.context_length if context_length is None else context_length,
            wait_gpu_memory=settings.wait_gpu_memory if wait_gpu_memory is None else wait_gpu_memory,
        )
        known[full] = settings
    return settings


def _unchanged(what: str, remedy: str = "") -> EvaldeskError:
    return EvaldeskError(what, kept="Nothing was changed.", remedy=remedy)
