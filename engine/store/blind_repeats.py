"""Blind repeats: labelled cases drawn at random and read again without their label. They count for nothing but this comparison."""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import dataclass
from datetime import datetime

from engine.errors import Refused
from engine.store import labels, settings, traces
from engine.store.transaction import Transaction, now

_DRAFT = "blind_draft"
VERDICTS = ("PASS", "FAIL", "UNDECIDED")


@dataclass(frozen=True)
class Sample:
    """Cases to be read again. ``left`` are the positions in the workspace of those without a verdict, in reading order."""

    sample_id: str
    criterion_id: str
    expert: str
    total: int
    left: tuple[int, ...]


@dataclass(frozen=True)
class Repeat:
    """A case with the label and the blind verdict of the same expert; ``verdict`` may be UNDECIDED."""

    trace_id: str
    first: str
    first_critique: str
    first_at: datetime
    verdict: str
    critique: str
    at: datetime

    @property
    def flipped(self) -> bool:
        return self.verdict in ("PASS", "FAIL") and self.verdict != self.first

    @property
    def days(self) -> int:
        """Whole days between the label and its repeat."""
        return max((self.at - self.first_at).days, 0)


def draw(tx: Transaction, criterion_id: str, expert: str, wanted: int, seed: int) -> Sample:
    """Draw at random from the expert's own labels that count, of cases whose answer is still the one that was labelled.

    Cases that were repeated before come only when no others are left. Raises Refused where there is nothing to draw, and
    where a sample is open already.
    """
    if open_sample(tx, criterion_id) is not None:
        raise Refused("a sample is still being read", remedy="Finish it first; d leaves a case undecided.")
    found = tx.rows(
        f"SELECT l.trace_id, l.seq, l.expert, l.seq IN (SELECT label_seq FROM blind_case) FROM {labels.COUNTING} l "
        f"JOIN {traces.CURRENT} t ON t.trace_id = l.trace_id AND t.version = l.trace_version "
        "WHERE l.criterion_id = ? ORDER BY t.position",
        criterion_id,
    )
    own = [(trace_id, seq, was_drawn) for trace_id, seq, who, was_drawn in found if who == expert]
    if not own:
        others = ", ".join(sorted({row[2] for row in found if row[2]})) or "nobody"
        raise Refused(
            f"no label that counts is by {expert or 'you'}; there are labels by {others}",
            remedy="Only who gave a label can repeat it. e on Home says who you are.",
        )
    rng = random.Random(seed)
    rng.shuffle(own)
    chosen = sorted(own, key=lambda case: bool(case[2]))[: max(wanted, 1)]
    sample_id = uuid.uuid4().hex[:12]
    tx.insert(
        "blind_sample", sample_id=sample_id, criterion_id=criterion_id, expert=expert, seed=seed, created_at=now()
    )
    tx.append(
        "blind_case",
        ("sample_id", "position", "trace_id", "label_seq"),
        [(sample_id, position, trace_id, seq) for position, (trace_id, seq, _) in enumerate(chosen)],
    )
    drawn = open_sample(tx, criterion_id)
    assert drawn is not None
    return drawn


def open_sample(tx: Transaction, criterion_id: str) -> Sample | None:
    """The sample in which cases have no verdict yet, or None."""
    rows = tx.rows(
        f"SELECT s.sample_id, s.expert, t.position, coalesce(v.verdict, '') FROM blind_sample s JOIN blind_case c USING (sample_id) "
        f"JOIN {traces.CURRENT} t USING (trace_id) LEFT JOIN {_NEWEST} v USING (sample_id, trace_id) "
        "WHERE s.criterion_id = ? ORDER BY s.created_at DESC, s.sample_id, c.position",
        criterion_id,
    )
    for sample_id in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == sample_id]
        if left := tuple(row[2] for row in own if not row[3]):
            return Sample(sample_id, criterion_id, own[0][1], len(own), left)
    return None


def decide(tx: Transaction, sample_id: str, trace_id: str, verdict: str, critique: str, seconds: float) -> None:
    """Keep a verdict on a case of the sample; raises Refused for what is none."""
    if verdict not in VERDICTS:
        raise Refused(f"{verdict!r} is no verdict; one of: {', '.join(VERDICTS)}")
    _append(tx, sample_id, trace_id, verdict, critique, seconds)


def keep_draft(tx: Transaction, sample_id: str, trace_id: str, verdict: str, critique: str) -> None:
    """Keep what is typed and not saved, in place of what was kept before."""
    settings.write(tx, _DRAFT, json.dumps([sample_id, trace_id, verdict, critique]))


def draft(tx: Transaction, sample_id: str, trace_id: str) -> tuple[str, str]:
    """Verdict and critique that were typed for this case and not saved; ("", "") for none."""
    kept = json.loads(settings.read(tx, _DRAFT) or "[]")
    return (kept[2], kept[3]) if kept[:2] == [sample_id, trace_id] else ("", "")


def take_back(tx: Transaction, sample_id: str) -> str | None:
    """Take back the newest verdict of the sample that stands; returns its trace, or None when there is none."""
    row = tx.row(
        f"SELECT trace_id FROM {_NEWEST} WHERE sample_id = ? AND verdict <> '' ORDER BY seq DESC LIMIT 1", sample_id
    )
    if row is None:
        return None
    _append(tx, sample_id, row[0], "", "", 0.0)
    return str(row[0])


def repeats(tx: Transaction, criterion_id: str) -> list[Repeat]:
    """Every repeated case once, with its newest blind verdict, the newest first."""
    rows = tx.rows(
        f"SELECT c.trace_id, l.mark, l.critique, l.created_at, v.verdict, v.critique, v.created_at FROM {_NEWEST} v "
        "JOIN blind_sample s USING (sample_id) JOIN blind_case c USING (sample_id, trace_id) JOIN label l ON l.seq = c.label_seq "
        "WHERE s.criterion_id = ? AND v.verdict <> '' QUALIFY v.seq = max(v.seq) OVER (PARTITION BY c.trace_id) ORDER BY v.seq DESC",
        criterion_id,
    )
    return [Repeat(*row) for row in rows]


_NEWEST = "(SELECT * FROM blind_verdict QUALIFY seq = max(seq) OVER (PARTITION BY sample_id, trace_id))"


def _append(tx: Transaction, sample_id: str, trace_id: str, verdict: str, critique: str, seconds: float) -> None:
    tx.insert(
        "blind_verdict", seq=tx.next_seq(), sample_id=sample_id, trace_id=trace_id, verdict=verdict, critique=critique,
        seconds=seconds, created_at=now(),
    )  # fmt: skip
