"""What planning takes from models.json for a server, whatever it is called by now."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import EvaldeskError
from engine.models.server_address import server_address
from engine.models.settings import ModelSettings, changing_settings
from engine.runs.planning import settings_of
from engine.store.models import Model

ADDRESS = server_address("http://127.0.0.1:8000", "m")
SERVED = Model(ADDRESS.fingerprint.short, "first", "openai_api", ADDRESS.url)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALDESK_CONFIG_DIR", str(tmp_path))


def keep(**entries: ModelSettings) -> None:
    with changing_settings() as settings:
        settings.update(entries)


def test_a_server_is_known_by_name_and_by_what_it_is() -> None:
    keep(first=ModelSettings(server=ADDRESS), second=ModelSettings(parallel=9, server=ADDRESS))
    assert settings_of(SERVED).parallel == 0
    keep(first=ModelSettings(server=server_address("http://127.0.0.1:9000", "m")))
    assert settings_of(SERVED).parallel == 9


def test_a_server_that_is_gone_is_said_before_a_run_is_made() -> None:
    keep(first=ModelSettings(server=server_address("http://127.0.0.1:8000", "other")))
    with pytest.raises(EvaldeskError, match="not registered any more"):
        settings_of(SERVED)
