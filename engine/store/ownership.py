"""Who owns the workspace: one process at a time, known by name to the others."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from pathlib import Path

from engine.errors import WorkspaceBusy


class Ownership:
    """A flock on owner.lock with the holder's host, pid and program written into it."""

    def __init__(self, lock: Path, program: str) -> None:
        self._descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = _read_holder(self._descriptor)
            os.close(self._descriptor)
            raise WorkspaceBusy(str(lock.parent), *holder) from None
        record = {"host": socket.gethostname(), "pid": os.getpid(), "program": program, "since": time.time()}
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps(record).encode(), 0)

    def release(self) -> None:
        """Give the workspace free; the file stays, the lock goes with the descriptor."""
        os.close(self._descriptor)


def _read_holder(descriptor: int) -> tuple[str, int, str]:
    try:
        record = json.loads(os.pread(descriptor, 4096, 0))
        return str(record["host"]), int(record["pid"]), str(record["program"])
    except (ValueError, KeyError, TypeError):
        return "", 0, "another evaldesk"
