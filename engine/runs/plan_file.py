"""The plan of a run, plan.jsonl: one fully rendered request a line, in the order in which to send them."""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from engine.backends.protocol import Request
from engine.errors import EvaldeskError
from engine.runs.compaction import open_lines
from engine.runs.durable import cannot_write, replace_file, sync_folder, write_all
from engine.runs.protocol import RunDir


def write_plan(run_dir: RunDir, requests: Iterable[Request]) -> None:
    """Write the whole plan at once: afterwards the old or the new one is there, never a part."""
    try:
        replace_file(run_dir.plan, (_encode(request) for request in requests))
    except OSError as error:
        raise cannot_write(run_dir.plan, error) from error


def append_plan(run_dir: RunDir, requests: Iterable[Request]) -> None:
    """Add requests at the end; a running worker takes them before it ends.

    Then start the run again (engine.runs.control.start): a worker that was just ending may have missed them,
    and one that missed nothing ends at once. Appending the same request again is harmless.
    """
    try:
        descriptor = os.open(run_dir.plan, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            content = run_dir.plan.read_bytes()
            complete = content.rfind(b"\n") + 1
            if complete != len(content):
                os.ftruncate(descriptor, complete)
            write_all(descriptor, b"".join(_encode(request) for request in requests))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_folder(run_dir.path)
    except OSError as error:
        raise cannot_write(run_dir.plan, error) from error


def read_plan(run_dir: RunDir) -> list[Request]:
    """The requests in order, each key once (the first counts); a torn last line is not yet part of the plan.

    Raises EvaldeskError naming file and line for a complete line that is no request, or a missing file.
    """
    return list(_requests(run_dir.plan))


def _requests(path: Path) -> Iterator[Request]:
    seen: set[str] = set()
    try:
        with open_lines(path) as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                request = _decode(line, path, number)
                if request.key not in seen:
                    seen.add(request.key)
                    yield request
    except (OSError, EOFError, zlib.error) as error:
        raise EvaldeskError(
            f"cannot read the plan: {getattr(error, 'strerror', None) or error}",
            where=str(path),
            remedy="Plan the run again.",
        ) from error


def _encode(request: Request) -> bytes:
    line: dict[str, Any] = {
        "key": request.key,
        "messages": [dict(message) for message in request.messages],
        "sampling": dict(request.sampling),
        "schema": None if request.schema is None else dict(request.schema),
    }
    if request.options:
        line["options"] = list(request.options)
    return json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n"


def _decode(line: bytes, path: Path, number: int) -> Request:
    try:
        value: Any = json.loads(line)
        key, messages, sampling, schema = (value["key"], value["messages"], value["sampling"], value.get("schema"))
        options = value.get("options", [])
        sound = (
            isinstance(key, str)
            and key != ""
            and isinstance(messages, list)
            and all(isinstance(message, dict) for message in messages)
            and isinstance(sampling, dict)
            and (schema is None or isinstance(schema, dict))
            and isinstance(options, list)
            and all(isinstance(option, str) for option in options)
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        sound = False
    if not sound:
        raise EvaldeskError(
            "this line of the plan is no request",
            where=f"{path}, line {number}",
            kept="Results so far are kept.",
            remedy="Plan the run again.",
        )
    return Request(key, tuple(messages), sampling, schema, tuple(options))
