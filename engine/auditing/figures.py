"""The figures of an audit under their public names: one source for the screen, the store and `--json`.

Positive = the judge reports a failure.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from engine.auditing.sentence import plain_sentence
from stats.confusion import Confusion, is_constant, no_verdict_bounds, rates
from stats.gates import default_gate
from stats.intervals import Proportion

POSITIVE = "the judge reports a failure"

PROPORTIONS = ("tpr", "tnr", "precision", "recall", "agreement", "baseline_agreement")
"""Names of the figures that are k of n, in the order in which they are shown."""


@dataclass(frozen=True)
class FigureRow:
    """One named figure with its 95 % interval; ``k`` and ``n`` are None for kappa, the rest where undefined."""

    name: str
    k: int | None
    n: int | None
    value: float | None
    low: float | None
    high: float | None


def confusion_json(confusion: Confusion) -> dict[str, int]:
    """The counts by name. ``no_verdict`` is split by the expert's verdict in the two entries after it."""
    return {
        "tp": confusion.tp,
        "fn": confusion.fn,
        "fp": confusion.fp,
        "tn": confusion.tn,
        "no_verdict": confusion.no_verdict,
        "no_verdict_fail": confusion.no_verdict_fail,
        "no_verdict_pass": confusion.no_verdict_pass,
        "unlabelled": confusion.unlabelled,
    }


def figures_json(confusion: Confusion) -> dict[str, Any]:
    """Every figure of an audit as JSON values.

    ``n`` counts the cases with a human label, those without a judge verdict included; each rate's own n leaves the
    latter out. Proportions are {k, n, value, low, high} with the last three null where n = 0. ``kappa`` is
    {value, low, high}, null where undefined. ``constant_judge`` is the one verdict that the judge gave, or null.
    """
    figures, bounds = rates(confusion), no_verdict_bounds(confusion)
    return {
        "sentence": plain_sentence(confusion),
        "positive": POSITIVE,
        "interval": "95 %: Wilson for k of n, large-sample for kappa",
        "n": confusion.labelled,
        "confusion": confusion_json(confusion),
        **{name: asdict(getattr(figures, name)) for name in PROPORTIONS},
        "kappa": asdict(figures.kappa),
        "constant_judge": is_constant(confusion),
        "no_verdict_bounds": {
            "tpr": {"as_pass": asdict(bounds.tpr_as_pass), "as_fail": asdict(bounds.tpr_as_fail)},
            "tnr": {"as_pass": asdict(bounds.tnr_as_pass), "as_fail": asdict(bounds.tnr_as_fail)},
        },
        "gate": asdict(default_gate(confusion)),
    }


def figure_rows(confusion: Confusion) -> list[FigureRow]:
    """The same figures as rows for a table: the proportions, kappa, and the bounds that missing verdicts leave."""
    figures, bounds = rates(confusion), no_verdict_bounds(confusion)
    rows = [_row(name, getattr(figures, name)) for name in PROPORTIONS]
    rows.append(FigureRow("kappa", None, None, figures.kappa.value, figures.kappa.low, figures.kappa.high))
    rows.extend(
        _row(name, bound)
        for name, bound in (
            ("tpr_no_verdict_as_pass", bounds.tpr_as_pass),
            ("tpr_no_verdict_as_fail", bounds.tpr_as_fail),
            ("tnr_no_verdict_as_pass", bounds.tnr_as_pass),
            ("tnr_no_verdict_as_fail", bounds.tnr_as_fail),
        )
    )
    return rows


def _row(name: str, figure: Proportion) -> FigureRow:
    return FigureRow(name, figure.k, figure.n, figure.value, figure.low, figure.high)
