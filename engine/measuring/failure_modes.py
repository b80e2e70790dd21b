"""Failure modes of a criterion: how many cases each has, and whether new ones still turn up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.store import codes
from engine.store.codes import CodedCase
from engine.store.transaction import Transaction
from stats.saturation import ENOUGH_CASES, Saturation, saturation


@dataclass(frozen=True)
class FailureMode:
    """One failure mode over the cases whose labels count.

    ``failures`` and ``passes`` are its cases by verdict; ``first`` and ``last`` the label numbers at which it was seen first and
    last, in either; ``codes`` what it was written as, in order of name.
    """

    name: str
    codes: tuple[str, ...]
    failures: int
    passes: int
    first: int
    last: int


@dataclass(frozen=True)
class FailureModes:
    """All failure modes, those of most failures first. ``coded`` of the ``failures`` have a code; saturation is about these.

    ``coded_passes`` cases are PASS and have one.
    """

    modes: tuple[FailureMode, ...]
    failures: int
    coded: int
    coded_passes: int
    saturation: Saturation

    @property
    def sentence(self) -> str:
        """Whether new failure modes still turn up, in words; what is missing where it is too early to say."""
        uncoded = self.failures - self.coded
        if not self.coded:
            return (
                f"No failure of {self.failures} has a code yet: t gives one." if self.failures else "No failures yet."
            )
        if not self.saturation.is_enough:
            return (
                f"{self.coded} of {self.failures} failures have a code: too few to say whether new failure modes still turn up. "
                f"{ENOUGH_CASES - self.coded} more."
            )
        since = self.saturation.since_new
        parts = [
            f"Last {since} coded failures: no new failure mode."
            if self.saturation.is_saturated
            else f"Newest failure mode: {since} coded failures ago. Go on until {ENOUGH_CASES} bring none."
        ]
        alone, n = self.saturation.alone, self.saturation.cases
        parts.append(
            f"About {100 * alone / n:.0f} % of failures drawn as these are of a kind not seen yet (Good-Turing, {alone} of {n})."
        )
        if uncoded:
            parts.append(f"{uncoded} without a code.")
        return " ".join(parts)


def read(tx: Transaction, criterion_id: str) -> tuple[list[CodedCase], FailureModes]:
    """The labelled cases of a criterion with their codes, and what these come to."""
    cases = codes.cases(tx, criterion_id)
    return cases, failure_modes(cases)


def failure_modes(cases: Sequence[CodedCase]) -> FailureModes:
    """The failure modes of labelled cases, given in the order of their numbers.

    Only failures with a code bear on saturation: a PASS shows no failure, and a failure without a code may hide a new mode.
    """
    by_mode: dict[str, list[CodedCase]] = {}
    for case in cases:
        for mode in case.failure_modes:
            by_mode.setdefault(mode, []).append(case)
    failed = [case for case in cases if case.verdict == "FAIL"]
    coded = [case.failure_modes for case in failed if case.failure_modes]
    coded_passes = sum(case.verdict == "PASS" and bool(case.codes) for case in cases)
    modes = [_failure_mode(name, of_mode) for name, of_mode in by_mode.items()]
    modes.sort(key=lambda mode: (-mode.failures, -mode.passes, mode.name.casefold(), mode.name))
    return FailureModes(tuple(modes), len(failed), len(coded), coded_passes, saturation(coded))


def _failure_mode(name: str, cases: Sequence[CodedCase]) -> FailureMode:
    failures = sum(case.verdict == "FAIL" for case in cases)
    codes = {code for case in cases for code, mode in zip(case.codes, case.modes, strict=True) if mode == name}
    return FailureMode(
        name,
        tuple(sorted(codes)),
        failures,
        len(cases) - failures,
        min(c.number for c in cases),
        max(c.number for c in cases),
    )
