"""What other runs of the workspace have generated since a run was planned: it is not generated again.

A run that was paused or waited for long may find its requests answered by another one with the same requests. The store
takes these results in from the other run's spool, whoever owns it and whenever it looks.
"""

from __future__ import annotations

from collections.abc import Collection

from engine.errors import EvaldeskError
from engine.runs.protocol import RunDir
from engine.runs.spool import stream_results

_CLOCK_ALLOWANCE_S = 2.0


def answered_elsewhere(run_dir: RunDir, keys: Collection[str], since: float) -> set[str]:
    """Those of ``keys`` that have a good result in the spool of another run, written after ``since`` (wall clock).

    Older spools are not read: what they held was known when the run was planned. One that cannot be read counts for nothing.
    """
    wanted, found = set(keys), set()
    for path in run_dir.path.parent.glob("*/results.jsonl"):
        try:
            if path.parent == run_dir.path or path.stat().st_mtime < since - _CLOCK_ALLOWANCE_S:
                continue
            found |= {line["key"] for line in stream_results(path) if not line["error"] and line["key"] in wanted}
        except (OSError, EvaldeskError):
            continue
    return found
