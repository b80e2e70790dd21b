"""The critique box: a few lines of text, Enter saves, Esc leaves."""

from __future__ import annotations

from typing import ClassVar, Self

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scrollbar import ScrollBar
from textual.widget import Widget
from textual.widgets import TextArea

from tui.widgets.literal import visible
from tui.widgets.quiet_scrollbar import vertical_scrollbar_of

_HINT = "p or f, then say what decided. Enter saves and goes on, Esc keeps a draft."


class CritiqueBox(TextArea):
    """Text with plain keys: Enter posts Saved, Esc posts Left; ctrl+j makes a new line where the terminal sends it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "enter", "save", "save and next", tooltip="Save the label and go to the next open case", id="critique.save"
        ),
        Binding("escape", "leave", "keep as draft", tooltip="Leave the box, the draft is kept", id="critique.leave"),
    ]

    class Saved(Message):
        """Enter was pressed."""

    class Left(Message):
        """Esc was pressed."""

    class Typed(Message):
        """The text was changed by the person."""

    _used = 0
    """Rows that the text took when it was painted last."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            "", id=id, soft_wrap=True, show_line_numbers=False, tab_behavior="focus", compact=True, placeholder=_HINT
        )
        self.cursor_blink = False
        self._shown = ""

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        return vertical_scrollbar_of(self)

    def _refresh_size(self) -> None:
        # As TextArea does it, without the layout of the whole screen that ``virtual_size`` sets off.
        size = Size(0, self.wrapped_document.height)
        if size != self.virtual_size:
            self.set_reactive(Widget.virtual_size, size)
            self._scroll_update(size)

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        # A TextArea paints all its rows for every letter; those below the text were empty before and are now.
        if repaint and not regions and not layout and not recompose and self.size:
            used = self.wrapped_document.height
            rows = max(used, self._used, 1) - int(self.scroll_offset.y)
            self._used = used
            regions = (Region(0, 0, self.size.width, max(1, min(rows, self.size.height))),)
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def set_text(self, text: str) -> None:
        """Show another text; nothing is posted for it."""
        if self.text != text:
            self.load_text(text)
            # The document has its own idea of line ends.
            self._shown = self.text
            self.move_cursor(self.document.end)

    def holds(self, text: str) -> bool:
        """Whether the box holds this text, whatever its line ends and the blanks around it."""
        return self.text.strip().splitlines() == text.strip().splitlines()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        if self.text != self._shown:
            self._shown = self.text
            self.post_message(self.Typed())

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self.action_save()
        elif event.key == "escape":
            event.stop()
            event.prevent_default()
            self.action_leave()
        elif event.key == "ctrl+j":
            event.stop()
            event.prevent_default()
            self.insert("\n")
        else:
            await super()._on_key(event)

    def action_save(self) -> None:
        # What follows in the same breath (a paste running over) must not land in this text.
        self.screen.set_focus(None)
        self.post_message(self.Saved())

    def action_leave(self) -> None:
        self.post_message(self.Left())

    async def _on_paste(self, event: events.Paste) -> None:
        # Pasted text is kept literally, but what could act on a terminal is made visible before it is stored.
        event.stop()
        event.prevent_default()
        self.insert(visible(event.text))
