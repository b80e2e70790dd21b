"""Runs as the store knows them: what they are about, what they need, how far the spool was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from engine.errors import EvaldeskError
from engine.store.transaction import Transaction, now

# Its requests are pending in another run, so it has nothing of its own to generate.
WAITING = "waiting"
ACTIVE = ("queued", "loading", "running", WAITING)


@dataclass(frozen=True)
class Run:
    """One run. ``needed`` requests, of which ``cached`` had a result and ``awaited`` were pending elsewhere when it was planned."""

    run_id: str
    kind: str
    title: str
    criterion_id: str
    judge_id: str
    model_id: str
    device: str
    status: str
    needed: int
    cached: int
    awaited: int
    spool_offset: int = 0
    refused_lines: int = 0
    created_at: datetime | None = None
    finished_at: datetime | None = None
    sweep_id: str = ""

    @property
    def to_run(self) -> int:
        return self.needed - self.cached - self.awaited

    @property
    def is_active(self) -> bool:
        return self.status in ACTIVE


@dataclass(frozen=True)
class RunCase:
    """The case behind one request of a judge's run."""

    trace_id: str
    trace_version: int
    request_key: str


@dataclass(frozen=True)
class RunCell:
    """The prompt and the item (its position in the dataset) behind one request of a sweep's run."""

    prompt_id: str
    item: int
    request_key: str
    repeat: int = 0


_FIELDS = (
    "run_id, kind, title, criterion_id, judge_id, model_id, device, status, needed, cached, awaited, spool_offset, "
    "refused_lines, created_at, finished_at, sweep_id"
)


def add(tx: Transaction, run: Run, planned_keys: Sequence[str]) -> None:
    """Record a planned run with the keys that it generates itself; what it is about follows by ``add_cases`` or ``add_cells``.

    It is later than every run before, also where the clock was set back: the newest run is the one planned last.
    """
    latest = tx.value("SELECT max(created_at) FROM run")
    moment = now() if latest is None else max(now(), latest + timedelta(microseconds=1))
    tx.insert(
        "run", run_id=run.run_id, kind=run.kind, title=run.title, criterion_id=run.criterion_id, judge_id=run.judge_id,
        model_id=run.model_id, device=run.device, status=run.status, needed=run.needed, cached=run.cached,
        awaited=run.awaited, spool_offset=0, refused_lines=0, created_at=moment, finished_at=None, sweep_id=run.sweep_id,
    )  # fmt: skip
    claim(tx, run.run_id, planned_keys)


def add_cases(tx: Transaction, run_id: str, cases: Sequence[RunCase]) -> None:
    """The cases that a judge's run is about, in plan order."""
    tx.append(
        "run_case",
        ("run_id", "trace_id", "trace_version", "request_key", "position"),
        [(run_id, c.trace_id, c.trace_version, c.request_key, i) for i, c in enumerate(cases)],
    )


def add_cells(tx: Transaction, run_id: str, cells: Sequence[RunCell]) -> None:
    """The prompts and items that a sweep's run is about, in plan order."""
    tx.append(
        "run_cell",
        ("run_id", "prompt_id", "item", "request_key", "repeat", "position"),
        [(run_id, c.prompt_id, c.item, c.request_key, c.repeat, i) for i, c in enumerate(cells)],
    )


def claim(tx: Transaction, run_id: str, keys: Sequence[str]) -> None:
    """Note that these keys stand in the run's plan file."""
    tx.append("run_request", ("run_id", "request_key"), [(run_id, key) for key in keys])


def get(tx: Transaction, run_id: str) -> Run:
    """A run by its id, or by a beginning of it that no other run shares."""
    rows = tx.rows(
        f"SELECT {_FIELDS} FROM run WHERE run_id = ? OR starts_with(run_id, ?) ORDER BY run_id <> ?",
        run_id,
        run_id,
        run_id,
    )
    if not rows or (len(rows) > 1 and rows[0][0] != run_id):
        raise EvaldeskError(
            f"{'several runs begin' if rows else 'no run begins'} with {run_id!r}", remedy="evaldesk runs lists them."
        )
    return Run(*rows[0])


def everyone(tx: Transaction) -> list[Run]:
    """All runs, newest first."""
    return [Run(*row) for row in tx.rows(f"SELECT {_FIELDS} FROM run ORDER BY created_at DESC, run_id DESC")]


def unfinished(tx: Transaction) -> list[Run]:
    """Runs that may still bring results: everything but done and cancelled ones, oldest first."""
    rows = tx.rows(f"SELECT {_FIELDS} FROM run WHERE finished_at IS NULL ORDER BY created_at, run_id")
    return [Run(*row) for row in rows]


def done_ids(tx: Transaction) -> list[str]:
    """The runs that are done, oldest first."""
    return [row[0] for row in tx.rows("SELECT run_id FROM run WHERE status = 'done' ORDER BY created_at, run_id")]


def set_status(tx: Transaction, run_id: str, status: str, *, finished: bool) -> None:
    """Keep the status that the run's state file or its cases tell."""
    tx.execute(
        "UPDATE run SET status = ?, finished_at = ? WHERE run_id = ?", status, now() if finished else None, run_id
    )


