"""The files of a run, the one contract between the app, the supervisor, the worker and any other machine.

``runs/<run id>/`` holds run.json (what), plan.jsonl (one rendered request a line), results.jsonl
(append only, one finished request a line), siblings.json (how far the other spools were read when the run was planned),
state.json (replaced atomically), control (one word), worker.log, lock (flock of the worker) and, while a worker is
there, scratch/ (its temporary files). A run that is done has plan.jsonl.gz and results.jsonl.gz in their place (compaction).
Requests in, results out: nothing here knows the database or the domain, so a run can be killed at any byte and resumed,
or carried elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class RunStatus(StrEnum):
    """Where a run stands. The last four are final until someone resumes or restarts the run."""

    QUEUED = "queued"
    LOADING = "loading"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"

    @property
    def is_active(self) -> bool:
        """Queued, loading or running: the run goes on by itself."""
        return self in (RunStatus.QUEUED, RunStatus.LOADING, RunStatus.RUNNING)


class Control(StrEnum):
    """What the user wants of a run; the worker obeys between requests."""

    RUN = "run"
    PAUSE = "pause"
    CANCEL = "cancel"


@dataclass(frozen=True)
class RunDir:
    """Paths inside one run's directory."""

    path: Path

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def description(self) -> Path:
        return self.path / "run.json"

    @property
    def plan(self) -> Path:
        return self.path / "plan.jsonl"

    @property
    def results(self) -> Path:
        return self.path / "results.jsonl"

    @property
    def siblings(self) -> Path:
        return self.path / "siblings.json"

    @property
    def state(self) -> Path:
        return self.path / "state.json"

    @property
    def control(self) -> Path:
        return self.path / "control"

    @property
    def log(self) -> Path:
        return self.path / "worker.log"

    @property
    def scratch(self) -> Path:
        return self.path / "scratch"

    @property
    def lock(self) -> Path:
        return self.path / "lock"


@dataclass(frozen=True)
class RunState:
    """What state.json says: status and counters since the run's first start."""

    status: RunStatus
    planned: int = 0
    """Requests in plan.jsonl."""
    done: int = 0
    """Of those, finished without error."""
    failed: int = 0
    """Of those, given up with an error."""
    in_flight: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    """Of the replies over all starts, in the currency of the prices that were set; 0 without prices."""
    tokens_per_s: float = 0.0
    """Completion tokens a second over the last minute of this start; 0 when unknown."""
    eta_s: float | None = None
    message: str = ""
    """One line: what it waits for, or why it failed."""
    pid: int = 0
    host: str = ""
    starts: int = 0
    """How often a worker has started on this run."""
    started_at: float = 0.0
    """Seconds since the epoch, first start."""
    updated_at: float = 0.0
    extra: dict[str, object] = field(default_factory=dict)
