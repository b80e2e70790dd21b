"""The worker's side of state.json: written on every change of status, a few times a second, and as a heartbeat.

A thread of its own beats, because loading a model and waiting for it block the worker's only other thread.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from engine.errors import EvaldeskError
from engine.runs.protocol import Control, RunDir, RunState, RunStatus
from engine.runs.states import read_control, write_state, write_state_at_any_cost

EVERY_S = 0.33
BEAT_S = 1.0
LOOK_S = 0.2


class Heartbeat:
    """Keeps state.json true while the worker works. Create it in the main thread, with the run's lock held.

    ``give_up(status, message)`` is called from the beating thread when the user or the system wants the run to
    stop while the model is still loading, which nothing can interrupt; it must not return.
    """

    def __init__(self, run_dir: RunDir, state: RunState, give_up: Callable[[RunStatus, str], None]) -> None:
        self._run_dir = run_dir
        self._state = replace(state, pid=os.getpid(), host=socket.gethostname())
        self._give_up = give_up
        self._guard = threading.RLock()
        self._written = float("-inf")
        self._refused: EvaldeskError | None = None
        self._ended = False
        self.may_give_up = False
        """Whether the worker has counted what is there, so that ``give_up`` can tell how far the run is."""
        self.terminated = False
        """Whether the system asked the worker to end (SIGTERM or SIGINT)."""
        self._wake, self._signalled = socket.socketpair()
        self._wake.setblocking(False)
        self._signalled.setblocking(False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        # The C-level handler writes the signal's number even while the main thread is stuck in a library.
        signal.set_wakeup_fd(self._signalled.fileno(), warn_on_full_buffer=False)
        self.say(state)
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    @property
    def state(self) -> RunState:
        return self._state

    def wants(self, status: RunStatus, message: str) -> bool:
        """Whether ``say`` would do more than take note: counting for it is not free."""
        changed = (status, message) != (self._state.status, self._state.message)
        return changed or self._refused is not None or time.monotonic() - self._written >= EVERY_S

    def say(self, state: RunState) -> None:
        """Take the new state; written at once when status or message changed, else at most every third of a second.

        Raises EvaldeskError when the disk refuses, also for a heartbeat that was refused before.
        """
        with self._guard:
            wanted = self.wants(state.status, state.message)
            self._state = replace(state, pid=self._state.pid, host=self._state.host)
            if wanted:
                self._write()
            if self._refused is not None:
                raise self._refused

    def end(self, state: RunState) -> None:
        """Write the last state of this start; nothing is written afterwards."""
        with self._guard:
            if not self._ended:
                self._ended = True
                final = replace(state, pid=self._state.pid, host=self._state.host, updated_at=time.time())
                write_state_at_any_cost(self._run_dir, final)

    def _write(self) -> None:
        if self._ended:
            return
        try:
            write_state(self._run_dir, replace(self._state, updated_at=time.time()))
        except EvaldeskError as error:
            self._refused = error
        self._written = time.monotonic()

    def _beat(self) -> None:
        while not self._ended:
            if select.select([self._wake], [], [], LOOK_S)[0]:
                self._wake.recv(64)
                self.terminated = True
            with self._guard:
                if time.monotonic() - self._written >= BEAT_S:
                    self._write()
                loading = self.may_give_up and self._state.status is RunStatus.LOADING and not self._ended
                if loading:
                    self._stop_loading()

    def _stop_loading(self) -> None:
        control = read_control(self._run_dir)
        if control is Control.CANCEL:
            self._give_up(RunStatus.CANCELLED, "cancelled while the model was loading")
        elif control is Control.PAUSE:
            self._give_up(RunStatus.PAUSED, "paused while the model was loading")
        elif self.terminated:
            self._give_up(RunStatus.INTERRUPTED, "the system ended the worker while the model was loading")
