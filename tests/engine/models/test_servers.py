"""Servers are kept in models.json beside the settings of local models, and found as models."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from engine.backends.availability import Availability
from engine.errors import EvaldeskError
from engine.models import registry
from engine.models.registry import default_model, find_models, model_by_name
from engine.models.server_address import server_address
from engine.models.servers import ServerModel, add_server, remove_server, server_models, set_model
from engine.models.settings import ModelSettings, all_settings, model_settings
from tests.engine.models.test_directory import directory
from tests.engine.models.test_fingerprint import gguf

URL = "http://127.0.0.1:8000/v1"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVALDESK_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("EVALDESK_MODELS_DIR", str(tmp_path / "models"))
    monkeypatch.setattr(registry, "_package_files", lambda: [])
    (tmp_path / "models").mkdir()
    gguf(tmp_path / "models" / "local.gguf", b"w")
    return tmp_path / "config" / "models.json"


def settings(model: str = "m", **others: object) -> ModelSettings:
    return ModelSettings(server=server_address(URL, model, **others))  # type: ignore[arg-type]


def test_a_server_is_written_down_and_found_by_name(file: Path) -> None:
    add_server(
        "Big One", ModelSettings(8192, 32, {"price_in": 2.0}, server_address(URL + "/", "m", "A_KEY", "m-2025-01-01"))
    )
    assert json.loads(file.read_text()) == {
        "Big One": {
            "backend": "openai_api", "url": URL, "model": "m", "key_env": "A_KEY", "snapshot": "m-2025-01-01",
            "context_length": 8192, "parallel": 32, "options": {"price_in": 2.0},
        }
    }  # fmt: skip
    found = model_by_name("big one")
    assert isinstance(found, ServerModel)
    assert (found.name, found.backend, found.path, found.source) == ("Big One", "openai_api", URL, "server")
    assert found.fingerprint == server_address(URL, "m", snapshot="m-2025-01-01").fingerprint
    assert model_settings("Big One").spec_options == {
        "price_in": 2.0, "model": "m", "key_env": "A_KEY", "snapshot": "m-2025-01-01",
    }  # fmt: skip


def test_servers_come_last_and_are_the_default_only_where_nothing_else_is(file: Path, tmp_path: Path) -> None:
    for name in ("b", "A"):
        add_server(name, settings())
    assert [model.name for model in find_models()] == ["local", "A", "b"]
    assert default_model().name == "local"
    (tmp_path / "models" / "local.gguf").unlink()
    assert default_model().name == "A"


@pytest.mark.parametrize(
    "name", ["", " ", "a\nb", "\x1b[31m", "x" * 121, "LOCAL", "smollm2", "SmolLM2-135M-Instruct", "mine"]
)
def test_a_name_that_is_taken_or_none_is_refused(file: Path, name: str) -> None:
    add_server("Mine", settings())
    before = file.read_bytes()
    with pytest.raises(EvaldeskError, match="Nothing was changed"):
        add_server(name, settings())
    assert file.read_bytes() == before


def test_removing_forgets_the_server_and_nothing_else(file: Path) -> None:
    add_server("one", settings())
    add_server("two", settings())
    set_model("local", parallel=4)
    assert remove_server("ONE") == "one"
    assert [model.name for model in server_models()] == ["two"]
    for name in ("one", "local", "none"):
        with pytest.raises(EvaldeskError, match="no server called"):
            remove_server(name)
    assert all_settings()["local"] == ModelSettings(parallel=4)


def test_setting_changes_what_is_said_and_keeps_the_rest(file: Path) -> None:
    add_server("one", settings())
    set_model("One", parallel=64)
    set_model("one", context_length=9000)
    set_model("LOCAL", parallel=2)
    assert model_settings("one") == ModelSettings(9000, 64, {}, server_address(URL, "m"))
    assert model_settings("local") == ModelSettings(parallel=2)
    with pytest.raises(EvaldeskError, match="no model called"):
        set_model("none", parallel=1)


def test_only_a_model_on_a_gpu_of_this_machine_waits_for_its_memory(file: Path, tmp_path: Path) -> None:
    add_server("one", settings())
    for name, backend in (("one", "openai_api"), ("local", "llamacpp")):
        with pytest.raises(EvaldeskError, match=f"run by {backend}.*Nothing was changed"):
            set_model(name, wait_gpu_memory=20.0)
    directory(tmp_path / "models" / "quantised", {"quantization_config": {"quant_method": "exl3"}})
    set_model("quantised", wait_gpu_memory=20.5)
    set_model("quantised", parallel=4)
    assert model_settings("quantised") == ModelSettings(parallel=4, wait_gpu_memory=20.5)
    set_model("quantised", wait_gpu_memory=0.0)
    assert "wait_gpu_memory" not in json.loads(file.read_text())["quantised"]


def test_a_file_that_came_later_under_the_name_of_a_server_is_left_out(file: Path, tmp_path: Path) -> None:
    add_server("twin", settings())
    gguf(tmp_path / "models" / "twin.gguf", b"w")
    assert [(model.name, model.source) for model in find_models()] == [("local", "models folder"), ("twin", "server")]


def test_why_a_server_cannot_be_used_is_said(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_server("one", settings(key_env="ODD_KEY"))
    [model] = server_models()
    monkeypatch.setenv("ODD_KEY", "secret")
    assert model.problem == ""
    monkeypatch.delenv("ODD_KEY")
    assert "ODD_KEY is not set" in model.problem
    monkeypatch.setattr(
        "engine.backends.availability.check_backend", lambda name: Availability(False, "no aiohttp", None)
    )
    assert model.problem == "no aiohttp"


@pytest.mark.parametrize(
    "entry",
    [
        {"backend": "openai_api"},
        {"url": URL, "model": "m"},
        {"backend": "llamacpp", "url": URL, "model": "m"},
        {"backend": "openai_api", "url": "ftp://x", "model": "m"},
        {"backend": "openai_api", "url": URL, "model": 3},
        {"backend": "openai_api", "url": URL, "model": "m", "key": "sk-secret"},
        {"backend": "openai_api", "url": URL, "model": "m", "key_env": "sk-secret"},
    ],
)
def test_a_damaged_entry_is_named_and_no_key_repeated(file: Path, entry: dict[str, object]) -> None:
    file.parent.mkdir()
    file.write_text(json.dumps({"one": entry}))
    with pytest.raises(EvaldeskError) as refused:
        find_models()
    assert "one" in refused.value.where and "sk-secret" not in str(refused.value)


def test_a_disk_that_refuses_leaves_the_file_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    add_server("one", settings())
    before = file.read_bytes()
    monkeypatch.setattr("engine.models.settings.replace_file", full)
    with pytest.raises(EvaldeskError, match=r"cannot be written \(No space left") as refused:
        add_server("two", settings())
    assert file.read_bytes() == before and str(file) in refused.value.where
