"""The queue of a device: which runs wait for it, over all workspaces, in the order in which they were asked for.

One file per waiting run below ``state_home()/devices/<device>/queue``. Each time somebody asks for a run, its
entry gets a new ticket; who finishes a run removes the entry only with the ticket it started with, so that a
run asked for again while its worker was ending is not forgotten.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from engine.errors import EvaldeskError
from engine.hashing import content_hash
from engine.runs.durable import cannot_write, replace_file, sync_folder
from engine.runs.locks import FileLock, wait_lock
from engine.runs.protocol import RunDir

STATE_VARIABLE = "EVALDESK_STATE_DIR"

_ENTRY = re.compile(r"(\d{12})-[0-9a-f]{16}\.json")


@dataclass(frozen=True)
class QueueEntry:
    """One waiting or running run: its place, its directory (absolute), and the ticket of the last request for it."""

    place: int
    run_dir: RunDir
    ticket: str
    file: Path


def state_home() -> Path:
    """Where queues and device locks live: $EVALDESK_STATE_DIR or the user's state folder; made private (0700)."""
    named = os.environ.get(STATE_VARIABLE, "")
    if named:
        home = Path(named).expanduser().absolute()
    else:
        from platformdirs import user_state_path

        home = user_state_path("evaldesk")
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        home.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise cannot_write(home, error) from error
    return home


def device_dir(device: str) -> Path:
    """The folder of one device; its name is quoted, so any device name is a safe one. Raises EvaldeskError if empty."""
    name = quote(device, safe="", errors="replace")
    if not name or len(name) > 200:
        raise EvaldeskError("a device needs a name of at most 200 characters", remedy="Use cpu or cuda:0, for example.")
    if name.startswith("."):
        name = "%2E" + name[1:]
    folder = state_home() / "devices" / name
    try:
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / "queue").mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    return folder


def device_lock(device: str) -> Path:
    """The file whose lock the device's supervisor holds."""
    return device_dir(device) / "lock"


def lock_queue(device: str) -> FileLock:
    """Keep everyone else from changing the device's queue; hold it for moments only."""
    return wait_lock(device_dir(device) / "queue.lock")


def enqueue(run_dir: RunDir, device: str) -> None:
    """Put the run at the end of the device's queue, or give it a new ticket where it already stands.

    Then call ``engine.runs.supervisor.ensure_supervisor``. Raises EvaldeskError when the disk refuses.
    """
    path = absolute(run_dir).path
    with lock_queue(device):
        waiting = entries(device)
        place = next((entry.place for entry in waiting if entry.run_dir.path == path), 0)
        place = place or max((entry.place for entry in waiting), default=0) + 1
        file = device_dir(device) / "queue" / f"{place:012d}-{content_hash(os.fspath(path))[:16]}.json"
        content = json.dumps({"run_dir": os.fspath(path), "ticket": secrets.token_hex(8)})
        try:
            replace_file(file, [content.encode("ascii")])
        except OSError as error:
            raise cannot_write(file, error) from error


def entries(device: str) -> list[QueueEntry]:
    """Runs in the queue, first to run first; the running one is among them. Files that are no entry are left out."""
    found: list[QueueEntry] = []
    for file in sorted((device_dir(device) / "queue").iterdir()):
        matched = _ENTRY.fullmatch(file.name)
        if matched is None:
            continue
        try:
            value = json.loads(file.read_bytes())
            run_dir, ticket = value["run_dir"], value["ticket"]
            if isinstance(run_dir, str) and Path(run_dir).is_absolute() and isinstance(ticket, str):
                found.append(QueueEntry(int(matched[1]), RunDir(Path(run_dir)), ticket, file))
        except (OSError, ValueError, KeyError, TypeError):
            # Somebody removed it meanwhile, or it is no entry: neither may stop the queue.
            continue
    return found


def ahead_of(run_dir: RunDir, device: str) -> RunDir | None:
    """The run, of this or another workspace, that the device works on before this one; None when it is first or not there."""
    path = absolute(run_dir).path
    waiting = [entry.run_dir for entry in entries(device)]
    return waiting[0] if waiting and any(other.path == path for other in waiting[1:]) else None


def ticket_of(run_dir: RunDir, device: str) -> str:
    """The ticket the run has in the queue, or "" when it is not there."""
    path = absolute(run_dir).path
    return next((entry.ticket for entry in entries(device) if entry.run_dir.path == path), "")


def remove(run_dir: RunDir, device: str, *, ticket: str | None = None) -> bool:
    """Take the run out of the queue; with ``ticket`` only if nobody asked for it again since. Whether it was taken."""
    path = absolute(run_dir).path
    with lock_queue(device):
        for entry in entries(device):
            if entry.run_dir.path in (path, run_dir.path) and ticket in (None, entry.ticket):
                try:
                    entry.file.unlink(missing_ok=True)
                    sync_folder(entry.file.parent)
                except OSError as error:
                    raise cannot_write(entry.file, error) from error
                return True
    return False


def waiting_devices() -> list[str]:
    """Devices whose queue is not empty, by name: a start of the app sees to their supervisors."""
    root = state_home() / "devices"
    if not root.is_dir():
        return []
    names = [unquote(folder.name) for folder in sorted(root.iterdir()) if (folder / "queue").is_dir()]
    return [name for name in names if entries(name)]


def absolute(run_dir: RunDir) -> RunDir:
    """The run's directory as the queue names it: absolute, symbolic links resolved."""
    return RunDir(run_dir.path.resolve())
