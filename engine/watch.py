"""Watching a workspace while it is open: results come in, inbox requests are answered, changes are told.

Nothing on the event loop: one thread for this, and one that compacts runs that are done. Only files that changed are
read, so an idle workspace costs a few ``stat`` calls.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from engine import kept_figures, orphans, requests
from engine.change import Change
from engine.errors import EvaldeskError
from engine.runs import compaction, planning
from engine.runs.ingest import Ingested, ingest
from engine.runs.protocol import RunDir, RunState
from engine.runs.states import observed_state
from engine.store import runs
from engine.store.store import Store

TICK_S = 0.35
"""Twice to four times a second is as often as a person can follow, and what a slow line can carry."""
_CARE_S = 5.0

log = logging.getLogger(__name__)


class Watch:
    """Runs until ``stop``; ``on_change`` is called in the watching thread."""

    def __init__(self, store: Store, on_change: Callable[[Change], None]) -> None:
        self._store = store
        self._on_change = on_change
        self._stop = threading.Event()
        self._seen: dict[str, tuple[int, ...]] = {}
        self._cared = 0.0
        self._told: set[str] = set()
        self._states: Mapping[str, RunState] = {}
        self._compacted: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._compacting = threading.Thread(target=self._compact_all, name="compaction", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._compacting.start()

    def stop(self) -> None:
        """Ask the threads to end and wait for them."""
        self._stop.set()
        for thread in (self._thread, self._compacting):
            if thread.is_alive():
                thread.join()

    def _compact_all(self) -> None:
        """Compact the runs that are done, one after the other, in a thread of its own: a large one takes seconds."""
        while not self._stop.wait(_CARE_S):
            try:
                done = self._store.submit_background(runs.done_ids).result()
                for run_id in done:
                    if run_id in self._compacted or self._stop.is_set():
                        continue
                    self._compacted.add(run_id)
                    if not compaction.compact(RunDir(self._store.workspace.runs / run_id), self._stop.is_set):
                        self._compacted.discard(run_id)
            except Exception as error:  # noqa: BLE001
                # The run keeps its files, which only take space; it has its turn again at the next start.
                log.warning("a run was not compacted: %s", error)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._tick()
                self._tell(self._store.take_trouble())
            except EvaldeskError as error:
                log.warning("%s", error)
                self._tell(str(error))
            except Exception as error:
                # Whatever it was, the next look goes on: without this thread no result would come in any more.
                log.exception("watching failed")
                self._tell(f"something went wrong in the background ({type(error).__name__}: {error})")
            self._stop.wait(TICK_S)

    def _tell(self, problem: str) -> None:
        """Tell a problem, each only once."""
        if problem and problem not in self._told and not self._stop.is_set():
            self._told.add(problem)
            self._on_change(Change(states=self._states, problem=problem))

    def _tick(self) -> None:
        answered = requests.serve_inbox(self._store)
        unfinished = self._store.submit_background(runs.unfinished).result()
        states: dict[str, RunState] = {}
        moved = bool(answered)
        for run in unfinished:
            run_dir = RunDir(self._store.workspace.runs / run.run_id)
            if run_dir.state.exists() or (run.status != runs.WAITING and not run_dir.path.is_dir()):
                states[run.run_id] = observed_state(run_dir)
            mark = (_size(run_dir), *_state_mark(states.get(run.run_id)))
            moved |= self._seen.get(run.run_id) != mark
            self._seen[run.run_id] = mark
        self._states = states
        if not moved and time.monotonic() - self._cared < _CARE_S:
            return
        brought = self._store.submit_background(ingest, self._store.workspace).result() if unfinished else Ingested()
        for problem in brought.problems.values():
            self._tell(problem)
        if brought.changed:
            self._store.submit_background(kept_figures.refresh).result()
        if time.monotonic() - self._cared >= _CARE_S:
            self._care()
        if moved or brought.gained or brought.changed:
            self._on_change(Change(brought.gained, bool(brought.changed) or moved, bool(answered), states))

    def _care(self) -> None:
        self._cared = time.monotonic()
        try:
            self._store.submit_background(orphans.adopt, self._store.workspace).result()
            self._store.submit_background(kept_figures.refresh).result()
        except EvaldeskError as error:
            self._tell(str(error))
        for run in self._store.submit_background(runs.unfinished).result():
            run_dir = RunDir(self._store.workspace.runs / run.run_id)
            if run.status == "queued" and run_dir.plan.exists():
                try:
                    planning.ensure_queued(run_dir, run.device)
                except EvaldeskError as error:  # this run's own fault; the others go on
                    self._tell(str(error))


def _size(run_dir: RunDir) -> int:
    try:
        return run_dir.results.stat().st_size
    except OSError:
        return 0


def _state_mark(state: RunState | None) -> tuple[int, ...]:
    return (hash(str(state.status)), state.done, state.failed, int(state.updated_at)) if state else ()
