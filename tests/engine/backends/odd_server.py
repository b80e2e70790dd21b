"""A small HTTP server on loopback that answers as a chat server does, or as oddly as a test wants.

``python -m tests.engine.backends.odd_server`` serves plain answers on a free port and prints it, to measure against.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

MODEL = "odd-model"
HANG = 3600.0


@dataclass(frozen=True)
class Call:
    """One request as it arrived; ``number`` counts the chat requests from 0."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    number: int


@dataclass(frozen=True)
class Answer:
    """What goes back. ``cut`` closes the connection after so many bytes of the body; ``seconds`` is waited first."""

    body: bytes | Mapping[str, Any] = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    cut: int | None = None

    def encoded(self) -> bytes:
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        lines = [f"HTTP/1.1 {self.status} Odd", f"Content-Length: {len(body)}", "Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        sent = body if self.cut is None else body[: self.cut]
        return "\r\n".join([*lines, "", ""]).encode() + sent


Behaviour = Callable[[Call], Answer]


def completion(text: str = "yes", *, model: str = MODEL, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """A chat completion as servers send it."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 2,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    return {"id": "x", "object": "chat.completion", "model": model, "choices": [choice], "usage": usage}


def refusal(message: str, status: int = 400, **more: Any) -> Answer:
    return Answer({"error": {"message": message, **more}}, status)


def plain(call: Call) -> Answer:
    """Say yes."""
    return Answer(completion())


class OddServer:
    """The server in a thread of its own; ``calls`` holds what was asked of it, the list of models aside."""

    def __init__(self, behave: Behaviour = plain, models: Answer | None = None) -> None:
        self.behave = behave
        self.models = models or Answer({"object": "list", "data": [{"id": MODEL, "max_model_len": 4096}]})
        self.calls: list[Call] = []
        self.listed: list[Call] = []
        self._writers: set[asyncio.StreamWriter] = set()
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=asyncio.run, args=(self._run(),), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Break all connections and listen no more; twice is harmless."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while (call := await self._read(reader)) is not None:
                if call.path.endswith("/models"):
                    self.listed.append(call)
                    answer = self.models
                else:
                    self.calls.append(call)
                    answer = self.behave(call)
                if answer.seconds:
                    await asyncio.sleep(answer.seconds)
                writer.write(answer.encoded())
                await writer.drain()
                if answer.cut is not None:
                    return
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Call | None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        except asyncio.IncompleteReadError:
            return None
        method, path, _ = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        return Call(method, path, headers, json.loads(raw) if raw else None, len(self.calls))


if __name__ == "__main__":
    with OddServer() as bench:
        print(bench.url, flush=True)
        threading.Event().wait()
