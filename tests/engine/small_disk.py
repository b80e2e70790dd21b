"""A small disk of its own for one piece of a test: a tmpfs in a private mount namespace, gone with the last process in it.

``python -m tests.engine.small_disk MODULE:FUNCTION FOLDER`` is what runs inside: ``FUNCTION(SmallDisk)``, whose asserts count.
"""

from __future__ import annotations

import functools
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

_INSIDE = ["unshare", "--mount", "--map-root-user", "--pid", "--fork", "--kill-child"]


@dataclass(frozen=True)
class SmallDisk:
    """``path`` is the disk, ``beside`` a folder on the ordinary one."""

    path: Path
    beside: Path

    def free(self) -> int:
        """Bytes that can still be written."""
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def fill(self, leave: int = 0) -> None:
        """Let a file take all but ``leave`` bytes."""
        with (self.path / "ballast").open("wb") as ballast:
            ballast.write(bytes(max(0, self.free() - leave)))

    def make_room(self) -> None:
        (self.path / "ballast").unlink()


def on_small_disk(work: Callable[[SmallDisk], None], folder: Path, kib: int) -> str:
    """Carry ``work``, a function of a test module, out where a disk of ``kib`` KiB is mounted; returns what it printed.

    Skips the test where the system permits no mount to this user.
    """
    if why := _why_not():
        pytest.skip(why)
    disk = folder / "disk"
    disk.mkdir()
    shell = f'mount -t tmpfs -o size={kib}k none "$1" && exec "$2" -m tests.engine.small_disk "$3" "$4"'
    name = f"{work.__module__}:{work.__name__}"
    done = subprocess.run(
        [*_INSIDE, "sh", "-c", shell, "sh", str(disk), sys.executable, name, str(folder)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert not any(disk.iterdir()), "the disk is gone with its processes"
    return done.stdout


@functools.cache
def _why_not() -> str:
    if not shutil.which("unshare"):
        return "this system has no unshare"
    tried = subprocess.run(
        [*_INSIDE, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, text=True, timeout=60, check=False
    )
    return f"no disk can be mounted here: {tried.stderr.strip()}" if tried.returncode else ""


if __name__ == "__main__":
    module, _, function = sys.argv[1].partition(":")
    beside = Path(sys.argv[2])
    getattr(importlib.import_module(module), function)(SmallDisk(beside / "disk", beside))
