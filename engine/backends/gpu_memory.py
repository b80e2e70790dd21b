"""Memory and load of the NVIDIA GPUs, as the driver tells them (package nvidia-ml-py); nothing where it tells nothing."""

from __future__ import annotations

import functools
from typing import Any


def gpu_facts() -> list[dict[str, Any]]:
    """Of each GPU: name, used and total (bytes), load (percent of the last moment). [] without driver or package.

    Takes milliseconds, and the whole GPU counts: what other processes use is in it.
    """
    nvml = _nvml()
    if nvml is None:
        return []
    try:
        return [_facts(nvml, nvml.nvmlDeviceGetHandleByIndex(number)) for number in range(nvml.nvmlDeviceGetCount())]
    except nvml.NVMLError:
        # A GPU can fall off the bus, and some refuse these questions.
        return []


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
