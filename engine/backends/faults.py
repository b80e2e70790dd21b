"""What an exception of a GPU library means for the requests that were being worked on."""

from __future__ import annotations

from enum import Enum

_MEMORY = ("out of memory", "insufficient vram", "cublas_status_alloc_failed")
_DEVICE = ("cuda error", "illegal memory access", "device-side assert", "unspecified launch failure", "cublas_status_")


class Fault(Enum):
    """MEMORY: less at once may work. DEVICE: this process can use the GPU no more. REQUEST: one request is at fault."""

    MEMORY = "memory"
    DEVICE = "device"
    REQUEST = "request"


def fault_of(error: BaseException) -> Fault:
    """The kind of ``error``, by its class name and words: neither library has classes of its own for them."""
    text = str(error).lower()
    if type(error).__name__ == "OutOfMemoryError" or any(words in text for words in _MEMORY):
        return Fault.MEMORY
    if type(error).__name__ == "AcceleratorError" or any(words in text for words in _DEVICE):
        return Fault.DEVICE
    return Fault.REQUEST


def in_one_line(error: BaseException) -> str:
    """Class and words of ``error``, at most 300 characters."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
