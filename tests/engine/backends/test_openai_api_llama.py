"""The adapter against a real server: llama.cpp's own HTTP server on loopback, with the small embedded model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from engine.backends.backoff import Backoff
from engine.backends.openai_api import OpenAiApi
from engine.backends.protocol import ModelSpec, Request
from engine.errors import EvaldeskError
from engine.judging.verdict import reply_schema
from engine.models.registry import SMOLLM2, find_models
from tests.engine.backends.test_openai_api import carry_out, request

pytest.importorskip("aiohttp")
xllamacpp = pytest.importorskip("xllamacpp")

KEY = "llama-test-7Yx2Qm"
ALIAS = "small"


@dataclass(frozen=True)
class Listening:
    url: str
    server: object


@pytest.fixture(scope="module")
def llama() -> Iterator[Listening]:
    found = [model for model in find_models() if model.name == SMOLLM2]
    if not found:
        pytest.skip("the embedded model is not installed")
    params = xllamacpp.CommonParams()
    params.model.path = str(found[0].path)
    params.model_alias = {ALIAS}
    params.n_parallel, params.n_ctx = 2, 1024
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = False
    params.verbosity = 1
    params.ui = False
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.api_keys = [KEY]
    server = xllamacpp.Server(params)
    yield Listening(str(server.listening_address), server)
    del server


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMA_KEY", KEY)


def spec(llama: Listening, model: str = ALIAS) -> ModelSpec:
    return ModelSpec("openai_api", "x", llama.url, parallel=2, options={"model": model, "key_env": "LLAMA_KEY"})


def test_replies_come_with_their_usage(llama: Listening) -> None:
    backend = OpenAiApi()
    info = backend.load(spec(llama))
    done = carry_out(backend, [request("a", max_tokens=3), request("b", seed=0)])
    backend.close()
    assert (info.parallel, info.context_length) == (2, 512)
    for completion in done.values():
        assert completion.error == "" and completion.completion_tokens > 0 < completion.prompt_tokens
        assert completion.finish in ("stop", "length") and completion.seconds > 0
    assert (done["a"].finish, done["a"].completion_tokens) == ("length", 3)


def test_options_are_weighed(llama: Listening) -> None:
    backend = OpenAiApi()
    backend.load(spec(llama))
    question = ({"role": "user", "content": "Which animal barks? A. dog B. cat. Answer with the letter only."},)
    done = carry_out(backend, [Request("o", question, {"temperature": 0, "max_tokens": 1}, None, ("A", "B"))])["o"]
    backend.close()
    assert done.error == "" and set(done.likelihoods) == {"A", "B"}
    assert done.text == max("AB", key=lambda option: done.likelihoods[option])


@pytest.mark.slow
def test_judgements_follow_the_schema_in_the_firmest_form(llama: Listening) -> None:
    backend = OpenAiApi()
    backend.load(spec(llama))
    schema = reply_schema(quote_required=False, reason_chars=40)
    done = carry_out(backend, [request(f"j{n}", schema, max_tokens=120) for n in range(2)])
    backend.close()
    for completion in done.values():
        assert list(json.loads(completion.text)) == ["reason", "verdict"]
        assert completion.extra["schema"] == "json_schema"


def test_a_wrong_key_stops_before_anything_is_generated(llama: Listening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMA_KEY", "wrong-key-wrong-key")
    backend = OpenAiApi(Backoff(base=0.01, tries=2))
    with pytest.raises(EvaldeskError, match="refuses the key in LLAMA_KEY"):
        backend.load(spec(llama))


def test_a_model_that_it_does_not_have_stops_the_load_and_is_told_apart_by_the_reply(llama: Listening) -> None:
    with pytest.raises(EvaldeskError, match=f"answers with the model '{ALIAS}' where 'gpt-x' is asked for"):
        OpenAiApi().load(spec(llama, "gpt-x"))


def test_a_request_that_is_too_long_is_its_own_error(llama: Listening) -> None:
    backend = OpenAiApi()
    backend.load(spec(llama))
    long = Request("long", ({"role": "user", "content": "word " * 2000},), {})
    done = carry_out(backend, [long, request("ok")])
    backend.close()
    assert "400" in done["long"].error and "context" in done["long"].error and done["ok"].error == ""
