"""Labelling by keys in a real terminal: what was saved is in the database, what was typed is never lost, nothing else is."""

from __future__ import annotations

import re
import shutil
import signal
import time
from pathlib import Path

import duckdb
import pytest

from tests.e2e.conftest import HOME_SHOWN, Terminals, rows
from tests.e2e.realterm import ENTER, ESC, PtyApp

FIRST_OPEN, NEXT_OPEN = "T-0407", "T-0413"


pytestmark = pytest.mark.slow

GIVEN_HERE = "SELECT trace_id, mark, critique FROM label WHERE source_id = '' ORDER BY seq"


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), pytest.param(200, 50, marks=pytest.mark.slow)])
def test_label_undo_quit_and_come_back_in_tmux(terminals: Terminals, workspace: Path, columns: int, lines: int) -> None:
    app = terminals.tmux(workspace, columns=columns, rows=lines)
    app.wait_for(HOME_SHOWN)
    app.send("1")
    app.wait_for(f"{FIRST_OPEN} ·")
    app.send("p")
    app.wait_for("PASS draft")
    app.type("The queue and the 48 hours are in the tool result.")
    app.wait_for("48 hours are in the tool result.")
    app.send("Enter")
    app.wait_for(f"{NEXT_OPEN} ·")
    app.wait_for("133/252")
    app.send("f")
    app.wait_for("FAIL draft")
    app.type("taken back")
    app.wait_for("taken back")
    app.send("Enter")
    app.wait_for("134/252")
    app.send("u")
    app.wait_for(f"{NEXT_OPEN} ·")
    app.wait_for("133/252")
    app.send("Down")
    app.wait_for("T-0414 ·")
    app.send("q")
    assert app.wait_exit() == 0
    assert rows(workspace, GIVEN_HERE) == [
        (FIRST_OPEN, "PASS", "The queue and the 48 hours are in the tool result."),
        (NEXT_OPEN, "FAIL", "taken back"),
        (NEXT_OPEN, "WITHDRAWN", ""),
    ]
    assert rows(workspace, "SELECT trace_id, verdict, critique FROM draft") == [(NEXT_OPEN, "FAIL", "taken back")]
    again = terminals.tmux(workspace, columns=columns, rows=lines)
    again.wait_for("T-0414 ·")
    again.send("q")
    assert again.wait_exit() == 0


def open_label(terminals: Terminals, workspace: Path) -> PtyApp:
    app = terminals.pty(workspace)
    app.wait_for(HOME_SHOWN)
    app.send("1")
    app.wait_for(f"{FIRST_OPEN} ·")
    return app


def test_a_draft_survives_esc_and_kill_9(terminals: Terminals, workspace: Path) -> None:
    app = open_label(terminals, workspace)
    app.send("f")
    app.wait_for("FAIL draft")
    app.send("kept on Esc")
    app.wait_for("kept on Esc")
    app.send(ESC)
    app.wait_for("✎")
    app.settle()
    app.send("c")
    app.settle()
    # Typing on without a pause does not put the keeping off.
    words = [f" w{number}" for number in range(12)]
    app.send_slowly(words, 0.15)
    app.wait_for(words[-1])
    time.sleep(1.0)  # the promise is: within a second
    app.kill(signal.SIGKILL)
    assert app.wait_exit() == -signal.SIGKILL
    assert rows(workspace, "SELECT trace_id, verdict, critique FROM draft") == [
        (FIRST_OPEN, "FAIL", "kept on Esc" + "".join(words))
    ]
    assert rows(workspace, GIVEN_HERE) == []
    again = terminals.pty(workspace)
    again.wait_for(words[-1])


@pytest.mark.slow
def test_kill_9_while_typing_loses_less_than_a_second(terminals: Terminals, workspace: Path) -> None:
    app = open_label(terminals, workspace)
    app.send("f")
    app.wait_for("FAIL draft")
    app.send_slowly(["x"] * 40, 0.05)
    app.wait_for("x" * 30)
    app.kill(signal.SIGKILL)
    app.wait_exit()
    [(critique,)] = rows(workspace, "SELECT critique FROM draft")
    assert len(critique) >= 10


