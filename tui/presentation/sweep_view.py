"""A sweep in text: what was planned, the score matrix as cells, a cell in words, its items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.sweeping.items import ItemOutcome
from engine.sweeping.overview import SweepStanding
from engine.sweeping.results import PromptScore, SweepResults
from engine.sweeping.sweep import Sweep
from tui.presentation.lines import BLANK, Cell, Line, Span, columns, line, pad, wrapped
from tui.presentation.run_view import duration, plan_text
from tui.widgets.literal import one_line, visible

ROW_LABEL = 10


def share(value: float | None, places: int = 3) -> str:
    """``.612``; ``1.000`` and ``–`` for what is not known."""
    if value is None:
        return "–"
    text = f"{value:.{places}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def order_text(planned: Mapping[str, Any]) -> str:
    """What a sweep would take, before it starts or just after."""
    seconds = planned.get("seconds")
    about = f", about {duration(seconds)}" if seconds and planned["to_run"] else ""
    ks = "/".join(map(str, planned["ks"]))
    return (
        f"{planned['prompts']} prompts × {planned['items']} items, {len(planned['seeds'])} seeds × k {ks}: "
        f"{plan_text(planned['needed'], planned['cached'], planned['awaited'])}{about}"
    )


def protocol_text(sweep: Sweep) -> str:
    """The protocol of a sweep in one line."""
    ks = "/".join(map(str, sweep.ks))
    whole = "" if sweep.pool == sweep.dataset_items else f" (of {sweep.dataset_items:,})"
    decoding = "greedy" if not sweep.sampling.get("temperature") else f"temperature {sweep.sampling['temperature']}"
    return (
        f"{len(sweep.prompts)} prompts · {sweep.pool:,} items{whole} · {len(sweep.seeds)} seeds × k {ks} · "
        f"{sweep.scorer} · {decoding}, {sweep.sampling.get('max_tokens')} tokens"
    )


def cell_width_for(count: int, width: int) -> int:
    """Four cells a number where they fit, three where they do not."""
    return 4 if count * 4 + ROW_LABEL <= width else 3


def digits(value: float | None, cell_width: int) -> str:
    """Hundredths: ``61``, ``-35``, ``100`` (``1.`` where there is no room for it), ``·`` for nothing."""
    if value is None or value != value:
        return "·"
    hundredths = round(100 * value)
    return "1." if hundredths == 100 and cell_width < 4 else str(hundredths)


def heads(count: int, cell_width: int) -> Line:
    """The numbers of the columns, from 1."""
    return line(("".join(f"{number:>{cell_width - 1}} " for number in range(1, count + 1)), "dim"))


def condition_label(seed: int, k: int) -> Line:
    """A condition at the left of its row."""
    return line((pad(f"s{seed} k{k}", ROW_LABEL), "dim"))


def score_cells(results: SweepResults, cell_width: int) -> list[list[Cell]]:
    """Mean scores in hundredths, conditions x prompts; a cell that is not yet fully covered is not shaded."""
    means, counts = results.matrix.means, results.matrix.counts
    rows = []
    for c, condition in enumerate(results.matrix.conditions):
        row = []
        for p in range(len(results.sweep.prompts)):
            value = float(means[c, p]) if counts[c, p] else None
            row.append(
                Cell(digits(value, cell_width), value if value is not None and counts[c, p] == condition.k else None)
            )
        rows.append(row)
    return rows


def score_readout(results: SweepResults, row: int, column: int) -> str:
    """The cell under the cursor in words, with its coverage."""
    if row >= len(results.matrix.conditions) or column >= len(results.sweep.prompts):
        return ""
    condition = results.matrix.conditions[row]
    name = one_line(results.sweep.prompts[column][1])
    total, n = float(results.matrix.sums[row, column]), int(results.matrix.counts[row, column])
    mean = f"{total:g} of {n} right ({share(total / n)})" if n else "nothing yet"
    return f"seed {condition.seed}, k {condition.k} × {column + 1} {name}: {mean}, coverage {n} of {condition.k}"


def legend_lines(results: SweepResults, width: int) -> list[Line]:
    """The prompts by the number of their column, with what each has so far."""
    name_width = max(min(max((len(one_line(s.name)) for s in results.scores), default=4), width - 44), 8)
    lines = [line((f"{'':>3} {pad('prompt', name_width)} {'mean':>6} {'right':>12}   no answer   failed", "dim"))]
    lines += [
        (
            Span(f"{number:>3} "),
            Span(pad(one_line(score.name), name_width), "strong"),
            Span(f" {share(score.mean):>6} {f'{score.score_sum:g} of {score.n}':>12}"),
            Span(f"{score.no_answer:>12}", "warn" if score.no_answer else "dim"),
            Span(f"{score.failed:>9}", "fail" if score.failed else "dim"),
        )
        for number, score in enumerate(results.scores, 1)
    ]
    return lines


def ranking_row(prompt: Mapping[str, Any] | PromptScore, name_width: int) -> str:
    """``  1.5  check-steps  .612  [.571, .652]  306 of 500``: one prompt in plain text."""
    given = prompt if isinstance(prompt, Mapping) else vars(prompt)
    rank = "–" if given["rank"] is None else f"{given['rank']:g}"
    interval = f"[{share(given['low'])}, {share(given['high'])}]" if given["low"] is not None else ""
    none = f"  no answer {given['no_answer']}" if given["no_answer"] else ""
    failed = f"  failed {given['failed']}" if given["failed"] else ""
    return (
        f"{rank:>5}  {pad(one_line(given['name']), name_width)}  {share(given['mean']):>5}  {interval:<14}  "
        f"{given['score_sum']:g} of {given['n']}{none}{failed}"
    )


def item_row(item: ItemOutcome, width: int) -> Line:
    """One item of a cell: right or wrong, what was read out of the reply, the reference, the item."""
    glyph = {1.0: Span("✓", "pass"), 0.0: Span("✗", "fail")}.get(
        item.score if item.score is not None else -1.0, Span("!", "warn")
    )
    if item.no_answer:
        glyph = Span("–", "warn")
    return (
        glyph,
        Span(" "),
        *columns([(Span(one_line(item.extracted) or ("no answer" if item.no_answer else "")), 16), (Span(" "), 1)]),
        *columns([(Span(one_line(item.answer), "dim"), 14), (Span(" "), 1)]),
        Span(pad(one_line(item.text), max(width - 34, 8))),
    )


def item_lines(item: ItemOutcome, width: int) -> list[Line]:
    """An item in full: the request as the model got it, the raw reply, what was read out of it."""
    verdict = (
        "no answer" if item.no_answer else {1.0: "right", 0.0: "wrong"}.get(item.score or 0.0, f"score {item.score}")
    )
    if item.score is None:
        verdict = "failed" if item.problem else "no outcome yet"
    lines = [
        line(("item ", "dim"), one_line(item.item_id), ("   reference ", "dim"), one_line(item.answer)),
        line(
            ("read ", "dim"),
            one_line(item.extracted) or "–",
            (f"   by {one_line(item.rule) or '–'}   ", "dim"),
            verdict,
        ),
    ]
    if item.problem:
        lines += wrapped(visible(item.problem), width, "warn")
    lines += [BLANK, line(("REPLY", "key")), *wrapped(visible(item.reply), width)]
    for message in item.messages:
        lines += [BLANK, line((f"REQUEST ({message['role']})", "key")), *wrapped(visible(message["content"]), width)]
    return lines


def items_title(results: SweepResults, row: int, column: int, items: Sequence[ItemOutcome]) -> str:
    """What a list of items is about, with its counts."""
    right = sum(1 for item in items if item.score == 1.0)
    none = sum(1 for item in items if item.no_answer)
    missing = sum(1 for item in items if item.score is None)
    condition = results.matrix.conditions[row]
    parts = [f"{right} right", f"{len(items) - right - missing - none} wrong", f"{none} no answer"]
    return f"{one_line(results.sweep.prompts[column][1])} · seed {condition.seed}, k {condition.k}: " + ", ".join(
        parts + ([f"{missing} missing"] if missing else [])
    )


def standing_line(standing: SweepStanding) -> Line:
    """One sweep on Home: its winner and how stable it is."""
    name = (one_line(standing.name), "strong")
    if not standing.leaders:
        return line(name, (f"  {standing.run.status}, nothing scored yet", "dim"))
    winners = " and ".join(one_line(leader) for leader in standing.leaders[:2])
    more = f" and {len(standing.leaders) - 2} more" if len(standing.leaders) > 2 else ""
    lead = "lead" if len(standing.leaders) > 1 else "leads"
    return line(name, f"  {winners}{more} {lead}, on top in {standing.crowned} of {standing.conditions} conditions")
