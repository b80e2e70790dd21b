"""Build pile and sealed pile: never touching, with the seal kept by the store itself."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import EvaldeskError, Refused
from engine.judging.trace import Trace
from engine.store import labels, traces
from engine.store.labels import Label
from engine.store.transaction import Transaction, now

BUILD, SEALED, NONE = "build", "sealed", "none"
# Where each case lies now; a case without a row lies in no pile.
CURRENT = "(SELECT * FROM pile QUALIFY seq = max(seq) OVER (PARTITION BY trace_id, criterion_id))"


@dataclass(frozen=True)
class PileCounts:
    """Cases of one pile by what the expert said; ``unlabelled`` have no counting label."""

    passes: int = 0
    failures: int = 0
    unlabelled: int = 0


@dataclass(frozen=True)
class LabelledCase:
    """A trace with the label that counts for it."""

    trace: Trace
    label: Label


@dataclass(frozen=True)
class Draw:
    """What came of drawing sealed cases. ``labelled`` and ``twins`` were left out: cases (or a twin of theirs) that
    carry a label already, and cases with a twin in the build pile or among a judge's examples."""

    drawn: tuple[str, ...]
    wanted: int
    labelled: int
    twins: int

    @property
    def is_short(self) -> bool:
        return len(self.drawn) < self.wanted

    @property
    def sentence(self) -> str:
        """What was drawn, what was left out and why."""
        parts = [f"{len(self.drawn)} cases drawn" + (f" of the {self.wanted} wanted" if self.is_short else "")]
        if self.labelled:
            parts.append(f"{self.labelled} left out: labelled before, so no random draw any more")
        if self.twins:
            parts.append(f"{self.twins} left out: the same request lies in the build pile or was an example")
        return "; ".join(parts)


def draw_sealed(tx: Transaction, criterion_id: str, wanted: int, seed: int) -> Draw:
    """Draw sealed cases at random from those in no pile and without a label, whole groups at a time.

    Drawn first, before the build pile is picked: picking half PASS, half FAIL out of random labels
    would thin the failures that are left to measure on. For the same reason a case that is labelled
    already is not drawn as a random one. A group of which a member may build a judge is left out whole.
    """
    if wanted < 1:
        raise EvaldeskError("at least one case has to be drawn", where=str(wanted), kept="Nothing was drawn.")
    groups = tx.rows(
        f"SELECT group_key, list(trace_id ORDER BY position) FROM {traces.CURRENT} WHERE origin = 'real' AND trace_id NOT IN "
        f"(SELECT trace_id FROM {CURRENT} WHERE criterion_id = ? AND pile <> 'none') GROUP BY group_key ORDER BY min(position)",
        criterion_id,
    )
    exposed = _group_keys(tx, _exposed(tx, criterion_id))
    labelled = _group_keys(
        tx, {trace_id for trace_id, label in labels.current_of(tx, criterion_id).items() if label.mark != "WITHDRAWN"}
    )
    # A group that lies in the sealed pile already may grow, labelled or not: it must stay together.
    sealed = _group_keys(tx, {trace_id for trace_id, pile in of_criterion(tx, criterion_id).items() if pile == SEALED})
    mine = labels.current_of(tx, criterion_id)

    def is_labelled(key: str, members: Sequence[str]) -> bool:
        if key in sealed:
            return any(member in mine and mine[member].mark != "WITHDRAWN" for member in members)
        return key in labelled

    twins = sum(len(members) for key, members in groups if key in exposed)
    seen = sum(len(members) for key, members in groups if key not in exposed and is_labelled(key, members))
    free = [(key, members) for key, members in groups if key not in exposed and not is_labelled(key, members)]
    random.Random(seed).shuffle(free)
    drawn: list[str] = []
    for _, members in free:
        if len(drawn) >= wanted:
            break
        drawn.extend(members)
    if drawn:
        _append(tx, criterion_id, drawn, SEALED, "drawn")
        record(tx, criterion_id, "drawn", detail=f"{len(drawn)} cases at random, seed {seed}")
    return Draw(tuple(drawn), wanted, seen, twins)


