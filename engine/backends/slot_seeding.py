"""When requests share a long beginning, and whether it is worth computing it once before they start together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

WORTH_CHARACTERS = 800
"""About 200 tokens: below that, computing the beginning in every slot costs less than waiting for one."""
COVERED = 0.8
"""Share of the common beginning that the slots must hold already for a new seeding to be pointless."""


def flat_text(messages: Sequence[Mapping[str, str]]) -> str:
    """Role and content of all messages in one string; equal beginnings mean equal beginnings of the prompt."""
    return "".join(f"\x00{message['role']}\x00{message['content']}" for message in messages)


def common_length(first: str, second: str) -> int:
    """Length of the longest common prefix, in characters."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first.startswith(second[:middle]):
            low = middle
        else:
            high = middle - 1
    return low


def worth_seeding(head: str, following: str, held: str) -> bool:
    """Whether ``head`` and the request ``following`` it share a long beginning that the slots do not hold yet.

    ``held`` is the flat text whose computed state lies in all slots, "" for none.
    """
    shared = common_length(head, following)
    return shared >= WORTH_CHARACTERS and common_length(head, held) < COVERED * shared
