"""Fixtures that every package's tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

TERMINALS = Path(__file__).resolve().parent / "e2e"
SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Two processes share the suite file by file; one of them runs all real terminals, which are slow to wait for."""
    for item in items:
        group = "terminals" if TERMINALS in item.path.parents else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture
def shared_data() -> Path:
    """Real files that lie beside the repository on the developers' machines; the test is skipped where they do not."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the folder of real inputs is not here")
    return SHARED_DATA
