"""The demo workspace: sample traces, two criteria, one expert's labels, both piles; made by the product's own functions."""

from __future__ import annotations

import json
from collections.abc import Iterator

import sample_data
from engine.importing.mapping import guess_mapping
from engine.importing.reading import read_records
from engine.importing.records import TraceRecord
from engine.judging.criterion import Criterion
from engine.store import criteria, dimensions, labels, piles, settings, sources, traces
from engine.store.labels import Label, Mark
from engine.store.store import Store
from engine.store.transaction import Transaction

EXPERT = "Ines Aerts"
LABELLED_CRITERION = "resolved"


def fill(store: Store) -> None:
    """Fill an empty workspace with the sample data; one that has traces is left as it is."""
    if store.call(traces.count) == 0:
        store.call(_fill)


def _fill(tx: Transaction) -> None:
    path = sample_data.path("support_traces.jsonl")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    records = [r for r in read_records(path, guess_mapping(rows[:20]), "traces", None) if isinstance(r, TraceRecord)]
    added, _, _ = traces.add(tx, "sample-traces", records)
    sources.add(
        tx, "sample-traces", path=path.name, kind="traces", format="jsonl", mapping={}, accepted=added, refused=0
    )
    for name in ("function", "scenario", "persona", "language"):
        dimensions.add(tx, name, author=EXPERT)
    for entry in json.loads(sample_data.path("criteria.json").read_text("utf-8")):
        criteria.add(tx, Criterion.from_mapping(entry))
    # Sealed first, at random; what the expert labelled by hand afterwards becomes the build pile.
    wanted, seed = sample_data.SEALED_DRAW
    sealed = piles.draw_sealed(tx, LABELLED_CRITERION, wanted, seed).drawn
    labels.add_many(tx, _sample_labels(set(sealed)))
    for label in _sample_labels(set(sealed)):
        if label.trace_id not in sealed:
            piles.put(tx, LABELLED_CRITERION, label.trace_id, piles.BUILD)
    settings.write(tx, "expert", "")
    settings.write(tx, "criterion", LABELLED_CRITERION)
    settings.write(tx, "demo", "1")


def _sample_labels(sealed: set[str]) -> Iterator[Label]:
    path = sample_data.path("support_labels.jsonl")
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        row = json.loads(line)
        if (row["pile"] == "sealed") != (row["id"] in sealed):
            raise ValueError(f"{path.name}, row {number}: the file and the draw disagree on {row['id']}")
        yield Label(
            trace_id=row["id"], criterion_id=row["criterion"], mark=Mark(row["verdict"]), critique=row["critique"],
            expert=row["expert"], how_drawn=row["how_drawn"], source_id="sample-labels", source_row=number,
        )  # fmt: skip
