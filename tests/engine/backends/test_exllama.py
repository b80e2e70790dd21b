"""The adapter's own work on a scripted library: order, limits, errors of one request and of a whole batch, memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.backends.exllama import ExLlama
from engine.backends.exllama_library import Job
from engine.backends.protocol import BackendBroken, Completion, ModelInfo, ModelSpec, Request
from engine.errors import EvaldeskError
from engine.models.fingerprint import fingerprint
from tests.engine.backends.scripted_exllama import END, ScriptedGenerator, ScriptedLibrary, model_directory

Load = Callable[..., tuple[ExLlama, ModelInfo]]


@pytest.fixture
def library() -> ScriptedLibrary:
    return ScriptedLibrary()


@pytest.fixture
def load(library: ScriptedLibrary, tmp_path: Path) -> Iterator[Load]:
    loaded: list[ExLlama] = []

    def make(**spec: Any) -> tuple[ExLlama, ModelInfo]:
        directory = model_directory(tmp_path / "model")
        backend = ExLlama("exllamav2", library.opened)
        info = backend.load(ModelSpec("exllamav2", "m", str(directory), **spec))
        loaded.append(backend)
        return backend, info

    yield make
    for backend in loaded:
        backend.close()


def ask(key: str, text: str | None = None, **sampling: Any) -> Request:
    return Request(key, [{"role": "user", "content": key if text is None else text}], sampling)


def run(backend: ExLlama, requests: Sequence[Request]) -> dict[str, Completion]:
    backend.submit(requests)
    done: dict[str, Completion] = {}
    while backend.in_flight:
        done.update({completion.key: completion for completion in backend.results(0.05)})
    return done


def test_what_was_loaded_is_said(load: Load, library: ScriptedLibrary, tmp_path: Path) -> None:
    _, info = load(context_length=512, parallel=4)
    assert info.fingerprint == fingerprint(tmp_path / "model").short
    assert (info.context_length, info.parallel, info.backend) == (512, 4, "exllamav2")
    assert info.features == {"schema", "logprobs", "likelihoods", "prefix_cache", "batch"}
    assert library.loads == [("fp16", 2048, 4)] and library.context == 512
    assert info.facts["cache"] == "fp16" and info.facts["cache_tokens"] == 2048


def test_replies_come_back_with_their_counts(load: Load) -> None:
    backend, _ = load()
    done = run(backend, [ask("abc"), ask("cut", "abcd", max_tokens=2), ask("stop", "abcd", max_tokens=2, stop="c")])
    assert (done["abc"].text, done["abc"].finish, done["abc"].error) == ("cba", "stop", "")
    assert (done["abc"].prompt_tokens, done["abc"].completion_tokens) == (4, 3)
    assert (done["cut"].text, done["cut"].finish) == ("dc", "length")
    assert (done["stop"].text, done["stop"].finish) == ("d", "stop")
    assert all(completion.seconds >= 0 for completion in done.values())


def test_requests_go_in_the_order_of_their_tokens(load: Load, library: ScriptedLibrary) -> None:
    gate = threading.Event()
    library.before_iterate = lambda generator: gate.wait(10) and None
    backend, _ = load(parallel=1)
    backend.submit([ask("m")])
    while not library.generator.started:
        time.sleep(0.01)
    backend.submit([ask(key) for key in ("za", "b", "zb", "a")])
    gate.set()
    run(backend, [])
    assert library.generator.started[0] == "m" and library.generator.started[-4:] == ["za", "zb", "a", "b"]


def test_no_more_than_the_batch_goes_at_once(load: Load, library: ScriptedLibrary) -> None:
    backend, _ = load(parallel=3)
    run(backend, [ask(f"r{number}") for number in range(10)])
    assert library.generator.widest == 3


def test_a_job_has_every_sampling_field_all_end_tokens_and_the_room_that_is_left(
    load: Load, library: ScriptedLibrary
) -> None:
    jobs: list[Job] = []
    library.refuse = jobs.append
    backend, _ = load(context_length=20)
    run(backend, [ask("0123456789", max_tokens=99, temperature=0.5, stop=["x", "y"]), ask("a")])
    job, greedy = sorted(jobs, key=lambda job: -len(job.ids))
    assert len(job.ids) == 11 and job.limit == 9 and greedy.limit == 18
    assert job.end_ids == (END, ord("$")) and job.stop == ("x", "y")
    assert job.sampling == {
        "temperature": 0.5, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repeat_penalty": 1.0, "presence_penalty": 0.0,
        "frequency_penalty": 0.0, "seed": 0,
    }  # fmt: skip
    assert greedy.is_greedy and not job.is_greedy


def test_what_is_wrong_with_one_request_is_its_own_error(load: Load, library: ScriptedLibrary) -> None:
    def refuse(job: Job) -> None:
        if job.key == "refused":
            raise AssertionError("Job requires 9 pages")

    library.refuse = refuse
    backend, _ = load(context_length=16)
    bad = [ask("long", "x" * 40), ask("field", nonsense=1), ask("value", temperature="warm"), ask("refused")]
    done = run(backend, [*bad, ask("fine")])
    assert "41 tokens, the context holds 16" in done["long"].error and "Shorten" in done["long"].error
    assert "nonsense" in done["field"].error and "warm" in done["value"].error
    assert done["refused"].error == "exllamav2 failed: AssertionError: Job requires 9 pages"
    assert done["fine"].text == "enif"


def test_a_request_that_breaks_its_batch_fails_alone(load: Load, library: ScriptedLibrary) -> None:
    def breaks(generator: ScriptedGenerator) -> None:
        if any(job.identifier == "bad" and job.made for job in generator.active_jobs):
            raise RuntimeError("llguidance: no token is allowed")

    library.before_iterate = breaks
    backend, _ = load(parallel=4)
    done = run(backend, [ask(key) for key in ("good", "bad", "fine", "well", "late")])
    assert done["bad"].error == "exllamav2 failed: RuntimeError: llguidance: no token is allowed"
    assert [done[key].text for key in ("good", "fine", "well", "late")] == ["doog", "enif", "llew", "etal"]
    assert library.calls == ["forget", "forget"]


def test_a_job_that_the_library_takes_out_by_itself_fails_alone(load: Load, library: ScriptedLibrary) -> None:
    backend, _ = load()
    real = ScriptedGenerator.iterate

    def iterate(generator: ScriptedGenerator) -> list[dict[str, Any]]:
        results = real(generator)
        for job in [job for job in generator.active_jobs if job.identifier == "bad"]:
            generator.active_jobs.remove(job)
            results.append({"job": job, "stage": "error", "eos": True, "error": ValueError("no pages")})
        return results

    library.generator.iterate = lambda: iterate(library.generator)
    done = run(backend, [ask("good"), ask("bad")])
    assert done["bad"].error == "exllamav2 failed: ValueError: no pages" and done["good"].text == "doog"
    assert library.calls == []


def test_memory_that_runs_out_makes_the_batch_smaller_and_then_the_cache(load: Load, library: ScriptedLibrary) -> None:
    def breaks(generator: ScriptedGenerator) -> None:
        if len(generator.active_jobs) > 1 or (len(library.loads) == 1 and generator.active_jobs):
            raise RuntimeError("CUDA out of memory")

    library.before_iterate = breaks
    backend, _ = load(parallel=4, context_length=1024)
    done = run(backend, [ask(f"r{number}") for number in range(6)])
    assert {completion.text for completion in done.values()} == {f"{number}r" for number in range(6)}
    assert library.loads == [("fp16", 4096, 4), ("fp16", 2048, 1)]
    assert library.calls.count("unload") == 1


def test_a_request_for_which_no_cache_is_small_enough_fails_with_the_reason(
    load: Load, library: ScriptedLibrary
) -> None:
    def breaks(generator: ScriptedGenerator) -> None:
        if any(job.identifier == "huge" for job in generator.active_jobs):
            raise RuntimeError("CUDA out of memory")

    library.before_iterate = breaks
    backend, _ = load(parallel=2, context_length=1024, options={"cache": "q4", "cache_tokens": 1024})
    done = run(backend, [ask("huge"), ask("fine")])
    assert "out of memory" in done["huge"].error and done["fine"].text == "enif"


def test_a_request_that_no_longer_fits_a_smaller_cache_says_so(load: Load, library: ScriptedLibrary) -> None:
    library.before_iterate = lambda generator: _raise_once(library, RuntimeError("CUDA out of memory"))
    backend, _ = load(parallel=1, context_length=2048, options={"cache": "fp16"})
    done = run(backend, [ask("whole")])
    assert "cache 1024" in done["whole"].error
    assert run(backend, [ask("tight", max_tokens=5)])["tight"].text == "thgit"


def _raise_once(library: ScriptedLibrary, error: Exception) -> None:
    library.before_iterate = lambda generator: None
    raise error


def test_a_fault_of_the_device_ends_the_backend_after_what_was_finished(load: Load, library: ScriptedLibrary) -> None:
    def breaks(generator: ScriptedGenerator) -> None:
        if not any(job.identifier == "a" for job in generator.active_jobs):
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    library.before_iterate = breaks
    backend, _ = load(parallel=2)
    backend.submit([ask("a"), ask("abcdefgh"), ask("wrong", nonsense=1)])
    done: dict[str, Completion] = {}
    while len(done) < 2:
        done.update({completion.key: completion for completion in backend.results(0.05)})
    with pytest.raises(BackendBroken, match="illegal memory access"):
        _drain(backend, done)
    assert done["a"].text == "a" and "nonsense" in done["wrong"].error and set(done) == {"a", "wrong"}
    assert library.calls == []


def _drain(backend: ExLlama, done: dict[str, Completion]) -> None:
    while True:
        done.update({completion.key: completion for completion in backend.results(0.05)})


def test_insufficient_memory_halves_the_cache_and_says_so(
    load: Load, library: ScriptedLibrary, capfd: pytest.CaptureFixture[str]
) -> None:
    library.room = 1024
    _, info = load(parallel=2, context_length=2048)
    assert [entry[:2] for entry in library.loads] == [("fp16", 4096), ("fp16", 2048), ("q8", 2048), ("q8", 1024)]
    assert info.context_length == 1024 and info.facts["cache"] == "q8"
    assert "insufficient GPU memory for a cache of 4,096 tokens (fp16)" in info.facts["notes"]
    assert "exllamav2: cache: 1,024 tokens (q8)" in capfd.readouterr().err


def test_no_cache_at_all_is_an_error_with_what_to_do(load: Load, library: ScriptedLibrary, tmp_path: Path) -> None:
    library.room = 0
    with pytest.raises(EvaldeskError, match=r"memory is insufficient.*q4") as caught:
        load()
    assert str(tmp_path) in str(caught.value)


def test_the_cache_is_what_fits_beside_the_weights(load: Load, library: ScriptedLibrary) -> None:
    # 512 bytes a token: two layers of two heads of 32, keys and values, two bytes each.
    library.free = 3 * 2**29 + 5000 * 512
    load(parallel=32, context_length=1024)
    assert library.loads == [("fp16", 4864, 32)]


def test_serial_mode_takes_one_at_a_time_and_says_why(load: Load, library: ScriptedLibrary) -> None:
    library.serial_because = "flash-attn 2.5.7 or newer is not installed"
    backend, info = load(parallel=8, context_length=1000)
    assert info.parallel == 1 and "batch" not in info.features
    assert info.facts["notes"][0] == "serial mode, no batching, because flash-attn 2.5.7 or newer is not installed"
    assert library.loads == [("fp16", 1024, 1)]
    run(backend, [ask(f"r{number}") for number in range(4)])
    assert library.generator.widest == 1


@pytest.mark.parametrize("options", [{"cache": "q5"}, {"cache_tokens": "many"}, {"cache_tokens": -1}, {"cash": "q4"}])
def test_options_that_are_not_understood_are_refused(load: Load, options: dict[str, Any]) -> None:
    with pytest.raises(EvaldeskError, match="options are not understood"):
        load(options=options)


def test_what_is_no_model_is_refused_before_anything_is_loaded(library: ScriptedLibrary, tmp_path: Path) -> None:
    without = model_directory(tmp_path / "without", template=None)
    awq = model_directory(tmp_path / "awq", quantization_config={"quant_method": "awq"})
    refused = {tmp_path / "absent": "no model directory", without: "no chat template", awq: "quantisation awq"}
    for path, why in refused.items():
        with pytest.raises(EvaldeskError, match=why):
            ExLlama("exllamav3", library.opened).load(ModelSpec("exllamav3", "m", str(path)))
    assert library.loads == []


def test_a_library_that_is_not_there_or_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    directory = model_directory(tmp_path / "m")
    monkeypatch.setitem(sys.modules, "exllamav2", None)
    with pytest.raises(EvaldeskError, match=r"exllamav2 cannot run here.*install|exllamav2 cannot run here.*Install"):
        ExLlama("exllamav2").load(ModelSpec("exllamav2", "m", str(directory)))

    def fails(directory: Path, context: int) -> Any:
        raise IndexError("list index out of range")

    with pytest.raises(EvaldeskError, match="IndexError: list index out of range"):
        ExLlama("exllamav2", fails).load(ModelSpec("exllamav2", "m", str(directory)))


def test_cancel_drops_what_waits_and_leaves_the_backend_usable(load: Load, library: ScriptedLibrary) -> None:
    gate = threading.Event()
    library.before_iterate = lambda generator: gate.wait(10) and None
    backend, _ = load(parallel=1)
    backend.submit([ask(f"x{number}") for number in range(6)])
    backend.cancel()
    assert backend.in_flight <= 1
    gate.set()
    assert len(run(backend, [])) <= 1
    assert run(backend, [ask("after")])["after"].text == "retfa"


def test_close_drops_what_is_being_generated(load: Load, library: ScriptedLibrary) -> None:
    library.before_iterate = lambda generator: threading.Event().wait(0.01) and None
    backend, _ = load()
    backend.submit([ask("long", "x" * 3000)])
    backend.close()
    assert library.calls == ["unload"] and backend.results(0.0) == []
