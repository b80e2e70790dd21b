"""The doctor tells the truth, and what to do about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine import doctor
from engine.backends.availability import BACKENDS, Availability
from engine.models import registry


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALDESK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("EVALDESK_MODELS_DIR", str(tmp_path / "models"))


def test_it_has_the_shape_that_other_tools_rely_on() -> None:
    found = json.loads(json.dumps(doctor.diagnose()))
    assert set(found["backends"]) == set(BACKENDS)
    assert all(set(state) == {"can_run", "reason", "version"} for state in found["backends"].values())
    assert found["state"]["writable"] and found["libraries"]["duckdb"] and found["libraries"]["textual"]


def test_no_backend_and_no_model_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {name: Availability(False, "package missing", None) for name in BACKENDS}
    monkeypatch.setattr(doctor, "check_backends", lambda: nothing)
    monkeypatch.setattr(registry, "_package_files", lambda: [])
    findings = "\n".join(doctor.diagnose()["findings"])
    assert "No backend can run here" in findings and "evaldesk models get smollm2" in findings


def test_a_damaged_model_and_a_state_folder_in_the_way_are_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "broken.gguf").write_bytes(b"GGUF")
    (tmp_path / "state").write_text("a file")
    found = doctor.diagnose()
    assert not found["state"]["writable"]
    assert any("broken.gguf" in line for line in found["findings"])
    assert any(str(tmp_path / "state") in line for line in found["findings"])


@pytest.mark.parametrize(
    ("said", "kills"), [("", False), ("KillUserProcesses=yes\n", True), ("#KillUserProcesses=yes\n", False)]
)
def test_logind_s_setting_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, kills: bool) -> None:
    file = tmp_path / "logind.conf"
    file.write_text(f"[Login]\n{said}")
    monkeypatch.setattr(doctor, "_LOGIND", (file, tmp_path / "none"))
    monkeypatch.setattr(doctor, "_SYSTEMD", tmp_path)
    assert doctor._kills_user_processes() is kills
