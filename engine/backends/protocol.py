"""What a backend offers: load a model, take requests, give back completions as they finish.

A backend lives in the worker process only. It blocks, writes where it likes, and may die: the
worker and its supervisor deal with that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class ModelSpec:
    """Which model to load and how. ``backend`` names the adapter, ``path`` the file, directory or base URL."""

    backend: str
    name: str
    path: str
    context_length: int = 0
    """Tokens a single request may use; 0 lets the backend choose."""
    parallel: int = 0
    """Requests worked on at once; 0 lets the backend choose."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What this adapter alone understands, as engine.models.settings keeps it; never a secret, for it is written to disk."""
    wait_gpu_memory: float = 0.0
    """GiB that have to be free on the GPUs before the model is loaded; 0 loads it at once."""


@dataclass(frozen=True)
class ModelInfo:
    """What was loaded. ``fingerprint`` is the one that request keys use (see engine.models.fingerprint)."""

    fingerprint: str
    context_length: int
    parallel: int
    features: frozenset[str]
    """Of: schema, logprobs, likelihoods, prefix_cache, batch."""
    backend: str
    backend_version: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else was decided while loading, by name, for people to read; as JSON can hold it."""


class BackendBroken(Exception):
    """This process can do nothing more with its device, e.g. after an illegal access on a GPU; a new process can.

    Raised by ``Backend.results`` once everything that was finished before has been given back.
    """


@dataclass(frozen=True)
class Request:
    """One fully rendered request. ``messages`` are chat messages ({role, content})."""

    key: str
    messages: Sequence[Mapping[str, str]]
    sampling: Mapping[str, Any]
    """temperature, max_tokens, seed ... as the request key hashes them."""
    schema: Mapping[str, Any] | None = None
    """JSON schema that the reply has to follow, or None for free text."""
    options: tuple[str, ...] = ()
    """Where there are any, no reply is generated: which of these the model finds likeliest as its first token is the reply."""


@dataclass(frozen=True)
class Completion:
    """The outcome of one request. Exactly one of ``text`` and ``error`` is meaningful: error is "" on success."""

    key: str
    text: str = ""
    finish: str = ""
    """``stop`` or ``length``; "" on error."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Of the prompt tokens, how many were served from the prefix cache."""
    completion_tokens: int = 0
    seconds: float = 0.0
    error: str = ""
    is_final: bool = False
    """Whether an error would only come again, so that trying the request again is pointless."""
    served_by: str = ""
    """What a server calls the model that answered; "" for a backend that loads its model itself."""
    likelihoods: Mapping[str, float] = field(default_factory=dict)
    """Natural log-probability of each of the request's options; those that the backend did not list are missing."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What only this adapter tells; ``cost`` (in the currency of the prices that were set) is kept with the result."""


class Backend(Protocol):
    """One loaded model. Not thread-safe: one thread calls these methods."""

    def load(self, model: ModelSpec) -> ModelInfo:
        """Load the model; raises engine.errors.EvaldeskError with a reason in one line when that cannot work here."""
        ...

    def submit(self, requests: Sequence[Request]) -> None:
        """Take requests into the backend's queue; returns at once."""
        ...

    def results(self, timeout: float) -> list[Completion]:
        """Completions finished since the last call, waiting up to ``timeout`` seconds for the first.

        Raises BackendBroken when there is none and will be none; ``close`` need not be called then.
        """
        ...

    @property
    def in_flight(self) -> int:
        """Requests submitted and not yet given back by ``results``."""
        ...

    def cancel(self) -> None:
        """Drop what has not started; what is being generated may still come out of ``results``."""
        ...

    def close(self) -> None:
        """Free the model."""
        ...
