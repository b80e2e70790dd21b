"""What stands behind the label on the line under a case: a hint on the critique, and the case's codes; and giving codes by key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from engine.judging.critique_hints import Hint, KnownCritiques, critique_hint
from engine.store import codes, labels
from engine.store.codes import Act, UsedCode
from tui.presentation.codes_view import Choice
from tui.presentation.lines import counted, shortened
from tui.screens.desk_screen import DeskScreen
from tui.screens.name_picker import NamePicker
from tui.widgets.literal import one_line

_HINT_PAUSE_S = 0.4


def choices(used: Sequence[UsedCode], given: Sequence[str]) -> list[Choice]:
    """Codes to choose from: those of the case first, then those of most cases."""
    of_case = [Choice(code.code, counted(code.cases, "case"), is_set=True) for code in used if code.code in given]
    return of_case + [Choice(code.code, counted(code.cases, "case")) for code in used if code.code not in given]


async def ask_code(screen: DeskScreen, trace_id: str) -> Act | None:
    """Ask for a code and give it to the case, or take it off; None where nobody chose one. To be called in a worker.

    Raises EvaldeskError when the store refuses.
    """
    desk = screen.desk
    used = await desk.do(codes.used, desk.criterion_id)
    given = await desk.do(codes.of_case, desk.criterion_id, trace_id)
    title = f"Codes of {trace_id}" + (f": {', '.join(given)}" if given else "")
    code = await screen.ask(NamePicker(title, choices(used, given), "gives it or takes it off"))
    if not code:
        return None
    return await desk.do(codes.toggle, desk.criterion_id, trace_id, code, desk.expert)


class CaseNotes:
    """Hint and codes of the case that is open; ``changed`` is called when what is to be shown has changed."""

    def __init__(self, screen: DeskScreen, changed: Callable[[], None]) -> None:
        self._screen = screen
        self._changed = changed
        self._trace_id = ""
        self._codes: tuple[str, ...] = ()
        self._hint: Hint | None = None
        self._text: Callable[[], str] = str
        self._timer: asyncio.TimerHandle | None = None
        self._known = KnownCritiques()
        self._known_of = ""
        self._known_seq: Any = None

    def opened(self, trace_id: str, given: tuple[str, ...]) -> None:
        """Another case is open, or this one has other codes."""
        if trace_id != self._trace_id:
            self._hint = None
        self._trace_id, self._codes = trace_id, given

    def typed(self, text: Callable[[], str]) -> None:
        """The critique was changed: look at it in a moment, not put off by further typing."""
        self._text = text
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_HINT_PAUSE_S, self._look_soon)

    def behind(self, text: str, width: int) -> str:
        """``text`` with hint and codes behind it, in ``width`` cells."""
        parts = [text]
        if self._hint is not None:
            parts.append(self._hint.text)
        if self._codes:
            parts.append(f"code {', '.join(self._codes)}")
        return shortened(one_line(" · ".join(parts)), width)

    def _look_soon(self) -> None:
        if self._screen.is_attached:
            self._screen.run_worker(self._look(), group="hint")

    async def _look(self) -> None:
        trace_id = self._trace_id
        try:
            await self._learn()
        finally:
            self._timer = None
        hint = critique_hint(self._text(), self._known, trace_id)
        if trace_id == self._trace_id and hint != self._hint:
            self._hint = hint
            self._changed()

    async def _learn(self) -> None:
        """Take in the critiques that are new; the first time there may be thousands."""
        desk = self._screen.desk
        if self._known_of != desk.criterion_id:
            self._known, self._known_of, self._known_seq = KnownCritiques(), desk.criterion_id, None
        since = -(2**62) if self._known_seq is None else self._known_seq
        self._known_seq, new = await desk.meanwhile(labels.critiques_since, desk.criterion_id, since)
        await desk.later(self._known.take, new)
