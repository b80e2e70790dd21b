"""What to make of a ranking of prompts, in one sentence of plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

HIGH_TAU: Final = 0.6
"""From here on two rankings count as alike: eight of ten pairs of prompts stand in the same order."""

MANY_ITEMS: Final = 100_000
"""More items than these are a way of saying never."""

LOW_TOP1: Final = 0.5
SAFE_TOP1: Final = 0.9
"""Below the one, two seeds rather disagree on the best prompt; from the other on, they nearly always agree."""


@dataclass(frozen=True)
class Headline:
    """What to expect between two seeds at one k; None where undefined."""

    k: int
    tau_b: float | None
    top1: float | None
    tied_pairs: float | None
    tied_top: float | None


def advise(
    *,
    n_items: int,
    ranked: int,
    leaders: Sequence[str],
    mean: float | None,
    headlines: Sequence[Headline],
    leader_items: Sequence[int] = (),
    best_set: Sequence[str] | None = None,
    winner_items: int | None = None,
    common: int | None = None,
    settled: bool = True,
) -> str:
    """One sentence, ending in a full stop, on whether to ship the leader.

    ``leaders`` are the prompts with the best mean (several when tied), each over its own number of ``leader_items``
    (``n_items`` unless said), ``ranked`` how many prompts have a mean, ``common`` how many items have an outcome of each
    of these: where these are less than half, the means do not compare, and that is all that is said. Otherwise it leads
    with the ``best_set``, the prompts that may be the best with 95 % confidence (None where that is not known), and the
    ``winner_items``: how many new ones would put the leader first again with 95 %, were its lead what it looks like (None
    where no number would). That is no promise that as many items tell who is best. Of stability it speaks at the largest
    k that is at most half of the items: subsets larger than that agree because they overlap. Ties are always said. Not
    ``settled``: outcomes still come.
    """
    over = _range_of_items(leader_items or (n_items,))
    if ranked < 2:
        return f"There is nothing to rank: {'one prompt has' if ranked else 'no prompt has'} outcomes."
    if len(leaders) == ranked:
        return f"Nothing tells the prompts apart: all {ranked:,} tie with {number(mean)} over {over}."
    first = _first(leaders, mean, over)
    if common is not None and 2 * common < n_items:
        shared = f"only {common:,} of {_items(n_items)} have" if common else f"none of {_items(n_items)} has"
        return (
            f"{first}, but {shared} an outcome of every prompt: the means are over different items, and do not compare."
        )
    # Of a few items that all have answered so far nobody wants to know how many more it would take.
    first += _best(best_set, leaders, ranked, winner_items if settled else None)
    return f"{first}; {_stability(headlines, n_items, len(leaders), settled=settled)}."


def _best(best_set: Sequence[str] | None, leaders: Sequence[str], ranked: int, winner_items: int | None) -> str:
    if best_set is None:
        return ""
    if not set(leaders) <= set(best_set):
        # The best set is of the items that every prompt has an outcome on, a mean is over all that its prompt has.
        return f", but by the items that every prompt has an outcome on only {_listed(best_set)} may be the best (95 %)"
    if len(best_set) == 1:
        return ", and no other may be the best (95 %)"
    others = [name for name in best_set if name not in leaders]
    named = f" ({_listed(others)} besides)" if others else ""
    which = f"any of the {ranked:,}" if len(best_set) == ranked else f"{len(best_set):,} of {ranked:,}"
    if winner_items is None or len(leaders) > 1:
        needed = ""
    else:
        many = winner_items > MANY_ITEMS
        items = f"more than {MANY_ITEMS:,}" if many else f"about {_rounded(winner_items):,}"
        needed = f", and {_short(leaders[0])} would need {items} new items to lead again with 95 %, if its lead is real"
    return f", but {which} may be the best{named}{needed}"


def _stability(headlines: Sequence[Headline], n_items: int, leaders: int, *, settled: bool) -> str:
    shown = headline(headlines, n_items)
    if shown is None and not settled:
        return "how stable that is shows once more items are answered by every prompt"
    if shown is None:
        return f"how stable that is cannot be said, because no subset size asked for is below the {_items(n_items)} there are"
    at, ties = f"at k = {shown.k:,}", _ties(shown)
    if shown.tau_b is None or shown.top1 is None:
        return f"{at} nothing can be said of its stability, because too little is ranked there; {ties}"
    alike, same = f"tau-b {number(shown.tau_b, 2)}", percent(shown.top1)
    overlap = _overlap(shown, n_items)
    if shown.top1 < LOW_TOP1 and shown.tau_b >= HIGH_TAU:
        return (
            f"do not ship on the first place: {at} two seeds order the prompts alike ({alike}) and yet crown the same one "
            f"only {same} of the time, so the high correlation is no stable choice{overlap}; {ties}"
        )
    if shown.top1 < LOW_TOP1:
        return (
            f"do not ship on the first place: {at} two seeds agree little on the order ({alike}) and crown the same prompt "
            f"{same} of the time{overlap}; {ties}"
        )
    if shown.top1 < SAFE_TOP1 or leaders > 1:
        return (
            f"the first place is not safe: {at} two seeds crown the same prompt {same} of the time ({alike}){overlap}; "
            f"{ties}"
        )
    return (
        f"{at} two seeds crown the same prompt {same} of the time ({alike}){overlap}, as far as other subsets of these "
        f"items go; {ties}"
    )


def headline(headlines: Sequence[Headline], n_items: int) -> Headline | None:
    """The one that the sentence speaks of: the largest k up to half of the items, else the smallest below all of them."""
    below = sorted((row for row in headlines if row.k < n_items), key=lambda row: row.k)
    half = [row for row in below if 2 * row.k <= n_items]
    return half[-1] if half else below[0] if below else None


def number(value: float | None, digits: int = 3) -> str:
    """A figure with a fixed number of decimals, without the 0 before the point: ".248", "1.000", "-" where undefined."""
    if value is None:
        return "-"
    text = f"{value:.{digits}f}"
    if float(text) == 0.0:
        text = text.removeprefix("-")
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def percent(share: float | None) -> str:
    """A share as a percentage; with a decimal below 10 %, and never 0 % or 100 % for a share that is neither."""
    if share is None:
        return "-"
    if 0.0 < share < 0.0005:
        return "< 0.1 %"
    if 0.9995 < share < 1.0:
        return "> 99.9 %"
    digits = 0 if share == 0.0 or 0.1 <= share < 0.995 or share == 1.0 else 1
    return f"{100.0 * share:.{digits}f} %"


def _first(leaders: Sequence[str], mean: float | None, over: str) -> str:
    where = f"with {number(mean)} over {over}"
    if len(leaders) == 1:
        return f"{_short(leaders[0])} leads {where}"
    return f"{_listed(leaders)} tie for the lead {where}"


def _ties(shown: Headline) -> str:
    return f"{percent(shown.tied_top)} of conditions tie several on top, {percent(shown.tied_pairs)} of pairs of prompts tie"


def _overlap(shown: Headline, n_items: int) -> str:
    if 2 * shown.k <= n_items:
        return ""
    return f", which flatters, because the subsets share {percent(shown.k / n_items)} of their items"


def _rounded(items: int) -> int:
    """Two figures are enough of a plan."""
    step = int(10 ** max(len(str(items)) - 2, 0))
    return -(-items // step) * step


def _listed(names: Sequence[str]) -> str:
    names = [_short(name) for name in names]
    if len(names) > 4:
        return f"{', '.join(names[:3])} and {len(names) - 3:,} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _short(name: str) -> str:
    text = " ".join(name.split())
    return text if len(text) <= 40 else text[:39] + "\N{HORIZONTAL ELLIPSIS}"


def _range_of_items(counts: Sequence[int]) -> str:
    fewest, most = min(counts), max(counts)
    return _items(most) if fewest == most else f"{fewest:,} to {most:,} items"


def _items(count: int) -> str:
    return "1 item" if count == 1 else f"{count:,} items"
