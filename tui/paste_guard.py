"""Which keys are the rest of a paste that ran over a save, and therefore for no one.

When a key arrived counts, never when the app got to it: a busy app may take a while for a save, and a key
pressed meanwhile is a decision that waits its turn.
"""

from __future__ import annotations

import math

PASTE_GUARD_S = 0.03
"""A key that arrives this soon after the one that saved is a paste running over, not a decision."""

PAUSE_S = 0.3
"""Once a key was dropped, keys are dropped until none has come for this long."""


class PasteGuard:
    """Told of every key that saves; asked about every key. Times are those of arrival (monotonic clock)."""

    def __init__(self) -> None:
        self._saved_at = -math.inf
        self._dropped_at = -math.inf

    def save_by(self, arrived: float) -> None:
        """The key that arrived then has saved something, or is about to."""
        self._saved_at = arrived

    def drops(self, arrived: float) -> bool:
        """Whether a key that arrived then, after those asked about before, is the rest of a paste."""
        is_rest = (
            arrived - self._dropped_at < PAUSE_S if self.is_dropping else 0 <= arrived - self._saved_at < PASTE_GUARD_S
        )
        self._dropped_at = arrived if is_rest else -math.inf
        return is_rest

    @property
    def is_dropping(self) -> bool:
        """Whether the last key asked about was dropped."""
        return self._dropped_at > -math.inf
