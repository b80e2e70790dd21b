"""The supervisor of a device: ``python -P -m engine.runs.supervisor DEVICE`` drains the device's queue in order.

One at a time holds the device's lock, over all workspaces. It outlives the terminal that started it, starts one
worker after the other, starts a crashed one again, and ends when the queue is empty.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from engine.errors import EvaldeskError
from engine.runs import queue, scratch
from engine.runs.finish_hook import run_hook
from engine.runs.locks import FileLock, is_held, try_lock
from engine.runs.plan_file import read_plan
from engine.runs.progress import recounted
from engine.runs.protocol import Control, RunDir, RunState, RunStatus
from engine.runs.queue import QueueEntry
from engine.runs.spool import count_lines, stream_results
from engine.runs.states import read_control, read_description, read_state, write_state_at_any_cost

EXIT_ENDED = 0
"""Worker: done, paused or cancelled."""
EXIT_FAILED = 3
"""Worker: cannot work at all, trying again would not help; state.json says why."""
EXIT_INTERRUPTED = 4
"""Worker: the system asked it to end."""
EXIT_BROKEN = 5
"""Worker: its process can use the device no more. Counts as a crash, so that another one is started."""
EXIT_HELD = 75
"""Worker: another one works on this run."""

BACKOFF_S = (0.2, 0.5, 1.0)
"""Waits before the restarts that are allowed in a row without a new result."""
LOOK_S = 0.1
LOG_LIMIT = 4 << 20

_children: list[subprocess.Popen[bytes]] = []


def ensure_supervisor(device: str) -> bool:
    """Start a supervisor for the device, in a session of its own, when runs wait and none is there.

    Returns whether one was started. Call it after ``engine.runs.queue.enqueue``, and when the app starts.
    """
    _children[:] = [child for child in _children if child.poll() is None]
    if not queue.entries(device) or is_held(queue.device_lock(device)):
        return False
    with open_log(queue.device_dir(device) / "supervisor.log") as log:
        try:
            _children.append(_spawn("engine.runs.supervisor", device, log))
        except OSError as error:
            raise EvaldeskError(
                f"cannot start the supervisor of the device {device}: {error.strerror}",
                kept="The run stays in the queue.",
                remedy="Start evaldesk again when the system has room for a new process.",
            ) from error
    return True


def open_log(path: Path) -> IO[bytes]:
    """A log file to append to, readable by its owner only; an overlong one is set aside as ``<name>.1`` first."""
    try:
        if path.stat().st_size > LOG_LIMIT:
            path.replace(path.with_name(path.name + ".1"))
    except OSError:
        # No log yet, or one that cannot be moved: append to what is there.
        pass
    try:
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", buffering=0)
    except OSError:
        # A process must start without a log too, e.g. on a full disk.
        return Path(os.devnull).open("ab", buffering=0)


def _spawn(module: str, argument: str, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """A process that no terminal can end or see: own session, no input, output to ``log``."""
    command = [sys.executable, "-P", "-m", module, argument]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True)


class Supervisor:
    """Drains one device's queue; the caller holds the device's lock, which is released at the end."""

    def __init__(self, device: str, lock: FileLock) -> None:
        self.device = device
        self.lock = lock
        self.stopping = False
        self.child: subprocess.Popen[bytes] | None = None

    def stop(self, *_: object) -> None:
        """The system ends: pass it on to the worker and leave the queue as it is for the next start."""
        self.stopping = True
        if self.child is not None:
            self.child.terminate()

    def drain(self) -> None:
        """Carry out the queue's first run until the queue is empty."""
        while not self.stopping:
            with queue.lock_queue(self.device):
                waiting = queue.entries(self.device)
                if not waiting:
                    # Released while nobody can enqueue: who comes next finds the lock free and starts a supervisor.
                    self.lock.release()
                    return
            try:
                self.carry_out(waiting[0])
            except (EvaldeskError, OSError) as error:
                # A run whose files this user may not touch must not hold up the others.
                log(f"{waiting[0].run_dir.path}: {error}")
                self.leave(waiting[0])

    def carry_out(self, entry: QueueEntry) -> None:
        """Work on one run until it leaves the queue, somebody else works on it, or the supervisor shall stop."""
        run_dir = entry.run_dir
        crashes = 0
        while not self.stopping:
            if not run_dir.path.is_dir():
                log(f"{run_dir.path} is gone")
                self.leave(entry)
                return
            if is_held(run_dir.lock):
                self.wait_for_orphan(run_dir)
                return
            if read_control(run_dir) is not Control.RUN and self.settle(entry):
                return
            lines = count_lines(run_dir.results)
            log_start = _size(run_dir.log)
            code = self.work(run_dir)
            if self.stopping:
                return
            status = read_state(run_dir).status
            if code == EXIT_HELD:
                self.wait_for_orphan(run_dir)
                return
            if code == EXIT_FAILED:
                if status is not RunStatus.FAILED:
                    self.fail(entry, last_line(run_dir.log, log_start) or "the worker could not start")
                self.leave(entry)
                return
            if code == EXIT_INTERRUPTED or (code == EXIT_ENDED and not status.is_active):
                self.leave(entry)
                return
            if read_control(run_dir) is not Control.RUN:
                # It was told to stop and died before it could say that it did: nothing is left to start it for.
                continue
            crashes = 0 if count_lines(run_dir.results) > lines else crashes + 1
            reason = f"the worker {_ending(code)}"
            log(f"{run_dir.path}: {reason}, {crashes} times without a new result")
            if crashes > len(BACKOFF_S):
                line = last_line(run_dir.log, log_start)
                last = f"; the last line of its log: {line}" if line else ""
                self.fail(entry, f"{reason}, {crashes} times in a row without a new result{last}")
                self.leave(entry)
                return
            self.rest(BACKOFF_S[max(0, crashes - 1)], run_dir)
            if not queue.ticket_of(run_dir, self.device):
                return

    def work(self, run_dir: RunDir) -> int:
        """Start a worker and wait for its end; its exit code, negative for a signal."""
        with open_log(run_dir.log) as worker_log:
            try:
                self.child = _spawn("engine.runs.worker", os.fspath(run_dir.path), worker_log)
            except OSError as error:
                log(f"cannot start a worker: {error}")
                return 1
        if self.stopping:
            self.child.terminate()
        code = self.child.wait()
        self.child = None
        return code

    def wait_for_orphan(self, run_dir: RunDir) -> None:
        """A worker whose supervisor was killed goes on by itself; starting a second one would do its work twice."""
        log(f"{run_dir.path}: waiting for the worker that is already there")
        while not self.stopping and is_held(run_dir.lock):
            time.sleep(LOOK_S)

    def rest(self, seconds: float, run_dir: RunDir) -> None:
        """Wait before a restart, unless the user wants something else of the run meanwhile."""
        until = time.monotonic() + seconds
        while not self.stopping and time.monotonic() < until and read_control(run_dir) is Control.RUN:
            time.sleep(LOOK_S)

    def leave(self, entry: QueueEntry) -> None:
        """Take the run out of the queue, unless somebody asked for it again since it was started."""
        queue.remove(entry.run_dir, self.device, ticket=entry.ticket)

    def settle(self, entry: QueueEntry) -> bool:
        """Write that the run is paused or cancelled, as the user wants it, for a worker that is not there; whether so."""
        lock = try_lock(entry.run_dir.lock)
        if lock is None:
            return False
        with lock:
            stopped = {Control.PAUSE: RunStatus.PAUSED, Control.CANCEL: RunStatus.CANCELLED}
            status = stopped.get(read_control(entry.run_dir))
            if status is None:
                return False
            state, remaining = _recounted(entry.run_dir)
            status = status if remaining else RunStatus.DONE
            scratch.clear(entry.run_dir)
            write_state_at_any_cost(entry.run_dir, replace(state, status=status, message="", updated_at=time.time()))
        self.leave(entry)
        return True

    def fail(self, entry: QueueEntry, message: str) -> None:
        """Write that the run failed, for a worker that could not."""
        lock = try_lock(entry.run_dir.lock)
        if lock is None:
            return
        with lock:
            state, _ = _recounted(entry.run_dir)
            scratch.clear(entry.run_dir)
            failed = replace(state, status=RunStatus.FAILED, message=message, updated_at=time.time())
            write_state_at_any_cost(entry.run_dir, failed)
        try:
            said = read_description(entry.run_dir)
        except EvaldeskError:
            return
        if why := run_hook(entry.run_dir, failed, title=said.title, workspace=said.workspace):
            log(why)


