"""Waiting for free GPU memory before a model is loaded: on a machine that others use too, a run waits rather than fails."""

from __future__ import annotations

import time
from collections.abc import Callable

from engine.backends.gpu_memory import gpu_memory
from engine.errors import EvaldeskError
from engine.runs.protocol import RunStatus

GIB = 2**30
LOOK_S = 1.0
"""Between two questions to the driver."""
STOP_S = 0.1
"""Between two looks at what the user wants."""


def wait_for_gpu_memory(
    wanted: float, wanted_stop: Callable[[], RunStatus | None], say: Callable[[str], None], note: Callable[[str], None]
) -> RunStatus | None:
    """Return None once ``wanted`` GiB are free, or at once, after a ``note``, where no driver tells what is free.

    What ``wanted_stop`` gives ends the wait and is returned; ``say`` is told what is waited for. Raises EvaldeskError when the
    GPUs do not have so much.
    """
    while (memory := gpu_memory()) is not None:
        if memory.total < wanted * GIB:
            raise EvaldeskError(
                f"the run was to wait for {wanted:.1f} GiB of free GPU memory, and the GPUs that it sees have {memory.total / GIB:.1f} GiB in all",
                kept="Nothing was loaded.",
                remedy="Set less with evaldesk models set NAME --wait-gpu-memory, and plan a new run.",
            )
        if memory.free >= wanted * GIB:
            return None
        say(f"waiting for {wanted:.1f} GiB of free GPU memory, {memory.free / GIB:.1f} GiB free")
        until = time.monotonic() + LOOK_S
        while time.monotonic() < until:
            if (status := wanted_stop()) is not None:
                return status
            time.sleep(STOP_S)
    note(
        f"not waiting for {wanted:.1f} GiB of free GPU memory: no NVIDIA driver tells here what is free (nvidia-ml-py)"
    )
    return None
