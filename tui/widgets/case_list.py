"""The list of cases, as long as it may be: rows are read a page at a time when they come into sight."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from typing import overload

from engine.store.cases import CaseRow
from tui.presentation.case_view import case_row
from tui.presentation.lines import Line
from tui.widgets.painted import RowList

PAGE = 100
KEPT_PAGES = 40
"""Pages that stay in memory; those asked for longest ago go first."""


class PagedRows(Sequence[CaseRow | None]):
    """The cases at these positions (ascending); None for a row whose page is not here, which ``want`` is then told."""

    def __init__(self, positions: Sequence[int], want: Callable[[int], None]) -> None:
        self.positions = positions
        self._want = want
        self._pages: dict[int, list[CaseRow | None]] = {}
        self._fresh: set[int] = set()

    def __len__(self) -> int:
        return len(self.positions)

    @overload
    def __getitem__(self, index: int) -> CaseRow | None: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[CaseRow | None]: ...
    def __getitem__(self, index: int | slice) -> CaseRow | Sequence[CaseRow | None] | None:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not 0 <= index < len(self.positions):
            raise IndexError(index)
        number = index // PAGE
        if number not in self._fresh:
            self._want(number)
        page = self._pages.get(number)
        return page[index % PAGE] if page else None

    def positions_of(self, number: int) -> Sequence[int]:
        """The positions of a page."""
        return self.positions[number * PAGE : (number + 1) * PAGE]

    def put(self, number: int, rows: Sequence[CaseRow]) -> list[int]:
        """Take in a page; returns the indices of the rows that look otherwise now."""
        by_position = {row.position: row for row in rows}
        page = [by_position.get(position) for position in self.positions_of(number)]
        before = self._pages.pop(number, None) or [None] * len(page)
        self._pages[number] = page
        self._fresh.add(number)
        while len(self._pages) > KEPT_PAGES:
            oldest = next(iter(self._pages))
            del self._pages[oldest]
            self._fresh.discard(oldest)
        return [number * PAGE + place for place, (old, new) in enumerate(zip(before, page, strict=True)) if old != new]

    def grow(self, positions: Sequence[int]) -> None:
        """Take other positions, of which the present ones are the beginning."""
        if len(self.positions) % PAGE:
            self._pages.pop(len(self.positions) // PAGE, None)
        self.positions = positions

    def doubt(self) -> None:
        """What is here may be old: it is shown on, and read again where it comes into sight."""
        self._fresh.clear()


class CaseList(RowList[CaseRow | None]):
    """A list of cases by position. ``read`` gives the rows of a page; ``move_to`` is told which index a movement key goes to."""

    def __init__(
        self, read: Callable[[Sequence[int]], Awaitable[list[CaseRow]]], move_to: Callable[[int], object], *, id: str
    ) -> None:
        super().__init__(_row, id=id)
        self._read = read
        self._move_to = move_to
        self._under_way: set[int] = set()
        self._again: set[int] = set()
        self._paged = PagedRows((), self._wanted)

    @property
    def positions(self) -> Sequence[int]:
        """Positions of the cases that are shown, ascending."""
        return self._paged.positions

    def show(self, positions: Sequence[int], here: int) -> None:
        """Show these cases, the cursor on the one at position ``here`` or where it would stand."""
        index = min(bisect_left(positions, here), max(len(positions) - 1, 0))
        # The whole workspace is a range, and only grows; what was found is another list each time.
        both_whole = isinstance(positions, range) and isinstance(self.positions, range)
        if positions is self.positions or (both_whole and len(positions) >= len(self.positions) > 0):
            grown = len(positions) > len(self.positions)
            self._paged.grow(positions)
            if grown:
                self._set_length(len(positions))
                self.refresh()
            self.read_again()
            self.cursor = index
            return
        # Pages that are still being read belong to the list before.
        self._under_way, self._again = set(), set()
        self._paged = PagedRows(positions, self._wanted)
        self.set_rows(self._paged, index)
        self.refresh()

    def place_of(self, position: int) -> int | None:
        """The index of the case at this position, None where it is not shown."""
        index = bisect_left(self.positions, position)
        return index if index < len(self.positions) and self.positions[index] == position else None

    def read_again(self) -> None:
        """Something was changed: read what is in sight again, the rest when it comes into sight."""
        self._paged.doubt()
        self._again |= self._under_way
        top = self.scroll_offset.y
        for number in {index // PAGE for index in (top, max(top, min(top + self.size.height, len(self.rows) - 1)))}:
            self._wanted(number)

    def action_move(self, step: int) -> None:
        if self.rows:
            # The cursor moves with the case, in one and the same frame.
            self._move_to(max(0, min(self.cursor + step, len(self.rows) - 1)))

    def _wanted(self, number: int) -> None:
        if number not in self._under_way and self._paged.positions_of(number):
            self._under_way.add(number)
            self.run_worker(self._read_page(self._paged, number), group="pages")

    async def _read_page(self, paged: PagedRows, number: int) -> None:
        rows = await self._read(paged.positions_of(number))
        if paged is not self._paged:
            return
        self._under_way.discard(number)
        for index in paged.put(number, rows):
            self._refresh_row(index)
        if number in self._again:
            # It was changed while it was read.
            self._again.discard(number)
            self._wanted(number)


def _row(row: CaseRow | None, width: int) -> Line:
    return case_row(row, width) if row is not None else ()
