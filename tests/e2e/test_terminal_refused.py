"""Where the app cannot be shown, one line says so, with what to use instead."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import HOME_SHOWN, Terminals
from tests.e2e.realterm import EVALDESK


@pytest.mark.parametrize(
    ("environment", "reason"),
    [({"TERM": "dumb"}, "TERM=dumb"), ({"TERM": ""}, "TERM="), ({"PYTHONIOENCODING": "iso-8859-1"}, "iso8859-1")],
)
def test_a_terminal_that_cannot_show_it(terminals: Terminals, environment: dict[str, str], reason: str) -> None:
    app = terminals.pty(command=EVALDESK, columns=300, **environment)
    assert app.wait_exit() == 2
    lines = app.output.decode().split("\r\n")
    assert len(lines) == 2
    assert lines[1] == ""
    assert reason in lines[0]
    assert "evaldesk import" in lines[0]
    assert "\x1b" not in lines[0]


def test_no_terminal_at_all(terminals: Terminals) -> None:
    done = terminals.run()
    assert done.returncode == 2
    assert done.stdout == ""
    assert "needs a terminal" in done.stderr
    assert "evaldesk import" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(terminals.home.glob("evaldesk*.d")), "nothing is made where nothing is shown"


def test_a_redirected_error_stream_is_named_instead_of_an_empty_screen(terminals: Terminals, tmp_path: Path) -> None:
    log = tmp_path / "log"
    app = terminals.pty(command=["sh", "-c", f'exec "$@" 2>{log}', "sh", *EVALDESK], columns=300)
    assert app.wait_exit() == 2
    assert "error stream" in log.read_text("utf-8")


@pytest.mark.slow
def test_a_screen_of_few_columns_and_rows_does_not_end_it(terminals: Terminals, workspace: Path) -> None:
    app = terminals.pty(workspace)
    app.wait_for(HOME_SHOWN)
    for columns, rows in ((20, 5), (1, 1), (300, 90), (80, 24)):
        app.resize(columns, rows)
        app.settle(0.2)
        for key in "1234i":
            app.send(key)
            app.settle(0.1)
            app.send(b"\x1b")
            app.settle(0.15)
    app.send("1")
    app.wait_for("REQUEST")
    app.send("q")
    assert app.wait_exit() == 0


def test_help_and_commands_need_no_terminal(terminals: Terminals) -> None:
    done = subprocess.run(
        [*EVALDESK, "--help"], env=terminals.environment(TERM="dumb"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "import" in done.stdout
