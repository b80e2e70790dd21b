"""A ranking as one JSON object, under its public names; null where a figure is undefined or not computed."""

from __future__ import annotations

from typing import Any

from engine.ranking.ranking import Ranking
from stats.protocol import FIGURES, Protocol
from stats.stability import Figure


def ranking_json(ranking: Ranking) -> dict[str, Any]:
    """The ranking as ``evaldesk rank --json`` prints it.

    ``stability[].expected`` is what any two seeds are expected to show, ``method`` how each of its figures was
    obtained; ``simulated`` is what the drawn seeds show, the mean over their pairs.
    """
    decision, prompts = ranking.decision, ranking.table.prompts
    return {
        "advice": ranking.advice,
        "n_items": len(ranking.table.items),
        "n_prompts": len(prompts),
        "interval": "95 % over items: Wilson for 0/1 outcomes, t for other numbers",
        "options": {
            "seeds": list(ranking.options.seeds),
            "k": [row.k for row in ranking.protocol.stability],
            "top": ranking.top,
            "z": ranking.options.z,
            "holdout": ranking.options.holdout,
        },
        "scores": [
            {
                "prompt": score.prompt,
                "mean": score.mean.mean,
                "low": score.mean.low,
                "high": score.mean.high,
                "n": score.mean.n,
                "rank": score.rank,
            }
            for score in ranking.best_first
        ],
        "stability": _stability(ranking.protocol),
        "best_set": None if ranking.best_set is None else list(ranking.best_set),
        "rank_intervals": None
        if decision is None
        else [
            {"prompt": prompts[column], "low": low, "high": high}
            for column, (low, high) in decision.rank_intervals.items()
        ],
        "items_needed": {
            "winner_95": decision.winner_items if decision else None,
            "top_pair": decision.top_pair if decision else None,
        },
        "reliability": None
        if decision is None
        else {
            "at": [{"k": k, "value": value} for k, value in decision.reliability.items()],
            "items_for_90": decision.reliable_items,
        },
        "complete_items": decision.items if decision else None,
        "selection": _selection(ranking),
        "extractors": None,
        "notes": list(ranking.notes),
    }


def _stability(found: Protocol) -> list[dict[str, Any]]:
    rows = []
    for row, reference in zip(found.stability, found.reference, strict=True):
        expected: dict[str, Figure | None] = {name: getattr(row.expected, name, None) for name in FIGURES}
        ties: dict[str, Figure | None] = {
            "pairs_share": getattr(row.expected, "tied_pairs", None),
            "top_share": getattr(row.expected, "tied_top", None),
        }
        rows.append(
            {
                "k": row.k,
                "expected": _values(expected),
                "method": {**_methods(expected), "ties": _methods(ties)},
                "simulated": {
                    **{name: row.drawn[name].mean for name in FIGURES},
                    "std_over_pairs": {name: row.drawn[name].std_over_pairs for name in FIGURES},
                    "jackknife_error": {name: row.drawn[name].standard_error for name in FIGURES},
                    "pairs": {name: row.drawn[name].pairs for name in FIGURES},
                },
                "reference": {
                    **{name: getattr(reference.drawn, name) for name in (*FIGURES, "top1_share")},
                    "conditions": reference.drawn.conditions,
                    "per_prompt": reference.drawn.per_prompt,
                    "ties": reference.drawn.ties,
                    "expected": {name: figure.value for name, figure in reference.expected.items()},
                },
                "ties": _values(ties),
                "overlap": row.overlap,
                "finite_population_factor": 1.0 - row.overlap,
            }
        )
    return rows


def _selection(ranking: Ranking) -> dict[str, Any]:
    rules, prompts = ranking.protocol.selection, ranking.table.prompts
    return {
        "winners": {row.rule: [prompts[winner] for winner in row.choice.winners] for row in rules} or None,
        "loso": {
            row.rule: {
                "mean": row.held_out.mean,
                "std": row.held_out.std,
                "held_out": row.held_out.parts,
                "tied": row.held_out.tied,
                "expected": row.expected.value,
                "method": row.expected.method,
            }
            for row in rules
        }
        or None,
        "folds": {
            rule: {
                "mean": held.mean,
                "standard_error": held.standard_error,
                "in_sample": held.in_sample,
                "folds": held.folds,
                "tied": held.tied,
            }
            for rule, held in ranking.folds.items()
        }
        or None,
    }


def _values(figures: dict[str, Figure | None]) -> dict[str, float | None]:
    return {name: figure.value if figure else None for name, figure in figures.items()}


def _methods(figures: dict[str, Figure | None]) -> dict[str, str | None]:
    return {name: figure.method if figure else None for name, figure in figures.items()}
