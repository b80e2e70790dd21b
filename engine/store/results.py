"""What completions mean to the runs that wait for them: judgements of cases, outcomes of cells."""

from __future__ import annotations

from collections.abc import Sequence

from engine.store import judgements, outcomes
from engine.store.completions import StoredCompletion
from engine.store.transaction import Transaction


def derive(tx: Transaction, completions: Sequence[StoredCompletion]) -> set[str]:
    """Judgements and outcomes for everything that waits for one of these; returns the runs that gained some."""
    if not completions:
        return set()
    return judgements.derive(tx, completions) | outcomes.derive(tx, completions)
