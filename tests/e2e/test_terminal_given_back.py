"""However the app ends, the shell gets its terminal back whole, and the exit code says what happened."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.e2e.conftest import HOME_SHOWN, Terminals, rows
from tests.e2e.realterm import PtyApp, modes_left_behind

_CRASH = (
    "import sys; from tui.screens.label import LabelScreen\n"
    "def broken(self): raise RuntimeError('gone \\x1b]0;wrong\\x07 wrong')\n"
    "LabelScreen.action_next_open = broken\n"
    "from tui.cli.main import main; main()"
)


DRAFTS = "SELECT verdict, critique FROM draft"


def open_label(terminals: Terminals, workspace: Path, **more: str) -> PtyApp:
    app = terminals.pty(workspace, **more)
    app.wait_for(HOME_SHOWN)
    app.send("1")
    app.wait_for("REQUEST")
    app.settle()
    return app


def assert_whole(app: PtyApp) -> None:
    assert b"\x1b[?1049h" in app.output, "the app was never up"
    assert modes_left_behind(app.output) == set()
    assert app.attributes == app.attributes_before
    assert "Traceback" not in app.text


def test_q_leaves_with_code_0(terminals: Terminals, workspace: Path) -> None:
    app = open_label(terminals, workspace)
    app.send("q")
    assert app.wait_exit() == 0
    assert_whole(app)


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, *(pytest.param(number, marks=pytest.mark.slow) for number in (signal.SIGHUP, signal.SIGINT))],
)
def test_a_signal_ends_it_in_order_with_its_own_code(
    terminals: Terminals, workspace: Path, number: signal.Signals
) -> None:
    app = open_label(terminals, workspace)
    app.send("f")
    app.wait_for("FAIL draft")
    app.send("typed and not saved")
    app.wait_for("typed and not saved")
    app.kill(number)
    assert app.wait_exit() == 128 + number
    assert_whole(app)
    assert rows(workspace, DRAFTS) == [("FAIL", "typed and not saved")]


def test_a_signal_while_the_workspace_is_being_opened(terminals: Terminals, workspace: Path) -> None:
    app = terminals.pty(workspace)
    app.wait_for("evaldesk")
    app.kill(signal.SIGTERM)
    assert app.wait_exit() == 128 + signal.SIGTERM
    assert_whole(app)


def test_a_lost_connection_ends_it_and_frees_the_workspace(terminals: Terminals, workspace: Path) -> None:
    app = open_label(terminals, workspace)
    app.send("f")
    app.wait_for("FAIL draft")
    app.send("before the line went")
    app.wait_for("before the line went")
    app.hang_up()
    assert app.wait_exit() != 0
    assert rows(workspace, DRAFTS) == [("FAIL", "before the line went")]


def test_a_crash_is_one_plain_line_and_never_code_0(terminals: Terminals, workspace: Path) -> None:
    import sys

    app = terminals.pty(workspace, command=[sys.executable, "-c", _CRASH])
    app.wait_for(HOME_SHOWN)
    app.send("1")
    app.wait_for("REQUEST")
    app.send("o")
    assert app.wait_exit() == 2
    assert_whole(app)
    assert "unexpected RuntimeError: gone ␛]0;wrong␇ wrong" in app.text
    assert b"Traceback" not in app.output
    assert b"\x1b]0;" not in app.output


def test_the_mouse_is_off_over_ssh_and_a_key_turns_it_on_and_off(terminals: Terminals, workspace: Path) -> None:
    app = open_label(terminals, workspace, SSH_CONNECTION="10.0.0.1 1 10.0.0.2 22")
    assert b"?1003h" not in app.output
    f10 = "\x1b[21~"
    app.send(f10)
    app.wait_for("Mouse on")
    assert b"\x1b[?1003h" in app.output
    app.send(f10)
    app.wait_for("Mouse off")
    assert "?1003h" not in modes_left_behind(app.output)
    app.send("q")
    assert app.wait_exit() == 0
    assert_whole(app)
