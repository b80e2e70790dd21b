"""HTTP to one OpenAI-compatible server: attempts, retries, time limits and rate limits, on one event loop."""

from __future__ import annotations

import asyncio
import random
import time

import aiohttp

from engine.backends.backoff import Backoff, told_wait
from engine.backends.chat_reply import ChatReply, NotAReply, ServerError, read_chat, read_error, read_models
from engine.backends.rate_limit import TokenBucket
from engine.backends.scrubbing import one_line
from engine.backends.server_failure import Failure, Meaning, meaning_of, stops_the_run
from engine.backends.server_options import ServerOptions
from engine.models.server_address import ServerAddress

CONNECT_S = 10.0
LIST_S = 30.0
MAX_BODY = 8 * 2**20
"""Bytes of one reply: a longer one is no completion that anybody asked for."""
MAX_TIMEOUTS = 2
"""How often one request may reach its time limit: each time takes minutes."""
MAX_IN_ROW = 20
"""So many requests given up one after the other, and none answered between them, stop the run."""


class Dropped(Exception):
    """The request waited for its turn when everything that waits was dropped."""


class ServerLink:
    """One session with a server. The key goes to this server alone, for redirects are not followed, and stands in no text.

    ``chat`` and ``models`` raise Failure. After ``drop_waiting`` ``chat`` raises Dropped for what waits or would be sent, until
    ``take_again``.
    """

    def __init__(self, address: ServerAddress, key: str, options: ServerOptions, backoff: Backoff) -> None:
        self._address = address
        self._key = key
        self._options = options
        self._backoff = backoff
        self._requests = TokenBucket(options.requests_per_minute) if options.requests_per_minute else None
        self._tokens = TokenBucket(options.tokens_per_minute) if options.tokens_per_minute else None
        self._chat_url = f"{address.url}/chat/completions"
        self._session: aiohttp.ClientSession | None = None
        self._answered_at = float("-inf")
        self._given_up_in_row = 0
        self._hold_until = float("-inf")
        self._sleepers: set[asyncio.Future[None]] = set()
        self._drops = False

    def open(self, connections: int) -> None:
        """Make the session; nothing is sent yet."""
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "evaldesk"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=connections, ttl_dns_cache=300),
            timeout=aiohttp.ClientTimeout(total=self._options.timeout or None, sock_connect=CONNECT_S),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Let go of all connections."""
        if self._session is not None:
            await self._session.close()

    def drop_waiting(self) -> None:
        """Make every request that waits, to be tried again or for a rate limit, end with Dropped, and send no other."""
        self._drops = True
        for sleeper in self._sleepers:
            if not sleeper.done():
                sleeper.set_exception(Dropped())

    def take_again(self) -> None:
        """Requests are sent again; those of before that have not ended yet are taken as new ones."""
        self._drops = False

    async def models(self) -> dict[str, int]:
        """The models that the server lists, with their context lengths or 0; {} where it has no such list."""
        for failures in range(1, self._backoff.tries + 1):
            try:
                status, body, told = await self._request("GET", f"{self._address.url}/models", None)
                if status == 200:
                    return read_models(body)
                self._judge(status, body, told)
            except NotAReply:
                return {}
            except Failure as failure:
                if failure.status in (404, 405) or failure.meaning is Meaning.REQUEST:
                    return {}
                # Nobody listens: that does not pass as a busy server's 503 does.
                soon = self._backoff.tries if failure.status else 3
                if failure.meaning is Meaning.RUN or failures >= soon:
                    raise self._outage(failure) if failure.meaning is Meaning.AGAIN else failure from None
                await self._sleep(self._backoff.wait(failures, failure.told))
        raise AssertionError("the last try returns or raises")

    async def chat(self, body: bytes, tokens: int) -> tuple[ChatReply, float]:
        """The reply to one request and the seconds that its last attempt took; ``tokens`` is what it is taken to need."""
        began, seen = time.monotonic(), self._answered_at
        failures = lost = timeouts = 0
        while True:
            await self._room(tokens)
            started = time.monotonic()
            try:
                reply = await self._attempt(body)
            except Failure as failure:
                if self._tokens is not None:
                    self._tokens.correct(tokens)
                if failure.meaning is not Meaning.AGAIN:
                    raise self._given_up(failure) from None
                failures += 1
                # Too many at once, and others were served since the last try: its turn comes.
                lost = 1 if failure.status == 429 and self._answered_at > seen else lost + 1
                seen = self._answered_at
                timeouts += failure.status == 0 and failure.may_be_the_request
                if timeouts >= MAX_TIMEOUTS or (
                    lost >= self._backoff.tries and not self._may_come_back(failure, began)
                ):
                    raise self._exhausted(failure, began) from None
                wait = self._backoff.wait(failures, failure.told)
                if failure.told is not None:
                    # What it told one of us holds for all.
                    self._hold_until = max(self._hold_until, time.monotonic() + min(wait, self._backoff.longest_told))
                await self._sleep(wait)
                continue
            now = time.monotonic()
            self._answered_at = now
            self._given_up_in_row = 0
            used = reply.prompt_tokens + reply.completion_tokens
            if self._tokens is not None and used:
                self._tokens.correct(tokens - used)
            return reply, now - started

    async def _attempt(self, body: bytes) -> ChatReply:
        status, raw, told = await self._request("POST", self._chat_url, body)
        if status != 200:
            self._judge(status, raw, told)
        try:
            read = read_chat(raw)
        except NotAReply as error:
            raise Failure(Meaning.AGAIN, str(error), status=200, may_be_the_request=True) from None
        if isinstance(read, ServerError):
            code = int(read.code) if read.code.isascii() and read.code.isdigit() else 500
            self._judge(code if 400 <= code < 600 else 500, raw, told)
            raise AssertionError("an error status is judged as a failure")
        if read.finish == "content_filter":
            self._answered_at = time.monotonic()
            raise Failure(Meaning.REQUEST, "the server's content filter stopped this reply", status=200)
        return read

    def _judge(self, status: int, raw: bytes, told: float | None) -> None:
        """Raise the Failure that this status other than 200 means."""
        error = read_error(raw)
        said = one_line(error.message, self._key)
        meaning = meaning_of(status, error, has_answered=self._answered_at > float("-inf"))
        if meaning is Meaning.RUN:
            raise stops_the_run(status, said, model=self._address.model, variable=self._address.key_env)
        if meaning is Meaning.REQUEST:
            raise Failure(meaning, f"the server refused the request ({status}): {said}", status=status)
        text = f"the server could not do it ({status}): {said}"
        raise Failure(meaning, text, status=status, told=told, may_be_the_request=status == 500)

    async def _request(self, method: str, url: str, body: bytes | None) -> tuple[int, bytes, float | None]:
        """Status, body and Retry-After of one exchange; errors are named by kind, for their own words may hold headers."""
        assert self._session is not None
        limit = aiohttp.ClientTimeout(total=LIST_S, sock_connect=CONNECT_S) if body is None else self._session.timeout
        try:
            async with self._session.request(method, url, data=body, allow_redirects=False, timeout=limit) as response:
                raw = await _bounded(response)
                told = None if response.status == 200 else told_wait(response.headers.get("Retry-After"))
                if 300 <= response.status < 400:
                    raw = response.headers.get("Location", "").encode("utf-8", "replace")
                return response.status, raw, told
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError):
            raise Failure(
                Meaning.RUN, "the server's certificate or encryption is not accepted",
                remedy="Check the URL; a private authority is trusted through SSL_CERT_FILE.",
            ) from None  # fmt: skip
        except aiohttp.ClientConnectorDNSError:
            raise Failure(Meaning.AGAIN, "the server's name cannot be found") from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            raise Failure(Meaning.AGAIN, "no connection to the server") from None
        except TimeoutError:
            text = f"no reply within {limit.total or 0:g} s"
            raise Failure(Meaning.AGAIN, text, may_be_the_request=body is not None) from None
        except (aiohttp.ClientError, OSError):
            raise Failure(Meaning.AGAIN, "the connection broke before the reply was complete") from None

    def _exhausted(self, failure: Failure, began: float) -> Failure:
        """After the last try: the request's own failure, or the server's, which stops the run."""
        if not self._is_alive(failure, began):
            return self._outage(failure)
        if failure.status == 0 and failure.may_be_the_request:
            failure = Failure(Meaning.REQUEST, failure.text)
        return self._given_up(failure)

    def _is_alive(self, failure: Failure, began: float) -> bool:
        """Whether the server answers others, so that this failure is the request's own."""
        return self._answered_at >= began or (failure.may_be_the_request and self._answered_at > float("-inf"))

    def _may_come_back(self, failure: Failure, began: float) -> bool:
        """Whether the server answers nobody, and has not done so for long."""
        silent = time.monotonic() - max(began, self._answered_at)
        return not self._is_alive(failure, began) and silent < self._backoff.patience

    def _given_up(self, failure: Failure) -> Failure:
        """The failure as it is, or that of the run. A server that has answered may refuse as many requests as it likes."""
        refused = failure.meaning is Meaning.REQUEST and failure.status and self._answered_at > float("-inf")
        if failure.meaning is not Meaning.RUN and not refused:
            self._given_up_in_row += 1
            if self._given_up_in_row >= MAX_IN_ROW:
                return Failure(
                    Meaning.RUN, f"{self._given_up_in_row} requests one after the other failed, the last one with: {failure.text}",
                    remedy="Put that right, then resume the run.",
                )  # fmt: skip
        return failure

    def _outage(self, failure: Failure) -> Failure:
        return Failure(
            Meaning.RUN, f"the server does not answer: {failure.text}", status=failure.status,
            remedy="See that it runs and can be reached from here, then resume the run.",
        )  # fmt: skip

    async def _room(self, tokens: int) -> None:
        """Wait until the rate limits have room for one more request, and for the end of a wait that the server asked for."""
        if self._drops:
            raise Dropped
        delay = self._requests.reserve(1) if self._requests is not None else 0.0
        if self._tokens is not None:
            delay = max(delay, self._tokens.reserve(tokens))
        try:
            if delay > 0:
                await self._sleep(delay)
            while (left := self._hold_until - time.monotonic()) > 0:
                await self._sleep(left + random.random() * self._backoff.base)
        except Dropped:
            # It was never sent: whoever asks later shall not wait for it.
            if self._requests is not None:
                self._requests.correct(1)
            if self._tokens is not None:
                self._tokens.correct(tokens)
            raise

    async def _sleep(self, seconds: float) -> None:
        if self._drops:
            raise Dropped
        loop = asyncio.get_running_loop()
        sleeper: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(seconds, _end, sleeper)
        self._sleepers.add(sleeper)
        try:
            await sleeper
        finally:
            timer.cancel()
            self._sleepers.discard(sleeper)


def _end(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    """The whole body; raises Failure when it is longer than ``MAX_BODY``."""
    body = await response.content.readany()
    if response.content.at_eof():
        return body
    parts, size = [body], len(body)
    while part := await response.content.readany():
        parts.append(part)
        size += len(part)
        if size > MAX_BODY:
            raise Failure(Meaning.REQUEST, f"the server's reply is longer than {MAX_BODY // 2**20} MB")
    return b"".join(parts)
