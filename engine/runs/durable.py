"""Writing files so that a reader, or the next start after a power cut, sees the old or the new content, never half."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from engine.errors import EvaldeskError


def replace_file(path: Path, chunks: Iterable[bytes], *, temporary: str = "") -> None:
    """Replace ``path`` by the concatenated ``chunks``: temporary file beside it, fsync, rename, fsync of the folder.

    ``temporary`` names the temporary file; the default is good for one writer at a time, several writers
    at once need a name each. Raises OSError; the old content is then untouched.
    """
    temp = path.with_name(temporary or f".{path.name}.tmp")
    try:
        descriptor = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            for chunk in chunks:
                write_all(descriptor, chunk)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temp.replace(path)
    except BaseException:
        temp.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte of ``data``; a short write goes on where it stopped."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(folder: Path) -> None:
    """Make names created, renamed or removed in ``folder`` survive a power cut, where the system can do that."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a folder; the file's own content is synced all the same.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(descriptor)


def cannot_write(path: Path, error: OSError) -> EvaldeskError:
    """The message for a file that could not be written."""
    remedies = {
        errno.ENOSPC: "Free some space, then resume the run.",
        errno.EDQUOT: "Free some space in your quota, then resume the run.",
        errno.EACCES: "Give yourself the right to write there, then resume the run.",
        errno.EPERM: "Give yourself the right to write there, then resume the run.",
        errno.EROFS: "Make the file system writable, then resume the run.",
    }
    return EvaldeskError(
        f"cannot write: {error.strerror or type(error).__name__}",
        where=str(path),
        kept="Every result written before is kept.",
        remedy=remedies.get(error.errno or 0, "Put that right, then resume the run."),
    )
