"""What a failed attempt means: try again, give up this request, or stop the run because every other one would fail too."""

from __future__ import annotations

from enum import Enum

from engine.backends.chat_reply import ServerError

_AGAIN = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529))
_NO_CREDIT = ("insufficient_quota", "insufficient_balance", "billing")


class Meaning(Enum):
    """Of one failed attempt."""

    AGAIN = "again"
    REQUEST = "request"
    RUN = "run"


class Failure(Exception):
    """A request that brought no completion. ``text`` is one line, fit to be shown; ``remedy`` is for a run that stops.

    ``told`` is the wait that the server asked for, in seconds. ``may_be_the_request`` tells that the request itself may be
    what the server failed at, though it said nothing of the kind.
    """

    def __init__(
        self,
        meaning: Meaning,
        text: str,
        *,
        status: int = 0,
        told: float | None = None,
        may_be_the_request: bool = False,
        remedy: str = "",
    ) -> None:
        super().__init__(text)
        self.meaning = meaning
        self.text = text
        self.status = status
        self.told = told
        self.may_be_the_request = may_be_the_request
        self.remedy = remedy


def meaning_of(status: int, error: ServerError, *, has_answered: bool) -> Meaning:
    """What an answer other than a completion means; ``has_answered`` tells whether this server has answered others.

    A forbidden request stops the run only at its beginning: later it is one prompt that a filter refuses.
    """
    code = error.code.casefold()
    if status == 402 or any(word in code for word in _NO_CREDIT):
        return Meaning.RUN
    if status in _AGAIN:
        return Meaning.AGAIN
    if status in (401, 404, 405) or 300 <= status < 400 or (status == 403 and not has_answered):
        return Meaning.RUN
    return Meaning.REQUEST


def stops_the_run(status: int, said: str, *, model: str, variable: str) -> Failure:
    """The failure for a status that ``meaning_of`` calls RUN, with what to do; ``said`` is the server's own line."""
    quoted = f" ({status}: {said})" if said else f" ({status})"
    if status in (401, 403):
        what = f"the server refuses the key in {variable}" if variable else "the server wants a key"
        remedy = f"Put a valid key into {variable}, then resume the run." if variable else (
            "Remove the server and add it again with --key-env VARIABLE."
        )  # fmt: skip
    elif status in (404, 405):
        what = f"the server has no model {model!r}, or no chat completions at this URL"
        remedy = "Remove the server and add it again with the right --url and --model."
    elif 300 <= status < 400:
        what = "the server sends requests elsewhere, which are not followed"
        remedy = "Remove the server and add it again with the URL that it names."
    else:
        what, remedy = "the server wants to be paid first", "Settle that with its operator, then resume the run."
    return Failure(Meaning.RUN, what + quoted, status=status, remedy=remedy)
