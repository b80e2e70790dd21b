"""Sizes of the cache, and what is tried when memory is short."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backends.kv_cache import (
    BYTES_PER_ELEMENT,
    LEAST_TOKENS,
    PAGE,
    RESERVE,
    KvShape,
    attempts,
    first_attempt,
    kv_shape,
    pages,
    tokens_that_fit,
)

LLAMA_8B = KvShape(32, 8, 128)


def test_bytes_of_a_token() -> None:
    assert LLAMA_8B.bytes_per_token("fp16") == 128 * 1024
    assert LLAMA_8B.bytes_per_token("q4") == 36 * 1024


def test_the_shape_is_read_from_the_usual_fields_or_not_at_all() -> None:
    config = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}
    assert kv_shape(config) == LLAMA_8B
    assert kv_shape({"text_config": config}) == LLAMA_8B
    assert kv_shape({**config, "head_dim": 64, "num_key_value_heads": None}) == KvShape(32, 32, 64)
    assert kv_shape({"num_hidden_layers": 32}) is None
    assert kv_shape({}) is None


@given(st.integers(1, 1 << 20))
def test_pages_are_whole_and_large_enough(tokens: int) -> None:
    assert pages(tokens) % PAGE == 0 and 0 <= pages(tokens) - tokens < PAGE


@given(st.integers(0, 1 << 38), st.integers(0, 1 << 36), st.sampled_from(sorted(BYTES_PER_ELEMENT)))
def test_what_fits_does_fit_and_one_page_more_would_not(free: int, weights: int, mode: str) -> None:
    tokens = tokens_that_fit(free, weights, LLAMA_8B, mode)
    room = free - weights - RESERVE
    assert tokens % PAGE == 0
    assert tokens == 0 or tokens * LLAMA_8B.bytes_per_token(mode) <= room
    assert (tokens + PAGE) * LLAMA_8B.bytes_per_token(mode) > room


def test_short_memory_takes_q8_unless_a_mode_was_asked_for() -> None:
    def first(free: int, mode: str = "fp16", *, fixed: bool = False) -> tuple[str, int]:
        return first_attempt(65536, 8192, mode, fixed_mode=fixed, shape=LLAMA_8B, free=free, weights=5 * 2**30)

    assert first(80 * 2**30) == ("fp16", 65536)
    assert first(10 * 2**30) == ("fp16", 28672)
    assert first(7 * 2**30) == ("q8", 8192)
    assert first(7 * 2**30, fixed=True) == ("fp16", 8192)
    assert first(7 * 2**30, "q4", fixed=True) == ("q4", 14336)
    assert first(0) == ("fp16", 65536)


def test_the_cache_is_halved_and_gives_way_to_q8_where_a_request_would_no_longer_fit() -> None:
    assert list(attempts(16384, 8192, "fp16", fixed_mode=False)) == [
        ("fp16", 16384), ("fp16", 8192), ("q8", 8192), ("q8", 4096), ("q8", 2048), ("q8", 1024),
    ]  # fmt: skip
    assert list(attempts(4000, 4000, "fp16", fixed_mode=True)) == [("fp16", 4096), ("fp16", 2048), ("fp16", 1024)]


@given(st.integers(1, 1 << 20), st.integers(1, 1 << 18), st.booleans(), st.sampled_from(sorted(BYTES_PER_ELEMENT)))
def test_attempts_end_and_never_grow(tokens: int, context: int, fixed: bool, mode: str) -> None:
    tried = list(attempts(tokens, context, mode, fixed_mode=fixed))
    assert tried[0] == (mode, pages(tokens)) and len(set(tried)) == len(tried)
    sizes = [size for _, size in tried]
    assert sizes == sorted(sizes, reverse=True) and all(size % PAGE == 0 for size in sizes)
    assert all(size >= min(LEAST_TOKENS, sizes[0]) for size in sizes)


def test_an_unknown_mode_is_an_error() -> None:
    with pytest.raises(KeyError):
        LLAMA_8B.bytes_per_token("q5")
