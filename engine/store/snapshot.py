"""A snapshot: a copy of the database written by its owner, that opens anywhere.

It is made in a private folder beside its target and gets its name when it is whole. Nothing that exists
is ever replaced: a mistyped name must not cost a file, least of all the workspace's own.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path

from engine.errors import EvaldeskError
from engine.store.faults import disk_refused, translated
from engine.store.transaction import Transaction


def write(tx: Transaction, out: Path) -> Path:
    """Write a consistent copy to ``out``, readable by its owner only; a plain file copy of a busy database may not open.

    Raises EvaldeskError when something stands there already, when the folder is missing, and for any place
    inside the workspace.
    """
    _check_target(out, _workspace(tx))
    name = str(tx.value("SELECT current_database()")).replace('"', '""')
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{out.name[:80]}.", suffix=".part", dir=out.parent))
    except (OSError, ValueError) as error:
        raise _failed(out, error) from error
    tx.after_rollback(lambda: _clear(tx, folder))
    copy = folder / "copy.duckdb"
    target = str(copy).replace("'", "''")
    tx.execute(f"ATTACH '{target}' AS snapshot_out (STORAGE_VERSION 'v1.0.0')")
    tx.execute(f'COPY FROM DATABASE "{name}" TO snapshot_out')
    tx.after_commit(lambda: _finish(tx, folder, copy, out))
    return out


def free_name(wanted: Path) -> Path:
    """``wanted``, or the first of wanted-2, wanted-3 ... where nothing stands yet."""
    candidate, number = wanted, 1
    while os.path.lexists(candidate):
        number += 1
        candidate = wanted.with_name(f"{wanted.stem}-{number}{wanted.suffix}")
    return candidate


def _workspace(tx: Transaction) -> Path:
    path = tx.value("SELECT path FROM duckdb_databases() WHERE database_name = current_database()")
    return Path(str(path)).resolve().parent


def _check_target(out: Path, workspace: Path) -> None:
    kept = "Nothing was written."
    if "\0" in str(out) or not out.name:
        raise EvaldeskError(
            "this is no name for a file", where=repr(str(out)), kept=kept, remedy="Choose another name."
        )
    try:
        inside = out.resolve().is_relative_to(workspace) or out.parent.resolve().is_relative_to(workspace)
        is_there, has_folder = os.path.lexists(out), out.parent.is_dir()
    except (OSError, RuntimeError) as error:
        raise _failed(out, error) from error
    if inside:
        raise EvaldeskError(
            "a snapshot does not go into the workspace that it copies", where=str(out), kept=kept,
            remedy="Choose a place outside the workspace folder.",
        )  # fmt: skip
    if is_there:
        what = "this is a folder" if out.is_dir() else "a file of this name is here already and is not replaced"
        raise EvaldeskError(what, where=str(out), kept=kept, remedy="Choose another name.")
    if not has_folder:
        raise EvaldeskError(
            "there is no such folder to write into",
            where=str(out.parent),
            kept=kept,
            remedy="Make it, or choose another.",
        )


def _finish(tx: Transaction, folder: Path, copy: Path, out: Path) -> None:
    try:
        tx.execute("DETACH snapshot_out")
        copy.chmod(0o600)
        _name(copy, out)
    except OSError as error:
        raise _failed(out, error) from error
    except Exception as error:
        raise translated(error, out) from error
    finally:
        _clear(tx, folder)


def _name(copy: Path, out: Path) -> None:
    try:
        os.link(copy, out, follow_symlinks=False)  # unlike a rename it never replaces what came there meanwhile
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EACCES, errno.EXDEV):
            raise
        if os.path.lexists(out):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(out)) from error
        copy.rename(out)


def _clear(tx: Transaction, folder: Path) -> None:
    import duckdb

    try:
        tx.execute("DETACH DATABASE IF EXISTS snapshot_out")
    except duckdb.Error:  # the folder goes all the same; the next snapshot tells if something is wrong
        pass
    shutil.rmtree(folder, ignore_errors=True)


def _failed(out: Path, error: Exception) -> EvaldeskError:
    if isinstance(error, OSError):
        return disk_refused(error, out, what="the snapshot cannot be written", kept="The workspace was not changed.")
    return EvaldeskError(f"the snapshot cannot be written: {error}", where=str(out), remedy="Choose another name.")
