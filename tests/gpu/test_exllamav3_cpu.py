"""The adapter on exllamav3's real config, tokenizer, generator, jobs and JSON filter, without a GPU.

Not real are the model (it counts), the arithmetic of the sampler (the likeliest token is taken), pinned memory, and the
compiled extension, so nothing is said here about kernels, sampling, speed or memory of a GPU, and JSON is drawn from the
filter alone. docs/gpu.md has the command.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")
if torch.cuda.is_available():
    pytest.skip("a GPU is visible; set CUDA_VISIBLE_DEVICES to nothing", allow_module_level=True)
from tests.gpu import compiled_stand_in

compiled_stand_in.install_v3()
exllamav3 = pytest.importorskip("exllamav3", exc_type=Exception)

from engine.backends.exllama import ExLlama
from engine.backends.exllama_library import NEUTRAL, Job
from engine.backends.exllama_prompts import read_prompts
from engine.backends.exllamav3_parts import ExLlamaV3Library
from engine.backends.protocol import ModelSpec, Request
from engine.errors import EvaldeskError
from engine.judging.verdict import reply_schema
from tests.gpu.loop_checks import TEMPLATE, CountingModel, Desk, Load, LoopChecks
from tests.gpu.tiny_model import make_model

pytestmark = pytest.mark.exllamav2

SCHEMA = reply_schema(quote_required=True, reason_chars=60)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def library(directory: Path) -> ExLlamaV3Library:
    return ExLlamaV3Library(directory, 2048)


class Scripted(ExLlamaV3Library):
    """The real library with a model that counts, on the CPU."""

    def load(self, mode: str, tokens: int, parallel: int) -> None:
        self.counting = CountingModel(self.token_id, self.config.vocab_size)
        self.model = exllamav3.Model.from_config(self.config)
        self.cache = exllamav3.Cache(self.model, max_num_tokens=tokens)
        self.cache.initialized = True
        self.cache.copy_page = lambda *_, **__: None
        self.model.forward, self.model.prefill = self.forward, self.forward
        self.model.prefetch_tokens = lambda ids: None
        self.generator = exllamav3.Generator(
            model=self.model, cache=self.cache, tokenizer=self.tokenizer, max_batch_size=parallel, max_q_size=1
        )

    def forward(self, input_ids: Any, params: Any) -> Any:
        self.counting.before(input_ids)
        return self.counting.logits(input_ids)


def likeliest(
    sampler: Any, logits: Any, past_ids: Any, random_number: int, tokenizer: Any, logit_mask: Any = None
) -> Any:
    return logits.view(1, -1).argmax(-1, keepdim=True)


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    from exllamav3.generator import generator

    zeros, empty = torch.zeros, torch.empty
    monkeypatch.setattr(torch, "zeros", lambda *size, pin_memory=False, **more: zeros(*size, **more))
    monkeypatch.setattr(torch, "empty", lambda *size, pin_memory=False, **more: empty(*size, **more))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    monkeypatch.setattr(generator, "cuda_sync_active", lambda: None)
    monkeypatch.setattr(exllamav3.ComboSampler, "forward", likeliest)
    directory = make_model(tmp_path / "tiny", template=TEMPLATE)
    desks: list[Desk] = []

    def make(**spec: Any) -> Desk:
        libraries: list[Scripted] = []

        def opened(path: Path, context: int) -> Scripted:
            libraries.append(Scripted(path, context))
            return libraries[0]

        backend = ExLlama("exllamav3", opened)
        info = backend.load(ModelSpec("exllamav3", "tiny", str(directory), **{"context_length": 2048, **spec}))
        desks.append(Desk(backend, libraries[0], info))
        return desks[-1]

    yield make
    for desk in desks:
        desk.backend.close()


@pytest.fixture
def desk(load: Load) -> Desk:
    return load(parallel=4)


class TestLoop(LoopChecks):
    """All of it."""


def job(**more: Any) -> Job:
    return Job("key", (0, 4, 50), 5, {**NEUTRAL, **more.pop("sampling", {})}, (1, 2), **more)


def test_the_prompt_has_one_bos_and_special_tokens_are_single_ones(directory: Path, library: ExLlamaV3Library) -> None:
    prompts = read_prompts(directory, library.encode, library.token_id, 2048)
    made = prompts.job(Request("r", [{"role": "user", "content": "a"}], {}))
    assert made.ids[:2] == (0, 4) and made.ids.count(0) == 1 and made.end_ids == (1, 2)
    assert library.decode(torch.tensor([[library.token_id("a")]])) == "a"


def test_a_job_is_made_of_what_was_asked_for(library: ExLlamaV3Library) -> None:
    made = library.job(job(stop=("de",), logprobs=True))
    assert (made.identifier, made.max_new_tokens, made.return_logits) == ("key", 5, True)
    assert (made.stop_tokens, made.stop_strings, made.filters) == ({1, 2}, {"de"}, [])
    assert made.sequences[0].input_ids.torch().tolist() == [[0, 4, 50]]


@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.7, "top_p": 0.9, "repeat_penalty": 1.1, "seed": 3}])
def test_a_sampler_can_be_made(library: ExLlamaV3Library, sampling: dict[str, Any]) -> None:
    made = library.job(job(sampling=sampling))
    assert made.sampler.steps and made.seed == sampling.get("seed", 0)


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_drawn_under_the_filter_is_compact_json_of_the_schema(library: ExLlamaV3Library, seed: int) -> None:
    (guide,) = library.job(job(schema=SCHEMA)).filters
    draw, ids = random.Random(seed), []
    while True:
        words = guide.get_next_logit_mask()[0].tolist()
        allowed = [32 * place + bit for place, word in enumerate(words) for bit in range(32) if word >> bit & 1]
        ids.append(draw.choice(allowed))
        if guide.feed(ids[-1]):
            break
    text = library.decode(torch.tensor([ids]))
    reply = json.loads(text)
    assert list(reply) == list(SCHEMA["properties"]) and reply["verdict"] in ("PASS", "FAIL")
    assert text == json.dumps(reply, ensure_ascii=False, separators=(",", ":"))


def test_a_schema_that_cannot_be_followed_is_an_error(library: ExLlamaV3Library) -> None:
    with pytest.raises(ValueError, match="grammar"):
        library.job(job(schema={"type": "no such type"}))


def test_without_a_gpu_loading_says_so(directory: Path) -> None:
    with pytest.raises(EvaldeskError, match="needs an NVIDIA GPU"):
        ExLlama("exllamav3").load(ModelSpec("exllamav3", "tiny", str(directory)))