def reopen(tx: Transaction, run_id: str) -> None:
    """A cancelled run goes on: its spool is read again."""
    tx.execute("UPDATE run SET status = 'queued', finished_at = NULL WHERE run_id = ? AND status <> 'done'", run_id)


def advance(tx: Transaction, run_id: str, offset: int, refused_lines: int) -> None:
    """Note how far the spool was read, in the transaction that holds its rows."""
    tx.execute(
        "UPDATE run SET spool_offset = ?, refused_lines = refused_lines + ? WHERE run_id = ?",
        offset,
        refused_lines,
        run_id,
    )


def of_judge(tx: Transaction, judge_id: str) -> list[Run]:
    """The runs of one judge version, newest first."""
    return [
        Run(*row) for row in tx.rows(f"SELECT {_FIELDS} FROM run WHERE judge_id = ? ORDER BY created_at DESC", judge_id)
    ]


def pending_keys(tx: Transaction) -> set[str]:
    """Keys in the plan of an active run that have no result yet."""
    return {row[0] for row in tx.rows(_PENDING)}


def missing_keys(tx: Transaction, run_id: str) -> list[str]:
    """Keys of the run without a judgement or outcome that no active run is going to generate."""
    rows = tx.rows(
        f"SELECT request_key FROM ({_OPEN}) WHERE request_key NOT IN ({_PENDING}) ORDER BY position", run_id, run_id
    )
    return [row[0] for row in rows]


# What of a run waits for its result; its id goes in twice.
_OPEN = (
    "SELECT c.request_key, c.position FROM run_case c "
    "LEFT JOIN judgement j ON j.run_id = c.run_id AND j.trace_id = c.trace_id WHERE c.run_id = ? AND j.seq IS NULL "
    "UNION ALL SELECT c.request_key, c.position FROM run_cell c "
    "LEFT JOIN outcome o ON o.run_id = c.run_id AND o.prompt_id = c.prompt_id AND o.item = c.item AND o.repeat = c.repeat "
    "WHERE c.run_id = ? AND o.seq IS NULL"
)

_PENDING = (
    "SELECT r.request_key FROM run_request r JOIN run USING (run_id) LEFT JOIN completion c "
    "ON c.request_key = r.request_key AND c.run_id = r.run_id "
    f"WHERE run.status IN {ACTIVE} AND c.request_key IS NULL"
)


def cases(tx: Transaction, run_id: str) -> list[RunCase]:
    """The cases of a run in plan order."""
    rows = tx.rows(
        "SELECT trace_id, trace_version, request_key FROM run_case WHERE run_id = ? ORDER BY position", run_id
    )
    return [RunCase(*row) for row in rows]


def cells(tx: Transaction, run_id: str) -> list[RunCell]:
    """The cells of a sweep's run in plan order."""
    rows = tx.rows(
        "SELECT prompt_id, item, request_key, repeat FROM run_cell WHERE run_id = ? ORDER BY position", run_id
    )
    return [RunCell(*row) for row in rows]


def of_sweep(tx: Transaction, sweep_id: str) -> list[Run]:
    """The runs of one sweep, newest first."""
    rows = tx.rows(f"SELECT {_FIELDS} FROM run WHERE sweep_id = ? ORDER BY created_at DESC, run_id DESC", sweep_id)
    return [Run(*row) for row in rows]


def newest_of_model(tx: Transaction, model_id: str, kind: str, limit: int) -> list[str]:
    """Ids of runs of the model that generated something themselves, those of this kind first, newest first."""
    rows = tx.rows(
        "SELECT run_id FROM run WHERE model_id = ? AND run_id IN (SELECT run_id FROM completion WHERE error = '') "
        "ORDER BY kind <> ?, created_at DESC, run_id DESC LIMIT ?",
        model_id, kind, limit,
    )  # fmt: skip
    return [row[0] for row in rows]


def requests_of(tx: Transaction, run_id: str) -> dict[str, str]:
    """The request text of every case of a run, by trace id."""
    rows = tx.rows(
        "SELECT c.trace_id, t.request FROM run_case c JOIN trace t ON t.trace_id = c.trace_id AND t.version = c.trace_version "
        "WHERE c.run_id = ?",
        run_id,
    )
    return dict(rows)


def open_requests(tx: Transaction, run_id: str) -> int:
    """How many of the run's cases or cells have no judgement or outcome yet."""
    return int(tx.value(f"SELECT count(*) FROM ({_OPEN})", run_id, run_id))


def figures(tx: Transaction, run_id: str) -> dict[str, Any]:
    """Sums over the run's own completions: tokens, cached tokens, seconds."""
    row = tx.row(
        "SELECT count(*), sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens), sum(seconds) FROM completion WHERE run_id = ?",
        run_id,
    )
    assert row is not None
    names = ("completions", "prompt_tokens", "cached_tokens", "completion_tokens", "seconds")
    return dict(zip(names, (value or 0 for value in row), strict=True))