def _recounted(run_dir: RunDir) -> tuple[RunState, int]:
    """The run's state with its counters as plan and spool tell, and how many requests have no result."""
    try:
        requests = read_plan(run_dir)
    except EvaldeskError:
        requests = None
    return recounted(read_state(run_dir), stream_results(run_dir.results), requests)


def last_line(path: Path, start: int = 0) -> str:
    """The last line with something in it that was written after byte ``start``, printable and at most 300 characters."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(start if start <= size else 0, size - 8192))
            text = file.read(8192).decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(sign if sign.isprintable() else "?" for sign in lines[-1])[:300] if lines else ""


def log(text: str) -> None:
    """A dated line on stderr, which is the log of a supervisor or worker."""
    try:
        print(time.strftime("%Y-%m-%d %H:%M:%S"), text, file=sys.stderr, flush=True)
    except OSError:
        # A full disk refuses the log first; the run's state still says what happened.
        pass


def _ending(code: int) -> str:
    if code == -signal.SIGKILL:
        return "was killed (signal 9; the system does that when memory runs out)"
    return f"was ended by signal {-code}" if code < 0 else f"ended unexpectedly (exit code {code})"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def main(arguments: Sequence[str]) -> int:
    """Drain the queue of the device named by the only argument; a second supervisor ends at once and quietly."""
    if len(arguments) != 1:
        print("usage: python -P -m engine.runs.supervisor DEVICE", file=sys.stderr)
        return 2
    try:
        lock = try_lock(queue.device_lock(arguments[0]))
        if lock is None:
            return 0
        supervisor = Supervisor(arguments[0], lock)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, supervisor.stop)
        supervisor.drain()
    except EvaldeskError as error:
        log(str(error))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
