"""Human and judge verdicts as files write them: which values mean PASS, which FAIL, and which name neither."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

from engine.errors import EvaldeskError

Verdict = Literal["PASS", "FAIL"]

WORDS: Final[Mapping[str, Verdict]] = {
    "pass": "PASS",
    "fail": "FAIL",
    "accept": "PASS",
    "reject": "FAIL",
}
"""Words that name the verdict themselves, whatever their column is called."""

FLAGS: Final[Mapping[str, Verdict]] = {
    "true": "PASS",
    "false": "FAIL",
    "1": "PASS",
    "0": "FAIL",
}
"""Values that say yes or no to their column's name; in a column that names a failure they are not guessed."""

# fmt: off
_FAILURE_STEMS = (
    "bias", "bug", "critical", "defect", "error", "fail", "falsch", "fault", "fehl", "flag", "hallucinat", "harm",
    "inaccura", "incorrect", "invalid", "irrelevan", "issue", "leak", "mistake", "negative", "problem", "refus",
    "reject", "toxic", "unfaithful", "ungrounded", "unhelpful", "unsafe", "unsupported", "violat", "wrong",
)
# fmt: on
_FAILURE_WORDS = frozenset({"bad", "err", "errs", "fp", "fn", "no", "non", "not"})
_WHOLE = re.compile(r"-?\d+\.0+")
_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")


@dataclass(frozen=True)
class ValueReading:
    """Which normalised values (see `normalise`) mean PASS and which FAIL; blank is never among them.

    ``column`` is the name the reading was made for; ``explicit`` says that the user stated it.
    """

    verdicts: tuple[tuple[str, Verdict], ...]
    column: str = ""
    explicit: bool = False

    def as_dict(self) -> dict[str, str]:
        """{value: "PASS" | "FAIL"}, to be echoed beside every figure that rests on it."""
        return dict(self.verdicts)

    def read(self, value: Any) -> Verdict | None:
        """PASS, FAIL, or None for a blank; raises ValueError with the reason for anything else."""
        key = normalise(value)
        if not key:
            return None
        for known, verdict in self.verdicts:
            if known == key:
                return verdict
        raise ValueError(f"{_shown(value)} is not a known verdict; known: {', '.join(k for k, _ in self.verdicts)}")


def normalise(value: Any) -> str:
    """The text a value is compared by: no outer space, case folded, 1.0 as "1"; "" for a blank (None, NaN, spaces)."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (float, Decimal)):
        if math.isnan(value):
            return ""
        return str(int(value)) if math.isfinite(value) and value == int(value) else str(value)
    if isinstance(value, (dict, list, tuple)):
        raise ValueError("a list or an object is not a verdict")
    text = str(value).strip().casefold()
    return text.partition(".")[0] if _WHOLE.fullmatch(text) else text


def names_failure(column: str) -> bool:
    """Whether a column's name (or a path's last part) speaks of a failure, so that 1 or true may well mean FAIL."""
    last = [part for part in re.split(r"[/.]", column) if part][-1:] if column.startswith("/") else [column]
    tokens = [token.casefold() for token in _TOKEN.findall(last[0])] if last else []
    if any(token in ("pass", "passed", "passes") for token in tokens) and not _FAILURE_WORDS & set(tokens):
        return False
    return any(token in _FAILURE_WORDS or token.startswith(tuple(_FAILURE_STEMS)) for token in tokens)


def parse_values(text: str) -> ValueReading:
    """The reading that "1=FAIL,0=PASS" states; EvaldeskError where it cannot be understood."""
    verdicts: dict[str, Verdict] = {}
    for part in text.split(","):
        name, sign, meaning = part.rpartition("=")
        key, verdict = normalise(name), meaning.strip().upper()
        if not sign or not key or verdict not in ("PASS", "FAIL"):
            raise EvaldeskError(
                f"{part.strip()!r} does not say what a value means",
                where="--values",
                remedy="Write each as VALUE=PASS or VALUE=FAIL, for example --values 1=FAIL,0=PASS.",
            )
        read: Verdict = "PASS" if verdict == "PASS" else "FAIL"
        if verdicts.setdefault(key, read) != read:
            raise EvaldeskError(
                f"{name.strip()!r} is said to mean both PASS and FAIL",
                where="--values",
                remedy="Give each value one meaning.",
            )
    return ValueReading(tuple(verdicts.items()), explicit=True)


def infer_reading(
    column_name: str,
    sample_values: Iterable[Any],
    explicit: str | Mapping[str, str] | ValueReading | None = None,
) -> ValueReading:
    """How the values of a column are to be read.

    ``explicit`` ("1=FAIL,0=PASS", {"1": "FAIL"} or a reading) is taken as it stands. Otherwise the words pass,
    fail, accept and reject and the flags true, false, 1 and 0 are known (1 and true mean PASS). In a column whose
    name speaks of a failure flags are not guessed: EvaldeskError when the sample holds one, else a reading
    without them.
    """
    if isinstance(explicit, ValueReading):
        return ValueReading(explicit.verdicts, column_name, explicit.explicit)
    if explicit:
        text = explicit if isinstance(explicit, str) else ",".join(f"{k}={v}" for k, v in explicit.items())
        return ValueReading(parse_values(text).verdicts, column_name, True)
    if not names_failure(column_name):
        return ValueReading((*WORDS.items(), *FLAGS.items()), column_name)
    for value in sample_values:
        if not isinstance(value, (dict, list, tuple)) and normalise(value) in FLAGS:
            flag = normalise(value)
            yes, no = ("true", "false") if flag in ("true", "false") else ("1", "0")
            raise EvaldeskError(
                f"a column of this name with values such as {flag} can be read both ways",
                where=column_name,
                kept="Nothing was read.",
                remedy=f"Say what they mean: --values {yes}=FAIL,{no}=PASS (or the reverse).",
            )
    return ValueReading(tuple(WORDS.items()), column_name)


def read_verdict(value: Any, reading: ValueReading) -> Verdict | None:
    """PASS, FAIL, or None for a blank (not labelled); raises ValueError with the reason for an unknown value."""
    return reading.read(value)


def _shown(value: Any) -> str:
    text = str(value).strip()
    return repr(text if len(text) <= 40 else text[:39] + "\N{HORIZONTAL ELLIPSIS}")