@pytest.mark.parametrize(
    "tail", ["pfdnbx", *(pytest.param(tail, marks=pytest.mark.slow) for tail in ("ppp", "p\rp\rf\r", "pq0u"))]
)
def test_a_paste_that_runs_over_labels_nothing_more(terminals: Terminals, workspace: Path, tail: str) -> None:
    app = open_label(terminals, workspace)
    app.send("f")
    app.wait_for("FAIL draft")
    app.settle()
    app.send("pasted from elsewhere" + ENTER + tail)
    app.wait_for(lambda shown: "133/252" in shown or HOME_SHOWN in shown)
    app.settle(0.3)
    app.send(ESC)
    app.settle()
    app.kill(signal.SIGTERM)
    assert app.wait_exit() == 128 + signal.SIGTERM
    assert rows(workspace, GIVEN_HERE) == [(FIRST_OPEN, "FAIL", "pasted from elsewhere")]


@pytest.mark.parametrize(
    "text",
    ["bad, and denied; no further xperts", pytest.param("\x1b[200~bad, and denied\x1b[201~", marks=pytest.mark.slow)],
)
def test_what_is_typed_ahead_of_the_screen_is_critique_and_no_decision(
    terminals: Terminals, workspace: Path, text: str
) -> None:
    app = open_label(terminals, workspace)
    app.settle()
    app.send("f" + text + ENTER)
    app.wait_for("133/252")
    app.settle()
    app.send("/bdxn" + ENTER)
    app.wait_for("No case is like this")
    app.send(ESC)
    app.settle()
    app.send("q")
    assert app.wait_exit() == 0
    critique = text.removeprefix("\x1b[200~").removesuffix("\x1b[201~")
    assert rows(workspace, GIVEN_HERE) == [(FIRST_OPEN, "FAIL", critique)]


def test_a_bracketed_paste_is_text_whatever_it_holds(terminals: Terminals, workspace: Path) -> None:
    app = open_label(terminals, workspace)
    app.send("f")
    app.wait_for("FAIL draft")
    app.send("\x1b[200~one\n\x1b\x1bptwo\x1b[31m\nthree\x00\x9d\u202e\x1b[201~")
    app.wait_for("three")
    app.send(ENTER)
    app.wait_for(f"{NEXT_OPEN} ·")
    app.send("q")
    assert app.wait_exit() == 0
    assert rows(workspace, GIVEN_HERE) == [(FIRST_OPEN, "FAIL", "one\n␛␛ptwo␛[31m\nthree⟨U+009D⟩⟨U+202E⟩")]


@pytest.mark.slow
def test_keys_in_pieces_over_a_slow_line_decide_nothing(terminals: Terminals, workspace: Path) -> None:
    app = open_label(terminals, workspace)
    app.settle()
    for sequence in ("\x1b[B", "\x1bOA", "\x1b[1;5B"):
        for pause in (0.03, 0.12):
            app.send_slowly(sequence, pause)
            app.settle(0.15)
            assert "PASS draft" not in app.text
            assert "FAIL draft" not in app.text
        app.send("1")
    app.wait_for("REQUEST")
    app.settle()
    app.send("q")
    assert app.wait_exit() == 0
    assert rows(workspace, GIVEN_HERE) == []
    assert rows(workspace, "SELECT * FROM draft") == []


def test_a_second_app_names_the_holder_and_gets_a_snapshot(
    terminals: Terminals, workspace: Path, tmp_path: Path
) -> None:
    owner = open_label(terminals, workspace)
    owner.send("d")
    owner.wait_for(f"{NEXT_OPEN} ·")
    second = terminals.pty(workspace, columns=120)
    shown = second.wait_for("in use by")
    holder = re.search(r"process\s+(\d+)\s+on\s+(\S+?)\)", shown)
    assert holder is not None, shown
    assert int(holder.group(1)) == owner.process.pid
    second.send("s")
    second.wait_for("Written")
    copies = list(tmp_path.rglob("*snapshot*.duckdb"))
    assert len(copies) == 1
    copy = Path(shutil.move(copies[0], tmp_path / "copy.duckdb"))
    connection = duckdb.connect(str(copy), read_only=True)
    assert connection.execute("SELECT trace_id, mark FROM label WHERE source_id = ''").fetchall() == [
        (FIRST_OPEN, "DEFERRED")
    ]
    connection.close()
    owner.send("q")
    assert owner.wait_exit() == 0
    second.send("r")
    second.wait_for(f"{NEXT_OPEN} ·")
    second.send("q")
    assert second.wait_exit() == 0
