"""Advisory file locks (flock): they end with the process that holds them, however it ends."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from engine.errors import EvaldeskError

RETRY_S = 0.02
PROBE_ALLOWANCE_S = 0.5
"""How long a holder-to-be tries: longer than anyone's probe of the lock."""


class FileLock:
    """An exclusive lock that this process holds; use ``try_lock`` or ``wait_lock`` to get one."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back; twice is harmless. The file stays: removing it would let two hold "the" lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def try_lock(path: Path, *, wait_s: float = PROBE_ALLOWANCE_S) -> FileLock | None:
    """The lock on ``path``, or None when another holder keeps it for ``wait_s`` seconds. Notes the holder's pid in it."""
    deadline = time.monotonic() + wait_s
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while not _flock(path, descriptor, fcntl.LOCK_EX):
            if time.monotonic() >= deadline:
                os.close(descriptor)
                return None
            time.sleep(RETRY_S)
        _note_holder(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return FileLock(path, descriptor)


def wait_lock(path: Path, *, wait_s: float = 60.0) -> FileLock:
    """The lock on ``path``; raises EvaldeskError naming the holder when it is not free after ``wait_s`` seconds."""
    lock = try_lock(path, wait_s=wait_s)
    if lock is None:
        pid, host = holder(path)
        raise EvaldeskError(
            f"process {pid} on {host} has held this lock for {wait_s:.0f} seconds",
            where=str(path),
            kept="Nothing was changed.",
            remedy="Try again; if that process hangs, end it.",
        )
    return lock


def is_held(path: Path) -> bool:
    """Whether some process holds the lock on ``path`` now; probes do not see each other."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return not _flock(path, descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def holder(path: Path) -> tuple[int, str]:
    """Process id and host that took the lock last; (0, "") when nobody ever did. Ask ``is_held`` for now."""
    try:
        words = path.read_text("utf-8", "replace").split()
    except OSError:
        return 0, ""
    return (int(words[0]), words[1]) if len(words) == 2 and words[0].isdecimal() else (0, "")


def _flock(path: Path, descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise EvaldeskError(
            f"this file system cannot lock files: {error.strerror}",
            where=str(path),
            remedy="Put the workspace and EVALDESK_STATE_DIR on a local disk.",
        ) from error
    return True


def _note_holder(descriptor: int) -> None:
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {socket.gethostname()}\n".encode(), 0)
    except OSError:
        # The note only serves messages: a full disk must not keep anyone from taking a lock.
        pass
