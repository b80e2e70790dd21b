"""The wheel, installed where nothing of the repository is: the demo opens, and doctor tells what is missing."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("tui", "engine", "stats", "sample_data")
ENTER_SCREEN, LEAVE_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"
LIMIT_S = 120.0


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
        scripts = environment / ("Scripts" if os.name == "nt" else "bin")
        _done([uv, "pip", "install", "--quiet", "--python", str(scripts / "python"), requirement], folder)
        self.command = str(scripts / "evaldesk")
        home = folder / "home"
        home.mkdir()
        self.environment = {
            **{k: v for k, v in _clean_environment().items() if not k.startswith("XDG_")},
            "HOME": str(home),
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
        }

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


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_the_demo_opens_in_a_terminal_and_gives_it_back(plain: Installed) -> None:
    master, slave = pty.openpty()
    opened = subprocess.Popen(
        [plain.command, "demo", "--workspace", "opened"],
        cwd=plain.folder, env=plain.environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    try:
        seen = b""
        for chunk in _output(master):
            seen += chunk
            if ENTER_SCREEN in seen and opened.poll() is None:
                opened.terminate()
            if LEAVE_SCREEN in seen:
                break
        assert ENTER_SCREEN in seen
        assert LEAVE_SCREEN in seen
        assert b"Traceback" not in seen
        opened.wait(LIMIT_S)
    finally:
        opened.kill()
        opened.wait()
        os.close(master)


def test_doctor_says_that_llamacpp_is_missing_and_how_to_get_it(plain: Installed) -> None:
    backend = plain.doctor()["backends"]["llamacpp"]
    assert backend["can_run"] is False
    assert backend["version"] is None
    assert "evaldesk[llamacpp]" in backend["reason"]


def test_doctor_says_that_llamacpp_runs_once_its_extra_is_installed(with_llamacpp: Installed) -> None:
    backend = with_llamacpp.doctor()["backends"]["llamacpp"]
    assert backend["can_run"] is True, backend["reason"]
    assert backend["version"]


def _output(master: int) -> Iterator[bytes]:
    """What the terminal shows, until its program is gone or the limit is reached."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if select.select([master], [], [], 0.2)[0]:
            try:
                chunk = os.read(master, 65536)
            except OSError:
                return
            if not chunk:
                return
            yield chunk


def _clean_environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH", "UV_PROJECT_ENVIRONMENT")}


def _done(
    command: list[str], folder: Path, environment: dict[str, str] | None = None, codes: tuple[int, ...] = (0,)
) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment or _clean_environment(), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode in codes, f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout
