"""The adapter on exllamav2's real config, tokenizer, sampler and generator, without a GPU: against a scripted model.

The compiled extension is a stand-in, so nothing is said here about kernels, speed or memory of a GPU. docs/gpu.md has the command.
"""

from __future__ import annotations

import json
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

compiled_stand_in.install()
pytest.importorskip("exllamav2", exc_type=Exception)


from engine.backends.exllama import ExLlama
from engine.backends.exllamav2_parts import ExLlamaV2Library
from engine.backends.protocol import ModelSpec
from engine.judging.verdict import reply_schema
from tests.gpu.loop_checks import TEMPLATE, CountingModel, Desk, Load, LoopChecks, ask
from tests.gpu.tiny_model import make_model

pytestmark = pytest.mark.exllamav2

SCHEMA = reply_schema(quote_required=True, reason_chars=60)


class Scripted(ExLlamaV2Library):
    """The real library with a model that counts, on the CPU."""

    paged = True

    def __init__(self, directory: Path, context: int) -> None:
        super().__init__(directory, context)
        self.found = (self.serial_because, self.config.no_flash_attn, self.config.no_sdpa)
        if self.paged:
            self.serial_because, self.config.no_flash_attn = "", False
        self.counting = CountingModel(self.token_id, self.config.vocab_size)

    def load_weights(self, mode: str, tokens: int) -> Any:
        import exllamav2

        self.model.forward_chunk = self.forward
        return exllamav2.ExLlamaV2Cache(self.model, max_seq_len=tokens, fixed_device="cpu")

    def forward(self, input_ids: Any, *, preprocess_only: bool = False, **_: Any) -> dict[str, Any]:
        self.counting.before(input_ids)
        return {} if preprocess_only else {"logits": self.counting.logits(input_ids)}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("tiny"), template=TEMPLATE)


@pytest.fixture
def load(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    from exllamav2.generator import dynamic

    monkeypatch.setattr(dynamic, "assert_paged_attn", lambda: None)
    desks: list[Desk] = []

    def make(*, paged: bool = True, **spec: Any) -> Desk:
        libraries: list[Scripted] = []

        def opened(path: Path, context: int) -> Scripted:
            monkeypatch.setattr(Scripted, "paged", paged)
            libraries.append(Scripted(path, context))
            return libraries[0]

        backend = ExLlama("exllamav2", opened)
        info = backend.load(ModelSpec("exllamav2", "tiny", str(directory), **{"context_length": 2048, **spec}))
        desks.append(Desk(backend, libraries[0], info))
        return desks[-1]

    yield make
    for desk in desks:
        desk.backend.close()


@pytest.fixture(params=[True, False], ids=["paged", "serial"])
def desk(load: Load, request: pytest.FixtureRequest) -> Desk:
    return load(paged=request.param, parallel=4)


class TestLoop(LoopChecks):
    """In paged and in serial mode."""


def test_at_a_temperature_the_seed_decides(desk: Desk) -> None:
    def draw(seed: int) -> str:
        desk.library.counting.noise = torch.Generator().manual_seed(0)
        return desk.run([ask("r", "a", max_tokens=8, temperature=1.0, seed=seed)])["r"].text

    assert draw(1) == draw(1) != draw(2)


def test_nothing_but_the_fields_asked_for_reshapes_the_distribution(desk: Desk) -> None:
    job = desk.backend._prompts.job(ask("r", "a", temperature=0.7))
    made = desk.library.job(job).gen_settings
    assert (made.temperature, made.top_k, made.top_p, made.token_repetition_penalty) == (0.7, 0, 1.0, 1.0)
    greedy = desk.library.job(desk.backend._prompts.job(ask("r", "a"))).gen_settings
    assert (greedy.temperature, greedy.top_k, greedy.token_repetition_penalty) == (1.0, 1, 1.0)


def test_replies_under_a_schema_are_compact_json_of_it(desk: Desk) -> None:
    pytest.importorskip("llguidance")
    desk.library.counting.noise = torch.Generator().manual_seed(0)
    requests = [ask(f"r{n}", "a", SCHEMA, max_tokens=400, temperature=1.0, seed=n) for n in range(8)]
    for completion in desk.run(requests).values():
        assert (completion.error, completion.finish) == ("", "stop")
        reply = json.loads(completion.text)
        assert list(reply) == list(SCHEMA["properties"]) and reply["verdict"] in ("PASS", "FAIL")
        assert completion.text == json.dumps(reply, ensure_ascii=False, separators=(",", ":"))


def test_a_schema_that_cannot_be_followed_is_the_error_of_its_request(desk: Desk) -> None:
    pytest.importorskip("llguidance")
    done = desk.run([ask("bad", "a", {"type": "no such type"}), ask("good", "a", max_tokens=3)])
    assert "schema cannot be followed" in done["bad"].error and done["good"].text == "bcd"


def test_in_serial_mode_too_what_was_computed_is_used_again(load: Load) -> None:
    desk = load(paged=False)
    common = "The quick brown fox jumps over the lazy dog. " * 60
    done = desk.run([ask(f"r{n}", f"{common} {n} a", max_tokens=4) for n in range(3)])
    assert sorted(completion.cached_tokens > 512 for completion in done.values()) == [False, True, True]


def test_without_flash_attn_the_path_without_a_causal_mask_is_switched_off(load: Load) -> None:
    desk = load(paged=False)
    assert desk.library.found == ("flash-attn 2.5.7 or newer is not installed", True, True)
    assert "serial mode, no batching, because flash-attn 2.5.7 or newer is not installed" in desk.info.facts["notes"]


def test_attention_without_sdpa_is_causal() -> None:
    from exllamav2.attn import ExLlamaV2Attention as Attention
    from torch.nn.functional import scaled_dot_product_attention

    batch, length, heads, kv_heads, size = 1, 16, 4, 2, 64
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(batch, length, count, size, generator=generator) for count in (heads, kv_heads, kv_heads))

    class Layer:
        num_key_value_groups = heads // kv_heads
        sliding_window = 0
        layer_idx = 0
        scaling = size**-0.5
        repeat_kv = Attention.repeat_kv

    class Config:
        no_sdpa = True
        attn_logit_softcapping = None

    attend = Attention._attn_torch
    params = Attention.Params(1, length, 0)
    ours = attend(Layer(), batch, length, q.half(), k.half(), v.half(), params, Config()).float()
    full_k, full_v = (one.repeat_interleave(heads // kv_heads, dim=2).transpose(1, 2) for one in (k, v))
    causal = scaled_dot_product_attention(q.transpose(1, 2), full_k, full_v, is_causal=True).transpose(1, 2)
    assert (ours.view(batch, length, heads, size) - causal).abs().max() < 0.02
