"""The embedded backend on the real library and the small model: what runs rely on."""

from __future__ import annotations

import http.client
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.backends.llamacpp import LlamaCpp
from engine.backends.protocol import Completion, ModelInfo, ModelSpec, Request
from engine.errors import EvaldeskError
from engine.judging.verdict import reply_schema
from engine.models.fingerprint import fingerprint
from engine.models.registry import SMOLLM2, FoundModel, find_models

if TYPE_CHECKING:
    from engine.backends.llamacpp_server import SlotServer

pytest.importorskip("xllamacpp")

SCHEMA = reply_schema(quote_required=False, reason_chars=40)
PREFIX = "You check support answers. PASS when the customer's question is answered, FAIL when it is not. " * 9
GREEDY = {"temperature": 0, "max_tokens": 48}
CONTEXT = 512


def _small_model() -> FoundModel:
    found = [model for model in find_models() if model.name == SMOLLM2]
    if not found:
        pytest.skip("the embedded model is not installed")
    return found[0]


def _loaded(parallel: int) -> tuple[LlamaCpp, ModelInfo]:
    backend = LlamaCpp()
    path = str(_small_model().path)
    return backend, backend.load(ModelSpec("llamacpp", SMOLLM2, path, context_length=CONTEXT, parallel=parallel))


@pytest.fixture(scope="module")
def single() -> Iterator[LlamaCpp]:
    backend, _ = _loaded(1)
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def batching() -> Iterator[LlamaCpp]:
    backend, _ = _loaded(2)
    yield backend
    backend.close()


def _request(key: str, user: str, *, system: str = "", schema: Any = None, **sampling: Any) -> Request:
    messages = [{"role": "system", "content": system}] if system else []
    return Request(key, [*messages, {"role": "user", "content": user}], {**GREEDY, **sampling}, schema)


def _run(backend: LlamaCpp, requests: Sequence[Request]) -> dict[str, Completion]:
    backend.submit(requests)
    done: dict[str, Completion] = {}
    while backend.in_flight:
        done.update({completion.key: completion for completion in backend.results(1.0)})
    return done


def test_the_information_is_that_of_the_file() -> None:
    backend, info = _loaded(2)
    backend.close()
    assert info.fingerprint == fingerprint(_small_model().path).short
    assert (info.context_length, info.parallel, info.backend) == (CONTEXT, 2, "llamacpp")
    assert info.features == {"schema", "likelihoods", "prefix_cache", "batch"} and info.backend_version


@pytest.mark.slow
def test_judge_replies_parse_are_compact_and_give_the_reason_first(batching: LlamaCpp) -> None:
    requests = [_request(f"r{n}", f"Where is order {n}?", system=PREFIX, schema=SCHEMA) for n in range(3)]
    done = _run(batching, requests)
    assert set(done) == {"r0", "r1", "r2"}
    for completion in done.values():
        assert (completion.error, completion.finish) == ("", "stop")
        pairs = json.loads(completion.text, object_pairs_hook=list)
        assert [name for name, _ in pairs] == ["reason", "verdict"]
        assert dict(pairs)["verdict"] in ("PASS", "FAIL") and 1 <= len(dict(pairs)["reason"]) <= 40
        assert completion.text == json.dumps(dict(pairs), ensure_ascii=False, separators=(",", ":"))
        assert completion.seconds > 0 and completion.completion_tokens > 0


@pytest.mark.slow
def test_a_common_beginning_is_computed_once_for_all_slots(batching: LlamaCpp) -> None:
    system = "Another task altogether. " + PREFIX
    done = _run(batching, [_request(f"p{n}", f"Case {n}.", system=system, max_tokens=2) for n in range(3)])
    first, *others = (done[f"p{n}"] for n in range(3))
    assert first.cached_tokens < 0.2 * first.prompt_tokens
    assert all(other.cached_tokens > 0.8 * other.prompt_tokens for other in others)


def _computed(server: SlotServer, user: str, *, reuse: bool) -> tuple[str, list[float], int]:
    """Reply, the log-probability of each of its tokens, and how much of the prompt was found computed."""
    body = {"messages": [{"role": "user", "content": user}], "temperature": 0, "top_k": 1, "max_tokens": 8}
    reply = server.chat({**body, "logprobs": True, "top_logprobs": 1, "cache_prompt": reuse})
    choice = reply["choices"][0]
    return (
        choice["message"]["content"],
        [token["logprob"] for token in choice["logprobs"]["content"]],
        reply["timings"]["cache_n"],
    )


@pytest.mark.slow
def test_one_at_a_time_a_reply_is_the_same_to_the_last_bit_whatever_ran_before(single: LlamaCpp) -> None:
    assert single._server is not None
    cases = [f"{PREFIX[: 240 - 60 * (n % 3)]} Case {n}: the parcel {'is late ' * n}." for n in range(5)]
    alone = [_computed(single._server, case, reuse=False) for case in cases]
    order = [3, 0, 1, 4, 2]
    after_others = {n: _computed(single._server, cases[n], reuse=True) for n in order}
    assert [after_others[n][:2] for n in range(5)] == [computed[:2] for computed in alone]
    assert sum(after_others[n][2] > 20 for n in order[1:]) >= 3


@pytest.mark.slow
def test_a_repeated_request_gives_the_same_reply_as_the_first_time(single: LlamaCpp) -> None:
    request = _request("g", "Is the parcel late?", system=PREFIX[:96], schema=SCHEMA)
    _run(single, [_request("other", "Say hi.", max_tokens=1)])
    first, second = (_run(single, [request])["g"] for _ in range(2))
    assert first.text == second.text and json.loads(first.text)["verdict"] in ("PASS", "FAIL")
    assert second.cached_tokens == 0


