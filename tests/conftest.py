"""Fixtures that every package's tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session", autouse=True)
def _no_settings_of_the_developer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALDESK_CONFIG_DIR", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture
def shared_data() -> Path:
    """Real files that lie beside the repository on the developers' machines; the test is skipped where they do not."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the folder of real inputs is not here")
    return SHARED_DATA
