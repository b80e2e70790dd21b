"""The wheel, installed where nothing of the repository is: the demo opens, doctor tells what is missing, the judge runs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.realterm import PtyApp, isolated_environment

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("tui", "engine", "stats", "sample_data")
LEAVE_SCREEN = b"\x1b[?1049l"
LIMIT_S = 600.0
FINAL = ("done", "failed", "cancelled", "interrupted")


@pytest.fixture(scope="module")
def uv() -> str:
    found = os.environ.get("UV") or shutil.which("uv")
    if found is None:
        pytest.skip("uv is not installed")
    return found


@pytest.fixture(scope="module")
def wheel(uv: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    _done([uv, "build", "--quiet", "--wheel", "--out-dir", str(folder)], ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def plain(uv: str, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(uv, str(wheel), tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def with_llamacpp(uv: str, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(uv, f"evaldesk[llamacpp] @ {wheel.as_uri()}", tmp_path_factory.mktemp("llamacpp"))


class Installed:
    """The command of a wheel in an environment of its own, with a home and a working directory of its own."""

    def __init__(self, uv: str, requirement: str, folder: Path) -> None:
        self.folder = folder
        environment = folder / "venv"
        _done([uv, "venv", "--quiet", "--python", sys.executable, str(environment)], folder)
        _done([uv, "pip", "install", "--quiet", "--python", str(environment / "bin" / "python"), requirement], folder)
        self.command = str(environment / "bin" / "evaldesk")
        self.environment = isolated_environment(folder / "home", **_ways_to_the_registry(uv, folder))

    def run(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        return _done([self.command, *arguments], self.folder, self.environment, codes)

    def doctor(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self.run("doctor", "--json", codes=(0, 1)))
        return report


def test_everything_of_the_four_packages_is_in_it_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    listed = _done(["git", "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES], ROOT).splitlines()
    assert packed == {name for name in listed if (ROOT / name).is_file()}
    for pattern in ("engine/store/migrations/*.sql", "tui/styles/*.tcss", "sample_data/*.jsonl", "sample_data/*.json"):
        assert any(Path(name).match(pattern) for name in packed), pattern


def test_the_demo_workspace_is_made_from_the_packed_samples(plain: Installed) -> None:
    plain.run("demo", "--no-open", "--workspace", "made")
    assert (plain.folder / "made" / "evaldesk.duckdb").is_file()


def test_the_demo_opens_in_a_terminal_and_gives_it_back(plain: Installed) -> None:
    command = [plain.command, "demo", "--workspace", "opened"]
    with PtyApp(command, plain.environment, plain.folder, columns=100, rows=30) as app:
        app.wait_for("REQUEST")
        app.kill(signal.SIGTERM)
        app.wait_exit()
        assert LEAVE_SCREEN in app.output
        assert b"Traceback" not in app.output


def test_doctor_says_that_llamacpp_is_missing_and_how_to_get_it(plain: Installed) -> None:
    backend = plain.doctor()["backends"]["llamacpp"]
    assert backend["can_run"] is False
    assert backend["version"] is None
    assert "evaldesk[llamacpp]" in backend["reason"]


def test_doctor_says_that_llamacpp_runs_once_its_extra_is_installed(with_llamacpp: Installed) -> None:
    backend = with_llamacpp.doctor()["backends"]["llamacpp"]
    assert backend["can_run"] is True, backend["reason"]
    assert backend["version"]


def test_the_embedded_model_judges_once_its_extra_is_installed(with_llamacpp: Installed) -> None:
    with_llamacpp.run("models", "get", "smollm2")
    with_llamacpp.run("demo", "--no-open", "--workspace", "made")
    run = json.loads(with_llamacpp.run("judge", "--no-follow", "--json", "--workspace", "made"))["run"]
    try:
        state = _wait(with_llamacpp, lambda state: state["done"] + state["failed"] > 0 or state["status"] in FINAL)
    finally:
        # A whole pile takes minutes on a small machine; that it is measured to its end is for other tests to show.
        with_llamacpp.run("runs", "cancel", run, "--workspace", "made")
    assert (state["failed"], state["message"]) == (0, "")
    assert state["done"] > 0
    assert _wait(with_llamacpp, lambda state: state["status"] in FINAL)["status"] == "cancelled"


def _wait(installed: Installed, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The state of the workspace's one run as soon as it satisfies the condition, or as it is when the limit is reached."""
    end = time.monotonic() + LIMIT_S
    while True:
        (state,) = json.loads(installed.run("runs", "--json", "--workspace", "made"))["runs"]
        if holds(state) or time.monotonic() > end:
            return dict(state)
        time.sleep(0.5)


def _ways_to_the_registry(uv: str, folder: Path) -> dict[str, str]:
    """What the installer needs from this machine: its cache, and certificates and proxies where they are set."""
    kept = {
        k: v for k, v in os.environ.items() if k.upper().startswith(("UV_", "PIP_", "SSL_CERT_", "HTTP_", "HTTPS_"))
    }
    return kept | {"UV_CACHE_DIR": _done([uv, "cache", "dir"], folder).strip()}


def _clean_environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH", "UV_PROJECT_ENVIRONMENT")}


def _done(
    command: list[str], folder: Path, environment: dict[str, str] | None = None, codes: tuple[int, ...] = (0,)
) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment or _clean_environment(), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode in codes, f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout
