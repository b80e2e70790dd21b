"""Planning a run: what is needed, what is cached, what another run is about to bring, what to generate."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.backends.protocol import ModelSpec, Request
from engine.errors import EvaldeskError
from engine.models.settings import SERVER_BACKEND, ModelSettings, all_settings, model_settings
from engine.runs import control, plan_file, queue, states, supervisor
from engine.runs.durable import cannot_write
from engine.runs.ingest import ingest
from engine.runs.protocol import Control, RunDir, RunState, RunStatus
from engine.runs.siblings import note_siblings
from engine.runs.states import RunDescription
from engine.store import completions, results, runs
from engine.store.models import Model
from engine.store.runs import Run
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace


@dataclass(frozen=True)
class Plan:
    """A run as planned, before or after it was started."""

    needed: int
    cached: int
    awaited: int

    @property
    def to_run(self) -> int:
        return self.needed - self.cached - self.awaited


def device_of(model: Model) -> str:
    """The device whose queue a model's runs wait in: a server is one of its own, a GPU is the one of $EVALDESK_DEVICE."""
    if model.backend == SERVER_BACKEND:
        return f"server {model.name}"
    if model.backend in ("exllamav2", "exllamav3"):
        return os.environ.get("EVALDESK_DEVICE", "cuda:0")
    return "cpu" if model.backend == "llamacpp" else os.environ.get("EVALDESK_DEVICE", "cpu")


def settings_of(model: Model) -> ModelSettings:
    """How the model is to be run; a server that stands under another name by now is known by its identity.

    Raises EvaldeskError for a server that is not registered any more.
    """
    settings = model_settings(model.name)
    if model.backend != SERVER_BACKEND:
        return settings
    for known in (settings, *all_settings().values()):
        if known.server is not None and known.server.fingerprint.short == model.model_id:
            return known
    raise EvaldeskError(
        f"the server {model.name} is not registered any more, or for another model by now",
        where=model.path,
        kept="Nothing was changed.",
        remedy="Add it again with evaldesk models add: the same URL and model are the same server.",
    )


def preview(tx: Transaction, requests: Sequence[Request]) -> Plan:
    """What a run over these requests would have to generate."""
    keys = list(dict.fromkeys(request.key for request in requests))
    cached = completions.usable(tx, keys)
    pending = runs.pending_keys(tx)
    awaited = sum(1 for key in keys if key not in cached and key in pending)
    return Plan(len(keys), len(cached), awaited)


def start(
    tx: Transaction,
    workspace: Workspace,
    *,
    kind: str,
    title: str,
    model: Model,
    planned: Sequence[Request],
    add_content: Callable[[str], None],
    criterion_id: str = "",
    judge_id: str = "",
    sweep_id: str = "",
) -> Run:
    """Record the run, write its files, and queue it once the transaction is durable.

    ``add_content`` records what the run of this id is about: its cases or cells, in plan order. Cached completions
    count at once; keys pending in another run are awaited, not planned twice.
    """
    # What the store knows of other runs may be as old as the last look: one cancelled since brings nothing any more.
    while ingest(tx, workspace).more:
        pass
    requests = {request.key: request for request in planned}
    cached = completions.usable(tx, list(requests))
    pending = runs.pending_keys(tx)
    own = [request for key, request in requests.items() if key not in cached and key not in pending]
    awaited = len(requests) - len(cached) - len(own)
    run = Run(
        run_id=f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:6]}",
        kind=kind, title=title, criterion_id=criterion_id, judge_id=judge_id, model_id=model.model_id,
        device=device_of(model), status=str(RunStatus.QUEUED) if own else runs.WAITING,
        needed=len(requests), cached=len(cached), awaited=awaited, sweep_id=sweep_id,
    )  # fmt: skip
    runs.add(tx, run, [request.key for request in own])
    add_content(run.run_id)
    results.derive(tx, list(cached.values()))
    if own:
        run_dir = _write_files(tx, workspace, run, model, own)
        tx.after_commit(lambda: control.start(run_dir))
    elif not awaited:
        runs.set_status(tx, run.run_id, str(RunStatus.DONE), finished=True)
    return runs.get(tx, run.run_id)


def adopt_missing(tx: Transaction, workspace: Workspace, run: Run, model: Model, requests: Sequence[Request]) -> int:
    """Plan what the run waits for and nobody will bring any more (the other run was cancelled or failed); returns how many."""
    missing = set(runs.missing_keys(tx, run.run_id))
    own = [request for request in {r.key: r for r in requests}.values() if request.key in missing]
    if not own:
        return 0
    runs.claim(tx, run.run_id, [request.key for request in own])
    run_dir = RunDir(workspace.runs / run.run_id)
    if run_dir.plan.exists():
        plan_file.append_plan(run_dir, own)
    else:
        _write_files(tx, workspace, run, model, own)
    runs.set_status(tx, run.run_id, str(RunStatus.QUEUED), finished=False)
    tx.after_commit(lambda: control.start(run_dir))
    return len(own)


def ensure_queued(run_dir: RunDir, device: str) -> None:
    """Queue a run whose planner was killed between its commit and its queueing; harmless otherwise."""
    if states.read_control(run_dir) is not Control.RUN:
        # It left the queue because somebody paused or cancelled it; the store hears of that a moment later.
        return
    if all(entry.run_dir.path != queue.absolute(run_dir).path for entry in queue.entries(device)):
        control.start(run_dir)
    else:
        supervisor.ensure_supervisor(device)


def _write_files(tx: Transaction, workspace: Workspace, run: Run, model: Model, requests: Sequence[Request]) -> RunDir:
    run_dir, settings = RunDir(workspace.runs / run.run_id), settings_of(model)
    is_new = not run_dir.path.exists()
    try:
        run_dir.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(run_dir.path, error) from error
    try:
        _write_into(run_dir, tx, workspace, run, model, settings, requests)
    except EvaldeskError:
        # The transaction is taken back with it, and a full disk has no room for files of nobody.
        if is_new:
            shutil.rmtree(run_dir.path, ignore_errors=True)
        raise
    return run_dir


def _write_into(
    run_dir: RunDir,
    tx: Transaction,
    workspace: Workspace,
    run: Run,
    model: Model,
    settings: ModelSettings,
    requests: Sequence[Request],
) -> None:
    plan_file.write_plan(run_dir, requests)
    note_siblings(run_dir, {other.run_id: other.spool_offset for other in runs.everyone(tx)})
    states.write_control(run_dir, Control.RUN)
    states.write_state(run_dir, RunState(RunStatus.QUEUED, planned=len(requests), updated_at=time.time()))
    states.write_description(
        run_dir,
        RunDescription(
            run_id=run.run_id, title=run.title, workspace=str(workspace.path.absolute()), device=run.device,
            model=ModelSpec(
                model.backend, model.name, model.path, settings.context_length, settings.parallel, settings.spec_options,
                settings.wait_gpu_memory,
            ),
            expected_fingerprint=model.model_id, created_at=time.time(),
        ),
    )  # fmt: skip
