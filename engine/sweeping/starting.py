"""Starting a sweep: the protocol kept, every (prompt, item) rendered, what is cached left out, the rest planned in blocks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from engine.backends.protocol import Request
from engine.errors import Refused
from engine.runs import planning
from engine.runs.keys import request_key
from engine.runs.planning import Plan
from engine.store import datasets, models, prompts, runs, sweeps
from engine.store.models import Model
from engine.store.runs import Run, RunCell
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace
from engine.sweeping import sweep as protocol
from engine.sweeping.dataset import Dataset, Item
from engine.sweeping.prompt import Prompt, check_fields
from engine.sweeping.scoring import LETTERED, SCORERS, check_answer
from engine.sweeping.sweep import (
    BLOCK_ITEMS,
    FIRST_BLOCK_ITEMS,
    LETTERS,
    MAX_TEMPERATURE,
    MAX_TOKENS,
    POOL_SEED,
    Sweep,
)


@dataclass(frozen=True)
class SweepOrder:
    """What somebody wants swept. Zeros and empty tuples stand for the defaults."""

    prompts: tuple[Prompt, ...]
    dataset: Dataset
    scorer: str = "exact"
    items: int = 0
    """Size of the pool that conditions draw from; 0 for the whole dataset."""
    seeds: tuple[int, ...] = ()
    ks: tuple[int, ...] = ()
    max_tokens: int = 0
    temperature: float = 0.0
    repeats: int = 0


def sweep_of(order: SweepOrder, model: Model) -> Sweep:
    """The protocol that an order comes to; raises Refused or EvaldeskError for one that cannot be carried out."""
    if order.scorer not in SCORERS:
        raise Refused(f"there is no scorer {order.scorer!r}", remedy=f"Say one of: {', '.join(SCORERS)}.")
    if not order.prompts:
        raise Refused("there is no prompt to sweep", kept="Nothing was run.", remedy="Give a file with prompts.")
    if order.max_tokens:
        protocol.check_number("max_tokens", order.max_tokens, "tokens a reply")
    if order.repeats:
        protocol.check_number("repeats", order.repeats, "repeats")
    if not 0.0 <= order.temperature <= MAX_TEMPERATURE:
        raise Refused(
            f"temperature {order.temperature:g} does not lie between 0 and {MAX_TEMPERATURE:g}", kept="Nothing was run."
        )
    if order.repeats > 1 and not order.temperature:
        raise Refused(
            "greedy replies repeat word by word, so more than one repeat tells nothing", kept="Nothing was run.",
            remedy="Give a temperature above 0 with repeats.",
        )  # fmt: skip
    if order.scorer == "likelihood" and (order.temperature or order.max_tokens > 1):
        raise Refused(
            "the likelihood of options is that of one token, as the model gives it: no temperature changes it, no tokens follow",
            kept="Nothing was run.", remedy="Leave temperature and tokens a reply out, or take the scorer choice.",
        )  # fmt: skip
    check_fields(order.prompts, order.dataset)
    letters = _letters(order.dataset) if order.scorer in LETTERED else ""
    for item in order.dataset.items:
        check_answer(order.scorer, item.answer, letters)
    pool = order.items or len(order.dataset.items)
    seeds = order.seeds or protocol.DEFAULT_SEEDS
    ks = tuple(sorted(order.ks)) or protocol.default_ks(pool)
    protocol.check(seeds, ks, pool, len(order.dataset.items))
    # A whole number as a whole number: 0 and 0.0 are the same to a model and another key.
    temperature = int(order.temperature) if order.temperature == int(order.temperature) else order.temperature
    sampling = {"temperature": temperature, "max_tokens": order.max_tokens or MAX_TOKENS[order.scorer], "seed": 0}
    return Sweep(
        dataset_id=order.dataset.dataset_id, dataset_items=len(order.dataset.items), scorer=order.scorer,
        model_id=model.model_id, prompts=tuple((p.prompt_id, p.name) for p in order.prompts), pool=pool, seeds=seeds, ks=ks,
        sampling=sampling, letters=letters, pool_seed=POOL_SEED, name=f"{order.dataset.name} × {model.name}",
        repeats=max(order.repeats, 1),
    )  # fmt: skip


def plan(tx: Transaction, order: SweepOrder, model: Model) -> tuple[Sweep, Plan]:
    """What this order would have to generate; nothing is kept."""
    sweep = sweep_of(order, model)
    items = dict(enumerate(order.dataset.items))
    by_id = {prompt.prompt_id: prompt for prompt in order.prompts}
    return sweep, planning.preview(tx, [request for _, request in _cells(sweep, by_id, items)])


def start(tx: Transaction, workspace: Workspace, order: SweepOrder, model: Model, source: str = "") -> Run:
    """Keep prompts, dataset and protocol, and start a run over what has no result yet."""
    sweep = sweep_of(order, model)
    models.remember(tx, model)
    prompts.remember(tx, order.prompts, source)
    datasets.remember(tx, order.dataset, source)
    sweeps.remember(tx, sweep)
    items = dict(enumerate(order.dataset.items))
    return _start(tx, workspace, sweep, model, {prompt.prompt_id: prompt for prompt in order.prompts}, items)


def again(tx: Transaction, workspace: Workspace, run: Run) -> Run:
    """Start the sweep of a run once more: what has a reply is not asked again, what failed is."""
    sweep, model = sweeps.get(tx, run.sweep_id), models.get(tx, run.model_id)
    known = prompts.by_id(tx, [prompt_id for prompt_id, _ in sweep.prompts])
    return _start(tx, workspace, sweep, model, known, datasets.items(tx, sweep.dataset_id, sweep.pool_items))


def _start(
    tx: Transaction, workspace: Workspace, sweep: Sweep, model: Model, by_id: dict[str, Prompt], items: dict[int, Item]
) -> Run:
    cells = _cells(sweep, by_id, items)
    return planning.start(
        tx, workspace, kind="sweep", title=f"{sweep.name}, {len(sweep.prompts)} prompt{'' if len(sweep.prompts) == 1 else 's'}", model=model, sweep_id=sweep.sweep_id,
        planned=[request for _, request in cells],
        add_content=lambda run_id: runs.add_cells(tx, run_id, [cell for cell, _ in cells]),
    )  # fmt: skip


def requests_of(tx: Transaction, run: Run) -> list[Request]:
    """The requests of a sweep's run again, as they were planned."""
    sweep = sweeps.get(tx, run.sweep_id)
    known = prompts.by_id(tx, [prompt_id for prompt_id, _ in sweep.prompts])
    return [request for _, request in _cells(sweep, known, datasets.items(tx, sweep.dataset_id, sweep.pool_items))]


def _cells(sweep: Sweep, by_id: dict[str, Prompt], items: dict[int, Item]) -> list[tuple[RunCell, Request]]:
    """Items in a seeded random order, in blocks; inside a block by prompt, so that common prefixes follow each other.

    The first blocks are small: all prompts have answered the same few items soon, and can be compared. Each repeat has a
    seed of its own, so that it can be had again.
    """
    pool = sweep.pool_items
    order = [pool[index] for index in sweep.needed_items]
    random.Random(sweep.pool_seed).shuffle(order)
    cells = []
    begin, size = 0, FIRST_BLOCK_ITEMS
    while begin < len(order):
        for prompt_id, _ in sweep.prompts:
            for repeat, position in product(range(sweep.repeats), order[begin : begin + size]):
                messages = by_id[prompt_id].messages(items[position].fields)
                sampling = {**sweep.sampling, "seed": repeat}
                key = request_key(sweep.model_id, messages, sampling, None, repeat, sweep.options)
                request = Request(key, messages, sampling, None, sweep.options)
                cells.append((RunCell(prompt_id, position, key, repeat), request))
        begin, size = begin + size, min(2 * size, BLOCK_ITEMS)
    return cells


def _letters(dataset: Dataset) -> str:
    """The letters up to the last one that is a right answer somewhere, at least A to D."""
    used: Sequence[int] = [LETTERS.find(item.answer.strip().upper()) for item in dataset.items if item.answer.strip()]
    return LETTERS[: max([3, *used]) + 1]
