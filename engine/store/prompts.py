"""Prompts that were swept here, by content hash."""

from __future__ import annotations

from collections.abc import Sequence

from engine.store.transaction import Transaction, now
from engine.sweeping.prompt import Prompt


def remember(tx: Transaction, prompts: Sequence[Prompt], source: str) -> None:
    """Keep the prompts; one whose text is known is left as it is."""
    known = {row[0] for row in tx.rows("SELECT prompt_id FROM prompt")}
    moment = now()
    tx.append(
        "prompt",
        ("prompt_id", "name", "system", "template", "source", "created_at"),
        [(p.prompt_id, p.name, p.system, p.template, source, moment) for p in prompts if p.prompt_id not in known],
    )


def by_id(tx: Transaction, prompt_ids: Sequence[str]) -> dict[str, Prompt]:
    """These prompts by their ids."""
    rows = tx.rows(
        "SELECT prompt_id, name, template, system FROM prompt WHERE prompt_id IN (SELECT unnest(?::VARCHAR[]))",
        list(prompt_ids),
    )
    return {row[0]: Prompt(*row[1:]) for row in rows}