def put(tx: Transaction, criterion_id: str, trace_id: str, pile: str) -> list[str]:
    """Move a case, and its group with it, into a pile; returns the ids that moved.

    Raises Refused when the seal forbids it: a case that was drawn at random stays sealed, nothing leaves
    the sealed pile once a round was measured on it, and a case that has been an example in a judge prompt
    never goes into it, nor does one with the same request.
    """
    members = _group(tx, trace_id)
    if not members:
        raise EvaldeskError(f"there is no trace {trace_id}", kept="Nothing was moved.")
    here = of_criterion(tx, criterion_id)
    moving = [member for member in members if here.get(member, NONE) != pile]
    leaving = [member for member in moving if here.get(member) == SEALED]
    if leaving and was_measured(tx, criterion_id):
        raise Refused("a round was measured on the sealed pile, so nothing leaves it any more", where=trace_id)
    drawn = [member for member in leaving if was_drawn(tx, criterion_id, member)]
    if drawn:
        raise Refused(
            "it was drawn into the sealed pile at random and stays there: with cases picked out, the pile would not show "
            "the natural mix any more" if trace_id in drawn else f"{drawn[0]}, of the same request, was drawn into the sealed pile",
            where=trace_id, remedy="Take another case for the build pile.",
        )  # fmt: skip
    if pile == SEALED:
        shown = _group_keys(tx, examples_used(tx, criterion_id)) & _group_keys(tx, {trace_id})
        if shown:
            raise Refused(
                f"{trace_id}, or a case of the same request, has been an example in a judge prompt and can never be sealed",
                where=trace_id,
            )
    _append(tx, criterion_id, moving, pile, "hand")
    if pile == SEALED:
        for member in moving:
            record(tx, criterion_id, "added", trace_id=member, detail="by hand")
    return moving


def was_drawn(tx: Transaction, criterion_id: str, trace_id: str) -> bool:
    """Whether the case lies in the sealed pile by a random draw, not by hand."""
    row = tx.row(
        "SELECT pile, how FROM pile WHERE trace_id = ? AND criterion_id = ? ORDER BY seq DESC LIMIT 1",
        trace_id,
        criterion_id,
    )
    return row == (SEALED, "drawn")


def of_criterion(tx: Transaction, criterion_id: str) -> dict[str, str]:
    """Pile by trace id; cases in no pile are left out."""
    return dict(
        tx.rows(f"SELECT trace_id, pile FROM {CURRENT} WHERE criterion_id = ? AND pile <> 'none'", criterion_id)
    )


def of_case(tx: Transaction, criterion_id: str, trace_id: str) -> str:
    """The pile of one case."""
    row = tx.row(
        "SELECT pile FROM pile WHERE trace_id = ? AND criterion_id = ? ORDER BY seq DESC LIMIT 1",
        trace_id,
        criterion_id,
    )
    return str(row[0]) if row else NONE


def counts(tx: Transaction, criterion_id: str) -> dict[str, PileCounts]:
    """PileCounts of the build and the sealed pile; of the sealed one without cases that were written for the coverage grid."""
    rows = tx.rows(
        f"SELECT p.pile, count(*) FILTER (l.mark = 'PASS'), count(*) FILTER (l.mark = 'FAIL'), count(*) FILTER (l.mark IS NULL) "
        f"FROM {CURRENT} p LEFT JOIN {labels.COUNTING} l USING (trace_id, criterion_id) "
        "WHERE p.criterion_id = ? AND p.pile <> 'none' "
        "AND (p.pile <> 'sealed' OR p.trace_id NOT IN (SELECT trace_id FROM trace WHERE origin <> 'real')) GROUP BY p.pile",
        criterion_id,
    )
    found = {row[0]: PileCounts(*row[1:]) for row in rows}
    return {pile: found.get(pile, PileCounts()) for pile in (BUILD, SEALED)}


def free(tx: Transaction, criterion_id: str) -> int:
    """How many cases lie in no pile of this criterion; those written for the coverage grid are never drawn and not counted."""
    written = "(SELECT trace_id FROM trace WHERE origin <> 'real')"
    lying = tx.value(
        f"SELECT count(*) FROM {CURRENT} WHERE criterion_id = ? AND pile <> 'none' AND trace_id NOT IN {written}",
        criterion_id,
    )
    return traces.count(tx) - traces.count_written(tx) - int(lying)


