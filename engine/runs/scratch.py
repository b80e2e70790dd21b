"""Temporary files of a worker and of the backend in it, inside the run's directory.

A worker that is killed cannot remove them. Here, where only the holder of the run's lock works, whoever comes next
knows that they are nobody's; in the system's folder they would stay for good.
"""

from __future__ import annotations

import shutil
import tempfile

from engine.runs.durable import cannot_write
from engine.runs.protocol import RunDir


def make(run_dir: RunDir) -> None:
    """Empty the folder and let this process put all its temporary files there. Raises EvaldeskError if the disk refuses."""
    clear(run_dir)
    try:
        run_dir.scratch.mkdir(mode=0o700)
    except OSError as error:
        raise cannot_write(run_dir.scratch, error) from error
    tempfile.tempdir = str(run_dir.scratch)


def clear(run_dir: RunDir) -> None:
    """Remove the folder with all that is in it; the caller holds the run's lock."""
    shutil.rmtree(run_dir.scratch, ignore_errors=True)
