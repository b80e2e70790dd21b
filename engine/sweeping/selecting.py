"""Which prompt the selection rules choose, what their choices scored where they were not made, and the sentence on top."""

from __future__ import annotations

from dataclasses import dataclass

from engine.sweeping.results import SweepResults

HIGH_TAU = 0.7
LOW_TOP1 = 0.6


@dataclass(frozen=True)
class RuleChoice:
    """What one rule chooses over all conditions; several winners are tied. Held-out figures are None without parts."""

    rule: str
    winners: tuple[str, ...]
    held_out_mean: float | None
    held_out_std: float | None
    parts: int
    tied_parts: int


@dataclass(frozen=True)
class Selection:
    """The choices of mean and LCB, the holdout they were tried on, and what has to be said with them."""

    choices: tuple[RuleChoice, ...]
    z: float
    holdout: str
    notes: tuple[str, ...]


def select(results: SweepResults, z: float) -> Selection:
    """Mean and LCB over the conditions, each tried by leaving out one seed after the other."""
    import numpy as np

    from stats.selection import by_lcb, by_mean, leave_one_out

    means, conditions = results.matrix.means, results.matrix.conditions
    names = [name for _, name in results.sweep.prompts]
    if np.isnan(means).all():
        return Selection((), z, "seed", ("Nothing is scored yet.",))
    several_seeds = len(results.sweep.seeds) > 1
    tried = leave_one_out(means, conditions, z) if several_seeds else None
    rules = [("mean", by_mean(means), tried.mean if tried else None)]
    if len(conditions) > 1:
        rules.append((f"LCB z={z:g}", by_lcb(means, z), tried.lcb if tried else None))
    choices = tuple(
        RuleChoice(
            rule, tuple(names[index] for index in choice.winners), held.mean if held else None, held.std if held else None,
            held.parts if held else 0, held.tied if held else 0,
        )
        for rule, choice, held in rules
    )  # fmt: skip
    notes = [
        "LCB = mean - z s / sqrt(K), s the standard deviation (K - 1) over the K conditions: a heuristic, not a confidence interval.",
        "Held-out seeds draw from the same items, so these scores are optimistic for new ones.",
    ]
    if len({choice.winners for choice in choices}) > 1:
        notes.insert(0, "The rules disagree.")
    return Selection(choices, z, "seed", tuple(notes))


def sentence(results: SweepResults) -> str:
    """One sentence in plain words on how far this ranking can be trusted."""
    scored = [score for score in results.ranked if score.rank is not None]
    if not scored:
        return "Nothing is scored yet."
    top_share, tied = _top_of_conditions(results)
    leaders = [score for score in scored if score.rank == scored[0].rank]
    if len(leaders) > 1:
        first = (
            f"{_names([s.name for s in leaders])} are tied on top ({leaders[0].score_sum:g} of {leaders[0].n} right)"
        )
    else:
        first = f"{scored[0].name} leads with {scored[0].score_sum:g} of {scored[0].n} right"
    close = [s.name for s in scored if s not in leaders and s.high is not None and s.high >= (leaders[0].mean or 0.0)]
    if close:
        first += f"; the interval{'s' if len(close) > 1 else ''} of {_names(close)} reach{'' if len(close) > 1 else 'es'} that far"
    conditions = len(results.matrix.conditions)
    parts = [f"{top_share} of {conditions} conditions crown {'it' if len(leaders) == 1 else 'one of them'}"]
    if tied:
        parts.append(f"{tied} of them ha{'ve' if tied > 1 else 's'} a tie on top")
    tau, top1 = _mean_agreement(results)
    if tau is not None and top1 is not None:
        parts.append(f"between seeds tau-b is {tau:.2f} and top-1 agreement {top1:.2f}")
        if tau >= HIGH_TAU and top1 < LOW_TOP1:
            parts.append("the order is stable, the choice on top is not")
    state = "" if results.complete else f"So far ({results.done} of {results.needed}): "
    return f"{state}{first}; {'; '.join(parts)}."


def _top_of_conditions(results: SweepResults) -> tuple[int, int]:
    """In how many conditions a leader of the whole is on top (alone or tied), and how many are tied on top."""
    import numpy as np

    from stats.ranks import tied_on_top

    leaders = [i for i, s in enumerate(results.scores) if s.rank is not None and s.rank == results.ranked[0].rank]
    ranks = results.ranks
    best = np.nanmin(np.where(np.isnan(ranks), np.inf, ranks), axis=1)
    crowned = int((ranks[:, leaders] == best[:, None]).any(axis=1).sum())
    return crowned, int((tied_on_top(ranks) > 1).sum())


def _mean_agreement(results: SweepResults) -> tuple[float | None, float | None]:
    """Mean tau-b and top-1 agreement over pairs of seeds, at the largest k."""
    from stats.rank_agreement import summarise
    from stats.subsets import seed_pairs

    compared = results.matrix.conditions[: len(results.agreement.tau_b)]
    largest = max(condition.k for condition in compared)
    pairs = [pair for pair in seed_pairs(compared) if compared[pair[0]].k == largest]
    seeds = [condition.seed for condition in compared]
    return (
        summarise(results.agreement.tau_b, pairs, seeds).mean,
        summarise(results.agreement.top1, pairs, seeds).mean,
    )


def _names(names: list[str]) -> str:
    shown = names[:4]
    rest = len(names) - len(shown)
    if rest:
        return f"{', '.join(shown)} and {rest} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
