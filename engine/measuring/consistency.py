"""How far an expert agrees with themselves: labels against the same expert's blind repeats."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from engine.store import blind_repeats
from engine.store.blind_repeats import Repeat
from engine.store.transaction import Transaction

if TYPE_CHECKING:
    from stats.self_consistency import SelfConsistency

DEFAULT_SAMPLE = 20


@dataclass(frozen=True)
class Consistency:
    """``repeats`` are all repeated cases, the newest first; ``figures`` are over those that were decided both times, None for none.

    ``days`` are the shortest, the median and the longest time between label and repeat.
    """

    repeats: tuple[Repeat, ...]
    figures: SelfConsistency | None
    days: tuple[int, float, int]

    @property
    def flipped(self) -> tuple[Repeat, ...]:
        return tuple(repeat for repeat in self.repeats if repeat.flipped)

    @property
    def undecided(self) -> int:
        return sum(repeat.verdict == "UNDECIDED" for repeat in self.repeats)


def consistency(tx: Transaction, criterion_id: str) -> Consistency:
    """What the blind repeats of this criterion come to so far."""
    repeats = tuple(blind_repeats.repeats(tx, criterion_id))
    decided = [repeat for repeat in repeats if repeat.verdict != "UNDECIDED"]
    if not decided:
        return Consistency(repeats, None, (0, 0.0, 0))
    from stats.self_consistency import self_consistency  # numpy, which no screen waits for at its start

    figures = self_consistency([_verdict(r.first) for r in decided], [_verdict(r.verdict) for r in decided])
    days = [repeat.days for repeat in decided]
    return Consistency(repeats, figures, (min(days), float(statistics.median(days)), max(days)))


def _verdict(text: str) -> Literal["PASS", "FAIL"]:
    return "PASS" if text == "PASS" else "FAIL"
