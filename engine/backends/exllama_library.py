"""What the adapter asks of exllamav2 and of exllamav3; each has a module with its own answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

NEUTRAL: Mapping[str, Any] = {
    "temperature": 0.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "seed": 0,
}
"""Sampling that leaves the distribution as the model gives it; temperature 0 takes the likeliest token."""


@dataclass(frozen=True)
class Job:
    """One request in tokens. ``limit`` is how many it may add, ``sampling`` has every field of NEUTRAL."""

    key: str
    ids: tuple[int, ...]
    limit: int
    sampling: Mapping[str, Any]
    end_ids: tuple[int, ...]
    stop: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    logprobs: bool = False
    options: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The tokens that are each of the request's options; where there are any, one token is generated and its likelihoods count."""

    @property
    def needs_logits(self) -> bool:
        return self.logprobs or bool(self.options)

    @property
    def is_greedy(self) -> bool:
        return bool(self.sampling["temperature"] <= 0 or self.sampling["top_k"] == 1)


class Library(Protocol):
    """One model of one library. All methods are called by the same thread; what they raise is the library's own."""

    serial_because: str
    """Why requests go one at a time, or "" where they share a batch."""
    generator: Any
    """enqueue, iterate, clear_queue, active_jobs and pending_jobs of it are used; there once ``load`` has returned."""

    def load(self, mode: str, tokens: int, parallel: int) -> None:
        """Load weights and a cache of ``tokens`` (whole pages), for ``parallel`` requests at once."""
        ...

    def unload(self) -> None:
        """Free weights and cache; ``load`` may follow."""
        ...

    def free_memory(self) -> int:
        """Bytes that are free on all GPUs together, 0 where that is not known."""
        ...

    def token_id(self, text: str) -> int | None:
        """The id of the token that is written so, special ones included."""
        ...

    def encode(self, text: str) -> list[int]:
        """Token ids; special tokens in the text become what they stand for, none is added."""
        ...

    def decode(self, token_ids: Any) -> str:
        """Text of the token_ids of a result, without special tokens."""
        ...

    def job(self, job: Job) -> Any:
        """The library's job, with ``job.key`` as its identifier."""
        ...

    def forget(self) -> None:
        """Declare the whole cache empty, after its jobs were dropped at any moment."""
        ...


def token_logprobs(part: Mapping[str, Any]) -> list[float]:
    """Natural logarithms of the probabilities of a result's tokens in what they were drawn from, at temperature 1.

    That is the model's own distribution, unless penalties or a schema changed it. (Both libraries' token_probs are of
    the distribution after truncation: 1 for each token when greedy.) [] where the result has no logits.
    """
    if "logits" not in part or "token_ids" not in part:
        return []
    import torch

    rows = torch.log_softmax(part["logits"][0].float().cpu(), -1)
    chosen: list[float] = rows.gather(-1, part["token_ids"][0].cpu()[:, None])[:, 0].tolist()
    return chosen


def option_logprobs(part: Mapping[str, Any], options: Mapping[str, tuple[int, ...]]) -> dict[str, float]:
    """Natural log-probability of each option as the first token of this part of a result; {} where it has no logits."""
    if "logits" not in part:
        return {}
    import torch

    row = torch.log_softmax(part["logits"][0][0].float().cpu(), -1)
    return {option: max(float(row[number]) for number in ids) for option, ids in options.items() if ids}
