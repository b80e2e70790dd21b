"""What a run's state says of the GPUs that it sees."""

from __future__ import annotations

from dataclasses import dataclass

from engine.runs.protocol import RunState


@dataclass(frozen=True)
class GpuUse:
    """One GPU as a whole, other processes included: memory in bytes, load in percent of the last moment."""

    name: str
    used: int
    total: int
    load: int


def gpu_use(state: RunState) -> list[GpuUse]:
    """The last reading of each GPU while the run goes; none of a run that stands, or where nothing was read."""
    read = state.extra.get("gpus")
    if state.status not in ("loading", "running") or not isinstance(read, list):
        return []
    return [use for entry in read if (use := _use(entry)) is not None]


def _use(entry: object) -> GpuUse | None:
    """What state.json holds, of which anybody may have written anything."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return None
    numbers = [entry.get(name) for name in ("used", "total", "load")]
    used, total, load = (number if type(number) is int and 0 <= number < 2**53 else -1 for number in numbers)
    return None if min(used, total, load) < 0 else GpuUse(entry["name"], used, total, load)
