"""exllamav2 and exllamav3 on NVIDIA GPUs: one adapter, for both have the same generator of jobs.

A thread of its own loads the model and then works on it: the libraries' CUDA streams belong to a thread, and what
waits for the GPU must not hold up who writes results down. Requests are taken in the order of their tokens, so that
common beginnings are found in the cache. Requests in one batch change the order of floating-point sums, so replies
repeat nearly always, not always.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.backends.completion_queue import CompletionQueue
from engine.backends.exllama_library import Job, Library, option_logprobs, token_logprobs
from engine.backends.faults import Fault, fault_of, in_one_line
from engine.backends.kv_cache import BYTES_PER_ELEMENT, attempts, first_attempt, kv_shape, pages
from engine.backends.option_likelihoods import decided
from engine.backends.prefix_order import next_in_order
from engine.backends.protocol import BackendBroken, Completion, ModelInfo, ModelSpec, Request
from engine.backends.stop_strings import finished_text
from engine.errors import EvaldeskError
from engine.models.directory import is_model_directory, quantisation, read_json, trained_context

if TYPE_CHECKING:
    from engine.backends.exllama_prompts import Prompts

CONTEXT_LENGTH = 8192
"""Tokens a request may use unless the model was trained for fewer or the spec asks for another number."""
PARALLEL = 32
METHODS = {"exllamav2": ("exl2", "gptq", ""), "exllamav3": ("exl3", "")}
"""The quantisations that each runs; "" is none."""
_OPTIONS = frozenset({"cache", "cache_tokens"})

OpenLibrary = Callable[[Path, int], Library]
"""Model directory and tokens a request may use in; the library with its tokenizer, no weights yet, out."""


@dataclass
class _Task:
    """One request on its way, with what came of it so far."""

    job: Job
    started: float = 0.0
    logprobs: list[float] = field(default_factory=list)
    likelihoods: dict[str, float] = field(default_factory=dict)
    is_suspect: bool = False
    """It was in a batch that failed: it runs alone, so that it fails alone."""


class ExLlama:
    """engine.backends.protocol.Backend on a model directory; ``name`` is exllamav2 or exllamav3.

    ``options`` of the spec: cache (fp16, q8, q6, q4) and cache_tokens, over all requests together. ``sampling`` may
    hold the fields of exllama_library.NEUTRAL, max_tokens, stop and logprobs; without temperature a request is greedy,
    without max_tokens it may fill the context. With logprobs true, Completion.extra has "logprobs", one number for each generated token, the end token
    included (see engine.backends.exllama_library.token_logprobs).
    """

    def __init__(self, name: str, open_library: OpenLibrary | None = None) -> None:
        self.name = name
        self._open_library = open_library or _opener(name)
        self._thread: threading.Thread | None = None
        self._turn = threading.Condition()
        self._arrived: deque[Request] = deque()
        self._waiting: list[_Task] = []
        self._active: dict[str, _Task] = {}
        self._finished = CompletionQueue()
        self._closed = False
        self._broken: BackendBroken | None = None
        # What follows is the thread's own.
        self._last: Sequence[int] = ()
        self._batch = 1
        self._cache_tokens = 0
        self._notes: list[str] = []
        self._attempts: Iterator[tuple[str, int]] = iter(())
        self._library: Library
        self._prompts: Prompts

    def load(self, model: ModelSpec) -> ModelInfo:
        """Load the model; raises EvaldeskError when it is no model directory, the library or the GPU refuses it."""
        opened: Future[ModelInfo] = Future()
        self._thread = threading.Thread(target=self._serve, args=(model, opened), name=self.name, daemon=True)
        self._thread.start()
        return opened.result()

    def submit(self, requests: Sequence[Request]) -> None:
        """Take requests; which of them starts next is decided when there is room."""
        with self._turn:
            self._arrived.extend(requests)
            self._finished.expect(len(requests))
            self._turn.notify_all()

    def results(self, timeout: float) -> list[Completion]:
        """Completions since the last call, in the order in which they ended; raises BackendBroken, see there."""
        completions = self._finished.take(timeout)
        if not completions and self._broken is not None:
            raise self._broken
        return completions

    @property
    def in_flight(self) -> int:
        """Requests submitted and not yet given back by ``results``."""
        return self._finished.in_flight

    def cancel(self) -> None:
        """Drop what has not started."""
        with self._turn:
            self._finished.expect(-len(self._arrived) - len(self._waiting))
            self._arrived.clear()
            self._waiting.clear()

    def close(self) -> None:
        """Drop everything and free the model."""
        self.cancel()
        with self._turn:
            self._closed = True
            self._turn.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _serve(self, model: ModelSpec, opened: Future[ModelInfo]) -> None:
        try:
            info = self._open(model)
        except EvaldeskError as error:
            opened.set_exception(error)
            return
        except Exception as error:  # noqa: BLE001  (a library may fail in any way; the reason is what counts)
            opened.set_exception(_cannot_load(self.name, model.path, error))
            return
        opened.set_result(info)
        while self._wait_for_work():
            try:
                self._admit()
                self._start_jobs()
                if self._active:
                    self._take_results(self._library.generator.iterate())
            except Exception as error:  # noqa: BLE001
                try:
                    self._recover(error)
                except Exception as worse:  # noqa: BLE001
                    self._broken = BackendBroken(f"{self.name} cannot go on in this process: {in_one_line(worse)}")
                    return
        self._library.unload()

    def _wait_for_work(self) -> bool:
        with self._turn:
            while not (self._closed or self._arrived or self._waiting or self._active):
                self._turn.wait()
            return not self._closed

    def _open(self, model: ModelSpec) -> ModelInfo:
        from engine.backends.exllama_prompts import read_prompts
        from engine.models.fingerprint import fingerprint, weight_files

        directory = Path(model.path)
        if not is_model_directory(directory):
            raise EvaldeskError(
                "this is no model directory: config.json and .safetensors files are expected", where=str(directory)
            )
        if (method := quantisation(directory)) not in METHODS[self.name]:
            raise EvaldeskError(
                f"{self.name} does not run weights of the quantisation {method}", where=str(directory),
                remedy="Get the model as EXL3, EXL2 or GPTQ, as a .gguf file, or behind a server.",
            )  # fmt: skip
        mode = _cache_mode(model.options)
        context = model.context_length or CONTEXT_LENGTH
        if trained := trained_context(directory):
            context = min(context, trained)
        self._library = library = self._open_library(directory, context)
        self._batch = model.parallel or PARALLEL
        if library.serial_because:
            self._batch = 1
            self._note(f"serial mode, no batching, because {library.serial_because}")
        fixed = "cache" in model.options
        wanted = int(model.options.get("cache_tokens", 0)) or self._batch * context
        mode, tokens = first_attempt(
            wanted, context, mode, fixed_mode=fixed, shape=kv_shape(read_json(directory / "config.json")),
            free=library.free_memory(), weights=sum(file.stat().st_size for _, file in weight_files(directory)),
        )  # fmt: skip
        if library.serial_because:
            tokens = min(tokens, context)
        self._attempts = attempts(tokens, context, mode, fixed_mode=fixed)
        # Before the weights, which take minutes: a model without a chat template is refused at once.
        prompts = read_prompts(directory, library.encode, library.token_id, context)
        mode = self._load_next(str(directory))
        self._prompts = prompts = replace(prompts, context=min(context, self._cache_tokens))
        features = {"schema", "logprobs", "likelihoods", "prefix_cache"} | ({"batch"} if self._batch > 1 else set())
        return ModelInfo(
            fingerprint=fingerprint(directory).short,
            context_length=prompts.context,
            parallel=self._batch,
            features=frozenset(features),
            backend=self.name,
            backend_version=_version(self.name),
            facts={"cache": mode, "cache_tokens": self._cache_tokens, "notes": list(self._notes)},
        )

    def _load_next(self, where: str) -> str:
        """Load with the next cache that may fit, and the next ...; its mode. EvaldeskError when none is left."""
        for mode, tokens in self._attempts:
            try:
                self._library.load(mode, tokens, self._batch)
            except Exception as error:
                if fault_of(error) is not Fault.MEMORY:
                    raise
                self._note(f"insufficient GPU memory for a cache of {tokens:,} tokens ({mode})")
            else:
                self._cache_tokens = tokens
                self._note(f"cache: {tokens:,} tokens ({mode})")
                return mode
            # Outside the handler: the exception would keep the tensors alive.
            self._library.unload()
        raise EvaldeskError(
            "the GPU's memory is insufficient for this model, even with the smallest cache",
            where=where,
            remedy="Free the GPU, use weights of fewer bits, or set the model's option cache to q4.",
        )

    def _note(self, text: str) -> None:
        self._notes.append(text)
        with contextlib.suppress(OSError):
            print(time.strftime("%Y-%m-%d %H:%M:%S"), f"{self.name}: {text}", file=sys.stderr, flush=True)

    def _admit(self) -> None:
        """Put what arrived among what waits, in tokens; what cannot be put so is finished with its error."""
        with self._turn:
            while self._arrived:
                request = self._arrived.popleft()
                try:
                    self._waiting.append(_Task(self._prompts.job(request)))
                except EvaldeskError as error:
                    self._finished.put(Completion(request.key, error=str(error)))
                except Exception as error:  # noqa: BLE001  (a tokenizer may fail in any way)
                    self._finished.put(Completion(request.key, error=f"{self.name} failed: {in_one_line(error)}"))

    def _start_jobs(self) -> None:
        while (task := self._next_task()) is not None:
            try:
                if pages(len(task.job.ids) + task.job.limit) > self._cache_tokens:
                    # Only after the cache was made smaller than it was when the model was loaded.
                    raise ValueError(f"{len(task.job.ids)} + {task.job.limit} tokens, cache {self._cache_tokens}")
                self._library.generator.enqueue(self._library.job(task.job))
            except Exception as error:
                if fault_of(error) is not Fault.REQUEST:
                    raise
                self._fail(task, error)

    def _next_task(self) -> _Task | None:
        """The task that starts now, counted as active; None when none may."""
        with self._turn:
            if self._closed or not self._waiting or len(self._active) >= self._batch:
                return None
            suspects = [task for task in self._waiting if task.is_suspect]
            if self._active and (suspects or any(task.is_suspect for task in self._active.values())):
                return None
            among = suspects or self._waiting
            task = among[next_in_order([task.job.ids for task in among], self._last)]
            self._waiting.remove(task)
            self._active[task.job.key] = task
        self._last = task.job.ids
        task.started = task.started or time.monotonic()
        return task

    def _take_results(self, results: Sequence[Mapping[str, Any]]) -> None:
        for result in results:
            task = self._active.get(result["job"].identifier)
            if task is None:
                continue
            if result["stage"] == "error":
                # exllamav3 takes a job that fails out of the batch by itself.
                if fault_of(result["error"]) is Fault.REQUEST:
                    self._fail(task, result["error"])
                    continue
                raise result["error"]
            if result["stage"] != "streaming":
                continue
            if task.job.options and not task.likelihoods:
                held, options = result.get("held", {}), task.job.options
                task.likelihoods = option_logprobs(result, options) or option_logprobs(held, options)
            if task.job.logprobs:
                task.logprobs += token_logprobs(result) + token_logprobs(result.get("held", {}))
            if result["eos"]:
                self._finish(task, result)

    def _finish(self, task: _Task, result: Mapping[str, Any]) -> None:
        text, finish = finished_text(result, task.job.stop, self._library.decode)
        completion = Completion(
            task.job.key,
            text=text,
            finish=finish,
            prompt_tokens=len(task.job.ids),
            cached_tokens=int(result["cached_tokens"]),
            completion_tokens=int(result["new_tokens"]),
            seconds=time.monotonic() - task.started,
            extra={"logprobs": task.logprobs} if task.job.logprobs else {},
        )
        self._give_back(task, decided(completion, task.likelihoods) if task.job.options else completion)

    def _fail(self, task: _Task, error: BaseException) -> None:
        self._give_back(task, Completion(task.job.key, error=f"{self.name} failed: {in_one_line(error)}"))

    def _give_back(self, task: _Task, completion: Completion) -> None:
        with self._turn:
            self._active.pop(task.job.key, None)
        self._finished.put(completion)

    def _recover(self, error: Exception) -> None:
        """Go on after an exception in the midst of a batch; raises when this process cannot.

        What was active starts anew: the library does not know any more how far it was.
        """
        with contextlib.suppress(OSError):
            traceback.print_exception(error)
        fault = fault_of(error)
        if fault is Fault.DEVICE:
            raise error
        # Its frames hold tensors, which would be missed while the model is loaded again.
        error.__traceback__ = None
        tasks = list(self._active.values())
        self._note(f"{len(tasks)} active requests start anew after {in_one_line(error)}")
        generator = self._library.generator
        with contextlib.suppress(Exception):
            generator.clear_queue()
        generator.active_jobs.clear()
        generator.pending_jobs.clear()
        self._library.forget()
        if fault is Fault.MEMORY and len(tasks) > 1:
            self._batch = max(1, len(tasks) // 2)
            self._note(f"insufficient GPU memory: from now on {self._batch} requests at once")
        elif fault is Fault.MEMORY:
            self._shrink(tasks, error)
            tasks = list(self._active.values())
        elif len(tasks) == 1:
            self._fail(tasks[0], error)
            return
        with self._turn:
            for task in tasks:
                del self._active[task.job.key]
                task.logprobs, task.likelihoods = [], {}
                task.is_suspect = fault is Fault.REQUEST
                if not self._closed:
                    self._waiting.append(task)

    def _shrink(self, tasks: Sequence[_Task], error: Exception) -> None:
        """Load the model again with a smaller cache; where none is left, the one request that needs more fails."""
        remaining = list(self._attempts)
        self._attempts = iter(remaining)
        if not remaining:
            for task in tasks:
                self._fail(task, error)
            return
        self._library.unload()
        self._load_next("")


def _opener(name: str) -> OpenLibrary:
    def open_library(directory: Path, context: int) -> Library:
        try:
            if name == "exllamav2":
                from engine.backends.exllamav2_parts import ExLlamaV2Library

                return ExLlamaV2Library(directory, context)
            from engine.backends.exllamav3_parts import ExLlamaV3Library
        except Exception as error:
            # Also OSError (torch without CUDA), IndexError (no GPU), AttributeError (another flash-attn).
            raise EvaldeskError(
                f"the backend {name} cannot run here: {in_one_line(error)}",
                remedy=f"Install evaldesk[{name}]; see evaldesk doctor.",
            ) from error
        return ExLlamaV3Library(directory, context)

    return open_library


def _cache_mode(options: Mapping[str, Any]) -> str:
    unknown = sorted(set(options) - _OPTIONS)
    mode = options.get("cache", "fp16")
    tokens = options.get("cache_tokens", 0)
    if unknown or mode not in BYTES_PER_ELEMENT or type(tokens) is not int or tokens < 0:
        raise EvaldeskError(
            f"the model's options are not understood: {dict(options)}",
            remedy=f"cache may be {', '.join(BYTES_PER_ELEMENT)}; cache_tokens is a whole number.",
        )
    return str(mode)


def _cannot_load(name: str, where: str, error: Exception) -> EvaldeskError:
    return EvaldeskError(
        f"{name} could not load the model: {in_one_line(error)}",
        where=where,
        remedy="The log says more; evaldesk doctor says what is missing.",
    )


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
