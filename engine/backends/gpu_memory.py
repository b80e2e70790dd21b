"""Memory and load of the NVIDIA GPUs, as the driver tells them (package nvidia-ml-py); nothing where it tells nothing.

Only of the GPUs that this process may use: $CUDA_VISIBLE_DEVICES counts, with numbers in the driver's order (PCI bus).
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class GpuMemory:
    """Bytes, over all GPUs that this process may use; what other processes hold is not free."""

    free: int
    total: int


def gpu_facts() -> list[dict[str, Any]]:
    """Of each GPU: name, used and total (bytes), load (percent of the last moment). [] without driver or package.

    Takes milliseconds, and the whole GPU counts: what other processes use is in it.
    """
    nvml = _nvml()
    if nvml is None:
        return []
    try:
        return [_facts(nvml, handle) for handle in _visible(nvml)]
    except nvml.NVMLError:
        # A GPU can fall off the bus, and some refuse these questions.
        return []


def gpu_memory() -> GpuMemory | None:
    """The memory of the GPUs together, as a model that is split over them sees it; None where nothing tells it."""
    nvml = _nvml()
    if nvml is None:
        return None
    try:
        read = [nvml.nvmlDeviceGetMemoryInfo(handle) for handle in _visible(nvml)]
    except nvml.NVMLError:
        return None
    if not read:
        return None
    return GpuMemory(sum(int(memory.total - memory.used) for memory in read), sum(int(memory.total) for memory in read))


def _visible(nvml: Any) -> list[Any]:
    """Handles of the GPUs that CUDA shows to this process, by the rule that the first unknown name ends the list."""
    handles = [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(nvml.nvmlDeviceGetCount())]
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return handles
    shown: list[Any] = []
    for name in map(str.strip, named.split(",")):
        if name.isascii() and name.isdigit():
            found = handles[int(name) : int(name) + 1]
        else:
            # The beginning of a GPU's UUID is as good as the whole one.
            found = [handle for handle in handles if name.startswith("GPU-") and _uuid(nvml, handle).startswith(name)]
        if len(found) != 1:
            break
        shown += found
    return shown


def _uuid(nvml: Any, handle: Any) -> str:
    uuid = nvml.nvmlDeviceGetUUID(handle)
    return uuid.decode() if isinstance(uuid, bytes) else str(uuid)


@functools.cache
def _nvml() -> Any:
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def _facts(nvml: Any, handle: Any) -> dict[str, Any]:
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    name = nvml.nvmlDeviceGetName(handle)
    return {
        "name": name.decode() if isinstance(name, bytes) else name,
        "used": int(memory.used),
        "total": int(memory.total),
        "load": int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
    }
