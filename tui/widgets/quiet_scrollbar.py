"""A scrollbar that is painted again only when it looks otherwise."""

from __future__ import annotations

from typing import Self

from rich.console import RenderableType
from textual.geometry import Region
from textual.scrollbar import ScrollBar
from textual.widget import Widget

_EIGHTHS = 8
"""The bar is drawn in eighths of a cell."""


class QuietScrollBar(ScrollBar):
    """Textual paints a scrollbar anew whenever any style of its widget is set, to the same value too, as on every change of focus."""

    _painted: object = None

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        if repaint and not layout and not recompose and self._painted == self._looks():
            return self
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def render(self) -> RenderableType:
        self._painted = self._looks()
        return super().render()

    def _looks(self) -> object:
        styles = self.parent.styles if isinstance(self.parent, Widget) else None
        colours = [getattr(styles, f"scrollbar_{part}{state}") for part in ("color", "background") for state in ("", "_hover", "_active")] if styles else []  # fmt: skip
        length = _EIGHTHS * (self.size.height if self.vertical else self.size.width)
        whole = max(self.window_virtual_size, 1)
        bar = (length * self.position // whole, length * self.window_size // whole)
        return (self.size, bar, bool(self.grabbed), self.mouse_over, self.app.theme, colours)


def vertical_scrollbar_of(widget: Widget) -> ScrollBar:
    """The widget's own scrollbar, made quiet when it is first asked for; for the property ``vertical_scrollbar``."""
    if widget._vertical_scrollbar is None:
        bar = QuietScrollBar(vertical=True, name="vertical", thickness=widget.scrollbar_size_vertical)
        widget._vertical_scrollbar = bar
        bar.display = False
        widget.app._start_widget(widget, bar)
    return widget._vertical_scrollbar
