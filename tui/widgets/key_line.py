"""The line of keys at the bottom of a screen: what counts where the cursor stands now."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, TextArea

from tui.presentation.lines import Line, Span, fit, plain

Item = tuple[str, str, str]
"""A key as people call it, what it does, and its action."""


class KeyLine(Widget):
    """One line that is painted again only when its text changes.

    Textual's own footer makes a widget for every key anew, and lays the whole screen out, whenever the cursor goes from
    a list into a text box and back: most of what a saved label wrote to the terminal.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"key-line--key", "key-line--text"}
    DEFAULT_CSS = """
    KeyLine {
        height: 1;
        dock: bottom;
        color: $footer-foreground;
        background: $footer-background;
        & .key-line--key { color: $footer-key-foreground; background: $footer-key-background; text-style: bold; }
        & .key-line--text { color: $footer-description-foreground; background: $footer-description-background; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._items: list[Item] = []

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        if not self.is_attached or screen is not self.screen:
            return
        items: dict[str, Item] = {}
        writes = isinstance(screen.focused, Input | TextArea)
        for _, binding, enabled, _tooltip in screen.active_bindings.values():
            key = self.app.get_key_display(binding)
            # Where one writes, a letter or a slash is text.
            if binding.show and enabled and not (writes and len(key) == 1 and key.isascii()):
                items.setdefault(binding.action, (key, binding.description, binding.action))
        if (found := list(items.values())) != self._items:
            self._items = found
            self.refresh()

    @property
    def text(self) -> str:
        """The line as it reads."""
        return plain([self._line()])

    def _line(self) -> Line:
        spans = [span for key, text, _ in self._items for span in (Span(key, "key"), Span(f" {text} ", "text"))]
        return (*spans[:-1], Span(spans[-1].text.rstrip(), "text")) if spans else ()

    def render_line(self, y: int) -> Strip:
        styles = {name: self.get_component_rich_style(f"key-line--{name}", partial=True) for name in ("key", "text")}
        base = self.rich_style
        segments = [Segment(text, base + styles.get(name, base)) for text, name in fit(self._line(), self.size.width)]
        return Strip(segments).adjust_cell_length(self.size.width, base).simplify()

    async def on_click(self, event: events.Click) -> None:
        end = 0
        for key, text, action in self._items:
            end += len(key) + len(text) + 2
            if event.x < end:
                await self.screen.run_action(action)
                return
