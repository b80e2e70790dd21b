"""What an exception of a GPU library means, by the words that torch and the libraries use."""

from __future__ import annotations

import pytest

from engine.backends.faults import Fault, fault_of, in_one_line


class OutOfMemoryError(RuntimeError):
    """As torch.OutOfMemoryError."""


class AcceleratorError(RuntimeError):
    """As torch.AcceleratorError."""


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (OutOfMemoryError("tried to allocate 2 GiB"), Fault.MEMORY),
        (RuntimeError("CUDA out of memory. Tried to allocate"), Fault.MEMORY),
        (RuntimeError("CUDA error: out of memory"), Fault.MEMORY),
        (RuntimeError("Insufficient VRAM for model and cache"), Fault.MEMORY),
        (RuntimeError("Insufficient VRAM in split for model and cache"), Fault.MEMORY),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), Fault.MEMORY),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), Fault.DEVICE),
        (AcceleratorError("unspecified launch failure"), Fault.DEVICE),
        (RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED"), Fault.DEVICE),
        (AssertionError("Job requires 9 pages (only 4 available)"), Fault.REQUEST),
        (ValueError(""), Fault.REQUEST),
    ],
)
def test_faults(error: Exception, fault: Fault) -> None:
    assert fault_of(error) is fault


def test_an_error_is_one_line_that_is_never_empty() -> None:
    assert in_one_line(ValueError("a\n b")) == "ValueError: a b"
    assert in_one_line(ValueError()) == "ValueError:"
    assert len(in_one_line(ValueError("x" * 999))) == 300
