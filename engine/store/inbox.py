"""The inbox: what other processes ask of the one that owns the workspace.

A request is a JSON file in inbox/; the owner carries it out and writes the answer beside it. Files
are written under another name first, so a half-written one is never read.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import EvaldeskError
from engine.plain_files import read_plain
from engine.store.workspace import Workspace

ANSWER_KEPT_S = 3600.0
"""Who asked has long given up by then. Counted from when this process first saw the answer: clocks are set forth."""
_seen: dict[Path, float] = {}
_REQUEST, _ANSWER = ".request.json", ".answer.json"


@dataclass(frozen=True)
class InboxRequest:
    """A request left by another process: ``body`` has a ``kind`` and what it needs."""

    request_id: str
    body: Mapping[str, Any]


def leave(workspace: Workspace, body: Mapping[str, Any]) -> str:
    """Leave a request for the owner; returns its id."""
    # After everything that waits, also where the clock was set back since.
    last = max((_number(path) for path in workspace.inbox.glob(f"*{_REQUEST}")), default=0)
    request_id = f"{max(time.time_ns(), last + 1):020d}-{uuid.uuid4().hex[:8]}"
    _write(workspace.inbox / f"{request_id}{_REQUEST}", body)
    return request_id


def pending(workspace: Workspace) -> list[InboxRequest]:
    """Requests that wait, oldest first; an unreadable one is answered with the reason. What nobody fetches is cleared away."""
    _clear_old(workspace)
    waiting: list[InboxRequest] = []
    for path in sorted(workspace.inbox.glob(f"*{_REQUEST}")):
        request_id = path.name.removesuffix(_REQUEST)
        if not path.is_file():  # a folder or a pipe is no request, and nobody waits for an answer to it
            continue
        try:
            body = json.loads(read_plain(path))
            if not isinstance(body, dict):
                raise ValueError("no JSON object")
        except FileNotFoundError:
            continue
        except (OSError, ValueError, RecursionError) as error:
            answer(workspace, request_id, {"error": {"what": f"the request cannot be read: {error}"}})
            continue
        waiting.append(InboxRequest(request_id, body))
    return waiting


def _clear_old(workspace: Workspace) -> None:
    there = [*workspace.inbox.glob(f"*{_ANSWER}"), *workspace.inbox.glob(f".*{_REQUEST}.*")]
    for path in _seen.keys() - set(there):
        if path.parent == workspace.inbox:
            del _seen[path]
    for path in there:
        try:
            if path.is_file() and time.monotonic() - _seen.setdefault(path, time.monotonic()) > ANSWER_KEPT_S:
                path.unlink()
        except OSError:  # somebody has just taken it
            continue


def _number(path: Path) -> int:
    """The number that a request's name begins with; 0 for a name that somebody else gave."""
    digits = path.name.partition("-")[0]
    return int(digits) if len(digits) == 20 and digits.isascii() and digits.isdecimal() else 0


def answer(workspace: Workspace, request_id: str, result: Mapping[str, Any]) -> None:
    """Write the answer, then take the request away: carried out at least once, answered once."""
    _write(workspace.inbox / f"{request_id}{_ANSWER}", result)
    (workspace.inbox / f"{request_id}{_REQUEST}").unlink(missing_ok=True)


def take_answer(workspace: Workspace, request_id: str) -> dict[str, Any] | None:
    """The answer, once there is one; it is removed with the reading."""
    path = workspace.inbox / f"{request_id}{_ANSWER}"
    try:
        result = json.loads(read_plain(path))
        if not isinstance(result, dict):
            raise ValueError("no JSON object")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise EvaldeskError(f"the owner's answer cannot be read: {error}", where=str(path)) from error
    path.unlink(missing_ok=True)
    return result


def withdraw(workspace: Workspace, request_id: str) -> bool:
    """Take an unanswered request back; False when it was already being answered."""
    path = workspace.inbox / f"{request_id}{_REQUEST}"
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def _write(path: Path, body: Mapping[str, Any]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(json.dumps(dict(body)), "ascii")
        os.replace(temporary, path)
    except OSError as error:
        raise EvaldeskError(f"the inbox cannot be written: {error.strerror}", where=str(path.parent)) from error
