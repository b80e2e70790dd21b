"""Where keys come from."""

from __future__ import annotations

import sys
import types
from importlib.machinery import ModuleSpec

import pytest

from engine.errors import EvaldeskError
from engine.models.server_key import find_key


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A keyring that holds one key; whether the real package is installed plays no part."""
    module = types.ModuleType("keyring")
    module.__spec__ = ModuleSpec("keyring", None)
    held = {("evaldesk", "ODD_KEY"): "from-the-ring"}
    monkeypatch.setattr(module, "get_password", lambda service, name: held.get((service, name)), raising=False)
    monkeypatch.setitem(sys.modules, "keyring", module)
    monkeypatch.delenv("ODD_KEY", raising=False)
    return module


def test_no_variable_is_no_key(keyring: types.ModuleType) -> None:
    assert find_key("") == ""


def test_the_environment_comes_before_the_keyring(keyring: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_key("ODD_KEY") == "from-the-ring"
    monkeypatch.setenv("ODD_KEY", " from-the-shell\n")
    assert find_key("ODD_KEY") == "from-the-shell"


def test_a_missing_key_is_named_by_its_variable(keyring: types.ModuleType) -> None:
    with pytest.raises(EvaldeskError, match="OTHER_KEY is not set"):
        find_key("OTHER_KEY")


def test_a_keyring_that_fails_holds_no_key(keyring: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: str) -> str:
        raise RuntimeError("no desktop")

    monkeypatch.setattr(keyring, "get_password", broken)
    with pytest.raises(EvaldeskError, match="ODD_KEY is not set"):
        find_key("ODD_KEY")


@pytest.mark.parametrize("value", ["two words", "line\nend", "tab\t", "schlüssel", "\x1b[0m"])
def test_what_no_header_can_carry_is_refused_and_not_repeated(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD_KEY", f"x{value}x")
    with pytest.raises(EvaldeskError) as refused:
        find_key("ODD_KEY")
    assert value not in str(refused.value) and "ODD_KEY" in str(refused.value)
