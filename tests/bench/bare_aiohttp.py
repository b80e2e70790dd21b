"""``python -m tests.bench.bare_aiohttp URL REQUESTS AT_ONCE``: a bare aiohttp loop against a server; prints requests a second."""

from __future__ import annotations

import asyncio
import sys
import time

import aiohttp


async def main() -> None:
    """The least that a client can do: send, read the JSON, count."""
    url, requests, at_once = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    left = iter(range(requests))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=at_once)) as session:

        async def work() -> None:
            for number in left:
                body = {
                    "model": "instant",
                    "temperature": 0,
                    "messages": [{"role": "user", "content": f"{number} + 7 = ?"}],
                }
                async with session.post(f"{url}/chat/completions", json=body) as response:
                    await response.json()

        started = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(at_once)))
        print(requests / (time.perf_counter() - started))


if __name__ == "__main__":
    asyncio.run(main())