def build_cases(tx: Transaction, criterion_id: str) -> list[LabelledCase]:
    """The labelled cases that a judge may be built from: build pile only, with a critique.

    This is the only reading function that serves judge building; a sealed case cannot come out of it.
    """
    rows = tx.rows(
        "SELECT t.trace_id, t.version, t.position, t.request, t.context, t.facts, t.response, t.metadata, t.origin, t.group_key "
        f"FROM {traces.CURRENT} t JOIN {CURRENT} p USING (trace_id) JOIN {labels.COUNTING} l USING (trace_id, criterion_id) "
        "WHERE p.criterion_id = ? AND p.pile = 'build' AND l.critique <> '' ORDER BY t.position",
        criterion_id,
    )
    current = labels.current_of(tx, criterion_id)
    return [LabelledCase(traces.from_row(row), current[row[0]]) for row in rows]


def measuring_cases(tx: Transaction, criterion_id: str) -> list[LabelledCase]:
    """The labelled cases of the sealed pile, for measuring a judge and for nothing else.

    Written cases and cases drawn by hand stay out of sealed figures.
    """
    rows = tx.rows(
        "SELECT t.trace_id, t.version, t.position, t.request, t.context, t.facts, t.response, t.metadata, t.origin, t.group_key "
        f"FROM {traces.CURRENT} t JOIN {CURRENT} p USING (trace_id) JOIN {labels.COUNTING} l USING (trace_id, criterion_id) "
        "WHERE p.criterion_id = ? AND p.pile = 'sealed' AND t.origin = 'real' AND l.how_drawn <> 'hand' ORDER BY t.position",
        criterion_id,
    )
    current = labels.current_of(tx, criterion_id)
    return [LabelledCase(traces.from_row(row), current[row[0]]) for row in rows]


def was_measured(tx: Transaction, criterion_id: str) -> bool:
    """Whether any judge was measured on this sealed pile."""
    return bool(
        tx.value("SELECT count(*) > 0 FROM seal_event WHERE criterion_id = ? AND kind = 'measured'", criterion_id)
    )


def rounds_measured(tx: Transaction, criterion_id: str) -> int:
    """How many rounds have spent some of the sealed pile's secrecy."""
    return int(tx.value("SELECT count(*) FROM seal_event WHERE criterion_id = ? AND kind = 'measured'", criterion_id))


def record(
    tx: Transaction, criterion_id: str, kind: str, *, trace_id: str = "", run_id: str = "", detail: str = ""
) -> None:
    """Append a seal event: drawn, added, measured."""
    tx.insert(
        "seal_event", seq=tx.next_seq(), criterion_id=criterion_id, kind=kind, trace_id=trace_id, run_id=run_id,
        detail=detail, created_at=now(),
    )  # fmt: skip


def examples_used(tx: Transaction, criterion_id: str) -> set[str]:
    """Trace ids that have been examples in any judge version of the criterion."""
    rows = tx.rows(
        "SELECT DISTINCT e ->> '$.trace_id' FROM (SELECT unnest(examples::JSON[]) e FROM judge WHERE criterion_id = ?)",
        criterion_id,
    )
    return {row[0] for row in rows}


def _exposed(tx: Transaction, criterion_id: str) -> set[str]:
    """Cases that a judge may be, or has been, built from."""
    build = {trace_id for trace_id, pile in of_criterion(tx, criterion_id).items() if pile == BUILD}
    return build | examples_used(tx, criterion_id)


def _group_keys(tx: Transaction, trace_ids: set[str]) -> set[str]:
    """The groups of these cases, in any version of theirs."""
    rows = tx.rows(
        "SELECT DISTINCT group_key FROM trace WHERE trace_id IN (SELECT unnest(?::VARCHAR[]))", sorted(trace_ids)
    )
    return {row[0] for row in rows}


def _group(tx: Transaction, trace_id: str) -> list[str]:
    rows = tx.rows(
        f"SELECT trace_id FROM {traces.CURRENT} WHERE group_key = (SELECT any_value(group_key) FROM trace WHERE trace_id = ?) "
        "ORDER BY position",
        trace_id,
    )
    return [row[0] for row in rows]


def _append(tx: Transaction, criterion_id: str, trace_ids: Sequence[str], pile: str, how: str) -> None:
    moment = now()
    tx.append(
        "pile",
        ("seq", "trace_id", "criterion_id", "pile", "how", "created_at"),
        [(tx.next_seq(), trace_id, criterion_id, pile, how, moment) for trace_id in trace_ids],
    )
