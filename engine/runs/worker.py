"""The worker: ``python -P -m engine.runs.worker RUN_DIR`` carries out one run, requests in, results out.

It knows neither the database nor the domain, and may be killed at any byte: what is in the spool is finished,
everything else is asked of the model again at the next start.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.backends import load_backend
from engine.backends.gpu_memory import gpu_facts
from engine.backends.kernels import loading_note
from engine.backends.protocol import Backend, BackendBroken, Completion, ModelInfo, Request
from engine.errors import EvaldeskError
from engine.runs import compaction, queue, scratch
from engine.runs.finish_hook import run_hook
from engine.runs.gpu_wait import wait_for_gpu_memory
from engine.runs.heartbeat import Heartbeat
from engine.runs.locks import FileLock, try_lock
from engine.runs.plan_file import read_plan
from engine.runs.progress import Progress
from engine.runs.protocol import Control, RunDir, RunStatus
from engine.runs.siblings import Siblings
from engine.runs.spool import Spool, stream_results
from engine.runs.states import RunDescription, read_control, read_description, read_state, write_state_at_any_cost
from engine.runs.supervisor import (
    EXIT_BROKEN,
    EXIT_ENDED,
    EXIT_FAILED,
    EXIT_HELD,
    EXIT_INTERRUPTED,
    ensure_supervisor,
    log,
)

ATTEMPTS = 3
"""How often a request is tried in one start before its error is its result."""
WAIT_S = 0.1
CANCEL_GRACE_S = 5.0
CLOSE_GRACE_S = 20.0
STOPPED_CLOSE_GRACE_S = 2.0
"""The same for a run that shall stop now: what its model still generates is thrown away, so nothing is worth a wait."""
NICENESS = 19
SESSION_NICENESS = 5
"""A third of what a session at work gets: keys come first, and a run on a busy machine still gets on."""


class Worker:
    """One start of one run; the caller holds the run's lock."""

    def __init__(self, run_dir: RunDir, lock: FileLock) -> None:
        self.run_dir = run_dir
        self.lock = lock
        self.progress = Progress()
        self.attempts: dict[str, int] = {}
        self.siblings = Siblings(run_dir)
        self.pending: deque[Request] = deque()
        self.in_flight: dict[str, Request] = {}
        self.has_dropped = False
        """Whether the backend was told to drop what has not started; until it has given back the rest, nobody knows what that was."""
        self.description: RunDescription | None = None
        self.ticket = ""
        self.spool: Spool | None = None
        self.counted = False
        self.served_by = ""
        before = read_state(run_dir)
        # The counts of the starts before stay until plan and spool are counted: a run never looks as if all were lost.
        state = replace(
            before,
            status=RunStatus.LOADING,
            message="reading the plan",
            in_flight=0,
            tokens_per_s=0.0,
            eta_s=None,
            starts=before.starts + 1,
            started_at=before.started_at or time.time(),
            extra={},
        )
        self.heartbeat = Heartbeat(run_dir, state, self.give_up)

    def run(self) -> int:
        """Carry the run on as far as it goes; returns the exit code."""
        backend: Backend | None = None
        try:
            self.description = read_description(self.run_dir)
            self.ticket = queue.ticket_of(self.run_dir, self.description.device)
            compaction.expand(self.run_dir)
            self.spool = Spool(self.run_dir.results)
            for line in stream_results(self.run_dir.results):
                self.progress.count(line)
                self.served_by = line["served_by"] or self.served_by
            self.refill()
            self.counted = True
            status = self.wanted()
            model = self.description.model
            if status is None and self.pending and model.wait_gpu_memory:
                status = self.wait_for_gpu(model.wait_gpu_memory)
            if status is None and self.pending:
                scratch.make(self.run_dir)
                note = loading_note(model.backend)
                self.say(RunStatus.LOADING, f"loading {model.name}" + (f" ({note})" if note else ""))
                self.heartbeat.may_give_up = True
                backend = load_backend(model.backend)
                info = backend.load(model)
                self.check(self.description, info)
                status = self.work(backend, info)
            if not self.refill():
                # Nothing is left to pause or to cancel.
                status = RunStatus.DONE
            message = ""
        except BackendBroken as error:
            # No word of how the run ended, for it goes on: the supervisor starts a new process after this one.
            log(str(error))
            return EXIT_BROKEN
        except EvaldeskError as error:
            status, message = RunStatus.FAILED, str(error)
        status = status or RunStatus.DONE
        if backend is not None:
            self.close(backend, status, message)
        return self.end(status, message)

    def wanted(self) -> RunStatus | None:
        """The status that the user or the system wants the run to stop with, or None to go on."""
        if (control := read_control(self.run_dir)) is Control.CANCEL:
            return RunStatus.CANCELLED
        if control is Control.PAUSE:
            return RunStatus.PAUSED
        return RunStatus.INTERRUPTED if self.heartbeat.terminated else None

    def wait_for_gpu(self, gib: float) -> RunStatus | None:
        """Wait until so much GPU memory is free; what the run shall stop with instead, if it shall."""

        def say(message: str) -> None:
            self.say(RunStatus.LOADING, message)

        return wait_for_gpu_memory(gib, self.wanted, say, log)

    def refill(self) -> bool:
        """Take from the plan what has no result yet, here or in another run; whether there is any."""
        requests = read_plan(self.run_dir)
        open_keys = {request.key for request in requests} - self.progress.finished
        elsewhere = self.siblings.answered(open_keys)
        requests = [request for request in requests if request.key not in elsewhere]
        self.progress.plan(requests)
        self.pending = deque(request for request in requests if request.key not in self.progress.finished)
        return bool(self.pending)

    def check(self, description: RunDescription, info: ModelInfo) -> None:
        """Raise EvaldeskError when another model was loaded than the requests were planned for."""
        expected = description.expected_fingerprint
        if expected and expected != info.fingerprint:
            raise EvaldeskError(
                f"the model that was loaded is not the one this run was planned for: its fingerprint is "
                f"{info.fingerprint[:16]}, planned was {expected[:16]}",
                where=description.model.path,
                kept="Results so far are kept, nothing was generated with the other model.",
                remedy="Put the planned file back and resume, or plan a new run.",
            )

    def work(self, backend: Backend, info: ModelInfo) -> RunStatus:
        """Submit and collect until the plan is finished or someone wants the run to stop."""
        facts = {
            "backend": info.backend,
            "backend_version": info.backend_version,
            "context_length": info.context_length,
            "parallel": info.parallel,
            "features": sorted(info.features),
            **info.facts,
        }
        self.heartbeat.say(replace(self.heartbeat.state, status=RunStatus.RUNNING, message="", extra=facts))
        self.progress.begin()
        window = 2 * max(1, info.parallel)
        stop_at: float | None = None
        while True:
            if self.has_dropped and backend.in_flight == 0:
                self.put_back()
            wanted = self.wanted()
            if wanted is None and self.has_dropped:
                # It shall go on after all, once what was dropped is known.
                stop_at = None
            elif wanted is None:
                if not self.pending and not self.in_flight and not self.refill():
                    return RunStatus.DONE
                self.submit(backend, window)
                stop_at = None
            elif not self.in_flight:
                return wanted
            elif not self.has_dropped:
                # What waits for a rate limit or its turn may wait for minutes.
                backend.cancel()
                self.has_dropped = True
            if wanted is not None and wanted is not RunStatus.PAUSED:
                # Cancelled or told to end by the system: a few seconds, not as long as a long answer takes.
                if stop_at is None:
                    stop_at = time.monotonic() + CANCEL_GRACE_S
                if time.monotonic() >= stop_at or backend.in_flight == 0:
                    self.collect(backend, info, 0.0, wanted)
                    return wanted
            self.collect(backend, info, WAIT_S, wanted)
            self.say(RunStatus.RUNNING, {RunStatus.PAUSED: "pausing", None: ""}.get(wanted, "stopping"))

    def submit(self, backend: Backend, window: int) -> None:
        """Fill the backend up to ``window`` requests, in plan order."""
        batch = [self.pending.popleft() for _ in range(min(window - len(self.in_flight), len(self.pending)))]
        if batch:
            self.in_flight.update((request.key, request) for request in batch)
            backend.submit(batch)

    def put_back(self) -> None:
        """What the backend has dropped is asked again when the run goes on, before what comes later in the plan."""
        self.pending.extendleft(reversed(self.in_flight.values()))
        self.in_flight.clear()
        self.has_dropped = False

    def collect(self, backend: Backend, info: ModelInfo, timeout: float, stopping: RunStatus | None) -> None:
        """Write down what the backend finished; errors are tried again, or left for the next start when stopping."""
        completions: Sequence[Completion] = backend.results(timeout)
        if not completions and backend.in_flight == 0 and not self.has_dropped:
            completions = [Completion(key, error="the backend lost this request") for key in self.in_flight]
        lines: list[Mapping[str, Any]] = []
        changed: EvaldeskError | None = None
        for completion in completions:
            changed = changed or self.check_served(completion)
            if changed is not None:
                # What came before it in this batch is written down first.
                continue
            request = self.in_flight.pop(completion.key, None)
            if request is None:
                continue
            if completion.error:
                self.attempts[request.key] = tries = self.attempts.get(request.key, 0) + 1
                if stopping is not None and stopping is not RunStatus.PAUSED:
                    continue
                if tries < ATTEMPTS and not completion.is_final:
                    self.pending.appendleft(request)
                    continue
            lines.append(result_line(completion, info))
        if lines and self.spool is not None:
            self.spool.append(lines)
            for line in lines:
                self.progress.count(line)
        if changed is not None:
            raise changed

    def check_served(self, completion: Completion) -> EvaldeskError | None:
        """The error for a reply that another model, or snapshot of it, gave than those before in this run."""
        before, now = self.served_by, completion.served_by
        self.served_by = before or now
        if not now or now == self.served_by:
            return None
        return EvaldeskError(
            f"the server answers with {now!r} now, and answered with {before!r} before: replies of two models would be mixed",
            where=self.description.model.path if self.description else "",
            kept=f"The replies of {before!r} are kept, none of {now!r} was written down.",
            remedy=f"To go on with the new one, add the server again with --snapshot {now} and plan a new run.",
        )

    def say(self, status: RunStatus, message: str) -> None:
        """Bring state.json up to date, if it is time to."""
        if not self.heartbeat.wants(status, message):
            return
        state = replace(self.heartbeat.state, status=status, message=message, in_flight=len(self.in_flight))
        # What the GPUs here do says nothing of a model that a server runs.
        on_server = self.description is not None and self.description.model.backend == "openai_api"
        if not on_server and (gpus := gpu_facts()):
            state = replace(state, extra=state.extra | {"gpus": gpus})
        self.heartbeat.say(self.progress.into(state))

    def close(self, backend: Backend, status: RunStatus, message: str) -> None:
        """Free the model; one that does not let go is ended with the process, which says first how the run ended.

        A process that went without that word would count as crashed, and be started again only to end once more.
        """
        stopped = status in (RunStatus.CANCELLED, RunStatus.INTERRUPTED)
        grace = STOPPED_CLOSE_GRACE_S if stopped else CLOSE_GRACE_S
        watchdog = threading.Timer(grace, self.give_up, (status, message))
        watchdog.daemon = True
        watchdog.start()
        backend.close()
        watchdog.cancel()

    def end(self, status: RunStatus, message: str) -> int:
        """Write the last state, leave the queue, and see to it that the queue goes on."""
        state = replace(self.heartbeat.state, status=status, message=message, in_flight=0)
        if self.counted:
            state = self.progress.into(state)
        self.heartbeat.end(replace(state, tokens_per_s=0.0, eta_s=None))
        scratch.clear(self.run_dir)
        if message:
            log(message)
        if status is RunStatus.INTERRUPTED:
            # The supervisor decides whether the run leaves the queue; when the whole system stops, it stays.
            return EXIT_INTERRUPTED
        if self.description is not None:
            device = self.description.device
            try:
                if self.ticket:
                    queue.remove(self.run_dir, device, ticket=self.ticket)
                self.lock.release()
                self.tell()
                ensure_supervisor(device)
            except EvaldeskError as error:
                log(str(error))
        return EXIT_FAILED if status is RunStatus.FAILED else EXIT_ENDED

    def tell(self) -> None:
        """Start what the user wants done when a run has ended."""
        assert self.description is not None
        said = self.description
        if why := run_hook(self.run_dir, read_state(self.run_dir), title=said.title, workspace=said.workspace):
            log(why)

    def give_up(self, status: RunStatus, message: str) -> None:
        """End the process from another thread, for the main one is stuck in loading a model or in letting it go."""
        os._exit(self.end(status, message))


