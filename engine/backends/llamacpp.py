"""llama.cpp inside this process (package xllamacpp): any machine, GGUF files; the embedded default.

One request goes at a time unless the spec asks for more, and the computed tokens of its prompt are kept, so that a later
one with the same beginning computes only what is new. At temperature 0 a reply is the same whatever ran before: a run that
was killed and went on gives what it would have given. Several at once (slots, continuous batching) share a batch, which
changes the order of floating-point sums: replies then repeat nearly always.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.backends import option_likelihoods
from engine.backends.completion_queue import CompletionQueue
from engine.backends.json_grammar import compact_grammar
from engine.backends.protocol import Completion, ModelInfo, ModelSpec, Request
from engine.backends.slot_seeding import flat_text, worth_seeding
from engine.errors import EvaldeskError

if TYPE_CHECKING:
    from engine.backends.llamacpp_server import SlotServer

CONTEXT_LENGTH = 4096
"""Tokens a request may use unless the model was trained for fewer or the spec asks for another number."""
PARALLEL = 1
# 120 short requests took 35.8 s one at a time and 32.6 s by four (SmolLM2, 2 cores), but only one at a time are replies
# exact; 16 with 1,700 tokens of common beginning took 40 s, by four 90 s where each slot computed it.

LISTED_TOKENS = 500
"""Of the likeliest first tokens, so many are looked through for options; a reply of 2,000 took 40 ms longer than one of 200."""

MAX_THREADS = 8
MAX_KEPT_MIB = 8192
KEPT_SHARE = 8
"""Of the machine's memory, one part in so many may hold the computed beginnings of prompts."""

