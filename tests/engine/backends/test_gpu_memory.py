"""What the driver tells is passed on; a driver that tells nothing is no error. The library is a stand-in here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from engine.backends import gpu_memory


class NVMLError(Exception):
    """As the library's own."""


def library(**more: Any) -> SimpleNamespace:
    calls: dict[str, Any] = {
        "NVMLError": NVMLError,
        "nvmlInit": lambda: None,
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlDeviceGetHandleByIndex": lambda number: number,
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=3, total=8),
        "nvmlDeviceGetName": lambda handle: b"A GPU",
        "nvmlDeviceGetUUID": lambda handle: f"GPU-{handle}a-x",
        "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=97),
    }
    return SimpleNamespace(**{**calls, **more})


@pytest.fixture(autouse=True)
def _afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpu_memory._nvml.cache_clear()
    yield
    gpu_memory._nvml.cache_clear()


def raises(*_: Any) -> None:
    raise NVMLError("GPU is lost")


def test_each_gpu_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", library())
    assert gpu_memory.gpu_facts() == [{"name": "A GPU", "used": 3, "total": 8, "load": 97}]


@pytest.mark.parametrize(
    ("visible", "sees"),
    [
        (None, [0, 1, 2]),
        ("1", [1]),
        ("2, 0", [2, 0]),
        ("GPU-2a-x,GPU-0", [2, 0]),
        ("GPU-", []),
        ("0,7,1", [0]),
        ("-1", []),
        ("", []),
        ("MIG-1a", []),
    ],
)
def test_only_the_gpus_that_cuda_shows_count(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, sees: list[int]
) -> None:
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    used = lambda handle: SimpleNamespace(used=handle, total=8)  # noqa: E731
    monkeypatch.setitem(sys.modules, "pynvml", library(nvmlDeviceGetCount=lambda: 3, nvmlDeviceGetMemoryInfo=used))
    assert [gpu["used"] for gpu in gpu_memory.gpu_facts()] == sees
    told = gpu_memory.GpuMemory(sum(8 - used for used in sees), 8 * len(sees)) if sees else None
    assert gpu_memory.gpu_memory() == told


@pytest.mark.parametrize(
    "module",
    [None, library(nvmlInit=raises), library(nvmlDeviceGetMemoryInfo=raises)],
    ids=["package", "driver", "GPU"],
)
def test_nothing_is_told_where_there_is_nothing_to_ask(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert gpu_memory.gpu_facts() == [] and gpu_memory.gpu_memory() is None
