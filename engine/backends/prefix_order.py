"""Which waiting request starts next, so that prompts with a common beginning follow each other."""

from __future__ import annotations

from collections.abc import Sequence


def next_in_order(waiting: Sequence[Sequence[int]], last: Sequence[int]) -> int:
    """The place in ``waiting`` of the prompt (token ids) that follows ``last`` in lexicographic order, or of the first.

    Like a lift that goes one way only: what waits is passed in one round, whatever else arrives meanwhile. Of equal
    prompts the one that waits longer comes first. Raises ValueError when nothing waits.
    """
    return min(
        range(len(waiting)), key=lambda place: (tuple(waiting[place]) < tuple(last), tuple(waiting[place]), place)
    )
