"""Runs in text: a line in the list, the details, how long it will still take."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.runs.gpu_use import GpuUse, gpu_use
from engine.runs.protocol import RunState
from engine.store.runs import Run
from tui.presentation.lines import BLANK, Line, Span, columns, counted, line, wrapped
from tui.widgets.literal import one_line, visible

STATUS_STYLES = {
    "done": "pass", "failed": "fail", "cancelled": "dim", "paused": "warn", "interrupted": "warn", "running": "accent",
    "loading": "accent", "queued": "plain", "waiting": "plain",
}  # fmt: skip


def duration(seconds: float | None) -> str:
    """``38 s``, ``14 min`` or ``3 h 04 min``; "?" when not known."""
    if seconds is None:
        return "?"
    whole = max(int(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(round(whole / 60), 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min"


def bar(done: int, total: int, width: int) -> str:
    """A progress bar of ``width`` cells."""
    filled = 0 if not total else min(int(width * done / total), width)
    return "▓" * filled + "░" * (width - filled)


def progress_of(run: Run, state: RunState | None, settled: int = 0) -> tuple[int, int]:
    """(requests with a result, requests needed) of a run; cached ones have theirs from the start.

    ``settled`` of them have one in the store: what another run brings is counted only there.
    """
    if run.status == "done":
        return run.needed, run.needed
    finished = (state.done + state.failed) if state else 0
    return min(max(run.cached + finished, settled), run.needed), run.needed


def status_of(run: Run, state: RunState | None) -> str:
    """The live status where there is one; the store's where the run is settled."""
    return str(state.status) if state and run.finished_at is None and run.status != "waiting" else run.status


def speed_text(state: RunState) -> str:
    """How fast a run is and how long it will still take, or what it does before that is known; "" for one that stands."""
    if state.status == "loading":
        return "" if state.message else "the model is being loaded"
    if state.status != "running":
        return ""
    if state.eta_s is None:
        return "first replies are being generated"
    return f"{state.tokens_per_s:.0f} tok/s  ETA {duration(state.eta_s)}"


def tokens_text(prompt: int, cached: int, generated: int) -> str:
    """``1,200 prompt, 480 reused (40 %), 300 generated``; reused are those of a beginning that was computed before."""
    reused = f", {cached:,} reused ({100 * cached / prompt:.0f} %)" if prompt else ""
    return f"{prompt:,} prompt{reused}, {generated:,} generated"


def money(amount: float) -> str:
    """An amount in whatever currency the prices were given: ``12.50``, ``0.0042``, ``below 0.0001``."""
    if amount >= 1:
        return f"{amount:,.2f}"
    return f"{amount:.4f}" if amount >= 0.0001 or not amount else "below 0.0001"


def cost_text(spent: float, share: float = 1.0) -> str:
    """What a run has cost, and the estimate for the whole of it while only this share of its requests is finished."""
    whole = f", an estimated {money(spent / share)} for all requests of the run" if 0 < share < 1 else ""
    return f"{money(spent)} so far{whole}" if whole else money(spent)


def progress_share(state: RunState) -> float:
    """The share of a run's own requests that are finished."""
    return (state.done + state.failed) / state.planned if state.planned else 0.0


def gpu_text(gpu: GpuUse) -> str:
    """``NVIDIA L4: 17.3 of 23.0 GiB in use, load 97 %``, other processes included."""
    return f"{gpu.name}: {gpu.used / 2**30:.1f} of {gpu.total / 2**30:.1f} GiB in use, load {gpu.load} %"


def run_row(run: Run, state: RunState | None, width: int, settled: int = 0) -> Line:
    """One line of the list of runs."""
    done, total = progress_of(run, state, settled)
    status = status_of(run, state)
    speed = f"{state.tokens_per_s:.0f} tok/s" if state and state.tokens_per_s and status == "running" else ""
    eta = duration(state.eta_s) if state and state.eta_s is not None and status == "running" else ""
    bar_width = 12 if width >= 90 else 6
    cells = [
        (Span(status, STATUS_STYLES.get(status, "plain")), 12),
        (Span(f"{done}/{total}"), -9),
        (Span(" " + bar(done, total, bar_width)), bar_width + 2),
        (Span(speed), -10),
        (Span(eta), -12),
    ]
    used = sum(abs(size) for _, size in cells)
    return (*columns(cells), Span("  "), *columns([(Span(one_line(run.title)), max(width - used - 2, 8))]))


