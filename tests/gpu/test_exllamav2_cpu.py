"""The adapter on exllamav2's real config, tokenizer, sampler and generator, without a GPU: against a scripted model.

The model counts through the alphabet: after "a" comes "b", after "j" an end token. The compiled extension is a
stand-in, so nothing is said here about kernels, speed or memory of a GPU. docs/gpu.md has the command.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
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

import itertools

from engine.backends.exllama import ExLlama
from engine.backends.exllamav2_parts import ExLlamaV2Library
from engine.backends.protocol import Completion, ModelInfo, ModelSpec, Request
from engine.judging.verdict import reply_schema
from tests.gpu.tiny_model import make_model

pytestmark = pytest.mark.exllamav2

LETTERS = "abcdefghij"
END = 2
SCHEMA = reply_schema(quote_required=True, reason_chars=60)


class Scripted(ExLlamaV2Library):
    """The real library with a model that counts, on the CPU. ``before`` is called with the token ids of each forward."""

    paged = True

    def __init__(self, directory: Path, context: int) -> None:
        super().__init__(directory, context)
        self.found = (self.serial_because, self.config.no_flash_attn, self.config.no_sdpa)
        if self.paged:
            self.serial_because, self.config.no_flash_attn = "", False
        ids = [self.tokenizer.single_id(letter) for letter in LETTERS]
        self.first = ids[0]
        self.following = {**dict(itertools.pairwise(ids)), ids[-1]: END}
        self.before: Callable[[Any], None] = lambda input_ids: None
        self.noise: Any = None
        self.widths: list[int] = []

    def load_weights(self, mode: str, tokens: int) -> Any:
        import exllamav2

        self.model.forward_chunk = self.forward
        return exllamav2.ExLlamaV2Cache(self.model, max_seq_len=tokens, fixed_device="cpu")

    def forward(self, input_ids: Any, *, preprocess_only: bool = False, **_: Any) -> dict[str, Any]:
        self.before(input_ids)
        if preprocess_only:
            return {}
        self.widths.append(len(input_ids))
        vocabulary = self.config.vocab_size
        if self.noise is not None:
            return {"logits": torch.randn(*input_ids.shape, vocabulary, generator=self.noise)}
        logits = torch.zeros(*input_ids.shape, vocabulary)
        for row, ids in enumerate(input_ids.tolist()):
            for column, token in enumerate(ids):
                logits[row, column, self.following.get(token, self.first)] = 5.0
        return {"logits": logits}


class Desk:
    """A backend with the library under it."""

    def __init__(self, backend: ExLlama, library: Scripted, info: ModelInfo) -> None:
        self.backend, self.library, self.info = backend, library, info

    def run(self, requests: Sequence[Request]) -> dict[str, Completion]:
        self.backend.submit(requests)
        done: dict[str, Completion] = {}
        while self.backend.in_flight:
            done.update({completion.key: completion for completion in self.backend.results(10.0)})
        return done


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # The prompt ends with the user's own last letter, from which the model counts on.
    return make_model(tmp_path_factory.mktemp("tiny"), template="{{ bos_token }}{% for m in messages %}<|start|>"
                      "{{ m['content'] }}{% endfor %}")  # fmt: skip


@pytest.fixture
def load(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Desk]]:
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
def desk(load: Callable[..., Desk], request: pytest.FixtureRequest) -> Desk:
    return load(paged=request.param, parallel=4)


def ask(key: str, text: str, schema: Any = None, **sampling: Any) -> Request:
    return Request(key, [{"role": "user", "content": text}], sampling, schema)


def test_the_end_token_ends_a_reply_also_one_that_stands_in_one_file_only(desk: Desk) -> None:
    done = desk.run([ask("r", "x a", max_tokens=50)])["r"]
    assert (done.text, done.finish, done.error) == ("bcdefghij", "stop", "")
    assert done.completion_tokens == 10, "the end token counts"


def test_the_prompt_has_one_bos_and_special_tokens_are_single_ones(desk: Desk) -> None:
    job = desk.backend._prompts.job(ask("r", "a"))
    assert job.ids == (0, 4, desk.library.tokenizer.single_id("a")) and job.end_ids == (1, 2)


def test_stop_strings(desk: Desk) -> None:
    done = desk.run(
        [
            ask("crossing", "a", max_tokens=50, stop="de"),
            ask("held", "a", max_tokens=50, stop=["ijZZZ"]),
            ask("on the last token", "a", max_tokens=4, stop=["de"]),
            ask("begun on the last token", "a", max_tokens=3, stop=["de"]),
        ]
    )
    assert {key: (c.text, c.finish) for key, c in done.items()} == {
        "crossing": ("bc", "stop"),
        "held": ("bcdefghij", "stop"),
        "on the last token": ("bc", "stop"),
        "begun on the last token": ("bcd", "length"),
    }


def test_a_character_of_several_tokens_is_whole_where_the_limit_cuts_after_it(desk: Desk) -> None:
    ids = desk.library.encode("é")
    assert len(ids) == 2
    desk.library.following |= {desk.library.first: ids[0], ids[0]: ids[1], ids[1]: END}
    done = desk.run([ask("cut", "a", max_tokens=2), ask("whole", "a", max_tokens=9), ask("half", "a", max_tokens=1)])
    assert (done["cut"].text, done["whole"].text, done["half"].text) == ("é", "é", "\ufffd")


def test_log_probabilities_are_the_models_own_also_when_greedy(desk: Desk) -> None:
    done = desk.run([ask("r", "a", max_tokens=50, logprobs=True, stop=["ijZZ"]), ask("none", "a", max_tokens=2)])
    logprobs = done["r"].extra["logprobs"]
    allowed = desk.library.tokenizer.get_vocab_size()
    assert len(logprobs) == done["r"].completion_tokens == 10
    assert logprobs == pytest.approx([5 - math.log(math.exp(5) + allowed - 1)] * 10, abs=1e-4)
    assert done["none"].extra == {}


def test_at_a_temperature_the_seed_decides(desk: Desk) -> None:
    def draw(seed: int) -> str:
        desk.library.noise = torch.Generator().manual_seed(0)
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
    desk.library.noise = torch.Generator().manual_seed(0)
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


def test_a_common_beginning_is_computed_once(load: Callable[..., Desk]) -> None:
    desk = load(parallel=4)
    common = "The quick brown fox jumps over the lazy dog. " * 60
    done = desk.run([ask(f"r{n}", f"{common} {n} a", max_tokens=4) for n in range(4)])
    prompt = done["r0"].prompt_tokens
    cached = sorted(completion.cached_tokens for completion in done.values())
    assert prompt > 512 and cached[0] == 0 and all(count >= 512 for count in cached[1:]), (prompt, cached)
    again = desk.run([ask("later", f"{common} 9 a", max_tokens=4)])["later"]
    assert again.cached_tokens >= 512


def test_in_serial_mode_too_what_was_computed_is_used_again(load: Callable[..., Desk]) -> None:
    desk = load(paged=False)
    common = "The quick brown fox jumps over the lazy dog. " * 60
    done = desk.run([ask(f"r{n}", f"{common} {n} a", max_tokens=4) for n in range(3)])
    assert sorted(completion.cached_tokens > 512 for completion in done.values()) == [False, True, True]


def test_requests_share_a_batch_in_paged_mode_and_go_alone_in_serial_mode(desk: Desk) -> None:
    desk.run([ask(f"r{n}", "a", max_tokens=9) for n in range(6)])
    assert max(desk.library.widths) == (4 if "batch" in desk.info.features else 1) == desk.info.parallel


def test_without_flash_attn_the_path_without_a_causal_mask_is_switched_off(load: Callable[..., Desk]) -> None:
    desk = load(paged=False)
    assert desk.library.found == ("flash-attn 2.5.7 or newer is not installed", True, True)
    assert "serial mode, no batching, because flash-attn 2.5.7 or newer is not installed" in desk.info.facts["notes"]


def test_a_batch_goes_on_after_an_exception_in_its_midst(desk: Desk) -> None:
    expected = {key: c.text for key, c in desk.run([ask(f"r{n}", "a", max_tokens=7) for n in range(5)]).items()}
    calls = []

    def fails_once(input_ids: Any) -> None:
        calls.append(input_ids)
        if len(calls) == 5:
            raise RuntimeError("something went wrong")

    desk.library.before = fails_once
    done = desk.run([ask(f"r{n}", "a", max_tokens=7) for n in range(5)])
    # Alone at the time, a request has its error; in a batch all of them start anew.
    failed = [completion for completion in done.values() if completion.error]
    assert len(failed) == (0 if "batch" in desk.info.features else 1)
    assert all(c.text == expected[key] for key, c in done.items() if not c.error)
    assert set(desk.library.generator.referenced_pages) == set()


def test_a_request_that_always_fails_takes_no_other_with_it(desk: Desk) -> None:
    poison = desk.library.tokenizer.single_id("Q")

    def fails(input_ids: Any) -> None:
        if poison in input_ids.flatten().tolist():
            raise RuntimeError("cannot compute Q")

    desk.library.before = fails
    done = desk.run([ask("bad", "aQa", max_tokens=5), *[ask(f"r{n}", "a", max_tokens=5) for n in range(5)]])
    assert done["bad"].error == "exllamav2 failed: RuntimeError: cannot compute Q"
    assert [done[f"r{n}"].text for n in range(5)] == ["bcdef"] * 5


def test_memory_that_runs_out_makes_the_batch_smaller(load: Callable[..., Desk]) -> None:
    desk = load(parallel=4)

    def fails(input_ids: Any) -> None:
        if len(input_ids) > 2:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")

    desk.library.before = fails
    done = desk.run([ask(f"r{n}", "a", max_tokens=5) for n in range(6)])
    assert {completion.text for completion in done.values()} == {"bcdef"}


def test_a_request_longer_than_the_context_and_one_that_fills_it(load: Callable[..., Desk]) -> None:
    desk = load(context_length=300, options={"cache_tokens": 512})
    done = desk.run([ask("long", "x" * 300), ask("fills", "x" * 290 + "a")])
    assert "the context holds 300" in done["long"].error
    assert done["fills"].finish == "length" and done["fills"].prompt_tokens + done["fills"].completion_tokens == 300


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
