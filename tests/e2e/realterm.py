"""Real terminals for tests: a pty whose bytes can be inspected, and a tmux server of its own.

Both run a command in an environment that knows nothing of the developer's: own home, own XDG
folders, own state folder. Both wait on conditions with generous limits, and both end what they
started, by its process id.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte

LIMIT_S = 60.0
"""How long a condition may take on a loaded machine before the test gives up."""

ENTER, ESC, TAB, BACKSPACE = "\r", "\x1b", "\t", "\x7f"
UP, DOWN, RIGHT, LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"

EVALDESK = [sys.executable, "-c", "from tui.cli.main import main; main()"]
"""The command ``evaldesk`` of the environment that runs the tests."""

# The child takes the pty as its controlling terminal, so that closing it sends SIGHUP, and becomes the command.
_ON_TTY = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvpe(sys.argv[1], sys.argv[1:], os.environ)"
# What pyte would print as text: keyboard protocol sequences with private parameters.
_UNKNOWN_TO_PYTE = re.compile(rb"\x1b\[[<>=][0-9;]*[a-zA-Z]")


def isolated_environment(home: Path, **more: str) -> dict[str, str]:
    """A small environment with everything a program may read from a home pointing below ``home``."""
    home.mkdir(parents=True, exist_ok=True)
    environment = {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "EVALDESK_STATE_DIR": str(home / "evaldesk-state"),
        "EVALDESK_CONFIG_DIR": str(home / "evaldesk-config"),
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C.UTF-8",
        "PYTHONFAULTHANDLER": "1",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
    }
    return environment | more


@dataclass(frozen=True)
class Chunk:
    """Bytes that the program wrote, with the moment (``time.perf_counter``) at which they were read."""

    at: float
    data: bytes


class PtyApp:
    """A command on a pseudo terminal; use as a context manager.

    A thread reads all the time, so the program never waits for the test. ``screen`` is what a
    terminal would show.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], cwd: Path, *, columns: int = 80, rows: int = 24
    ) -> None:
        self.columns, self.rows = columns, rows
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._chunks: list[Chunk] = []
        self._held = b""
        self._news = threading.Condition()
        self._at_end = False
        self._master, slave = os.openpty()
        self._resize_tty(columns, rows)
        self.attributes_before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _ON_TTY, *command],
            stdin=slave, stdout=slave, stderr=slave, cwd=cwd, env=dict(environment), start_new_session=True,
        )  # fmt: skip
        # Kept open: the settings of the terminal are read through it after the program has ended.
        self._slave = slave
        self._stop_read, self._stop_write = os.pipe()
        self._reader = threading.Thread(target=self._read, name="pty-reader", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- doing ------------------------------------------------------------------------------------

    def send(self, keys: str | bytes) -> float:
        """Type ``keys`` in one write; returns the moment before it."""
        data = keys.encode() if isinstance(keys, str) else keys
        moment = time.perf_counter()
        os.write(self._master, data)
        return moment

    def send_slowly(self, keys: Sequence[str | bytes], pause: float = 0.03) -> None:
        """Type pieces with a pause between them, as a slow line delivers them."""
        for piece in keys:
            self.send(piece)
            time.sleep(pause)

    def resize(self, columns: int, rows: int) -> None:
        """Another window size; the program is told by SIGWINCH."""
        with self._news:
            self.columns, self.rows = columns, rows
            self._screen.resize(rows, columns)
        self._resize_tty(columns, rows)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the program."""
        os.kill(self.process.pid, number)

    def hang_up(self) -> None:
        """Close the terminal, as a lost connection does."""
        self._end_reader()
        for descriptor in (self._slave, self._master):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._slave = self._master = -1

    def close(self) -> None:
        """End the program if it still runs, and give everything back."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._end_reader()
        for descriptor in {self._slave, self._master, self._stop_read, self._stop_write} - {-1}:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._slave = self._master = self._stop_read = self._stop_write = -1

    # -- seeing -----------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """What the screen shows now, one line a row."""
        with self._news:
            return self._shown()

    @property
    def cells(self) -> list[list[str]]:
        """What the screen shows by row and column; the second cell of a wide character is empty."""
        with self._news:
            return self._cells()

    @property
    def output(self) -> bytes:
        """All that the program has written."""
        with self._news:
            return b"".join(chunk.data for chunk in self._chunks)

    @property
    def mark(self) -> int:
        """Where the output stands now, for ``since``."""
        with self._news:
            return len(self._chunks)

    def since(self, mark: int) -> list[Chunk]:
        """What was written after ``mark``."""
        with self._news:
            return self._chunks[mark:]

    @property
    def attributes(self) -> list[object]:
        """The settings of the terminal as tcgetattr gives them."""
        return list(termios.tcgetattr(self._slave))

    # -- waiting ----------------------------------------------------------------------------------

    def wait_for(self, wanted: str | Callable[[str], bool], limit: float = LIMIT_S) -> str:
        """Wait until the screen shows a text (or satisfies a condition); returns the screen."""
        holds = (lambda shown: wanted in shown) if isinstance(wanted, str) else wanted
        deadline = time.monotonic() + limit
        with self._news:
            while True:
                shown = self._shown()
                if holds(shown):
                    return shown
                left = deadline - time.monotonic()
                if left <= 0 or self._at_end:
                    why = f"the program ended ({self.process.poll()})" if self._at_end else f"not within {limit} s"
                    raise AssertionError(f"{why}: {wanted!r}\n{shown}")
                self._news.wait(left)

    def settle(self, quiet: float = 0.25, limit: float = LIMIT_S) -> str:
        """Wait until nothing was written for ``quiet`` seconds; returns the screen."""
        deadline = time.monotonic() + limit
        with self._news:
            while self._news.wait(quiet) and not self._at_end:
                if time.monotonic() > deadline:
                    raise AssertionError(f"it never stops writing:\n{self._chunks[-1].data!r}")
            return self._shown()

    def wait_exit(self, limit: float = LIMIT_S) -> int:
        """Wait until the program has ended and all of its output is read; returns the exit code."""
        code = self.process.wait(limit)
        if self._master != -1:
            self.settle(0.2)
        return code

    # -- inner ------------------------------------------------------------------------------------

    def _cells(self) -> list[list[str]]:
        return [[self._screen.buffer[y][x].data for x in range(self.columns)] for y in range(self.rows)]

    def _shown(self) -> str:
        return "\n".join("".join(row) for row in self._cells())

    def _resize_tty(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self) -> None:
        while True:
            ready, _, _ = select.select([self._master, self._stop_read], [], [])
            if self._stop_read in ready:
                break
            try:
                data = os.read(self._master, 65536)
            except OSError:
                break
            moment = time.perf_counter()
            with self._news:
                self._chunks.append(Chunk(moment, data))
                self._feed(data)
                self._news.notify_all()
        with self._news:
            self._at_end = True
            self._news.notify_all()

    def _feed(self, data: bytes) -> None:
        whole = self._held + data
        # A sequence cut in two by the end of a read waits for its second half.
        start = whole.rfind(b"\x1b", max(len(whole) - 16, 0))
        cut = start if start >= 0 and not re.match(rb"\x1b(\[[0-9;?<>=$]*[@-~]|[^\[])", whole[start:]) else len(whole)
        whole, self._held = whole[:cut], whole[cut:]
        self._stream.feed(_UNKNOWN_TO_PYTE.sub(b"", whole))

    def _end_reader(self) -> None:
        if self._reader.is_alive():
            os.write(self._stop_write, b".")
            self._reader.join()


_KEEPER = """\
status=$1; shift
sh -c 'echo $$ >"$0"; exec "$@"' "${status%.status}.pid" "$@"
echo $? >"$status.part"; mv "$status.part" "$status"
"""


class TmuxApp:
    """A command in a pane of a tmux server of its own, without anybody's configuration; use as a context manager."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], cwd: Path, *, columns: int = 80, rows: int = 24
    ) -> None:
        self._socket = f"evaldesk-test-{uuid.uuid4().hex[:12]}"
        # The path of a socket has room for about a hundred characters, which a test's own folder can fill.
        self._sockets = tempfile.mkdtemp(prefix="evaldesk-")
        self._environment = {**environment, "TMUX_TMPDIR": self._sockets}
        self._cwd = cwd
        # The first command of a server only sets options: a pane that ends at once would take the server with it.
        self._tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), "cat")
        self._tmux("set-option", "-g", "remain-on-exit", "on")
        self._tmux("set-option", "-g", "status", "off")
        # tmux now and then does not reap what has ended in a pane, so a shell keeps the exit code.
        self._status = Path(environment["HOME"]) / f"{self._socket}.status"
        keeper = self._status.with_suffix(".sh")
        keeper.write_text(_KEEPER, "ascii")
        self._tmux("respawn-pane", "-k", "-c", str(cwd), shlex.join(["sh", str(keeper), str(self._status), *command]))

    @staticmethod
    def is_available() -> bool:
        """Whether there is a tmux here."""
        return shutil.which("tmux") is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, *keys: str) -> None:
        """Keys by tmux's names (``Enter``, ``Escape``, ``Down``), each in a write of its own."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Letters as they stand."""
        self._tmux("send-keys", "-l", text)

    @property
    def text(self) -> str:
        """What the pane shows now."""
        return self._tmux("capture-pane", "-p")

    def wait_for(self, wanted: str | Callable[[str], bool], limit: float = LIMIT_S) -> str:
        """Wait until the pane shows a text (or satisfies a condition); returns what it shows."""
        holds = (lambda shown: wanted in shown) if isinstance(wanted, str) else wanted
        deadline = time.monotonic() + limit
        while True:
            shown = self.text
            if holds(shown):
                return shown
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {limit} s: {wanted!r}\n{shown}")
            time.sleep(0.05)

    @property
    def pid(self) -> int:
        """Process id of the command."""
        return int(self._status.with_suffix(".pid").read_text("ascii"))

    @property
    def title(self) -> str:
        """The title of the pane, which a program can set with an escape sequence."""
        return self._tmux("display-message", "-p", "#{pane_title}").strip()

    def wait_exit(self, limit: float = LIMIT_S) -> int:
        """Wait until the command has ended; returns its exit code (128 + number after a signal)."""
        deadline = time.monotonic() + limit
        while not self._status.exists():
            if time.monotonic() > deadline:
                raise AssertionError(f"still running after {limit} s\n{self.text}")
            time.sleep(0.05)
        return int(self._status.read_text("ascii"))

    def close(self) -> None:
        """End the server with everything in it."""
        subprocess.run(
            ["tmux", "-u", "-L", self._socket, "kill-server"], env=self._environment, capture_output=True, check=False
        )
        shutil.rmtree(self._sockets, ignore_errors=True)

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-L", self._socket, "-f", os.devnull, *arguments],
            env=self._environment, cwd=self._cwd, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise AssertionError(f"tmux {' '.join(arguments)}: {done.stderr}")
        return done.stdout


# Terminal modes that an app may change, with the setting that a shell expects.
_SHELL_MODES = {
    b"1049": b"l", b"25": b"h", b"7": b"h", b"1000": b"l", b"1002": b"l", b"1003": b"l", b"1004": b"l", b"1006": b"l",
    b"1015": b"l", b"1016": b"l", b"2004": b"l", b"2026": b"l", b"2048": b"l",
}  # fmt: skip
_MODE = re.compile(rb"\x1b\[\?([0-9]+)([hl])")


def modes_left_behind(output: bytes) -> set[str]:
    """Private modes that do not stand at the end as a shell expects them, such as ``?1049h`` or ``?25l``."""
    last = dict(_MODE.findall(output))
    left = {
        f"?{number.decode()}{now.decode()}" for number, now in last.items() if _SHELL_MODES.get(number, b"l") != now
    }
    keyboard = re.findall(rb"\x1b\[([<>])[0-9]*u", output)
    if keyboard.count(b">") > keyboard.count(b"<"):
        left.add(">u")
    return left


# Every sequence that the app itself has a reason to write.
_OWN_SEQUENCES = re.compile(
    rb"\x1b\[[0-9;:]*m|\x1b\[[0-9]*;?[0-9]*H|\x1b\[\?(?:25|7|1000|1003|1004|1006|1015|1016|1049|2004|2026|2048)[hl]"
    rb"|\x1b\[\?(?:2026|2048)\$p|\x1b\[[<>][0-9]*u|\x1b\]22;[a-z-]*\x07|\r?\n|\t"
)
_DANGEROUS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def foreign_controls(output: bytes) -> list[str]:
    """What of the output could act on a terminal and is not the app's own, each with what stands around it."""
    text = _OWN_SEQUENCES.sub(b"", output).decode("utf-8", "replace")
    return [text[max(match.start() - 30, 0) : match.end() + 30] for match in _DANGEROUS.finditer(text)]
