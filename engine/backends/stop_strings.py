"""The text and the end of a finished reply, put right where exllamav2's and exllamav3's last result is not.

Three things are: text that was held back because a stop string might have begun is missing when an end token comes; a
stop string that ends on the last allowed token is left in, for the limit is looked at first; and a character whose
last piece is that token comes as replacement characters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Decode = Callable[[Any], str]


def finished_text(result: Mapping[str, Any], stop: Sequence[str], decode: Decode) -> tuple[str, str]:
    """(text, finish) of a result whose ``eos`` is true; ``finish`` is stop or length.

    ``decode`` makes text of the result's own token_ids (a tensor of the library).
    """
    text: str = result["full_completion"]
    reason = result["eos_reason"]
    if reason == "stop_token":
        held: str = result.get("held", {}).get("text", "")
        piece: str = result.get("eos_triggering_token_str") or ""
        return text + (held.removesuffix(piece) if piece else held), "stop"
    if reason != "max_new_tokens":
        return text, "stop"
    last: str = result.get("text", "")
    if "\ufffd" in last and "token_ids" in result:
        text = text.removesuffix(last) + decode(result["token_ids"])
    cuts = [at for string in stop if string and (at := text.find(string)) >= 0]
    return (text[: min(cuts)], "stop") if cuts else (text, "length")
