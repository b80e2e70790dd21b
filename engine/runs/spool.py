"""The spool of a run, results.jsonl: append only, one finished request a line, synced once per batch.

A result counts as soon as its line is complete. Whatever follows the last newline is a torn write of a
worker that died; readers skip it and the next worker cuts it off before it appends.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.errors import EvaldeskError
from engine.runs.compaction import open_lines, plain_size
from engine.runs.durable import cannot_write, sync_folder, write_all

TEXTS = ("text", "finish", "error", "backend", "backend_version", "served_by")
COUNTS = ("prompt_tokens", "cached_tokens", "completion_tokens")
NUMBERS = ("seconds", "at", "cost")
LIKELIHOODS = "likelihoods"

_BLOCK = 1 << 20
_COMPACTED_BLOCK = 64 << 20
"""The least that is read of a compacted spool at once, for it is unpacked from its beginning each time."""


class Spool:
    """The one writer of a spool; the caller holds the run's lock. Raises EvaldeskError when the disk refuses."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                complete = _complete_size(self._descriptor)
                if complete != os.fstat(self._descriptor).st_size:
                    os.ftruncate(self._descriptor, complete)
                    os.fsync(self._descriptor)
                sync_folder(path.parent)
            except BaseException:
                os.close(self._descriptor)
                raise
        except OSError as error:
            raise cannot_write(path, error) from error

    def append(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Append finished requests and sync once; on return they survive a power cut.

        When the disk refuses, lines already complete stay: a reader may have taken them.
        """
        if not results:
            return
        data = b"".join(_encode(result) for result in results)
        try:
            write_all(self._descriptor, data)
            os.fsync(self._descriptor)
        except OSError as error:
            self._cut_back()
            raise cannot_write(self.path, error) from error

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _cut_back(self) -> None:
        try:
            os.ftruncate(self._descriptor, _complete_size(self._descriptor))
        except OSError:
            # Opening the spool again cuts a torn line as well, so nothing is lost by failing here.
            pass


def read_results(path: Path, offset: int = 0, *, limit: int | None = None) -> tuple[list[dict[str, Any]], int]:
    """Complete result lines from byte ``offset`` on, and the offset to go on from.

    Each entry has all keys of a result line (see ``TEXTS``, ``COUNTS``, ``NUMBERS``, ``LIKELIHOODS`` and "key"). A complete
    line that is no result comes back as {"key": "", "refused": why, "offset": its byte, ...} in its place, so
    that one bad line never holds up the rest. A torn last line is left for later. ``limit`` bounds the bytes
    read at once (a longer line, and more of a compacted spool, is still read). When ``offset`` is not at the start of a line (the file
    was cut by a power failure after someone read it), reading starts over at 0: take each key only once.
    A missing file has no results.
    """
    try:
        with open_lines(path) as file:
            if offset > 0:
                file.seek(offset - 1)
                if file.read(1) != b"\n":
                    offset = 0
                    file.seek(0)
            if limit is not None and isinstance(file, gzip.GzipFile):
                limit = max(limit, _COMPACTED_BLOCK)
            data = file.read() if limit is None else file.read(max(limit, 1))
            while limit is not None and b"\n" not in data and (more := file.read(_BLOCK)):
                data += more
    except FileNotFoundError:
        return [], offset
    except (OSError, EOFError, zlib.error) as error:
        raise EvaldeskError(
            f"the results of this run cannot be read: {getattr(error, 'strerror', None) or error}", where=str(path),
            kept="What was read before is kept.", remedy="Put the file right, or cancel the run.",
        ) from error  # fmt: skip
    data = data[: data.rfind(b"\n") + 1]
    entries: list[dict[str, Any]] = []
    position = offset
    for line in data.split(b"\n")[:-1]:
        if line.strip():
            entries.append(_decode(line, position))
        position += len(line) + 1
    return entries, offset + len(data)


def stream_results(path: Path, offset: int = 0) -> Iterator[dict[str, Any]]:
    """All complete result lines from ``offset`` on, a few MiB in memory at a time."""
    while True:
        entries, after = read_results(path, offset, limit=4 * _BLOCK)
        yield from entries
        if after <= offset:
            return
        offset = after


def newest_results(path: Path, limit: int = _BLOCK) -> list[dict[str, Any]]:
    """The complete result lines among the last ``limit`` bytes, refused ones left out; [] without a file that can be read."""
    try:
        with open_lines(path) as file:
            start = max(0, plain_size(path) - limit)
            file.seek(start)
            offset = start + len(file.readline()) if start else 0
        return [entry for entry in read_results(path, offset)[0] if entry["key"]]
    except (OSError, EOFError, zlib.error, EvaldeskError):
        return []


def count_lines(path: Path) -> int:
    """Complete lines in the spool; 0 when there is none."""
    try:
        with open_lines(path) as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(_BLOCK), b""))
    except FileNotFoundError:
        return 0


def _encode(result: Mapping[str, Any]) -> bytes:
    line: dict[str, Any] = {"key": str(result["key"])}
    line |= {name: str(result.get(name, "")) for name in TEXTS}
    line |= {name: int(result.get(name, 0)) for name in COUNTS}
    for name in NUMBERS:
        value = float(result.get(name, 0.0))
        line[name] = value if math.isfinite(value) else 0.0
    if likelihoods := result.get(LIKELIHOODS):
        line[LIKELIHOODS] = {str(option): float(value) for option, value in likelihoods.items() if math.isfinite(value)}
    # ASCII only: a model may emit half a surrogate pair, which no UTF-8 file can hold.
    return json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n"


def _decode(line: bytes, position: int) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        return _refused(position, f"no JSON: {error}")
    if not isinstance(value, dict):
        return _refused(position, "no JSON object")
    if not isinstance(value.get("key"), str) or not value["key"]:
        return _refused(position, "key is missing or no text")
    entry: dict[str, Any] = {"key": value["key"]}
    for name in TEXTS:
        entry[name] = value.get(name, "")
        if not isinstance(entry[name], str):
            return _refused(position, f"{name} is no text")
    for name in (*COUNTS, *NUMBERS):
        number = value.get(name, 0)
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not _finite(number):
            return _refused(position, f"{name} is no number")
        entry[name] = int(number) if name in COUNTS else float(number)
    entry[LIKELIHOODS] = likelihoods = value.get(LIKELIHOODS, {})
    if not isinstance(likelihoods, dict) or not all(
        type(v) in (int, float) and _finite(v) for v in likelihoods.values()
    ):
        return _refused(position, f"{LIKELIHOODS} are no numbers")
    return entry


def _finite(number: float) -> bool:
    return abs(number) <= 2**53 if isinstance(number, int) else math.isfinite(number)


def _refused(position: int, why: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"key": "", "refused": why, "offset": position}
    return entry | dict.fromkeys(TEXTS, "") | dict.fromkeys(COUNTS, 0) | dict.fromkeys(NUMBERS, 0.0) | {LIKELIHOODS: {}}


def _complete_size(descriptor: int) -> int:
    """Bytes up to and with the last newline."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - _BLOCK)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
