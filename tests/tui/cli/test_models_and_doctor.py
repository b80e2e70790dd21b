"""evaldesk models and evaldesk doctor from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine import doctor
from engine.backends.availability import BACKENDS, Availability
from tests.engine.models.test_fingerprint import gguf
from tui.cli.main import run


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVALDESK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("EVALDESK_MODELS_DIR", str(tmp_path / "models"))
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


def test_models_lists_good_and_damaged_files(own_folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gguf(own_folders / "good.gguf", b"w")
    (own_folders / "bad.gguf").write_bytes(b"nothing")
    assert run(["models", "--json"]) == 0
    listed = {model["name"]: model for model in json.loads(capsys.readouterr().out)["models"]}
    assert len(listed["good"]["fingerprint"]) == 16 and listed["good"]["problem"] == ""
    assert listed["bad"]["fingerprint"] is None and listed["bad"]["problem"]
    assert run(["models"]) == 0
    assert "not a GGUF file" in capsys.readouterr().out


def test_a_name_from_the_disk_is_shown_literally(own_folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gguf(own_folders / "a\x1b[31m[bold]b.gguf", b"w")
    assert run(["models"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said and "[bold]b" in said


def test_doctor_is_1_only_when_nothing_can_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    states = {name: Availability(name == "llamacpp", "why", None) for name in BACKENDS}
    monkeypatch.setattr(doctor, "check_backends", lambda: states)
    assert run(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["backends"]["llamacpp"]["can_run"] is True
    states["llamacpp"] = Availability(False, "why", None)
    assert run(["doctor"]) == 1
    assert "No backend can run here" in capsys.readouterr().out
