"""Who owns the workspace: one process at a time, known by name to the others."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from engine.errors import EvaldeskError, WorkspaceBusy
from engine.store.faults import disk_refused
from engine.store.workspace import Workspace

_LOOKS = 10
_LOOK_S = 0.01


class _LockRemovedError(Exception):
    """The lock file was removed with its workspace between two steps here."""


def own(workspace: Workspace, program: str) -> Ownership:
    """Make the directory where it is missing, and own the workspace.

    Raises WorkspaceBusy naming the holder, and EvaldeskError when the disk refuses.
    """
    while True:
        workspace.create()
        try:
            return Ownership(workspace.lock, program)
        except _LockRemovedError:
            # A command that found nothing to keep has just taken its new workspace away: make it again.
            continue


class Ownership:
    """A flock on owner.lock with the holder's host, pid and program written into it."""

    def __init__(self, lock: Path, program: str) -> None:
        try:
            self._descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            raise _LockRemovedError from None
        except OSError as error:
            raise disk_refused(
                error, lock, what="the workspace cannot be opened", kept="Nothing was changed."
            ) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read_holder(self._descriptor)
            os.close(self._descriptor)
            raise WorkspaceBusy(str(lock.parent), *holder) from None
        except OSError as error:
            os.close(self._descriptor)
            raise EvaldeskError(
                f"this file system cannot lock files: {error.strerror}", where=str(lock), kept="Nothing was changed.",
                remedy="Put the workspace on a local disk.",
            ) from error  # fmt: skip
        if not _is_still(lock, self._descriptor):
            os.close(self._descriptor)
            raise _LockRemovedError
        record = {"host": socket.gethostname(), "pid": os.getpid(), "program": program, "since": time.time()}
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, json.dumps(record).encode(), 0)
        except OSError:
            # The name only serves messages: a full disk must not keep anyone from the workspace.
            pass

    def release(self) -> None:
        """Give the workspace free; the file stays, the lock goes with the descriptor."""
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)  # the next one to be refused is not to read this name
        os.close(self._descriptor)


def _is_still(lock: Path, descriptor: int) -> bool:
    """Whether the file of that name is the one that was opened: a lock on a removed file keeps nobody out."""
    try:
        return os.path.samestat(lock.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _read_holder(descriptor: int) -> tuple[str, int, str]:
    for _ in range(_LOOKS):
        try:
            record = json.loads(os.pread(descriptor, 4096, 0))
            return str(record["host"]), int(record["pid"]), str(record["program"])
        except (ValueError, KeyError, TypeError):
            # It has the lock for a moment only, and writes its name next.
            time.sleep(_LOOK_S)
    return "", 0, "another evaldesk"
