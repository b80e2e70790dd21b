"""The paste guard: it goes by when keys arrive, and what it has begun to drop it drops to the end."""

from __future__ import annotations

from tui.paste_guard import PasteGuard


def dropped(guard: PasteGuard, *arrivals: float) -> list[bool]:
    return [guard.drops(arrived) for arrived in arrivals]


def test_a_key_in_one_breath_with_the_save_is_dropped_and_a_quick_hand_is_not() -> None:
    guard = PasteGuard()
    guard.save_by(10.0)
    assert dropped(guard, 10.0) == [True]
    guard = PasteGuard()
    guard.save_by(10.0)
    assert dropped(guard, 10.1, 10.11, 10.12) == [False, False, False]


def test_after_a_dropped_key_everything_is_dropped_until_a_pause() -> None:
    guard = PasteGuard()
    guard.save_by(10.0)
    assert dropped(guard, 10.02, 10.2, 10.45, 10.7) == [True, True, True, True]
    assert dropped(guard, 11.05, 11.06) == [False, False]


def test_without_a_save_nothing_is_dropped() -> None:
    assert dropped(PasteGuard(), 0.0, 0.001, 0.002) == [False, False, False]