def queued_text(ahead: Path | None, workspace: Path) -> str:
    """Why a queued run of ``workspace`` does not start: the directory of the run that goes first, None where none does."""
    if ahead is None:
        return ""
    there = ahead.parent.parent
    of = "" if there == workspace.resolve() else f" of {there.name}"
    return f"waits for the model: run {one_line(ahead.name + of)} goes first"


def run_lines(
    run: Run, state: RunState | None, log_tail: list[str], width: int, waiting: str = "", settled: int = 0
) -> list[Line]:
    """Everything known about one run; ``waiting`` says why it does not go on by itself."""
    done, total = progress_of(run, state, settled)
    status = status_of(run, state)
    lines = [
        line((one_line(run.title), "strong")),
        line(
            ("status   ", "dim"),
            (status, STATUS_STYLES.get(status, "plain")),
            f"   {done} of {total} requests   ",
            bar(done, total, 20),
        ),
        line(("plan     ", "dim"), _plan_of(run, state)),
        line(("run      ", "dim"), run.run_id, f"   device {one_line(run.device)}   model {run.model_id}"),
    ]
    if waiting:
        lines += wrapped(waiting, width, "warn")
    if state is not None:
        if state.message:
            lines += wrapped(visible(state.message), width, "warn")
        if status == state.status and (speed := speed_text(state)):
            lines.append(line(("speed    ", "dim"), f"{speed}   in flight {state.in_flight}"))
        lines += [
            line(("tokens   ", "dim"), tokens_text(state.prompt_tokens, state.cached_tokens, state.completion_tokens)),
            *([line(("cost     ", "dim"), cost_text(state.cost, progress_share(state)))] if state.cost else ()),
            *(line(("gpu      ", "dim"), one_line(gpu_text(gpu))) for gpu in (gpu_use(state) if status == state.status else ())),
            line(("results  ", "dim"), f"{state.done:,} good, ", (f"{state.failed:,} failed", "fail" if state.failed else "plain"), f"   worker starts {state.starts}"),
        ]  # fmt: skip
    if log_tail:
        lines += [BLANK, line(("LOG", "key"))]
        for text in log_tail:
            lines += wrapped(visible(text), width, "dim")
    return lines


def plan_text(needed: int, cached: int, awaited: int) -> str:
    """``96 needed, 40 cached, 56 to run``, with what another run brings."""
    waiting = f", {awaited} pending in another run" if awaited else ""
    return f"{needed:,} needed, {cached:,} cached{waiting}, {needed - cached - awaited:,} to run"


def estimate_text(planned: Mapping[str, Any]) -> str:
    """What a plan is estimated to take, and from what, to stand behind ``plan_text``; "" where nothing is to run."""
    # Whoever owns the workspace may be of a version that says nothing of this.
    if not planned["to_run"] or "estimated_from" not in planned:
        return ""
    source = planned["estimated_from"]
    if not source:
        return "; no earlier run of this model here to estimate the time from"
    cost = "" if planned["cost"] is None else f" and a cost of {money(planned['cost'])}"
    return f"; estimated: {duration(planned['seconds'])}{cost}, from {counted(source['requests'], 'request')} of run {source['run']}"


def _plan_of(run: Run, state: RunState | None) -> str:
    # A run takes over what the other one was to bring where that was cancelled: its own plan has grown then.
    own = max(run.to_run, state.planned if state else 0)
    awaited = max(run.needed - run.cached - own, 0)
    if awaited and run.status == "done":
        return f"{run.needed:,} needed, {run.cached:,} cached, {awaited:,} brought by another run, {own:,} run here"
    return plan_text(run.needed, run.cached, awaited)
