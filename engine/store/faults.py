"""What the disk and DuckDB refuse, in the words of the one who has to put it right."""

from __future__ import annotations

import errno
from pathlib import Path

from engine.errors import EvaldeskError

_REMEDIES = {
    errno.ENOSPC: "Free some space, then do it again.",
    errno.EDQUOT: "Free some space in your quota, then do it again.",
    errno.EACCES: "Give yourself the right to write there.",
    errno.EPERM: "Give yourself the right to write there.",
    errno.EROFS: "Make the file system writable, or choose another place.",
    errno.ENOENT: "See whether the folder was moved or deleted.",
}


def disk_refused(error: OSError, path: Path, *, what: str, kept: str = "") -> EvaldeskError:
    """The message for a file that could not be read or written."""
    remedy = _REMEDIES.get(error.errno or 0, "See to the disk and its permissions.")
    return EvaldeskError(f"{what}: {error.strerror or type(error).__name__}", where=str(path), kept=kept, remedy=remedy)


def has_stopped(error: BaseException) -> bool:
    """Whether the database takes nothing more until it is opened again."""
    import duckdb

    return isinstance(error, duckdb.FatalException | duckdb.InternalException) or (
        isinstance(error, duckdb.Error) and ("invalidated" in str(error) or "onnection already closed" in str(error))
    )


def translated(error: BaseException, path: Path) -> BaseException:
    """An EvaldeskError for what DuckDB says about the disk or a damaged file; anything else comes back as it is."""
    import duckdb

    if not isinstance(error, duckdb.Error):
        return error
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    said = str(error).casefold()
    kept = "Everything that was saved before is kept; what was just asked for was not done."
    where = str(path)
    if "no space left" in said or "disk quota" in said or "could not write all bytes" in said:
        return EvaldeskError("the disk is full", where=where, kept=kept, remedy="Free some space, then do it again.")
    if "no such file" in said:
        return EvaldeskError(
            "a file of the workspace is gone: it was moved or deleted", where=where,
            kept="What was just asked for was not done.", remedy="Put it back, or leave evaldesk and open another workspace.",
        )  # fmt: skip
    if "read-only" in said:
        return EvaldeskError(
            "the disk or the file can only be read",
            where=where,
            kept=kept,
            remedy="Make it writable, then do it again.",
        )
    if "permission denied" in said:
        return EvaldeskError("writing is not allowed here", where=where, kept=kept, remedy=_REMEDIES[errno.EACCES])
    if isinstance(error, duckdb.FatalException | duckdb.InternalException) or "invalidated" in said:
        return EvaldeskError(
            "the database stopped after a fault of the disk", where=where, kept=kept,
            remedy="See to the disk, then do it again: the database is opened anew.",
        )  # fmt: skip
    if isinstance(error, duckdb.CatalogException) and "does not exist" in said:
        return EvaldeskError(
            f"the database lacks a part that belongs to it ({first})", where=where,
            remedy="It was changed by another program: restore a copy from backups/, or start in another workspace.",
        )  # fmt: skip
    if isinstance(error, duckdb.IOException | duckdb.TransactionException | duckdb.OutOfMemoryException):
        return EvaldeskError(
            f"the database could not do this: {first}",
            where=where,
            kept=kept,
            remedy="See to the disk, then do it again.",
        )
    return error
