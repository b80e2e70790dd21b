"""Any OpenAI-compatible server (vLLM, llama-server, TabbyAPI, hosted ones): many requests at once, over HTTP.

An event loop in a thread of its own keeps ``parallel`` requests going; the worker's thread hands requests in and takes
completions out in batches, so that neither waits for the other.
"""

from __future__ import annotations

import asyncio
import importlib.util
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.backends.backoff import Backoff
from engine.backends.protocol import Completion, ModelInfo, ModelSpec, Request
from engine.backends.server_options import server_options
from engine.errors import EvaldeskError

if TYPE_CHECKING:
    from engine.backends.server_client import ServerClient
    from engine.backends.server_link import ServerLink

PARALLEL = 16
CLOSE_S = 3.0
"""How long connections may take to close; then the thread is left to the end of the process."""


class OpenAiApi:
    """engine.backends.protocol.Backend on a server; see engine.models.server_address for what a spec's options name.

    ``results`` raises EvaldeskError once no further request can succeed (the key is refused, another model answers, the
    server is gone), after everything that was finished before has been handed over.
    """

    def __init__(self, backoff: Backoff | None = None) -> None:
        self._backoff = backoff or Backoff()
        self._waiting: deque[Request] = deque()
        self._done: deque[Completion | None] = deque()
        self._something = threading.Event()
        self._in_flight = 0
        self._stopped: EvaldeskError | None = None
        self._idle: deque[asyncio.Future[None]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None
        self._link: ServerLink | None = None
        self._thread: threading.Thread | None = None

    def load(self, model: ModelSpec) -> ModelInfo:
        """Reach the server, with key and model; raises EvaldeskError when it is not there, or refuses one of them."""
        if importlib.util.find_spec("aiohttp") is None:
            raise EvaldeskError(
                "the backend openai_api cannot run here: the package aiohttp is not installed",
                remedy="Install evaldesk[openai]; see evaldesk doctor.",
            )
        import aiohttp

        from engine.backends.server_client import ServerClient
        from engine.backends.server_link import ServerLink
        from engine.models.server_address import server_address
        from engine.models.server_key import find_key

        named = {name: str(model.options.get(name, "")) for name in ("model", "key_env", "snapshot")}
        address = server_address(model.path, **named)
        options = server_options(model.options, model.name)
        key = find_key(address.key_env)
        self._link = ServerLink(address, key, options, self._backoff)
        parallel = model.parallel or PARALLEL
        opened: Future[int] = Future()
        client = ServerClient(address, key, options, self._link)
        self._thread = threading.Thread(target=self._run, args=(client, parallel, opened), name="server", daemon=True)
        self._thread.start()
        try:
            context = opened.result()
        except EvaldeskError:
            self.close()
            raise
        return ModelInfo(
            fingerprint=address.fingerprint.short,
            context_length=model.context_length or context,
            parallel=parallel,
            features=frozenset({"schema", "likelihoods", "batch"}),
            backend="openai_api",
            backend_version=f"aiohttp {aiohttp.__version__}",
        )

    def submit(self, requests: Sequence[Request]) -> None:
        """Take requests into the queue; they start in this order."""
        if not requests:
            return
        self._waiting.extend(requests)
        self._in_flight += len(requests)
        self._in_loop(self._take)

    def results(self, timeout: float) -> list[Completion]:
        """Completions since the last call, in the order in which they ended."""
        self._something.clear()
        if not self._done and self._stopped is None:
            self._something.wait(max(0.0, timeout))
        taken: list[Completion | None] = []
        while self._done:
            taken.append(self._done.popleft())
        self._in_flight -= len(taken)
        if not taken and self._stopped is not None:
            raise self._stopped
        return [completion for completion in taken if completion is not None]

    @property
    def in_flight(self) -> int:
        """Requests submitted and not yet given back by ``results``."""
        return self._in_flight

    def cancel(self) -> None:
        """Drop what has not started, and what waits to be tried again."""
        with suppress(IndexError):
            while True:
                self._waiting.pop()
                self._in_flight -= 1
        if self._link is not None:
            self._in_loop(self._link.drop_waiting)

    def close(self) -> None:
        """End all connections; what is still going on is thrown away."""
        self._waiting.clear()
        if self._main is not None:
            self._in_loop(self._main.cancel)
        if self._thread is not None:
            self._thread.join(CLOSE_S)
            self._thread = None

    def _in_loop(self, call: Callable[[], object]) -> None:
        # A loop that has ended has nothing to wake or to cancel.
        with suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(call)

    def _run(self, client: ServerClient, parallel: int, opened: Future[int]) -> None:
        """The thread: one loop from the first connection to the last."""
        loop = asyncio.new_event_loop()
        self._loop = loop
        self._main = loop.create_task(self._serve(client, parallel, opened))
        try:
            loop.run_until_complete(self._main)
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001
            self._stopped = EvaldeskError(f"the connection to the server failed: {type(error).__name__}")
            self._something.set()
        finally:
            loop.close()
        if not opened.done():
            opened.set_exception(self._stopped or EvaldeskError("the server was let go before it answered"))

    async def _serve(self, client: ServerClient, parallel: int, opened: Future[int]) -> None:
        assert self._link is not None
        self._link.open(parallel)
        workers: list[asyncio.Task[None]] = []
        try:
            opened.set_result(await client.open())
            workers += [asyncio.create_task(self._work(client)) for _ in range(parallel)]
            await asyncio.gather(*workers)
        except EvaldeskError as error:
            if opened.done():
                self._stopped = error
                self._something.set()
            else:
                opened.set_exception(error)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await self._link.close()

    async def _work(self, client: ServerClient) -> None:
        """One of the ``parallel``: take a request, wait for its completion, hand it over, for ever."""
        from engine.backends.server_link import Dropped

        while True:
            request = await self._next()
            try:
                completion: Completion | None = await client.complete(request)
            except Dropped:
                completion = None
            except EvaldeskError:
                raise
            except Exception as error:  # noqa: BLE001
                # Its own words may hold what was sent, the key among it.
                text = f"the request could not be carried out: {type(error).__name__}"
                completion = Completion(request.key, error=text, is_final=True)
            self._done.append(completion)
            self._something.set()

    async def _next(self) -> Request:
        while True:
            # The worker's thread may have emptied the queue since the last look.
            with suppress(IndexError):
                return self._waiting.popleft()
            woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle.append(woken)
            await woken

    def _take(self) -> None:
        if self._link is not None:
            self._link.take_again()
        for _ in range(min(len(self._waiting), len(self._idle))):
            woken = self._idle.popleft()
            if not woken.done():
                woken.set_result(None)
