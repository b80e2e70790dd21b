"""A criterion: one fixed question about a response, with its PASS and FAIL definitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class HelpCritique:
    """A model critique that shows an expert what a good one looks like."""

    verdict: str
    critique: str


@dataclass(frozen=True)
class Criterion:
    """One version of a criterion.

    ``quote_required`` asks the judge for a verbatim passage of the context as well; ``facts`` names
    the facts that the criterion depends on, so that a prompt that leaves one out can be refused.
    """

    criterion_id: str
    question: str
    task: str
    pass_when: str
    fail_when: str
    edge_cases: tuple[str, ...] = ()
    quote_required: bool = False
    facts: tuple[str, ...] = ()
    help_critiques: tuple[HelpCritique, ...] = ()
    author: str = ""
    version: int = 1

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Criterion:
        """A criterion as sample_data/criteria.json writes it; raises KeyError when a required field is missing."""
        return cls(
            criterion_id=data["id"],
            question=data["question"],
            task=data["task"],
            pass_when=data["pass_when"],
            fail_when=data["fail_when"],
            edge_cases=tuple(data.get("edge_cases", ())),
            quote_required=bool(data.get("quote_required", False)),
            facts=tuple(data.get("facts", ())),
            help_critiques=tuple(HelpCritique(h["verdict"], h["critique"]) for h in data.get("help_critiques", ())),
            author=data.get("author", ""),
        )
