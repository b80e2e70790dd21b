"""The adapter on a CUDA machine: loading, batches, cache, JSON, and how much of the bare generator's speed is left.

Runs with whichever of exllamav2 and exllamav3 is installed, on random weights of a 1.1-billion model's shape, or on the
model directory that EVALDESK_GPU_MODEL names. docs/gpu.md has the command.
"""

from __future__ import annotations

import importlib.util
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("torch finds no CUDA device", allow_module_level=True)

from engine.backends.exllama import ExLlama
from engine.backends.kv_cache import BYTES_PER_ELEMENT
from engine.backends.protocol import Completion, ModelInfo, ModelSpec, Request
from engine.judging.verdict import reply_schema
from engine.models.directory import quantisation
from engine.models.registry import directory_backend
from tests.gpu.tiny_model import make_model

pytestmark = pytest.mark.gpu

SCHEMA = reply_schema(quote_required=True, reason_chars=60)
COMMON = "The quick brown fox jumps over the lazy dog. " * 60
LEAST_SPEED = 0.9
"""Of the bare generator's tokens a second."""
Load = Callable[..., tuple[ExLlama, ModelInfo]]

# name of the library, and whether the weights are random 4-bit GPTQ ones
KINDS = [("exllamav2", False), ("exllamav2", True), ("exllamav3", False)]


@pytest.fixture(scope="module", params=KINDS, ids=["exllamav2", "exllamav2-gptq", "exllamav3"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ModelSpec:
    name, gptq = request.param
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    named = os.environ.get("EVALDESK_GPU_MODEL", "")
    if not named:
        path = make_model(tmp_path_factory.mktemp("model"), "small", gptq=gptq)
        return ModelSpec(name, "random", str(path), context_length=4096)
    if gptq or directory_backend(quantisation(Path(named))) != name:
        pytest.skip(f"{named} is not run by {name}")
    return ModelSpec(name, "named", named, context_length=4096)


@pytest.fixture
def load(model: ModelSpec) -> Iterator[Load]:
    loaded: list[ExLlama] = []

    def make(**options: Any) -> tuple[ExLlama, ModelInfo]:
        backend = ExLlama(model.backend)
        info = backend.load(
            ModelSpec(model.backend, model.name, model.path, model.context_length, parallel=16, options=options)
        )
        loaded.append(backend)
        return backend, info

    yield make
    for backend in loaded:
        backend.close()


def ask(key: str, text: str, schema: Any = None, **sampling: Any) -> Request:
    return Request(key, [{"role": "user", "content": text}], {"max_tokens": 32, **sampling}, schema)


def run(backend: ExLlama, requests: Sequence[Request]) -> dict[str, Completion]:
    backend.submit(requests)
    done: dict[str, Completion] = {}
    while backend.in_flight:
        done.update({completion.key: completion for completion in backend.results(60.0)})
    assert [completion.error for completion in done.values() if completion.error] == []
    return done


def test_a_batch_is_answered_and_greedy_replies_repeat(load: Load) -> None:
    backend, info = load()
    requests = [ask(f"r{n}", f"Question {n}?", logprobs=True) for n in range(40)]
    first, second = run(backend, requests), run(backend, requests)
    print(info.facts)
    assert len(first) == 40 and all(c.completion_tokens > 0 for c in first.values())
    assert all(len(c.extra["logprobs"]) == c.completion_tokens for c in first.values())
    # Not all of them have to: the order of sums depends on the batch.
    print("replies that repeat:", sum(first[key].text == second[key].text for key in first), "of 40")


def test_a_common_beginning_is_computed_once_and_changes_nothing(load: Load) -> None:
    backend, _ = load()
    fresh = run(backend, [ask("fresh", f"{COMMON} 1", logprobs=True, max_tokens=1)])["fresh"]
    cached = run(backend, [ask("cached", f"{COMMON} 1", logprobs=True, max_tokens=1)])["cached"]
    others = run(backend, [ask(f"r{n}", f"{COMMON} {n}", max_tokens=1) for n in range(2, 8)])
    assert fresh.cached_tokens == 0 and cached.cached_tokens > 0.6 * cached.prompt_tokens
    assert all(c.cached_tokens > 0.6 * c.prompt_tokens for c in others.values())
    assert cached.extra["logprobs"] == pytest.approx(fresh.extra["logprobs"], abs=0.1)


@pytest.mark.parametrize("mode", sorted(BYTES_PER_ELEMENT))
def test_every_cache_mode_answers(load: Load, mode: str) -> None:
    backend, info = load(cache=mode, cache_tokens=8192)
    assert (info.facts["cache"], info.facts["cache_tokens"]) == (mode, 8192)
    assert len(run(backend, [ask(f"r{n}", f"{COMMON} {n}") for n in range(4)])) == 4


def test_replies_under_a_schema_are_json_of_it(load: Load) -> None:
    backend, _ = load()
    requests = [ask(f"r{n}", "Judge.", SCHEMA, max_tokens=600, temperature=1.0, seed=n) for n in range(16)]
    for completion in run(backend, requests).values():
        reply = json.loads(completion.text)
        assert list(reply) == list(SCHEMA["properties"]) and reply["verdict"] in ("PASS", "FAIL")


def test_a_cache_for_which_there_is_no_memory_is_made_smaller(load: Load) -> None:
    backend, info = load(cache="fp16", cache_tokens=1 << 24)
    assert info.facts["cache_tokens"] < 1 << 24
    assert len(run(backend, [ask("r", "Still there?")])) == 1


def test_little_of_the_bare_generators_speed_is_lost(load: Load) -> None:
    backend, info = load(cache_tokens=65536)
    requests = [ask(f"r{n:03}", f"{COMMON} {n}", max_tokens=64, temperature=1.0, seed=n) for n in range(64)]
    run(backend, requests[:4])
    bare = _tokens_per_second(backend, requests)
    backend._library.forget()
    started = time.perf_counter()
    done = run(backend, requests)
    ours = sum(c.completion_tokens for c in done.values()) / (time.perf_counter() - started)
    print(f"{info.backend}: bare {bare:.0f}, adapter {ours:.0f} tokens/s, ratio {ours / bare:.3f}")
    assert ours >= LEAST_SPEED * bare


def _tokens_per_second(backend: ExLlama, requests: Sequence[Request]) -> float:
    library = backend._library
    jobs = sorted((backend._prompts.job(request) for request in requests), key=lambda job: job.ids)
    library.forget()
    started, tokens = time.perf_counter(), 0
    for job in jobs:
        library.generator.enqueue(library.job(job))
    while library.generator.num_remaining_jobs():
        tokens += sum(result["new_tokens"] for result in library.generator.iterate() if result["eos"])
    return tokens / (time.perf_counter() - started)
