"""What other runs of the workspace have generated since a run was planned: it is not generated again.

A run that was paused or waited for long may find its requests answered by another one with the same requests. The store
takes these results in from the other run's spool, whoever owns it and whenever it looks.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from engine.errors import EvaldeskError
from engine.plain_files import read_plain
from engine.runs.compaction import plain_size
from engine.runs.durable import cannot_write, replace_file
from engine.runs.protocol import RunDir
from engine.runs.spool import read_results

_PIECE = 4 << 20


def note_siblings(run_dir: RunDir, ingested: Mapping[str, int]) -> None:
    """Write siblings.json: up to which byte each spool of the workspace was in the store when this run is planned.

    ``ingested`` has these offsets by run id. A folder that the store does not know has none: its results never come in,
    so they are nobody's. Raises EvaldeskError when the disk refuses.
    """
    others = {path.name: ingested.get(path.name) for path in run_dir.path.parent.iterdir() if path != run_dir.path}
    try:
        replace_file(run_dir.siblings, [json.dumps(others).encode()])
    except OSError as error:
        raise cannot_write(run_dir.siblings, error) from error


class Siblings:
    """The spools of the other runs, for one worker.

    No clock decides what is read, since clocks are set back. What a spool held when the run was planned was in the store,
    and whatever had a good result there is not in the plan: of a spool that siblings.json names only what follows that
    byte counts, and of the others, which were planned later, all. A spool that has not grown, as that of every run which
    had ended, costs one look at its size, and no byte is read twice unless the plan grows.
    """

    def __init__(self, run_dir: RunDir) -> None:
        self._run_dir = run_dir
        self._planned_at = _noted(run_dir)
        self._offsets: dict[str, int | None] = {}
        self._wanted: set[str] = set()
        self._found: set[str] = set()

    def answered(self, keys: Collection[str]) -> set[str]:
        """Those of ``keys`` that have a good result in the spool of another run by now; one that cannot be read counts for nothing."""
        if not self._wanted.issuperset(keys):
            self._offsets, self._wanted, self._found = dict(self._planned_at), set(keys), set()
        for folder in self._run_dir.path.parent.iterdir():
            if folder.name != self._run_dir.path.name:
                try:
                    self._read(RunDir(folder))
                except (OSError, EvaldeskError):
                    continue
        return self._found.intersection(keys)

    def _read(self, other: RunDir) -> None:
        offset = self._offsets.get(other.run_id, 0)
        if offset is None or plain_size(other.results) == offset:
            return
        while True:
            lines, after = read_results(other.results, offset, limit=_PIECE)
            self._found.update(line["key"] for line in lines if not line["error"] and line["key"] in self._wanted)
            self._offsets[other.run_id] = after
            if after <= offset:
                return
            offset = after


def _noted(run_dir: RunDir) -> dict[str, int | None]:
    """What siblings.json says; without one every spool is read in full, which only takes longer."""
    try:
        value = json.loads(read_plain(run_dir.siblings))
        return {str(name): None if offset is None else int(offset) for name, offset in value.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