def result_line(completion: Completion, info: ModelInfo) -> dict[str, Any]:
    """The line of the spool for one finished request."""
    return {
        "key": completion.key,
        "text": completion.text,
        "finish": completion.finish,
        "prompt_tokens": completion.prompt_tokens,
        "cached_tokens": completion.cached_tokens,
        "completion_tokens": completion.completion_tokens,
        "seconds": completion.seconds,
        "error": completion.error,
        "backend": info.backend,
        "backend_version": completion.served_by or info.backend_version,
        "served_by": completion.served_by,
        "cost": completion.extra.get("cost", 0.0),
        "likelihoods": completion.likelihoods,
        "at": time.time(),
    }


def step_back() -> None:
    """Give the terminal app the processor first, so that keys are answered while a model computes on the same cores."""
    os.nice(max(0, NICENESS - os.nice(0)))
    # Linux weighs whole sessions against each other before it looks at processes: this one is alone in its own.
    with contextlib.suppress(OSError), Path("/proc/self/autogroup").open("w", encoding="ascii") as autogroup:
        autogroup.write(str(SESSION_NICENESS))


def main(arguments: Sequence[str]) -> int:
    """Carry out the run in the directory named by the only argument; the exit code tells the supervisor why it ended."""
    if len(arguments) != 1:
        log("usage: python -P -m engine.runs.worker RUN_DIR")
        return 2
    step_back()
    run_dir = RunDir(Path(arguments[0]).resolve())
    if not run_dir.path.is_dir():
        log(f"{run_dir.path}: there is no such run")
        return EXIT_FAILED
    try:
        lock = try_lock(run_dir.lock)
    except (EvaldeskError, OSError) as error:
        log(str(error))
        write_state_at_any_cost(run_dir, replace(read_state(run_dir), status=RunStatus.FAILED, message=str(error)))
        return EXIT_FAILED
    if lock is None:
        log("another worker works on this run")
        return EXIT_HELD
    try:
        worker = Worker(run_dir, lock)
    except EvaldeskError as error:
        log(str(error))
        write_state_at_any_cost(run_dir, replace(read_state(run_dir), status=RunStatus.FAILED, message=str(error)))
        return EXIT_FAILED
    return worker.run()


if __name__ == "__main__":
    exit_code = 1
    try:
        exit_code = main(sys.argv[1:])
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        # Threads of a model library may never end; the process does.
        os._exit(exit_code)
