"""How large the cache of keys and values is, which one to ask for, and what to try when the GPU has not room for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.models.directory import setting

PAGE = 256
"""Tokens; caches are made of whole pages."""
BYTES_PER_ELEMENT = {"fp16": 2.0, "q8": 1.0625, "q6": 0.8125, "q4": 0.5625}
"""The modes, with their scales included."""
LEAST_TOKENS = 4 * PAGE
"""A cache is not halved below this."""
RESERVE = 3 * 2**29
"""Bytes (1.5 GiB) of a GPU that are left for activations and the libraries."""


@dataclass(frozen=True)
class KvShape:
    """What a token's keys and values take, of config.json."""

    layers: int
    heads: int
    head_dim: int

    def bytes_per_token(self, mode: str) -> float:
        """Over all layers, keys and values together; KeyError for an unknown mode."""
        return 2 * self.layers * self.heads * self.head_dim * BYTES_PER_ELEMENT[mode]


def kv_shape(config: Mapping[str, Any]) -> KvShape | None:
    """The shape that config.json tells of, or None where it has not the usual fields."""
    names = ("num_hidden_layers", "num_attention_heads", "hidden_size")
    layers, heads, hidden = (setting(config, name) for name in names)
    kv_heads, head_dim = setting(config, "num_key_value_heads") or heads, setting(config, "head_dim")
    if head_dim is None and isinstance(hidden, int) and isinstance(heads, int) and heads:
        head_dim = hidden // heads
    numbers = (layers, kv_heads, head_dim)
    if not all(isinstance(number, int) and number > 0 for number in numbers):
        return None
    return KvShape(*numbers)


def pages(tokens: int) -> int:
    """``tokens`` rounded up to whole pages."""
    return -(-tokens // PAGE) * PAGE


def tokens_that_fit(free: int, weights: int, shape: KvShape, mode: str) -> int:
    """Tokens, in whole pages, for which ``free`` bytes leave room beside ``weights`` bytes; 0 where not even these fit."""
    room = free - weights - RESERVE
    return max(0, int(room / shape.bytes_per_token(mode)) // PAGE * PAGE)


def first_attempt(
    tokens: int, context: int, mode: str, *, fixed_mode: bool, shape: KvShape | None, free: int, weights: int
) -> tuple[str, int]:
    """(mode, tokens) to ask for, when ``tokens`` are wanted and one request may use ``context`` of them.

    No more than fits beside the weights, and Q8 where not even one request fits in FP16, unless the mode was asked for;
    what is wanted where the shape or the free memory (0) is not known.
    """
    if shape is None or not free:
        return mode, tokens
    fitting = tokens_that_fit(free, weights, shape, mode)
    if fitting < context and mode == "fp16" and not fixed_mode:
        mode = "q8"
        fitting = tokens_that_fit(free, weights, shape, mode)
    return mode, min(tokens, max(fitting, context))


def attempts(tokens: int, context: int, mode: str, *, fixed_mode: bool) -> Iterator[tuple[str, int]]:
    """(mode, tokens) to try, one after the other, while the GPU says that its memory is insufficient.

    The cache is halved. Where it would become smaller than one request may be (``context``), FP16 gives way to Q8
    first, unless the mode was asked for (``fixed_mode``).
    """
    tokens = pages(tokens)
    while True:
        yield mode, tokens
        half = tokens // 2 // PAGE * PAGE
        if half < pages(context) and mode == "fp16" and not fixed_mode:
            mode = "q8"
        elif half >= LEAST_TOKENS:
            tokens = half
        else:
            return
