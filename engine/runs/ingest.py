"""Ingest: results go from the spools into the store, each exactly once.

The offset up to which a spool was read is committed in the same transaction as the rows, so a
crash at any moment neither loses nor doubles one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.errors import EvaldeskError
from engine.runs.protocol import RunDir, RunStatus
from engine.runs.spool import read_results
from engine.runs.states import observed_state, read_state
from engine.store import completions, results, runs
from engine.store.runs import Run
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace

BATCH_BYTES = 2 << 20
_FINAL = (RunStatus.DONE, RunStatus.FAILED, RunStatus.CANCELLED)


@dataclass(frozen=True)
class Ingested:
    """What one pass brought: runs with new judgements or outcomes, runs whose status changed, whether a spool has more to give."""

    gained: frozenset[str] = field(default_factory=frozenset)
    changed: frozenset[str] = field(default_factory=frozenset)
    more: bool = False
    problems: Mapping[str, str] = field(default_factory=dict)
    """Runs whose results cannot be read, each with the reason."""


def ingest(tx: Transaction, workspace: Workspace) -> Ingested:
    """One pass over all unfinished runs, a bounded piece of each spool."""
    all_gained: set[str] = set()
    changed: set[str] = set()
    more = False
    problems: dict[str, str] = {}
    for run in runs.everyone(tx):
        if run.status == RunStatus.CANCELLED and _goes_on(RunDir(workspace.runs / run.run_id)):
            runs.reopen(tx, run.run_id)
            changed.add(run.run_id)
    for run in runs.unfinished(tx):
        run_dir = RunDir(workspace.runs / run.run_id)
        # The state is read before the spool: a run seen as done has its last line in the spool already.
        is_deleted = run.status != runs.WAITING and not run_dir.path.is_dir()
        status = str(observed_state(run_dir).status) if is_deleted or run_dir.state.exists() else run.status
        try:
            lines, offset = read_results(run_dir.results, run.spool_offset, limit=BATCH_BYTES)
        except EvaldeskError as error:  # this run's own fault; the others go on
            problems[run.run_id] = str(error)
            continue
        gained, complete = _take_in(tx, run, run_dir, lines, offset)
        all_gained |= gained
        more |= not complete
        if complete and _settle(tx, run, status, is_deleted):
            changed.add(run.run_id)
    return Ingested(frozenset(all_gained), frozenset(changed), more, problems)


def _goes_on(run_dir: RunDir) -> bool:
    """Whether a run that was cancelled has been resumed since, by its files alone."""
    return run_dir.state.exists() and read_state(run_dir).status is not RunStatus.CANCELLED


def _take_in(
    tx: Transaction, run: Run, run_dir: RunDir, lines: list[dict[str, Any]], offset: int
) -> tuple[set[str], bool]:
    if offset == run.spool_offset and not lines:
        return set(), True
    good = [line for line in lines if not line.get("refused")]
    new = completions.add(tx, run.run_id, good)
    gained = results.derive(tx, new)
    runs.advance(tx, run.run_id, offset, len(lines) - len(good))
    rest, _ = read_results(run_dir.results, offset, limit=1)
    return gained, not rest


def _settle(tx: Transaction, run: Run, status: str, is_deleted: bool) -> bool:
    left = runs.open_requests(tx, run.run_id)
    final = False
    if not left:
        status, final = str(RunStatus.DONE), True
    elif status == RunStatus.DONE:
        status = runs.WAITING
    elif status == RunStatus.CANCELLED or is_deleted:
        final = True
    if status == run.status and not final:
        return False
    runs.set_status(tx, run.run_id, status, finished=final)
    return True
