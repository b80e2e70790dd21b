"""Whatever stands in traces, labels, replies, logs and files: the terminal gets it as text, and no screen breaks on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e import hostile
from tests.e2e.conftest import HOME_SHOWN, Terminals
from tests.e2e.realterm import DOWN, ENTER, ESC, TAB, PtyApp, foreign_controls

pytestmark = pytest.mark.slow

CTRL_P = "\x10"
PASTE = f"\x1b[200~{hostile.EVERYTHING}\x1b[201~"


def press(app: PtyApp, *keys: str) -> None:
    for key in keys:
        app.send(key)
        # What follows an Esc too soon would be an Alt key.
        app.settle(0.15 if key == ESC else 0.06)
        assert app.process.poll() is None, f"{key!r} ended the app:\n{app.text}"


def assert_harmless(app: PtyApp) -> None:
    assert foreign_controls(app.output) == []
    for marker in hostile.MARKERS:
        assert f"\x1b{marker}".encode() not in app.output
        assert f"\x1b[{marker}".encode() not in app.output


def leave(app: PtyApp) -> None:
    press(app, ESC, ESC)
    app.send("q")
    assert app.wait_exit() == 0
    assert_harmless(app)


def assert_border(app: PtyApp) -> None:
    """The border between the list of cases and the case stands in one column."""
    rows = app.cells
    column = rows[2].index("│")
    body = rows[1 : next(y for y, row in enumerate(rows) if y > 2 and "│" not in row)]
    assert len(body) > 5
    # Terminals disagree on the width of joined emoji, the one under test among them.
    assert {row[column] for row in body if not any(cell.startswith("👩") for cell in row)} == {"│"}, app.text


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 50)])
def test_label_shows_every_case_as_text(terminals: Terminals, tmp_path: Path, columns: int, rows: int) -> None:
    hostile.fill_workspace(tmp_path / "ws", tmp_path)
    app = terminals.pty(tmp_path / "ws", columns=columns, rows=rows)
    app.wait_for(HOME_SHOWN)
    press(app, "1")
    app.wait_for("REQUEST")
    press(app, "\x1b[H")
    app.wait_for("csi-SEEN" if rows > 30 else "osc0␛")
    app.settle()
    seen = set()
    for _ in hostile.SEQUENCES:
        assert_border(app)
        press(app, " ")
        seen.add(app.text.split("\n")[1])
        press(app, "j")
    assert len(seen) >= len(hostile.SEQUENCES) - 2
    assert "1 draft" in app.text, "reading makes no drafts"
    press(app, "x", "u", "f", PASTE, ESC, "d", "h", DOWN, ESC)
    for words in ("[/x]", "%s", "{0}", "注文", PASTE):
        press(app, "/", words, ENTER, ESC)
    press(app, "p", PASTE, ENTER, "?", ESC, CTRL_P, PASTE, ESC)
    leave(app)


def test_every_screen_shows_it_as_text(terminals: Terminals, tmp_path: Path) -> None:
    hostile.fill_workspace(tmp_path / "ws", tmp_path)
    app = terminals.pty(tmp_path / "ws")
    app.wait_for(HOME_SHOWN)
    press(app, "1", "\x1b[H", *"jjj j jj ", "/", PASTE, ENTER, ESC, "0", "e", PASTE, ENTER, "?", ESC)
    press(app, "1", "t", PASTE, ENTER, "l", "?", ESC, *"jvvv", "t", PASTE, ENTER, "t", "a[x]", ENTER)
    press(app, TAB, "\x1b[F", "r", PASTE, ENTER, "m", PASTE, ENTER, "s", ESC, "/", PASTE, ENTER, ESC, *"uuu", ESC)
    press(app, "2", DOWN, "r", ESC, "v", " ", DOWN, " ", TAB, PASTE, ENTER, ESC, "m", ESC)
    press(app, "3", DOWN, DOWN, "t", "w", "p", "m", "t", "l", "3")
    press(app, "4", DOWN, "X", ESC, "r", "a")
    leave(app)


@pytest.mark.slow
def test_import_shows_fields_values_and_refusals_as_text(terminals: Terminals, tmp_path: Path) -> None:
    hostile.fill_workspace(tmp_path / "ws", tmp_path)
    # No ESC: in pasted text it is shown, not kept.
    folder = tmp_path / "[red]f[x] \x9d0;TAKEN-OVER\x9c"
    folder.mkdir()
    file = hostile.write_labelled(folder / "{0} %s $x \u202e.jsonl")
    app = terminals.pty(tmp_path / "ws")
    app.wait_for(HOME_SHOWN)
    press(app, "i", f"\x1b[200~{folder / 'not there'}\x1b[201~", ENTER)
    app.wait_for("Check the name.")
    press(app, ESC, "o", f"\x1b[200~{file}\x1b[201~", ENTER)
    app.wait_for("jsonl, utf-8")
    press(app, " ", DOWN, " ", ESC, "e", TAB, TAB, ESC)
    press(app, "o", TAB, "hand", ESC, ENTER)
    app.wait_for("labels added")
    press(app, " ", "1", "\x1b[F")
    app.wait_for("REQUEST")
    leave(app)


@pytest.mark.slow
def test_commands_print_it_as_text(terminals: Terminals, tmp_path: Path) -> None:
    traces = hostile.write_traces(tmp_path / "t.jsonl")
    labelled = hostile.write_labelled(tmp_path / "l\x1b]0;TAKEN-OVER\x07.jsonl")
    hostile.fill_workspace(tmp_path / "ws", tmp_path)
    there = ("--workspace", tmp_path / "ws")
    for arguments in (
        ("import", traces, "--dry-run", *there),
        ("import", traces, "--dry-run", "--json", *there),
        ("import", labelled, "--criterion", hostile.CRITERION, "--drawn", "hand", *there),
        ("import", labelled, "--as", "labels", "--map", "label=/extra", *there),
        ("audit", labelled, "--human", "/label", "--judge", "/critique"),
        ("audit", labelled, "--human", "/label", "--judge", "/critique", "--json"),
        ("runs", *there),
        ("runs", "--json", *there),
        ("judge", "--dry-run", "--criterion", hostile.CRITERION, *there),
    ):
        app = terminals.pty(*arguments)
        assert app.wait_exit() in (0, 1, 2), arguments
        assert app.output, arguments
        assert foreign_controls(app.output) == [], arguments
        assert b"Traceback" not in app.output, arguments
