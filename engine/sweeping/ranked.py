"""A sweep's outcomes ranked as a file of outcomes is: what is expected of other seeds, the choices, the sentence on top."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.sweeping.results import SweepResults, results_json

if TYPE_CHECKING:
    from engine.ranking.ranking import Ranking


def rank_sweep(results: SweepResults, z: float) -> Ranking:
    """Rank the prompts of a sweep under its own conditions; see `engine.ranking.ranking.rank_outcomes`."""
    from engine.ranking.outcomes import OutcomeTable
    from engine.ranking.ranking import RankingOptions, rank_outcomes

    sweep = results.sweep
    table = OutcomeTable(
        sweep.name,
        "wide",
        tuple(name for _, name in sweep.prompts),
        tuple(str(position) for position in sweep.pool_items),
        results.compared,
    )
    options = RankingOptions(tuple(sweep.seeds), tuple(sweep.ks), results.top, z)
    return rank_outcomes(table, options, settled=results.complete)


def sentence(results: SweepResults, ranking: Ranking) -> str:
    """What to make of the ranking, in one sentence of plain words; while outcomes still come it says so."""
    so_far = "" if results.complete else f"So far ({results.done:,} of {results.needed:,}): "
    return so_far + ranking.advice


def ranked_json(results: SweepResults, z: float) -> dict[str, Any]:
    """The sweep and its ranking as ``evaldesk sweep --json`` prints them; the ranking as ``evaldesk rank --json`` does."""
    from engine.ranking.ranking_json import ranking_json

    ranking = rank_sweep(results, z)
    return {**ranking_json(ranking), **results_json(results), "advice": sentence(results, ranking)}