# llama.cpp's own defaults reshape the distribution; these leave it as the model gives it.
_NEUTRAL = {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repeat_penalty": 1.0, "seed": 0}
_SAMPLING = frozenset(_NEUTRAL) | {"max_tokens", "stop", "presence_penalty", "frequency_penalty"}

# What C++ exceptions of the library become, and replies of an unexpected shape.
_LIBRARY_ERRORS = (
    RuntimeError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    OSError,
)


class LlamaCpp:
    """engine.backends.protocol.Backend on a GGUF file. ``sampling`` may hold the fields of ``_SAMPLING``.

    Without temperature a request is greedy, without max_tokens it may fill the context. A request that is too long,
    or that the library refuses, comes back as a Completion with an error.
    """

    def __init__(self) -> None:
        self._server: SlotServer | None = None
        self._directory: Path | None = None
        self._threads: list[threading.Thread] = []
        self._turn = threading.Condition()
        self._waiting: deque[Request] = deque()
        self._finished = CompletionQueue()
        self._busy = 0
        self._seeding = False
        self._closed = False
        self._seeded = ""
        self._computed: set[bytes] = set()
        self._parallel = 1

    def load(self, model: ModelSpec) -> ModelInfo:
        """Load the file; raises EvaldeskError when it is no GGUF file, the library is missing or refuses the model."""
        from engine.models.fingerprint import fingerprint
        from engine.models.gguf import read_header

        path = Path(model.path)
        trained = read_header(path).context_length
        context = model.context_length or CONTEXT_LENGTH
        if trained:
            context = min(context, trained)
        self._parallel = model.parallel or PARALLEL
        try:
            from engine.backends.llamacpp_server import SlotServer
        except (ImportError, OSError) as error:
            raise EvaldeskError(
                f"the backend llamacpp cannot run here: {error}",
                remedy="Install evaldesk[llamacpp]; see evaldesk doctor.",
            ) from error
        name = fingerprint(path).short
        self._directory = Path(tempfile.mkdtemp(prefix="evaldesk-slots-"))
        try:
            self._server = SlotServer(
                path,
                context_length=context,
                slots=self._parallel,
                threads=compute_threads(),
                # Several slots hold the shared beginning themselves: saving what was displaced would only take time.
                kept_mib=kept_mib() if self._parallel == 1 else 0,
                slot_directory=self._directory,
                api_key=secrets.token_urlsafe(32),
            )
        except _LIBRARY_ERRORS as error:
            self.close()
            raise EvaldeskError(
                f"llama.cpp could not load the model: {' '.join(str(error).split()) or type(error).__name__}",
                where=str(path),
                remedy="A shorter context or fewer parallel requests take less memory; the log says more.",
            ) from error
        for number in range(self._parallel):
            thread = threading.Thread(target=self._serve, name=f"slot {number}", daemon=True)
            thread.start()
            self._threads.append(thread)
        features = {"schema", "likelihoods", "prefix_cache"} | ({"batch"} if self._parallel > 1 else set())
        return ModelInfo(
            fingerprint=name,
            context_length=context,
            parallel=self._parallel,
            features=frozenset(features),
            backend="llamacpp",
            backend_version=importlib.metadata.version("xllamacpp"),
        )

    def submit(self, requests: Sequence[Request]) -> None:
        """Take requests into the queue; they start in this order."""
        with self._turn:
            self._waiting.extend(requests)
            self._finished.expect(len(requests))
            self._turn.notify_all()

    def results(self, timeout: float) -> list[Completion]:
        """Completions since the last call, in the order in which they ended."""
        return self._finished.take(timeout)

    @property
    def in_flight(self) -> int:
        """Requests submitted and not yet given back by ``results``."""
        return self._finished.in_flight

    def cancel(self) -> None:
        """Drop what has not started."""
        with self._turn:
            self._finished.expect(-len(self._waiting))
            self._waiting.clear()
            self._turn.notify_all()

    def close(self) -> None:
        """Wait for what is being generated, then free the model."""
        self.cancel()
        with self._turn:
            self._closed = True
            self._turn.notify_all()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._server = None
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    def _serve(self) -> None:
        while (taken := self._take()) is not None:
            request, seed = taken
            started = time.monotonic()
            cached: int | None = None
            if seed:
                cached = self._seed(request)
                with self._turn:
                    self._seeding = False
                    self._turn.notify_all()
            completion = self._complete(request)
            if cached is not None:
                # What the seeding computed for this very request did not come from a cache.
                completion = replace(completion, cached_tokens=min(cached, completion.cached_tokens))
            self._finished.put(replace(completion, seconds=time.monotonic() - started))
            with self._turn:
                self._busy -= 1
                self._turn.notify_all()

    def _take(self) -> tuple[Request, bool] | None:
        """The next request and whether its prompt is to be put into all slots first; None at the end."""
        with self._turn:
            while not self._closed:
                if self._waiting and not self._seeding:
                    seed = self._needs_seeding()
                    if not seed or self._busy == 0:
                        self._seeding = seed
                        self._busy += 1
                        return self._waiting.popleft(), seed
                self._turn.wait()
            return None

    def _needs_seeding(self) -> bool:
        if self._parallel == 1 or len(self._waiting) < 2:
            return False
        head, following = (flat_text(self._waiting[place].messages) for place in (0, 1))
        return worth_seeding(head, following, self._seeded)

    def _seed(self, request: Request) -> int | None:
        """Compute the request's prompt once and copy it into every slot; tokens that came from a cache, None on failure."""
        assert self._server is not None
        self._seeded = flat_text(request.messages)
        try:
            return self._server.fill_slots(_clean(request.messages))
        except _LIBRARY_ERRORS:
            # Only time is lost: the request itself meets the same trouble and reports it.
            return None

    def _may_reuse(self, request: Request) -> bool:
        """Whether kept tokens may serve the request: not where its very prompt was computed before, when replies are exact.

        They would leave one token to compute, and the library computes one by another order of sums than several.
        """
        if self._parallel > 1:
            return True
        digest = hashlib.blake2b(flat_text(request.messages).encode("utf-8", "replace"), digest_size=16).digest()
        is_new = digest not in self._computed
        self._computed.add(digest)
        return is_new

    def _complete(self, request: Request) -> Completion:
        assert self._server is not None
        unknown = sorted(set(request.sampling) - _SAMPLING)
        if unknown:
            return Completion(request.key, error=f"llamacpp knows no sampling field {', '.join(unknown)}")
        try:
            return _completion(request, self._server.chat(_body(request) | {"cache_prompt": self._may_reuse(request)}))
        except _LIBRARY_ERRORS as error:
            return Completion(request.key, error=f"llama.cpp failed: {type(error).__name__}: {error}"[:500])


def kept_mib() -> int:
    """MiB for the computed beginnings of prompts: an eighth of the machine's memory, at most 8 GiB, the library's own limit."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0
    return min(MAX_KEPT_MIB, memory // KEPT_SHARE // 2**20)


def compute_threads() -> int:
    """Physical cores this process may use, at most 8: hyperthreads do not help, and beyond that memory is the limit."""
    try:
        allowed = os.sched_getaffinity(0)
    except AttributeError:
        return max(1, min(MAX_THREADS, (os.cpu_count() or 1)))
    siblings = {_siblings(cpu) for cpu in allowed}
    return max(1, min(MAX_THREADS, len(siblings)))


def _siblings(cpu: int) -> str:
    try:
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text(encoding="ascii")
    except OSError:
        return str(cpu)


def _clean(messages: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    # A lone surrogate has no UTF-8 form; the library's JSON reader refuses the whole request.
    return [
        {name: text.encode("utf-8", "replace").decode("utf-8") for name, text in message.items()}
        for message in messages
    ]


def _body(request: Request) -> dict[str, Any]:
    body: dict[str, Any] = {**_NEUTRAL, **request.sampling, "messages": _clean(request.messages)}
    if body["temperature"] == 0:
        body["top_k"] = 1
    if request.options:
        body |= {"max_tokens": 1, "logprobs": True, "top_logprobs": LISTED_TOKENS}
    if request.schema is not None:
        body["grammar"] = compact_grammar(request.schema) or _library_grammar(request.schema)
    return body


def _library_grammar(schema: Mapping[str, Any]) -> str:
    import xllamacpp

    return str(xllamacpp.json_schema_to_grammar(dict(schema)))


def _completion(request: Request, reply: Mapping[str, Any]) -> Completion:
    if "error" in reply:
        return Completion(request.key, error=_error_text(reply["error"]))
    choice, timings = reply["choices"][0], reply.get("timings", {})
    usage = reply["usage"]
    completion = Completion(
        request.key,
        text=choice["message"].get("content") or "",
        finish="length" if choice["finish_reason"] == "length" else "stop",
        prompt_tokens=int(usage["prompt_tokens"]),
        cached_tokens=int(timings.get("cache_n", 0)),
        completion_tokens=int(usage["completion_tokens"]),
    )
    if not request.options:
        return completion
    listed = [(token["token"], token["logprob"]) for token in choice["logprobs"]["content"][0]["top_logprobs"]]
    return option_likelihoods.decided(completion, option_likelihoods.of_listed(request.options, listed))


def _error_text(error: Any) -> str:
    if not isinstance(error, Mapping):
        return f"llama.cpp refused the request: {error}"[:500]
    if error.get("type") == "exceed_context_size_error":
        return (
            f"the request has {error.get('n_prompt_tokens', '?')} tokens, a slot's context holds {error.get('n_ctx', '?')}: "
            "shorten the prompt or the case, or use a model with a longer context"
        )
    return f"llama.cpp refused the request: {error.get('message', error)}"[:500]
