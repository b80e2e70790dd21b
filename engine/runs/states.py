"""Reading and writing the small files of a run: its description, its state and what the user wants of it."""

from __future__ import annotations

import json
import os
import secrets
import time
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from engine.backends.protocol import ModelSpec
from engine.errors import EvaldeskError
from engine.plain_files import read_plain
from engine.runs import queue
from engine.runs.durable import cannot_write, replace_file
from engine.runs.locks import is_held
from engine.runs.protocol import Control, RunDir, RunState, RunStatus

STALE_S = 10.0
"""A worker writes its state every second; after this long without, and with its lock free, it is gone."""


@dataclass(frozen=True)
class RunDescription:
    """What run.json says. ``created_at`` is in seconds since the epoch, ``workspace`` an absolute path."""

    run_id: str
    title: str
    workspace: str
    device: str
    """Whose queue the run waits in, e.g. ``cpu`` or ``cuda:0``."""
    model: ModelSpec
    expected_fingerprint: str
    """Fingerprint that the request keys were made with; "" takes any model."""
    created_at: float


def write_description(run_dir: RunDir, description: RunDescription) -> None:
    """Write run.json; raises EvaldeskError when the disk refuses."""
    _replace_json(run_dir, run_dir.description.name, asdict(description))


def read_description(run_dir: RunDir) -> RunDescription:
    """Read run.json; raises EvaldeskError naming the file when it is missing or no run description."""
    path = run_dir.description
    try:
        value = json.loads(read_plain(path))
        model = value["model"]
        return RunDescription(
            run_id=_text(value["run_id"]),
            title=_text(value["title"]),
            workspace=_text(value["workspace"]),
            device=_text(value["device"]),
            model=ModelSpec(
                backend=_text(model["backend"]),
                name=_text(model["name"]),
                path=_text(model["path"]),
                context_length=int(model.get("context_length", 0)),
                parallel=int(model.get("parallel", 0)),
                options=dict(model.get("options", {})),
                wait_gpu_memory=float(model.get("wait_gpu_memory", 0.0)),
            ),
            expected_fingerprint=_text(value["expected_fingerprint"]),
            created_at=float(value["created_at"]),
        )
    except OSError as error:
        raise EvaldeskError(f"cannot read the run: {error.strerror}", where=str(path)) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise EvaldeskError(
            "this file does not describe a run", where=str(path), remedy="Plan the run again."
        ) from error


def write_state(run_dir: RunDir, state: RunState) -> None:
    """Replace state.json; the caller holds the run's lock. Raises EvaldeskError when the disk refuses."""
    _replace_json(run_dir, run_dir.state.name, asdict(state))


def write_state_at_any_cost(run_dir: RunDir, state: RunState) -> bool:
    """Replace state.json or, on a full disk, overwrite it where it lies; False when neither works.

    Overwriting needs no new block, and a reader that meets it half written sees an interrupted run.
    """
    try:
        write_state(run_dir, state)
    except EvaldeskError:
        try:
            data = json.dumps(asdict(state)).encode()
            descriptor = os.open(run_dir.state, os.O_WRONLY)
            try:
                os.pwrite(descriptor, data.ljust(os.fstat(descriptor).st_size), 0)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError:
            return False
    return True


def read_state(run_dir: RunDir) -> RunState:
    """What state.json says; without one the run is queued, and a damaged one reads as interrupted, saying so."""
    try:
        value: Any = json.loads(read_plain(run_dir.state))
        known = {item.name for item in fields(RunState)}
        values = {name: entry for name, entry in value.items() if name in known}
        values["status"] = RunStatus(values["status"])
        return _checked(RunState(**values))
    except FileNotFoundError:
        if not run_dir.path.is_dir():
            return RunState(RunStatus.FAILED, message="the folder of this run was deleted; start the run anew")
        return RunState(RunStatus.QUEUED)
    except OSError as error:
        return RunState(RunStatus.INTERRUPTED, message=f"state.json cannot be read: {error.strerror}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return RunState(RunStatus.INTERRUPTED, message="state.json is damaged; resume the run to count again")


def observed_state(run_dir: RunDir) -> RunState:
    """What state.json says, unless its worker is gone: loading or running without a heartbeat, with a free lock and with
    nobody about to start it again is interrupted, or what the user wanted it to stop for."""
    state = read_state(run_dir)
    if state.status not in (RunStatus.LOADING, RunStatus.RUNNING):
        return state
    # A heartbeat only holds the word back: where the clock was set back or forth, lock and queue decide.
    if abs(time.time() - state.updated_at) <= STALE_S or is_held(run_dir.lock) or _is_started_again(run_dir):
        return state
    state = read_state(run_dir)
    if state.status not in (RunStatus.LOADING, RunStatus.RUNNING) or abs(time.time() - state.updated_at) <= STALE_S:
        return state
    gone = replace(state, in_flight=0, tokens_per_s=0.0, eta_s=None, message="")
    if (control := read_control(run_dir)) is not Control.RUN:
        # It was told to stop, and it has.
        return replace(gone, status=RunStatus.CANCELLED if control is Control.CANCEL else RunStatus.PAUSED)
    return replace(
        gone,
        status=RunStatus.INTERRUPTED,
        message="the worker ended without a word; every result so far is kept, resume goes on",
    )


def _is_started_again(run_dir: RunDir) -> bool:
    """Whether the run stands in a queue that a supervisor drains."""
    try:
        device = read_description(run_dir).device
        return bool(queue.ticket_of(run_dir, device)) and is_held(queue.device_lock(device))
    except EvaldeskError:
        return False


def write_control(run_dir: RunDir, control: Control) -> None:
    """Say what the run shall do; any process may, the last word counts."""
    name = f".control.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    try:
        replace_file(run_dir.control, [f"{control}\n".encode()], temporary=name)
    except OSError as error:
        raise cannot_write(run_dir.control, error) from error


def read_control(run_dir: RunDir) -> Control:
    """What the run shall do; a missing or unreadable word means run."""
    try:
        return Control(run_dir.control.read_bytes()[:64].decode("ascii", "replace").strip())
    except (OSError, ValueError):
        return Control.RUN


def _replace_json(run_dir: RunDir, name: str, value: Any) -> None:
    path = run_dir.path / name
    try:
        replace_file(path, [json.dumps(value).encode()])
    except OSError as error:
        raise cannot_write(path, error) from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _checked(state: RunState) -> RunState:
    """The state itself; raises TypeError when a field has the wrong type."""
    for item in fields(RunState):
        value, default = getattr(state, item.name), item.default
        if item.name == "eta_s":
            sound = value is None or _is_count(value)
        elif item.name in ("status", "extra"):
            sound = item.name == "status" or isinstance(value, dict)
        elif isinstance(default, float):
            sound = _is_count(value)
        elif isinstance(default, int):
            sound = isinstance(value, int) and _is_count(value)
        else:
            sound = isinstance(value, type(default))
        if not sound:
            raise TypeError(item.name)
    return state


def _is_count(value: Any) -> bool:
    """A number that counts something: not below 0, and small enough for every place that keeps it."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 2**53
