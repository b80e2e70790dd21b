"""A sweep in text: what was planned, the score matrix as cells, a cell in words, its items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

from rich.cells import cell_len

from engine.sweeping.items import ItemOutcome
from engine.sweeping.overview import SweepStanding
from engine.sweeping.results import PromptScore, SweepResults
from engine.sweeping.sweep import Sweep
from tui.presentation.lines import BLANK, Cell, Line, Span, columns, counted, line, pad, shortened, wrapped
from tui.presentation.run_view import estimate_text, plan_text
from tui.widgets.literal import one_line, visible

ROW_LABEL = 10
FULL = "**"
"""100 in a cell that is too narrow for it."""
LEAST_NAME = 8
"""A name is never shortened to fewer cells."""


def share(value: float | None, places: int = 3) -> str:
    """``.612``; ``1.000`` and ``–`` for what is not known."""
    if value is None:
        return "–"
    text = f"{value:.{places}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def right_of(total: float, n: int) -> str:
    """``18 of 30``; where items were asked several times ``17.7 of 30``."""
    return f"{total:g} of {n}" if total == round(total) else f"{total:.1f} of {n}"


def order_text(planned: Mapping[str, Any]) -> str:
    """What a sweep would take, before it starts or just after."""
    ks = "/".join(map(str, planned["ks"]))
    # Whoever owns the workspace may be of a version that knows no repeats.
    repeats = f" × {planned['repeats']} repeats" if planned.get("repeats", 1) > 1 else ""
    return (
        f"{counted(planned['prompts'], 'prompt')} × {counted(planned['items'], 'item')}{repeats}, "
        f"{counted(len(planned['seeds']), 'seed')} × k {ks}: "
        f"{plan_text(planned['needed'], planned['cached'], planned['awaited'])}{estimate_text(planned)}"
    )


def protocol_text(sweep: Sweep) -> str:
    """The protocol of a sweep in one line."""
    ks = "/".join(map(str, sweep.ks))
    whole = "" if sweep.pool == sweep.dataset_items else f" (of {sweep.dataset_items:,})"
    decoding = "greedy" if not sweep.sampling.get("temperature") else f"temperature {sweep.sampling['temperature']}"
    decoding += f" × {sweep.repeats}" if sweep.repeats > 1 else ""
    decoding += f", {counted(int(sweep.sampling.get('max_tokens', 0)), 'token')}"
    return (
        f"{counted(len(sweep.prompts), 'prompt')} · {counted(sweep.pool, 'item')}{whole} · "
        f"{counted(len(sweep.seeds), 'seed')} × k {ks} · "
        f"{sweep.scorer} · {f'of {sweep.letters}' if sweep.options else decoding}"
    )


def cell_width_for(count: int, width: int) -> int:
    """Four cells a number where they fit, three where they do not; never fewer than the number of a column takes."""
    return max(4 if count * 4 + ROW_LABEL <= width else 3, len(str(count)) + 1)


def digits(value: float | None, cell_width: int) -> str:
    """Hundredths: ``61``, ``-35``, ``100``, ``·`` for nothing; one cell of the width is the gap to the next number.

    Where there is no room for it, 100 is ``**`` and anything below 0 is ``<0``: a number that is cut would be another one.
    """
    if value is None or value != value:
        return "·"
    hundredths = round(100 * value)
    room = cell_width - 1
    text = str(hundredths)
    if len(text) <= room:
        return text
    if hundredths == 100:
        return FULL
    return f"-{FULL}" if room >= 3 else "<0"


def corner_text(figure: str, cell_width: int) -> str:
    """What the numbers are, over the row labels, with the sign that stands for 100 in narrow cells."""
    return (f"{figure} {FULL}=100" if cell_width < 4 else figure).ljust(ROW_LABEL)


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


def score_readout(results: SweepResults, row: int, column: int, width: int) -> str:
    """The cell under the cursor in words, with its coverage; a long name gives way to the figures."""
    if row >= len(results.matrix.conditions) or column >= len(results.sweep.prompts):
        return ""
    condition = results.matrix.conditions[row]
    name = one_line(results.sweep.prompts[column][1])
    total, n = float(results.matrix.sums[row, column]), int(results.matrix.counts[row, column])
    mean = f"{right_of(total, n)} right ({share(total / n)})" if n else "nothing yet"
    where, said = f"seed {condition.seed}, k {condition.k} × {column + 1} ", f": {mean}, coverage {n} of {condition.k}"
    return f"{where}{shortened(name, max(width - cell_len(where + said), LEAST_NAME))}{said}"


def legend_lines(results: SweepResults, width: int, cut_off: Mapping[str, int] | None = None) -> list[Line]:
    """The prompts by the number of their column, with what each has so far; ``cut_off`` replies by prompt id."""
    cut_off = cut_off or {}
    figures = f" {'mean':>6} {'right':>12}{'no answer':>11}{'failed':>8}" + (f"{'cut off':>9}" if cut_off else "")
    figures += f"{'flips':>7}" if results.sweep.repeats > 1 else ""
    longest = max((cell_len(one_line(score.name)) for score in results.scores), default=0)
    name_width = max(min(max(longest, len("prompt")), width - 4 - len(figures)), LEAST_NAME)
    lines = [line((f"{'':>3} {pad('prompt', name_width)}{figures}", "dim"))]
    lines += [
        (
            Span(f"{number:>3} "),
            Span(pad(one_line(score.name), name_width), "strong"),
            Span(f" {share(score.mean):>6} {right_of(score.score_sum, score.n):>12}"),
            Span(f"{score.no_answer:>11}", "warn" if score.no_answer else "dim"),
            Span(f"{score.failed:>8}", "fail" if score.failed else "dim"),
            Span(
                f"{cut_off.get(score.prompt_id, 0):>9}" if cut_off else "",
                "warn" if score.prompt_id in cut_off else "dim",
            ),
            Span(f"{share(score.flip_rate):>7}" if results.sweep.repeats > 1 else ""),
        )
        for number, score in enumerate(results.scores, 1)
    ]
    if not results.complete:
        shared = max((score.n for score in results.scores), default=0)
        lines.append(line((f"{'':>3} over the {counted(shared, 'item')} that all prompts have answered so far", "dim")))
    return lines


def ranking_row(prompt: Mapping[str, Any] | PromptScore, name_width: int) -> str:
    """``  1.5  check-steps  .612  [.571, .652]  306 of 500``: one prompt in plain text."""
    given = prompt if isinstance(prompt, Mapping) else vars(prompt)
    rank = "–" if given["rank"] is None else f"{given['rank']:g}"
    interval = f"[{share(given['low'])}, {share(given['high'])}]" if given["low"] is not None else ""
    none = f"  no answer {given['no_answer']}" if given["no_answer"] else ""
    failed = f"  failed {given['failed']}" if given["failed"] else ""
    flips = "" if given["flip_rate"] is None else f"  flips {share(given['flip_rate'])}"
    return (
        f"{rank:>5}  {pad(one_line(given['name']), name_width)}  {share(given['mean']):>5}  {interval:<14}  "
        f"{right_of(given['score_sum'], given['n'])}{none}{failed}{flips}"
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
        *columns([(Span("cut off" if item.is_cut_off else "", "warn"), 8)]),
        *columns([(Span(one_line(item.answer), "dim"), 14), (Span(" "), 1)]),
        Span(pad(one_line(item.text), max(width - 42, 8))),
    )


def item_lines(item: ItemOutcome, width: int) -> list[Line]:
    """An item in full: the request as the model got it, the raw reply, what was read out of it."""
    verdict = (
        "no answer" if item.no_answer else {1.0: "right", 0.0: "wrong"}.get(item.score or 0.0, f"score {item.score}")
    )
    if item.score is None:
        verdict = "failed" if item.problem else "no outcome yet"
    lines = [
        line(
            ("item ", "dim"),
            one_line(item.item_id),
            (f", repeat {item.repeat + 1}" if item.repeat else "", "dim"),
            ("   reference ", "dim"),
            one_line(item.answer),
        ),
    ]
    how = f"   by {one_line(item.rule) or '–'}   "
    room = width - len("read ") - cell_len(how) - len(verdict)
    lines.append(
        line(("read ", "dim"), shortened(one_line(item.extracted) or "–", max(room, LEAST_NAME)), (how, "dim"), verdict)
    )
    if item.problem:
        lines += wrapped(visible(item.problem), width, "warn")
    lines += [BLANK, line(("REPLY", "key")), *(_likelihood_lines(item) or wrapped(visible(item.reply), width))]
    if item.is_cut_off:
        lines.append(line(("… cut off here", "warn")))
    for message in item.messages:
        lines += [BLANK, line((f"REQUEST ({message['role']})", "key")), *wrapped(visible(message["content"]), width)]
    return lines


def _likelihood_lines(item: ItemOutcome) -> list[Line]:
    """``B  .612``: the probability of each listed option as the first token, the likeliest first."""
    likely = item.probabilities
    if not likely:
        return []
    rest = max(1.0 - sum(likely.values()), 0.0)
    lines = [line(one_line(option), "  ", share(probability)) for option, probability in likely.items()]
    return [*lines, line((f"{share(rest)} for all other beginnings of a reply", "dim"))]


def items_title(results: SweepResults, row: int, column: int, items: Sequence[ItemOutcome], width: int) -> str:
    """What a list of items is about, with its counts, in one line; a long name gives way to them."""
    right = sum(1 for item in items if item.score == 1.0)
    none = sum(1 for item in items if item.no_answer)
    missing = sum(1 for item in items if item.score is None)
    condition = results.matrix.conditions[row]
    parts = [f"{right} right", f"{len(items) - right - missing - none} wrong", f"{none} no answer"]
    parts += [f"{missing} missing"] if missing else []
    said = f" · seed {condition.seed}, k {condition.k}: {', '.join(parts)}"
    return shortened(one_line(results.sweep.prompts[column][1]), max(width - cell_len(said), LEAST_NAME)) + said


def standing_line(standing: SweepStanding, width: int) -> Line:
    """One sweep on Home: its winner, how stable it is, and when it was started; long names give way to the figures."""
    name, when = one_line(standing.name), _when(standing)
    if not standing.leaders:
        said = f"  {standing.run.status}, nothing scored yet"
        return line((shortened(name, max(width - cell_len(said + when), LEAST_NAME)), "strong"), (said + when, "dim"))
    leaders = [one_line(leader) for leader in standing.leaders]
    lead = "lead" if len(leaders) > 1 else "leads"
    # While a run goes, conditions hold some prompts on more items than others.
    said = f" {lead}, " + (
        "so far" if standing.run.is_active else f"on top in {standing.crowned} of {standing.conditions}"
    )
    winner = ""
    for named in (2, 1):
        rest = len(leaders) - named
        winner = " and ".join(leaders[:named])
        tail = (f" and {rest} more" if rest > 0 else "") + said
        room = width - cell_len(f"  {tail}{when}")
        if cell_len(name) + cell_len(winner) <= room:
            break
    # Each may keep what the other one leaves of it.
    name = shortened(name, max(room - cell_len(winner), room // 2, LEAST_NAME))
    winner = shortened(winner, max(room - cell_len(name), LEAST_NAME))
    return line((name, "strong"), f"  {winner}{tail}", (when, "dim"))


def _when(standing: SweepStanding) -> str:
    # Two sweeps of one dataset and model have the same name.
    moment = standing.run.created_at
    return "" if moment is None else moment.replace(tzinfo=UTC).astimezone().strftime("  %d %b %H:%M")
