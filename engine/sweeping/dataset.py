"""A dataset: items with fields and a reference answer, known by the hash of what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from engine.hashing import content_hash


@dataclass(frozen=True)
class Item:
    """One evaluation item. ``fields`` are what prompts may put in; ``answer`` is the reference."""

    item_id: str
    fields: Mapping[str, str]
    answer: str


@dataclass(frozen=True)
class Dataset:
    """N items in the order of their file."""

    name: str
    items: tuple[Item, ...]

    @cached_property
    def dataset_id(self) -> str:
        return content_hash([[item.item_id, dict(item.fields), item.answer] for item in self.items])[:16]

    @property
    def common_fields(self) -> tuple[str, ...]:
        """Names of the fields that every item has."""
        if not self.items:
            return ()
        return tuple(name for name in self.items[0].fields if all(name in item.fields for item in self.items))
