"""The adapter against a server on loopback that answers well, oddly, late or not at all."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from engine.backends import openai_api, server_link
from engine.backends.backoff import Backoff
from engine.backends.openai_api import OpenAiApi
from engine.backends.protocol import Completion, ModelInfo, ModelSpec, Request
from engine.backends.remembered_forms import forms_file
from engine.errors import EvaldeskError
from engine.judging.verdict import reply_schema
from engine.models.server_address import server_address
from tests.engine.backends.odd_server import HANG, MODEL, Answer, Behaviour, Call, OddServer, completion, plain, refusal

pytest.importorskip("aiohttp")

KEY = "sk-test-2Qx9aZ71mmK0"
SCHEMA = reply_schema(quote_required=False, reason_chars=200)
GOOD = json.dumps({"reason": "The question was answered.", "verdict": "PASS"})
PATIENCE_S = 30.0


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ODD_KEY", KEY)
    # What one server took says nothing of the next one on its port.
    monkeypatch.setenv("EVALDESK_CONFIG_DIR", str(tmp_path))


def spec(server: OddServer, parallel: int = 4, **options: Any) -> ModelSpec:
    options = {"model": MODEL, "key_env": "ODD_KEY"} | options
    return ModelSpec("openai_api", "odd", server.url, parallel=parallel, options=options)


@contextmanager
def loaded(server: OddServer, parallel: int = 4, **options: Any) -> Iterator[OpenAiApi]:
    """A backend that does not wait long before it tries again."""
    backend = OpenAiApi(Backoff(base=0.01, longest=0.02, longest_told=2.0, tries=4, patience=0.1))
    backend.load(spec(server, parallel, **options))
    try:
        yield backend
    finally:
        backend.close()


def request(key: str, schema: Any = None, **sampling: Any) -> Request:
    return Request(key, ({"role": "user", "content": f"question {key}"},), {"max_tokens": 8, **sampling}, schema)


def carry_out(backend: OpenAiApi, requests: Sequence[Request]) -> dict[str, Completion]:
    backend.submit(requests)
    done: dict[str, Completion] = {}
    deadline = time.monotonic() + PATIENCE_S
    while backend.in_flight:
        assert time.monotonic() < deadline, "waited in vain"
        done.update({completion.key: completion for completion in backend.results(0.5)})
    return done


def one(behave: Behaviour, asked: Request | None = None, **options: Any) -> tuple[Completion, OddServer]:
    """The completion of a single request, and the server that was asked."""
    with OddServer(behave) as server, loaded(server, **options) as backend:
        asked = asked or request("k")
        return carry_out(backend, [asked])[asked.key], server


def first_then(*answers: Answer) -> Behaviour:
    """Those answers in turn, then plain ones."""
    return lambda call: answers[call.number] if call.number < len(answers) else plain(call)


def no_key(text: str) -> bool:
    return not any(KEY[start : start + 8] in text for start in range(len(KEY) - 7))


def test_a_completion_comes_with_its_usage_and_the_request_as_servers_expect_it() -> None:
    done, server = one(plain, request("k", seed=3), price_in=2.0, price_out=5.0)
    assert (done.text, done.finish, done.error, done.served_by) == ("yes", "stop", "", MODEL)
    assert (done.prompt_tokens, done.cached_tokens, done.completion_tokens) == (10, 4, 2)
    assert done.extra["cost"] == pytest.approx((10 * 2.0 + 2 * 5.0) / 1e6) and done.seconds > 0
    [call] = server.calls
    assert call.headers["authorization"] == f"Bearer {KEY}"
    assert call.body == {
        "model": MODEL,
        "temperature": 0,
        "max_tokens": 8,
        "seed": 3,
        "messages": [{"role": "user", "content": "question k"}],
    }


def test_the_information_names_the_address_and_what_the_server_states() -> None:
    with OddServer() as server:
        backend = OpenAiApi()
        info = backend.load(spec(server, parallel=0))
        backend.close()
    assert isinstance(info, ModelInfo)
    assert info.fingerprint == server_address(server.url, MODEL).fingerprint.short
    assert (info.context_length, info.parallel, info.backend) == (4096, openai_api.PARALLEL, "openai_api")
    assert not server.calls, "what is in the list of models needs no tokens"


def test_as_many_at_once_as_asked_for_and_no_more() -> None:
    arrived: list[float] = []

    def behave(call: Call) -> Answer:
        arrived.append(time.monotonic())
        return Answer(completion(), seconds=0.05)

    with OddServer(behave) as server, loaded(server, parallel=6) as backend:
        assert len(carry_out(backend, [request(f"k{n}") for n in range(24)])) == 24
    # Whoever arrives as the seventh came after an answer, and that took its time.
    assert all(later - first >= 0.045 for first, later in zip(arrived, arrived[6:], strict=False))
    assert arrived[5] - arrived[0] < arrived[6] - arrived[0]


def test_any_text_survives() -> None:
    odd = "naïve 🙂 \x00\x1b[31m \u202e %s {0} \n\t 日本語"
    asked = Request("k", ({"role": "user", "content": odd + "\ud800"},), {})
    done, server = one(lambda call: Answer(completion(odd)), asked)
    assert done.text == odd
    assert server.calls[0].body["messages"][0]["content"] == odd + "?"


@pytest.mark.parametrize(
    "odd",
    [
        refusal("slow down", 429),
        refusal("oops", 500),
        refusal("bad gateway", 502),
        Answer(b"<html>busy</html>", 503),
        refusal("gateway timeout", 504),
        Answer(b"<html>welcome</html>"),
        Answer(b"", cut=0),
        Answer(completion(), cut=40),
        Answer({"error": {"message": "overloaded", "code": 529}}),
    ],
    ids=["429", "500", "502", "503", "504", "html", "cut", "cut-body", "error-in-200"],
)
def test_what_passes_is_tried_again(odd: Answer) -> None:
    done, server = one(first_then(odd, odd))
    assert (done.text, done.error, len(server.calls)) == ("yes", "", 3)


@pytest.mark.parametrize("as_date", [False, True], ids=["seconds", "date"])
def test_retry_after_holds_everyone(as_date: bool) -> None:
    arrived: list[float] = []

    def behave(call: Call) -> Answer:
        arrived.append(time.time())
        told = formatdate(arrived[0] + 2, usegmt=True) if as_date else "1"
        return Answer(b"{}", 429, {"Retry-After": told}) if call.number == 0 else plain(call)

    with OddServer(behave) as server, loaded(server, parallel=1) as backend:
        assert all(not done.error for done in carry_out(backend, [request("a"), request("b")]).values())
    # A date has whole seconds.
    assert arrived[1] - arrived[0] >= 0.95 and len(arrived) == 3


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refused_request_is_one_line_and_not_sent_again(status: int) -> None:
    def behave(call: Call) -> Answer:
        bad = "bad" in call.body["messages"][0]["content"]
        return refusal(f"too long:\n\x1b[31m 9 tokens for {KEY}", status) if bad else plain(call)

    with OddServer(behave) as server, loaded(server) as backend:
        done = carry_out(backend, [request("bad"), request("good")])
    assert done["good"].text == "yes" and done["bad"].is_final and len(server.calls) == 2
    error = done["bad"].error
    assert str(status) in error and "9 tokens" in error and "\n" not in error and "\x1b" not in error and no_key(error)


def test_a_request_that_fails_every_time_is_given_up_while_others_go_on() -> None:
    def behave(call: Call) -> Answer:
        bad = "bad" in call.body["messages"][0]["content"]
        return refusal("worker died", 500) if bad else Answer(completion(), seconds=0.02)

    with OddServer(behave) as server, loaded(server, parallel=2) as backend:
        # A server that has not answered anybody yet would be taken for one that is down.
        done = carry_out(backend, [request("good0")])
        done |= carry_out(backend, [request("bad"), *(request(f"good{n}") for n in range(1, 12))])
    assert "500" in done.pop("bad").error
    assert len(done) == 12 and all(not completion.error for completion in done.values())


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (refusal(f"wrong key {KEY}", 401), "refuses the key in ODD_KEY"),
        (refusal("forbidden", 403), "refuses the key in ODD_KEY"),
        (refusal("no such model", 404), f"no model {MODEL!r}"),
        (refusal("pay", 402), "wants to be paid"),
        (refusal("quota", 429, code="insufficient_quota"), "wants to be paid"),
        (Answer(b"", 307, {"Location": "https://elsewhere.example/v1"}), "elsewhere.example"),
        (Answer(completion(model="other")), "'other' where 'odd-model' is asked for"),
    ],
    ids=["401", "403", "404", "402", "quota", "redirect", "other-model"],
)
def test_what_would_fail_every_request_stops_the_run(answer: Answer, says: str) -> None:
    with OddServer(lambda call: answer) as server, loaded(server, parallel=2) as backend:
        with pytest.raises(EvaldeskError) as stopped:
            carry_out(backend, [request(f"k{n}") for n in range(200)])
        said = str(stopped.value)
        assert says in said and server.url in said and stopped.value.remedy and no_key(said) and "\n" not in said
        assert len(server.calls) <= 4
        with pytest.raises(EvaldeskError):
            backend.results(0.1)


def test_what_was_finished_before_the_run_stops_is_handed_over() -> None:
    def behave(call: Call) -> Answer:
        return plain(call) if call.number < 5 else refusal("expired", 401)

    done: list[Completion] = []
    with OddServer(behave) as server, loaded(server, parallel=1) as backend:
        backend.submit([request(f"k{n}") for n in range(20)])
        while len(done) < 5:
            done += backend.results(1.0)
        with pytest.raises(EvaldeskError, match="refuses the key"):
            carry_out(backend, [])
    assert [completion.key for completion in done] == [f"k{n}" for n in range(5)]


def test_a_forbidden_prompt_among_answered_ones_is_its_own_error() -> None:
    behave = first_then(Answer(completion()), refusal("flagged", 403))
    with OddServer(behave) as server, loaded(server, parallel=1) as backend:
        done = carry_out(backend, [request("a"), request("b"), request("c")])
    assert "403" in done["b"].error and done["b"].is_final and done["c"].text == "yes"


def test_a_server_that_takes_one_at_a_time_gets_them_all_done() -> None:
    busy = 0.0

    def behave(call: Call) -> Answer:
        nonlocal busy
        if time.monotonic() < busy:
            return refusal("one at a time", 429)
        busy = time.monotonic() + 0.02
        return Answer(completion(), seconds=0.02)

    with OddServer(behave) as server:
        backend = OpenAiApi(Backoff(base=0.01, longest=0.1, tries=8, patience=5.0))
        backend.load(spec(server, parallel=8))
        done = carry_out(backend, [request(f"k{n}") for n in range(40)])
        backend.close()
    assert [completion.error for completion in done.values()] == [""] * 40


def test_a_server_that_comes_back_in_time_loses_nothing() -> None:
    with OddServer() as server:
        backend = OpenAiApi(Backoff(base=0.01, longest=0.05, tries=2, patience=20.0))
        backend.load(spec(server))
        server.behave = lambda call: refusal("restarting", 503)
        threading.Timer(0.5, lambda: setattr(server, "behave", plain)).start()
        done = carry_out(backend, [request(f"k{n}") for n in range(20)])
        backend.close()
    assert [completion.text for completion in done.values()] == ["yes"] * 20


def test_a_server_that_went_away_stops_the_run_rather_than_failing_all_of_it() -> None:
    with OddServer() as server, loaded(server) as backend:
        carry_out(backend, [request("k")])
        server.stop()
        with pytest.raises(EvaldeskError, match="does not answer"):
            carry_out(backend, [request(f"k{n}") for n in range(100)])


@pytest.mark.parametrize(
    ("models", "says"),
    [
        (refusal(f"bad {KEY}", 401), "refuses the key in ODD_KEY"),
        (Answer(b"", 302, {"Location": "https://elsewhere.example"}), "elsewhere"),
        (refusal("starting", 503), "does not answer"),
    ],
    ids=["401", "redirect", "503"],
)
def test_loading_stops_where_nothing_can_work(models: Answer, says: str) -> None:
    with OddServer(models=models) as server, pytest.raises(EvaldeskError, match=says) as refused, loaded(server):
        pass
    assert no_key(str(refused.value)) and not server.calls


def test_loading_stops_where_nobody_listens() -> None:
    with OddServer() as server:
        pass
    with pytest.raises(EvaldeskError, match="no connection to the server") as refused, loaded(server):
        pass
    assert server.url in str(refused.value)


def test_a_server_that_is_still_starting_is_waited_for() -> None:
    with OddServer(models=refusal("loading model", 503)) as server:
        backend = OpenAiApi(Backoff(base=0.2, longest=0.2, tries=50))
        threading.Timer(0.3, lambda: setattr(server, "models", Answer({"data": [{"id": MODEL}]}))).start()
        assert backend.load(spec(server)).parallel == 4
        backend.close()
    assert len(server.listed) > 1


def test_a_model_that_is_not_listed_is_asked_and_the_ones_on_offer_are_named() -> None:
    listed = Answer({"data": [{"id": "first"}, {"id": f"second {KEY}"}]})
    with OddServer(lambda call: refusal("unknown", 404), listed) as server:
        with pytest.raises(EvaldeskError, match="It offers: first, second") as refused, loaded(server):
            pass
        assert len(server.calls) == 1 and no_key(str(refused.value))
        server.behave = plain
        with loaded(server) as backend:
            assert carry_out(backend, [request("k")])["k"].text == "yes"


def test_a_server_without_a_list_of_models_can_be_used() -> None:
    with OddServer(models=refusal("not found", 404)) as server, loaded(server) as backend:
        assert carry_out(backend, [request("k")])["k"].text == "yes"


def test_a_dated_snapshot_is_the_model_and_a_pinned_one_the_only_one() -> None:
    dated = f"{MODEL}-2025-01-01"
    done, _ = one(lambda call: Answer(completion(model=dated)))
    assert (done.served_by, done.error) == (dated, "")
    done, _ = one(lambda call: Answer(completion(model=dated)), snapshot=dated)
    assert done.served_by == dated
    with pytest.raises(EvaldeskError, match="2025-06-06"):
        one(lambda call: Answer(completion(model=f"{MODEL}-2025-06-06")), snapshot=dated)


def test_a_key_that_is_missing_or_no_key_is_said_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with OddServer() as server:
        for value, says in (("", "ODD_KEY is not set"), ("two words", "characters that no request")):
            monkeypatch.setenv("ODD_KEY", value)
            with pytest.raises(EvaldeskError, match=says), loaded(server):
                pass
    assert not server.listed


def test_a_key_that_a_reply_repeats_is_not_kept() -> None:
    done, _ = one(lambda call: Answer(completion(f"your key is {KEY}!", model=MODEL)))
    assert done.text == "your key is [key]!"


def test_without_a_key_none_is_sent() -> None:
    _, server = one(plain, key_env="")
    assert "authorization" not in server.calls[0].headers


def test_a_redirect_is_not_followed_and_the_key_stays() -> None:
    with OddServer() as other:
        elsewhere = f"{other.url}/chat/completions"
        moved = Answer(b"", 308, {"Location": elsewhere})
        with OddServer(lambda call: moved) as server, loaded(server) as backend, pytest.raises(EvaldeskError):
            carry_out(backend, [request("k")])
        assert not other.calls and not other.listed


def test_a_huge_body_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_link, "MAX_BODY", 100_000)
    done, _ = one(lambda call: Answer(completion("x" * 5_000_000)))
    assert "longer than" in done.error and done.is_final and done.text == ""


def test_a_filtered_reply_is_an_error_and_a_cut_one_says_so() -> None:
    done, _ = one(lambda call: Answer(completion("half", finish="content_filter")))
    assert "filter" in done.error and done.is_final
    done, _ = one(lambda call: Answer(completion("half", finish="length")))
    assert (done.text, done.finish) == ("half", "length")


def test_a_field_that_newer_models_call_otherwise_is_found_out_once() -> None:
    def behave(call: Call) -> Answer:
        if "max_tokens" in call.body:
            return refusal("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        return plain(call)

    with OddServer(behave) as server, loaded(server, parallel=1) as backend:
        done = carry_out(backend, [request(f"k{n}") for n in range(5)])
    assert all(completion.text == "yes" for completion in done.values())
    assert sum("max_tokens" in call.body for call in server.calls) == 1
    assert server.calls[-1].body["max_completion_tokens"] == 8


def test_an_unknown_sampling_field_is_an_error_of_that_request_only() -> None:
    with OddServer() as server, loaded(server) as backend:
        done = carry_out(backend, [request("bad", no_such_field=1), request("good")])
    assert "no_such_field" in done["bad"].error and done["good"].text == "yes"


def takes(*accepted: str, text: str = GOOD) -> Callable[[Call], Answer]:
    """A server that takes only some forms of asking for JSON: response_format, tools, and always the prompt."""

    def behave(call: Call) -> Answer:
        for field in ("response_format", "tools"):
            if field in call.body and field not in accepted:
                return refusal(f"{field} is not supported")
        if "tools" in call.body:
            name = call.body["tools"][0]["function"]["name"]
            return Answer(completion("", tool_calls=[{"function": {"name": name, "arguments": text}}]))
        return Answer(completion(text))

    return behave


@pytest.mark.parametrize(
    ("behave", "form", "tries"),
    [
        (takes("response_format"), "json_schema", 1),
        (takes("tools"), "tool call", 3),
        (takes(), "in the prompt", 4),
        (takes(text=f"Sure:\n```json\n{GOOD}\n```"), "in the prompt", 4),
    ],
    ids=["schema", "tools", "prompt", "prompt-chatty"],
)
def test_the_firmest_form_that_a_server_takes_is_found_out_once(behave: Behaviour, form: str, tries: int) -> None:
    with OddServer(behave) as server, loaded(server, parallel=8) as backend:
        done = carry_out(backend, [request(f"k{n}", SCHEMA) for n in range(20)])
    assert all(json.loads(completion.text)["verdict"] == "PASS" for completion in done.values())
    assert {completion.extra["schema"] for completion in done.values()} == {form}
    assert len(server.calls) == tries - 1 + 20


def test_a_server_that_refuses_limits_inside_a_schema_gets_it_without() -> None:
    def behave(call: Call) -> Answer:
        return (
            refusal("minLength is not permitted") if "minLength" in json.dumps(call.body) else Answer(completion(GOOD))
        )

    done, server = one(behave, request("k", SCHEMA))
    assert (done.text, done.extra["schema"], len(server.calls)) == (GOOD, "json_schema without limits", 2)


def test_a_server_that_ignores_the_schema_is_asked_in_another_form() -> None:
    def behave(call: Call) -> Answer:
        stated = "JSON schema" in json.dumps(call.body["messages"])
        return Answer(completion(GOOD if stated else "I think it is fine."))

    done, _ = one(behave, request("k", SCHEMA))
    assert (done.text, done.extra["schema"]) == (GOOD, "in the prompt")


def test_a_server_that_ignores_one_form_and_refuses_the_next_is_asked_in_the_last() -> None:
    def behave(call: Call) -> Answer:
        if "tools" in call.body:
            return refusal("tools are not supported")
        return Answer(completion("I think it passes." if "response_format" in call.body else GOOD))

    done, server = one(behave, request("k", SCHEMA))
    assert (done.text, done.extra["schema"]) == (GOOD, "in the prompt")
    assert len(server.calls) == 4


def test_a_reply_that_does_not_follow_the_schema_is_still_the_reply() -> None:
    done, _ = one(lambda call: Answer(completion("I would rather not say.")), request("k", SCHEMA))
    assert (done.text, done.error, done.extra["follows_schema"]) == ("I would rather not say.", "", False)


def test_a_request_that_is_refused_in_every_form_says_nothing_about_the_forms() -> None:
    def behave(call: Call) -> Answer:
        return refusal("too long") if "bad" in call.body["messages"][0]["content"] else takes("response_format")(call)

    with OddServer(behave) as server, loaded(server, parallel=1) as backend:
        done = carry_out(backend, [request("bad", SCHEMA), request("good", SCHEMA)])
    assert "too long" in done["bad"].error and done["good"].extra["schema"] == "json_schema"


def test_the_form_is_remembered_for_later_runs_and_only_what_works_is() -> None:
    with OddServer(takes("tools")) as server:
        for calls in (3, 4):
            with loaded(server) as backend:
                done = carry_out(backend, [request("k", SCHEMA)])
            assert (done["k"].text, done["k"].extra["schema"], len(server.calls)) == (GOOD, "tool call", calls)
    with OddServer(lambda call: Answer(completion("I would rather not say."))) as server:
        for calls in (4, 8):
            with loaded(server) as backend:
                carry_out(backend, [request("k", SCHEMA)])
            assert len(server.calls) == calls
    kept = forms_file().read_text()
    assert "tool call" in kept and KEY not in kept


@pytest.mark.parametrize("other", [takes("response_format"), takes()], ids=["refused", "refused in all but the prompt"])
def test_a_remembered_form_that_is_refused_is_found_out_again_and_replaced(other: Behaviour) -> None:
    with OddServer(takes("tools")) as server:
        with loaded(server) as backend:
            carry_out(backend, [request("k", SCHEMA)])
        server.behave = other
        with loaded(server, parallel=8) as backend:
            done = carry_out(backend, [request(f"k{n}", SCHEMA) for n in range(20)])
        assert all(json.loads(completion.text)["verdict"] == "PASS" for completion in done.values())
        [form] = {completion.extra["schema"] for completion in done.values()}
        assert form != "tool call" and form in forms_file().read_text()
        before = len(server.calls)
        with loaded(server) as backend:
            carry_out(backend, [request("k", SCHEMA)])
        assert len(server.calls) == before + 1


def test_a_remembered_form_that_is_ignored_by_now_is_found_out_again() -> None:
    def ignores(call: Call) -> Answer:
        return Answer(completion(GOOD if "JSON schema" in json.dumps(call.body["messages"]) else "It is fine."))

    with OddServer(takes("response_format")) as server:
        with loaded(server) as backend:
            carry_out(backend, [request("k", SCHEMA)])
        server.behave = ignores
        with loaded(server, parallel=1) as backend:
            done = carry_out(backend, [request("k", SCHEMA)])
    assert (done["k"].text, done["k"].extra["schema"]) == (GOOD, "in the prompt")


def test_a_request_that_is_refused_under_a_remembered_form_says_nothing_about_it() -> None:
    def behave(call: Call) -> Answer:
        return refusal("too long") if "bad" in json.dumps(call.body) else takes("tools")(call)

    with OddServer(behave) as server:
        for _ in range(2):
            with loaded(server, parallel=1) as backend:
                done = carry_out(backend, [request("good", SCHEMA), request("bad", SCHEMA)])
            assert "too long" in done["bad"].error and done["good"].extra["schema"] == "tool call"
        assert len(server.calls) == 3 + 1 + 1 + 1
        with loaded(server, parallel=1) as backend:
            done = carry_out(backend, [request("bad", SCHEMA), request("good", SCHEMA)])
    assert "too long" in done["bad"].error and done["good"].extra["schema"] == "tool call"


def test_a_hanging_server_is_given_up_after_the_time_limit() -> None:
    server = OddServer(lambda call: Answer(completion(), seconds=HANG))
    with server, loaded(server, timeout=0.1) as backend, pytest.raises(EvaldeskError, match=r"no reply within 0\.1 s"):
        carry_out(backend, [request("k")])
    assert len(server.calls) == server_link.MAX_TIMEOUTS


def test_one_hanging_request_is_its_own_error_where_others_are_answered() -> None:
    def behave(call: Call) -> Answer:
        return Answer(completion(), seconds=HANG if "bad" in call.body["messages"][0]["content"] else 0.0)

    with OddServer(behave) as server, loaded(server, timeout=0.2) as backend:
        done = carry_out(backend, [request("good"), request("bad")])
    assert done["good"].text == "yes" and done["bad"].is_final and "no reply within" in done["bad"].error


def test_closing_does_not_wait_for_a_server_that_hangs() -> None:
    with OddServer(lambda call: Answer(completion(), seconds=HANG)) as server:
        with loaded(server) as backend:
            backend.submit([request(f"k{n}") for n in range(20)])
            while not server.calls:
                time.sleep(0.01)
            began = time.monotonic()
        assert time.monotonic() - began < openai_api.CLOSE_S
        assert backend._thread is None


def test_cancel_drops_what_waits_and_leaves_the_backend_usable() -> None:
    with OddServer(lambda call: Answer(b"{}", 503, {"Retry-After": "2"})) as server, loaded(server) as backend:
        backend.submit([request(f"x{n}") for n in range(50)])
        while len(server.calls) < 4:
            time.sleep(0.01)
        time.sleep(0.05)
        began = time.monotonic()
        backend.cancel()
        assert carry_out(backend, []) == {} and time.monotonic() - began < 1.5
        server.behave = plain
        assert carry_out(backend, [request("after")])["after"].text == "yes"


def test_what_was_dropped_before_it_was_sent_takes_nothing_from_the_rate() -> None:
    with OddServer() as server, loaded(server, parallel=64, requests_per_minute=60) as backend:
        backend.submit([request(f"k{n}") for n in range(64)])
        wait_for(lambda: len(server.calls) >= 6)
        backend.cancel()
        kept = carry_out(backend, [])
        assert 6 <= len(kept) == len(server.calls) < 40
        # With the places of the dropped ones taken it would be a minute.
        assert carry_out(backend, [request("after")])["after"].text == "yes"


def test_whoever_waits_for_the_form_to_be_found_is_dropped_too() -> None:
    gate = threading.Event()

    def behave(call: Call) -> Answer:
        # Holds the server's only thread: the reply is being generated.
        gate.wait(PATIENCE_S)
        return takes("response_format")(call)

    with OddServer(behave) as server, loaded(server, parallel=8) as backend:
        backend.submit([request(f"k{n}", SCHEMA) for n in range(8)])
        wait_for(lambda: len(server.calls) == 1)
        backend.cancel()
        gate.set()
        assert len(carry_out(backend, [])) == 1 == len(server.calls)
        assert carry_out(backend, [request("after", SCHEMA)])["after"].text == GOOD


def wait_for(look: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_rates_are_kept_across_requests() -> None:
    with OddServer() as server, loaded(server, parallel=16, requests_per_minute=6000) as backend:
        began = time.monotonic()
        carry_out(backend, [request(f"k{n}") for n in range(660)])
        took = time.monotonic() - began
    # 600 go at once, the others at 90 a second.
    assert took >= 60 / 90 - 0.05


@pytest.mark.parametrize(
    "options", [{"no_such": 1}, {"timeout": -1}, {"price_in": "2"}, {"requests_per_minute": True}], ids=str
)
def test_wrong_options_are_named(options: dict[str, Any]) -> None:
    with OddServer() as server, pytest.raises(EvaldeskError, match=next(iter(options))), loaded(server, **options):
        pass
