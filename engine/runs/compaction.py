"""Runs that are done take little space: plan.jsonl and results.jsonl become plan.jsonl.gz and results.jsonl.gz.

Only a done run is compacted, since nothing can be added to it any more; a cancelled or failed one may be resumed. Readers
take whichever file is there, the plain one first (``open_lines``), so a kill between two steps leaves both and loses
nothing. Offsets count bytes of the plain file in both forms, so what was ingested stays ingested.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from engine.errors import EvaldeskError
from engine.plain_files import open_plain
from engine.runs.durable import cannot_write, replace_file, sync_folder
from engine.runs.locks import try_lock
from engine.runs.protocol import RunDir, RunStatus
from engine.runs.states import read_state

_PIECE = 1 << 20
_GZIP = 16 + zlib.MAX_WBITS


class _GivenUpError(Exception):
    """Whoever wanted the run compacted wants to stop."""


def compact(run_dir: RunDir, stopped: Callable[[], bool] = lambda: False) -> bool:
    """Compact a run that its state calls done and that nobody works on; False where it is to be looked at another time.

    ``stopped`` is asked after each MiB; what was begun is then begun anew another time. Raises OSError when the disk
    refuses; every file is then as it was, or compacted.
    """
    if not (run_dir.plan.exists() or run_dir.results.exists()):
        return True
    if read_state(run_dir).status is not RunStatus.DONE or (lock := try_lock(run_dir.lock, wait_s=0.0)) is None:
        return False
    with lock:
        # Looked at again: whoever had the lock until now may have started the run anew.
        if read_state(run_dir).status is not RunStatus.DONE:
            return False
        run_dir.siblings.unlink(missing_ok=True)
        return all(_compact(path, stopped) for path in (run_dir.plan, run_dir.results) if path.exists())


def expand(run_dir: RunDir) -> None:
    """Bring the plain files back for a worker, which appends to them; it holds the run's lock.

    Raises EvaldeskError when the disk refuses or a compacted file is damaged.
    """
    for path in (run_dir.plan, run_dir.results):
        packed = compacted(path)
        if not packed.exists():
            continue
        try:
            if not path.exists():
                with open_lines(path) as file:
                    replace_file(path, _pieces(file))
            packed.unlink()
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise EvaldeskError(
                f"this compacted file is damaged: {error}", where=str(packed), kept="It was not changed.",
                remedy="Start the same run anew: what the database has is not generated again.",
            ) from error  # fmt: skip
        except OSError as error:
            raise cannot_write(path, error) from error


def compacted(path: Path) -> Path:
    """The name that a plan or spool has when it is compacted."""
    return path.with_name(f"{path.name}.gz")


def open_lines(path: Path) -> BinaryIO:
    """A plan or spool open for reading, whichever form it has; raises OSError, FileNotFoundError where there is none."""
    with suppress(FileNotFoundError):
        return open_plain(path)
    try:
        raw = open_plain(compacted(path))
    except FileNotFoundError:
        # A worker may have brought the plain file back between the two looks.
        return open_plain(path)
    file = gzip.GzipFile(fileobj=raw)
    file.myfileobj = raw  # type: ignore[assignment]  # closed with it
    return cast("BinaryIO", file)


def plain_size(path: Path) -> int:
    """Bytes of the plan or spool as a plain file; 0 when there is none. Raises OSError."""
    with suppress(FileNotFoundError):
        return path.stat().st_size
    with suppress(FileNotFoundError), open_plain(compacted(path)) as file:
        # gzip ends with the size, which counts up to 4 GiB; a larger spool is taken for one that has grown, and read.
        file.seek(-4, 2)
        return int.from_bytes(file.read(4), "little")
    return 0


def _compact(path: Path, stopped: Callable[[], bool]) -> bool:
    try:
        with open_plain(path) as file:
            replace_file(compacted(path), _packed(file, stopped))
    except _GivenUpError:
        return False
    path.unlink()
    sync_folder(path.parent)
    return True


def _packed(file: BinaryIO, stopped: Callable[[], bool]) -> Iterator[bytes]:
    packer = zlib.compressobj(wbits=_GZIP)
    for piece in _pieces(file):
        if stopped():
            raise _GivenUpError
        yield packer.compress(piece)
    yield packer.flush()


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece
