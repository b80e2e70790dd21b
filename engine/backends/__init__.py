"""Backends: one protocol, one adapter for each way of running a model."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

from engine.errors import EvaldeskError

if TYPE_CHECKING:
    from engine.backends.protocol import Backend

TEST_BACKENDS_VARIABLE = "EVALDESK_TEST_BACKENDS"


def load_backend(name: str) -> Backend:
    """A new, unloaded backend by its adapter's name; the adapter's library is imported only here.

    ``module:Class`` is taken only while EVALDESK_TEST_BACKENDS=1, for tests of the worker.
    Raises EvaldeskError for an adapter that is not there.
    """
    if name == "llamacpp":
        from engine.backends.llamacpp import LlamaCpp

        return LlamaCpp()
    if name == "openai_api":
        from engine.backends.openai_api import OpenAiApi

        return OpenAiApi()
    if name in ("exllamav2", "exllamav3"):
        from engine.backends.exllama import ExLlama

        return ExLlama(name)
    if ":" in name and os.environ.get(TEST_BACKENDS_VARIABLE) == "1":
        module, _, attribute = name.partition(":")
        backend: Backend = getattr(importlib.import_module(module), attribute)()
        return backend
    from engine.backends.availability import BACKENDS

    raise EvaldeskError(f"there is no backend called {name!r}", remedy=f"Known backends: {', '.join(BACKENDS)}.")
