"""What the app reads from a terminal and writes to it, byte by byte."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import HOME_SHOWN, Terminals
from tests.e2e.realterm import DOWN, ESC, PtyApp, foreign_controls

pytestmark = pytest.mark.slow

_BROKEN_INPUT = [
    b"\xff", b"\xc3", b"\xf0\x9f", b"\x80\x80", b"\x1b[", b"\x1b]0;x", b"\x1b]11;rgb:0000/0000/0000\x1b\\", b"\x1bP",
    b"\x1b[1114112u", b"\x1b[99999999999u", b"\x1b[:;A", b"\x1b[55296u", b"\x1b[<0;0;0M", b"\x1b[M\xff\xff\xff", b"\x1b[1;99R", b"\x9b",
    b"\x00\x01\x02", b"\x1b[200~" + b"\x1b\x1b[31mq" * 20 + b"\x1b[201~",
]  # fmt: skip


def open_home(terminals: Terminals, workspace: Path, **more: str) -> PtyApp:
    app = terminals.pty(workspace, **more)
    app.wait_for(HOME_SHOWN)
    app.settle()
    return app


def test_broken_input_does_not_end_the_app(terminals: Terminals, workspace: Path) -> None:
    app = open_home(terminals, workspace)
    for data in _BROKEN_INPUT:
        app.send(data)
        app.settle(0.12)
        assert app.process.poll() is None, data
    app.send(ESC)
    app.settle()
    app.send("1")
    app.wait_for("REQUEST")
    app.send("q")
    assert app.wait_exit() == 0


def visit_screens(app: PtyApp) -> None:
    for key in "1234":
        app.send(key)
        app.settle(0.15)
    app.send("1")
    app.wait_for("REQUEST")
    for keys in ("p", ESC, "/", ESC, "?", ESC, "\x10", ESC, DOWN, "i", ESC, "0"):
        app.send(keys)
        app.settle(0.15 if keys == ESC else 0.06)


@pytest.mark.parametrize("term", ["xterm-256color", pytest.param("screen", marks=pytest.mark.slow)])
def test_no_color_writes_no_colour_and_still_tells_apart(terminals: Terminals, workspace: Path, term: str) -> None:
    app = open_home(terminals, workspace, NO_COLOR="1", TERM=term, COLORTERM="")
    visit_screens(app)
    codes = {code for found in re.findall(rb"\x1b\[([0-9;:]*)m", app.output) for code in re.split(rb"[;:]", found)}
    assert codes <= {b"", b"0", b"1", b"2", b"3", b"4", b"7", b"9"}
    assert b"7" in codes, "a cursor without colour needs reverse"
    assert foreign_controls(app.output) == []


def test_idle_writes_nothing(terminals: Terminals, workspace: Path) -> None:
    app = open_home(terminals, workspace)
    app.send("1")
    app.wait_for("REQUEST")
    app.send("f")
    app.wait_for("FAIL draft")
    app.send("x")
    app.settle(1.0)
    mark = app.mark
    time.sleep(2.0)  # the claim is about time
    assert app.since(mark) == []
