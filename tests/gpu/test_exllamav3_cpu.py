"""What is exllamav3's own, as far as it goes without a GPU: its real config, tokenizer, jobs, samplers and JSON filter.

Its generator needs CUDA, so no reply is made here; the loop is the one that test_exllamav2_cpu runs. docs/gpu.md has
the command.
"""

from __future__ import annotations

import json
import random
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
from tests.gpu.tiny_model import make_model

pytestmark = pytest.mark.exllamav2

SCHEMA = reply_schema(quote_required=True, reason_chars=60)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def library(directory: Path) -> ExLlamaV3Library:
    return ExLlamaV3Library(directory, 2048)


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
