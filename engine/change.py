"""What changed in a workspace while it is open, as those who watch it tell those who show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.runs.protocol import RunState


@dataclass(frozen=True)
class Change:
    """What changed since the last one. ``states`` holds the live state of every unfinished run."""

    gained: frozenset[str] = field(default_factory=frozenset)
    runs_changed: bool = False
    store_changed: bool = False
    states: Mapping[str, RunState] = field(default_factory=dict)
    problem: str = ""
    """What went wrong in the background, told once."""

    def then(self, later: Change) -> Change:
        """This change and a later one as one."""
        return Change(
            self.gained | later.gained,
            self.runs_changed or later.runs_changed,
            self.store_changed or later.store_changed,
            later.states,
            later.problem or self.problem,
        )
