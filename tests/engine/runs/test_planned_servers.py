"""What planning takes from models.json for a server, whatever it is called by now."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.backends.openai_api import PARALLEL
from engine.errors import EvaldeskError
from engine.models.server_address import server_address
from engine.models.settings import ModelSettings, changing_settings
from engine.runs.planning import at_once, settings_of
from engine.store.models import Model

ADDRESS = server_address("http://127.0.0.1:8000", "m")
SERVED = Model(ADDRESS.fingerprint.short, "first", "openai_api", ADDRESS.url)
LOCAL = Model("f" * 16, "local", "llamacpp", "/models/local.gguf")


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


def test_only_requests_of_a_server_shorten_a_run_by_going_side_by_side() -> None:
    keep(first=ModelSettings(server=ADDRESS), local=ModelSettings(parallel=4))
    assert (at_once(SERVED), at_once(LOCAL)) == (PARALLEL, 1)
    keep(first=ModelSettings(parallel=64, server=ADDRESS))
    assert at_once(SERVED) == 64
