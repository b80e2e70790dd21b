"""A candidate prompt: a template with named fields, known by the hash of what it says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.errors import Refused
from engine.hashing import content_hash
from engine.sweeping.dataset import Dataset

# `{name}` is a field and `{{name}}` the literal text `{name}`; every other brace is itself, so that JSON can stand in a prompt.
_FIELD = re.compile(r"\{\{([A-Za-z_][A-Za-z0-9_-]*)\}\}|\{([A-Za-z_][A-Za-z0-9_-]*)\}")


@dataclass(frozen=True)
class Prompt:
    """One candidate for a task. ``name`` is what people call it; ``prompt_id`` is the hash of system text and template."""

    name: str
    template: str
    system: str = ""

    @property
    def prompt_id(self) -> str:
        return content_hash([self.system, self.template])[:16]

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields in the order in which they first occur."""
        found = [match[2] for text in (self.system, self.template) for match in _FIELD.finditer(text) if match[2]]
        return tuple(dict.fromkeys(found))

    def messages(self, fields: Mapping[str, str]) -> list[dict[str, str]]:
        """The chat messages for one item; a field's text is put in as it is, braces and all. KeyError when one is missing."""
        rendered = [("system", self.system), ("user", self.template)]
        return [{"role": role, "content": _fill(text, fields)} for role, text in rendered if text]


def check_fields(prompts: Sequence[Prompt], dataset: Dataset) -> None:
    """Raises Refused naming every prompt that asks for a field which not every item has, and the first item without it."""
    available = dataset.common_fields
    faults = [
        f"prompt {prompt.name!r} asks for {{{name}}}, {_lacking(name, dataset)}"
        for prompt in prompts
        for name in prompt.fields
        if name not in available
    ]
    if faults:
        raise Refused(
            f"{'; '.join(faults[:5])}{' …' if len(faults) > 5 else ''}",
            kept="Nothing was run.",
            remedy=f"{_fields_text(dataset)} Write {{{{name}}}} where braces are meant as text.",
        )
    empty = [prompt.name for prompt in prompts if not prompt.fields]
    if empty:
        raise Refused(
            f"prompt {empty[0]!r} has no field: every item would get the same request",
            kept="Nothing was run.",
            remedy=f"Put the item in by name: {' or '.join('{' + name + '}' for name in available[:3])}.",
        )


def _lacking(name: str, dataset: Dataset) -> str:
    """Which item has no such field; a row with an empty cell has none."""
    without = [number for number, item in enumerate(dataset.items, 1) if name not in item.fields]
    if len(without) == len(dataset.items):
        return "which no item has"
    first = dataset.items[without[0] - 1].item_id
    return f"which item {first!r} (row {without[0]}) does not have, the first of {len(without)} such"


def _fields_text(dataset: Dataset) -> str:
    if dataset.common_fields:
        return f"All items have: {', '.join(dataset.common_fields)}."
    some = list(dict.fromkeys(name for item in dataset.items for name in item.fields))
    return f"No field stands in all items; some have: {', '.join(some)}." if some else "The items have no fields."


def _fill(text: str, fields: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda match: "{" + match[1] + "}" if match[1] else fields[match[2]], text)
