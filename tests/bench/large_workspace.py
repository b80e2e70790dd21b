"""A workspace of any number of traces, made by one statement: as large as wanted, and at once."""

from __future__ import annotations

from pathlib import Path

from engine.judging.criterion import Criterion
from engine.store import criteria, labels, settings, traces
from engine.store.labels import Label, Mark
from engine.store.store import Store
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace

CRITERION = "resolved"
LABELS = 2_000

_TRACES = """
INSERT INTO trace
SELECT 'T-' || lpad(i::VARCHAR, 7, '0'), 1, i, 'made', i + 1, 'real',
    'Where is order ' || md5(i::VARCHAR)[:8] || '? ' || array_to_string([md5((i * 10 + k)::VARCHAR)[:6] FOR k IN range(12)], ' '),
    '[{"kind": "tool", "name": "track_order", "arguments": {"id": "' || md5(i::VARCHAR)[:8] || '"}, "result": "no match"}]', '{}',
    'I could not find it. ' || array_to_string([md5((i * 50 + k)::VARCHAR)[:7] FOR k IN range(50)], ' '),
    '{"language": "' || (['de', 'en', 'fr'])[1 + i % 3] || '", "function": "' || (['tracking', 'invoice'])[1 + i % 2] || '"}',
    md5(i::VARCHAR), md5(i::VARCHAR), now()::TIMESTAMP
FROM range(?) made(i)
"""


def make(path: Path, count: int) -> Workspace:
    """A workspace with ``count`` traces of about 700 characters, the first of them labelled, and one criterion."""
    workspace = Workspace(path)
    with Store(workspace) as store:
        store.call(_fill, count)
    return workspace


def big_trace(tx: Transaction, characters: int) -> None:
    """Give the first trace a response of so many characters."""
    sentence = "The parcel was handed over and is on its way to the place that the order names. "
    tx.execute("UPDATE trace SET response = repeat(?, ?) WHERE position = 0", sentence, characters // len(sentence))
    assert traces.at(tx, 0)


def _fill(tx: Transaction, count: int) -> None:
    tx.execute(_TRACES, count)
    criteria.add(
        tx, Criterion(CRITERION, "Was the request resolved?", "Judge the answer.", "it was resolved", "it was not")
    )
    given = [
        Label(f"T-{i:07d}", CRITERION, Mark.FAIL if i % 4 == 0 else Mark.PASS, f"Critique {i}.", "Ines", "hand")
        for i in range(min(LABELS, count // 2))
    ]
    labels.add_many(tx, given)
    settings.write(tx, "criterion", CRITERION)
    settings.write(tx, "expert", "Ines")
    # It opens where the expert left it.
    settings.write(tx, "screen", "label")
