"""The last result of a job, as both libraries give it, put right."""

from __future__ import annotations

from typing import Any

import pytest

from engine.backends.stop_strings import finished_text


def decode(token_ids: Any) -> str:
    return f"<{token_ids}>"


def result(whole: str, reason: str, **more: Any) -> dict[str, Any]:
    return {"full_completion": whole, "eos_reason": reason, **more}


def test_text_that_was_held_back_when_the_end_token_came_is_kept() -> None:
    held = result("abc", "stop_token", held={"text": "ij"}, eos_triggering_token_str="<|eot|>")
    assert finished_text(held, ["ijZ"], decode) == ("abcij", "stop")
    # An end token that is written out is no part of the reply.
    written = result("abc", "stop_token", held={"text": "ij</s>"}, eos_triggering_token_str="</s>")
    assert finished_text(written, [], decode) == ("abcij", "stop")
    assert finished_text(result("abc", "stop_token", eos_triggering_token_str=""), [], decode) == ("abc", "stop")


def test_a_stop_string_on_the_last_allowed_token_is_cut() -> None:
    assert finished_text(result("abcde", "max_new_tokens", text="de"), ["de", "cd"], decode) == ("ab", "stop")
    assert finished_text(result("abcde", "max_new_tokens", text="e"), ["ex", ""], decode) == ("abcde", "length")


def test_a_character_that_the_last_token_completed_is_read() -> None:
    cut = result("ab\ufffd\ufffd", "max_new_tokens", text="\ufffd\ufffd", token_ids="5 6")
    assert finished_text(cut, [], decode) == ("ab<5 6>", "length")


@pytest.mark.parametrize("reason", ["stop_string", "end_filter"])
def test_other_ends_are_as_they_are(reason: str) -> None:
    assert finished_text(result("abc", reason, held={"text": "STOP"}), ["STOP"], decode) == ("abc", "stop")