@pytest.mark.slow
def test_above_temperature_0_the_seed_decides_the_reply(single: LlamaCpp) -> None:
    replies = [
        _run(single, [_request("t", "Tell a story.", temperature=1.5, seed=seed, max_tokens=6)])["t"].text
        for seed in (0, 1, 0)
    ]
    assert replies[0] == replies[2] != replies[1]


def test_a_common_beginning_is_computed_once(single: LlamaCpp) -> None:
    system = "A third task. " + PREFIX[:500]
    done = _run(single, [_request(f"p{n}", f"Case {n}.", system=system, max_tokens=1) for n in range(3)])
    assert done["p0"].cached_tokens < 0.2 * done["p0"].prompt_tokens
    assert all(done[key].cached_tokens > 0.8 * done[key].prompt_tokens for key in ("p1", "p2"))


@pytest.mark.slow
def test_a_beginning_is_kept_while_others_run(single: LlamaCpp) -> None:
    one, other = "One more task. " + PREFIX[:500], "Quite another one. " + PREFIX[:500]
    requests = [_request(f"p{n}", f"Case {n}.", system=(one, other)[n % 2], max_tokens=1) for n in range(4)]
    done = _run(single, requests)
    assert all(done[key].cached_tokens < 0.2 * done[key].prompt_tokens for key in ("p0", "p1"))
    assert all(done[key].cached_tokens > 0.8 * done[key].prompt_tokens for key in ("p2", "p3"))


def test_options_are_weighed_and_not_read_out_of_a_reply(single: LlamaCpp) -> None:
    question = "Which animal barks?\nA. dog\nB. cat\nC. cow\nAnswer with the letter only."
    asked = _request("o", question, max_tokens=1)
    done = _run(single, [replace(asked, options=("A", "B", "C")), replace(asked, key="none", options=("zzq", "wvx"))])
    likelihoods = done["o"].likelihoods
    assert set(likelihoods) == {"A", "B", "C"} and done["o"].completion_tokens == 1
    assert 0.3 < sum(math.exp(value) for value in likelihoods.values()) < 1.0
    assert done["o"].text == max(likelihoods, key=lambda option: likelihoods[option])
    assert (done["none"].text, done["none"].likelihoods, done["none"].error) == ("", {}, "")


def test_a_schema_that_is_not_flat_is_followed_too(single: LlamaCpp) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "maximum": 9}},
        "required": ["n"],
        "additionalProperties": False,
    }
    done = _run(single, [_request("s", "Count to three as JSON.", schema=schema)])["s"]
    assert done.error == "" and isinstance(json.loads(done.text)["n"], int)


def test_a_cut_reply_says_so(single: LlamaCpp) -> None:
    done = _run(single, [_request("c", "Tell a long story.", max_tokens=3)])["c"]
    assert (done.finish, done.completion_tokens) == ("length", 3)


def test_a_request_longer_than_the_context_is_an_error_that_names_both_lengths(single: LlamaCpp) -> None:
    done = _run(single, [_request("long", "word " * 2 * CONTEXT), _request("short", "Say hi.", max_tokens=2)])
    assert str(CONTEXT) in done["long"].error and "shorten" in done["long"].error and done["long"].text == ""
    assert done["short"].error == ""


def test_what_the_library_cannot_do_is_an_error_of_that_request_only(single: LlamaCpp) -> None:
    requests = [
        _request("bad", "x", no_such_field=1),
        _request("worse", "x", stop=7),
        _request("ok", "x", max_tokens=1),
    ]
    done = _run(single, requests)
    assert "no_such_field" in done["bad"].error
    assert done["ok"].error == ""


@pytest.mark.slow
def test_any_text_survives(single: LlamaCpp) -> None:
    odd = "naïve 🙂👩‍👩‍👧 \x00\x1b[31m\x07 \u202e %s {0} <|im_end|> \ud800 \n\t 日本語"
    done = _run(single, [_request("u", odd, schema=SCHEMA), _request("e", "Reply with 🙂🙂🙂 only.", max_tokens=8)])
    assert done["u"].error == done["e"].error == ""
    assert done["u"].finish == "length" or json.loads(done["u"].text)["verdict"] in ("PASS", "FAIL")
    done["e"].text.encode("utf-8")


def test_cancel_drops_what_waits_and_leaves_the_backend_usable(single: LlamaCpp) -> None:
    single.submit([_request(f"x{n}", "Tell a story.", max_tokens=8) for n in range(6)])
    single.cancel()
    assert single.in_flight <= 1
    assert all(key.startswith("x") for key in _run(single, []))
    assert single.in_flight == 0
    assert _run(single, [_request("after", "Say hi.", max_tokens=2)])["after"].error == ""


def test_the_library_s_listener_is_closed_to_others(single: LlamaCpp) -> None:
    assert single._server is not None
    address = str(single._server._server.listening_address).removeprefix("http://")
    assert address.startswith("127.0.0.1:")
    for path in ("/v1/chat/completions", "/completion", "/slots/0?action=save", "/tokenize"):
        connection = http.client.HTTPConnection(address, timeout=10)
        connection.request("POST", path, "{}", {"Content-Type": "application/json"})
        assert connection.getresponse().status in (401, 404)
        connection.close()


def test_files_that_are_no_models_are_refused_in_one_line(tmp_path: Path) -> None:
    empty = tmp_path / "empty.gguf"
    empty.write_bytes(b"")
    text = tmp_path / "text.gguf"
    text.write_text("not a model")
    for path in (empty, text, tmp_path / "absent.gguf"):
        with pytest.raises(EvaldeskError) as caught:
            LlamaCpp().load(ModelSpec("llamacpp", "x", str(path)))
        assert str(path) in str(caught.value) and "\n" not in str(caught.value)
