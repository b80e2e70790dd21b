"""Codes, failure modes and critiques in text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.judging.critique_hints import Hint
from engine.measuring.failure_modes import FailureMode, FailureModes
from engine.store.codes import Act, CodedCase
from tui.presentation.case_view import GLYPHS, PILES
from tui.presentation.lines import BLANK, Line, Span, columns, counted, line, pad, shortened, wrapped
from tui.widgets.literal import one_line, visible

_WIDE_MODES = 40
_WIDE_CRITIQUES = 90


class Choice(NamedTuple):
    """A name to choose in a picker; ``is_set`` marks what the case has already, ``is_new`` what was typed just now."""

    name: str
    note: str = ""
    is_set: bool = False
    is_new: bool = False


class Group(NamedTuple):
    """A line of the list of failure modes: all critiques, those without a code, or one failure mode."""

    title: str
    failures: int
    passes: int
    mode: FailureMode | None = None
    is_uncoded: bool = False

    def holds(self, case: CodedCase) -> bool:
        """Whether a case belongs to the group."""
        if self.mode is not None:
            return self.mode.name in case.modes
        return not (self.is_uncoded and case.codes)


def matching(choices: Sequence[Choice], typed: str) -> list[Choice]:
    """The choices that what is typed may mean, the likeliest first; behind them the text itself, where no choice is called that.

    Equal first, then those that begin with it, then those of which each typed word begins a word, then those that hold it.
    """
    text = " ".join(typed.split())
    wanted = text.casefold()
    if not wanted:
        return list(choices)
    ranked = [
        (rank, place) for place, choice in enumerate(choices) if (rank := _rank(choice.name.casefold(), wanted)) < 4
    ]
    found = [choices[place] for _, place in sorted(ranked)]
    if not any(rank == 0 for rank, _ in ranked):
        found.append(Choice(text, "new", is_new=True))
    return found


def _rank(name: str, wanted: str) -> int:
    if name == wanted:
        return 0
    if name.startswith(wanted):
        return 1
    words = name.split()
    if all(any(word.startswith(part) for word in words) for part in wanted.split()):
        return 2
    return 3 if wanted in name else 4


def choice_row(choice: Choice, width: int) -> Line:
    """One name in the picker."""
    mark = Span("[x] " if choice.is_set else "    ", "accent")
    note = Span(f"  {choice.note}", "warn" if choice.is_new else "dim")
    return line(mark, pad(one_line(choice.name), max(min(width - len(note.text) - 4, 60), 8)), note)


def groups(found: FailureModes, total: int) -> list[Group]:
    """The list of failure modes with what stands before it; ``total`` cases have a label that counts."""
    passes = total - found.failures
    coded_passes = found.coded_passes
    return [
        Group("all critiques", found.failures, passes),
        Group("no code", found.failures - found.coded, passes - coded_passes, is_uncoded=True),
        *(Group(mode.name, mode.failures, mode.passes, mode) for mode in found.modes),
    ]


def group_row(group: Group, failures: int, width: int) -> Line:
    """A failure mode with its failures; where there is room with share, passes, and the labels where it was seen."""
    style = "plain" if group.mode is not None else "strong"
    if width < _WIDE_MODES or group.mode is None:
        return line((f"{group.failures:>4} ", "fail"), (one_line(group.title), style))
    share = f"{100 * group.failures / failures:.0f} %" if failures else "–"
    seen = f"{group.mode.first}–{group.mode.last}"
    return columns(
        [(Span(str(group.failures), "fail"), -4), (Span(f" {share}"), -6), (Span(f"  {one_line(group.title)}", style), width - 20), (Span(seen, "dim"), -10)]
    )  # fmt: skip


def group_text(group: Group | None, failures: int) -> str:
    """The failure mode under the cursor in words."""
    if group is None:
        return ""
    if group.mode is None:
        return f"{one_line(group.title)}: {group.failures} FAIL, {group.passes} PASS"
    mode = group.mode
    share = f" ({100 * mode.failures / failures:.0f} %)" if failures else ""
    passes = f", {mode.passes} PASS" if mode.passes else ""
    written = f"; codes {', '.join(map(one_line, mode.codes))}" if mode.codes != (mode.name,) else ""
    return (
        f"{shortened(one_line(mode.name), 30)}: {mode.failures} of {failures} failures{share}{passes}; "
        f"first label {mode.first}, last {mode.last}{written}"
    )


def critique_row(case: CodedCase, width: int) -> Line:
    """One critique in the list: verdict, pile, whether it has a code, id, beginning of the text; failure modes where there is room."""
    trace_id = one_line(case.trace_id)
    head = line(
        GLYPHS.get(case.verdict, Span("·")), PILES.get(case.pile, Span(" ")), ("•" if case.codes else " ", "accent"), " ",
        (pad(trace_id, min(max(len(trace_id), 6), 12)), "strong"), " ",
    )  # fmt: skip
    if width >= _WIDE_CRITIQUES:
        head += line((pad(one_line(", ".join(case.failure_modes)), 24), "accent"), " ")
    return head + line(one_line(case.critique[:400]) or ("no critique", "dim"))


def critique_lines(case: CodedCase | None, hint: Hint | None, width: int) -> list[Line]:
    """One critique in full, with its codes and what is weak about it."""
    if case is None:
        return [line(("No critique here.", "dim"))]
    parts = [
        f"label {case.number}",
        *([f"by {one_line(case.expert)}"] if case.expert else []),
        *(["imported"] if case.is_imported else []),
    ]
    pile = {"build": "build pile", "sealed": "sealed"}.get(case.pile)
    lines = [
        line(
            (one_line(case.trace_id), "strong"), "  ", (case.verdict, "fail" if case.verdict == "FAIL" else "pass"), "  ",
            (" · ".join([*parts, *([pile] if pile else [])]), "dim"),
        ),
    ]  # fmt: skip
    given = [
        one_line(code) if code == mode else f"{one_line(code)} → {one_line(mode)}"
        for code, mode in zip(case.codes, case.modes, strict=True)
    ]
    lines += wrapped(", ".join(given), width, "accent", "      ", "code  ") if given else []
    lines += wrapped(visible(case.critique), width) if case.critique else [line(("no critique", "dim"))]
    if hint is not None:
        lines += [BLANK, *wrapped(one_line(hint.text), width, "warn")]
    return lines


def act_text(act: Act) -> str:
    """What was done to codes, in a few words."""
    if act.trace_id:
        return f"{act.trace_id}: {', '.join(act.codes)}{'' if act.present else ' taken off'}"
    many = counted(len(act.codes), "code") if len(act.codes) > 3 else ", ".join(act.codes)
    return f"{many} → {act.failure_mode}"
