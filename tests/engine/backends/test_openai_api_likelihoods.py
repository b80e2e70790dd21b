"""Options weighed by a server: what it lists, how many it lists, and servers that list nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.engine.backends.odd_server import Answer, Call, OddServer, completion, plain, refusal
from tests.engine.backends.test_openai_api import KEY, carry_out, loaded, one, request

pytest.importorskip("aiohttp")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD_KEY", KEY)


def _weighed(call: Call, *tokens: tuple[str, object]) -> Answer:
    body = completion(tokens[0][0] if tokens else "yes", finish="length")
    listed = [{"token": token, "logprob": logprob} for token, logprob in tokens]
    body["choices"][0]["logprobs"] = {"content": [{"token": "x", "logprob": -1.0, "top_logprobs": listed}]}
    return Answer(body)


def test_options_are_weighed_by_the_log_probabilities_that_the_server_lists() -> None:
    asked = replace(request("k", max_tokens=1), options=("A", "B", "C"))
    done, server = one(
        lambda call: _weighed(call, ("The", -0.2), (" B", -2.0), ("A", -2.5), ("C", "odd"), ("", 0)), asked
    )
    assert (done.text, done.error, done.finish) == ("B", "", "stop")
    assert done.likelihoods == {"A": -2.5, "B": -2.0}
    assert {name: server.calls[0].body[name] for name in ("logprobs", "top_logprobs", "max_tokens")} == {
        "logprobs": True, "top_logprobs": 20, "max_tokens": 1,
    }  # fmt: skip


def test_a_server_that_lists_few_tokens_is_asked_for_few_from_then_on() -> None:
    def behave(call: Call) -> Answer:
        if call.body["top_logprobs"] > 5:
            return refusal("top_logprobs must be at most 5")
        return _weighed(call, ("A", -0.5))

    asked = [replace(request(key, max_tokens=1), options=("A", "B")) for key in ("k", "l")]
    with OddServer(behave) as server, loaded(server, parallel=1) as backend:
        done = carry_out(backend, asked)
    assert [done[key].text for key in ("k", "l")] == ["A", "A"]
    assert [call.body["top_logprobs"] for call in server.calls] == [20, 5, 5]


def test_a_server_without_log_probabilities_is_said_to_be_one() -> None:
    done, server = one(plain, replace(request("k", max_tokens=1), options=("A", "B")))
    assert "no log-probabilities" in done.error and done.is_final and done.text == ""
    assert len(server.calls) == 1
