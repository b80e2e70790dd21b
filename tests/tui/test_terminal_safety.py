"""The layers between untrusted text and the terminal, and between a bad line and the app."""

from __future__ import annotations

import importlib
import io
import threading
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import App, ComposeResult
from textual.color import Color
from textual.message import Message

from tui import terminal
from tui.widgets.critique_box import CritiqueBox
from tui.widgets.literal import one_line, strip_dangerous, visible

PIECES = [
    "\x1b", "[", "]", "O", "P", "?", "<", ">", ";", ":", "0", "1", "200~", "201~", "27", "57414", "99999999999", "1114112", "55296",
    "u", "~", "M", "m", "A", "R", "t", "$y", "2026;", "48;", "\x07", "\x9b", "�", "é", "\r", "\x00",
]  # fmt: skip
ANY_TEXT = st.text(st.characters(codec=None))
SEQUENCES = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
BLACK = Color(0, 0, 0)


def acts_on_a_terminal(character: str) -> bool:
    if character in "\t\n\u200d":
        return False
    code = ord(character)
    tag_or_bidi = 0xE0000 <= code <= 0xE007F or unicodedata.bidirectional(character) in (
        "LRE",
        "RLE",
        "LRO",
        "RLO",
        "PDF",
        "LRI",
        "RLI",
        "FSI",
        "PDI",
    )
    return (
        unicodedata.category(character) in ("Cc", "Cs")
        or tag_or_bidi
        or character in "\u200b\u200c\u2060\ufeff\u2028\u2029"
    )


@given(ANY_TEXT)
def test_visible_text_holds_nothing_that_acts_and_is_stable(text: str) -> None:
    shown = visible(text)
    assert not any(map(acts_on_a_terminal, shown))
    assert visible(shown) == shown
    assert not set(one_line(text)) & {"\t", "\n", "\r"}


@given(ANY_TEXT)
def test_visible_drops_nothing(text: str) -> None:
    kept = [c for c in strip_dangerous(text) if c not in "\r\n"]
    shown = iter(visible(text))
    assert all(c in shown for c in kept)


@pytest.mark.parametrize("text", ["👩\u200d👩\u200d👧", "注文 주문", "é e\u0301", "a\tb\nc", "👍🏽 ❤\ufe0f"])
def test_emoji_cjk_and_combining_marks_stay_as_they_are(text: str) -> None:
    assert visible(text) == text
    assert strip_dangerous(text) == text


@given(ANY_TEXT)
def test_the_last_layer_lets_nothing_through(text: str) -> None:
    style = Style(bold=True)
    [clean] = terminal.make_control_filter().apply([Segment(text, style)], BLACK)
    assert not any(map(acts_on_a_terminal, clean.text))
    assert clean.style is style


def test_without_colour_attributes_stay() -> None:
    style = Style(color="#808080", bgcolor="#101010", bold=True, reverse=True)
    [plain] = terminal.make_plain_filter().apply([Segment("x", style)], BLACK)
    assert plain.style == Style(bold=True, reverse=True)


@pytest.fixture(scope="module")
def any_parser() -> Iterator[type]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        driver = importlib.import_module("textual.drivers.linux_driver")
        for name in ("XTermParser", "WriterThread", "getincrementaldecoder"):
            monkeypatch.setattr(driver, name, getattr(driver, name))
        terminal.harden_driver()
        yield driver.XTermParser


def feed(any_parser: type, *pieces: str) -> list[Message]:
    parser = any_parser(False)
    found: list[Message] = []
    for piece in pieces:
        found += parser.feed(piece)
    return found


@given(st.lists(st.one_of(SEQUENCES, SEQUENCES.map(lambda s: "\x1b[" + s), ANY_TEXT), max_size=4))
def test_no_input_breaks_the_parser(any_parser: type, pieces: list[str]) -> None:
    feed(any_parser, *[piece for piece in pieces if piece], "")


@given(SEQUENCES.filter(lambda s: "201~" not in s and "\x00" not in s), st.integers(1, 40), st.integers(1, 40))
def test_a_paste_is_one_piece_of_text_wherever_it_is_cut(any_parser: type, text: str, first: int, second: int) -> None:
    data = f"\x1b[200~{text}\x1b[201~p"
    cuts = sorted({min(first, len(data)), min(first + second, len(data))})
    pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True) if a < b]
    found = feed(any_parser, *pieces)
    pasted = [event.text for event in found if isinstance(event, events.Paste)]
    keys = [event.key for event in found if isinstance(event, events.Key)]
    assert pasted == [text.replace("\x1b", "␛")]
    assert keys == ["p"]


def test_keys_around_a_paste_stay_keys(any_parser: type) -> None:
    found = feed(any_parser, "a\x1b[200~one\x1b[201~b\x1b[B\x1b[200~two\x1b[201~")
    shown = [
        event.text if isinstance(event, events.Paste) else event.key
        for event in found
        if isinstance(event, events.Paste | events.Key)
    ]
    assert shown == ["a", "one", "b", "down", "two"]


def test_a_broken_byte_becomes_a_replacement_character(any_parser: type) -> None:
    driver = importlib.import_module("textual.drivers.linux_driver")
    decode = driver.getincrementaldecoder("utf-8")().decode
    assert decode(b"a\xff\xc3") + decode(b"\xa9") == "a�é"


class GoneTerminal(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


@pytest.mark.parametrize(
    "text", ["a", "a\r\nb\nc", "a\rb\x0bc\x0cd\x85e\u2028f", "", " x ", "a\n\n\nb\n", "\x1b[2J\x1cx\x1dy"]
)
async def test_a_critique_from_a_file_that_is_only_looked_at_counts_as_unchanged(text: str) -> None:
    class Shown(App[None]):
        typed = 0

        def compose(self) -> ComposeResult:
            yield CritiqueBox()

        def on_critique_box_typed(self) -> None:
            self.typed += 1

    app = Shown()
    async with app.run_test() as pilot:
        box = app.query_one(CritiqueBox)
        box.set_text(text)
        await pilot.pause()
        assert box.holds(text)
        assert app.typed == 0
        box.insert("!")
        await pilot.pause()
        assert not box.holds(text)
        assert app.typed == 1


def test_output_to_a_terminal_that_is_gone_does_not_block_the_app(any_parser: type) -> None:
    driver = importlib.import_module("textual.drivers.linux_driver")
    writer = driver.WriterThread(GoneTerminal())
    writer.start()
    ended = threading.Event()

    def app() -> None:
        for _ in range(200):
            writer.write("frame")
        writer.stop()
        ended.set()

    threading.Thread(target=app, daemon=True).start()
    assert ended.wait(60)
