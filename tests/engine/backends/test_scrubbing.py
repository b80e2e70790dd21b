"""No piece of a key survives, whatever a server does with it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.backends.scrubbing import MASK, one_line, without_key

KEY = "sk-proj-Zx81_kQ0vWm3"


@settings(max_examples=40)
@given(st.text(max_size=60), st.text(max_size=60), st.integers(0, len(KEY)), st.integers(0, len(KEY)))
def test_no_piece_of_eight_characters_is_left(before: str, after: str, begin: int, end: int) -> None:
    said = one_line(before + KEY[begin:end] + after + KEY, KEY)
    assert not any(KEY[start : start + 8] in said for start in range(len(KEY) - 7))


def test_a_key_is_masked_where_it_stands() -> None:
    assert without_key(f"bad key {KEY}!", KEY) == f"bad key {MASK}!"
    assert without_key(f"bad key {KEY[:12]}...", KEY) == f"bad key {MASK}..."
    assert without_key("bad key abc.", "abc") == f"bad key {MASK}."
    assert without_key("nothing", "") == "nothing"


@given(st.text(max_size=2000))
def test_a_line_is_one_printable_line_of_bounded_length(text: str) -> None:
    line = one_line(text, KEY)
    assert len(line) <= 300 and line.isprintable()


def test_a_key_at_the_cut_is_found() -> None:
    for length in range(270, 310):
        said = one_line("x" * length + KEY, KEY)
        assert KEY[:8] not in said
