"""A sweep: the protocol by which prompts are scored on a dataset, known by the hash of what it lays down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.errors import Refused
from engine.hashing import content_hash

if TYPE_CHECKING:
    from stats.subsets import Condition

DEFAULT_SEEDS = (1, 2, 3, 4, 5)
POOL_SEED = 0
FIRST_BLOCK_ITEMS = 2
BLOCK_ITEMS = 16
"""Items whose requests are planned together: inside a block by prompt, so that prompts stay comparable while a run goes."""
MAX_SEEDS = 1000
LETTERS = "ABCDEFGHIJ"
MAX_TEMPERATURE = 2.0
MAX_TOKENS = {"exact": 32, "choice": 32, "number": 512, "likelihood": 1}
"""Room for a reply, by scorer, where nothing else is said."""
LARGEST = {"max_tokens": 32768, "seeds": MAX_SEEDS, "repeats": 24}
"""More than these is a slip of the hand: no model here replies at such length, no ranking needs so many seeds or repeats."""


@dataclass(frozen=True)
class Sweep:
    """Prompts x items x conditions on one model with one decoding setting.

    ``prompts`` are (prompt id, name) in the order of the file. The ``pool`` is what conditions draw from: so many items
    of the dataset, themselves drawn with ``pool_seed``. A condition is a (seed, k) with k at most the pool. Where decoding
    is not greedy each (prompt, item) may be asked ``repeats`` times; its outcome is the mean over them.
    """

    dataset_id: str
    dataset_items: int
    scorer: str
    model_id: str
    prompts: tuple[tuple[str, str], ...]
    pool: int
    seeds: tuple[int, ...] = DEFAULT_SEEDS
    ks: tuple[int, ...] = ()
    sampling: Mapping[str, Any] = field(default_factory=dict)
    letters: str = "ABCD"
    pool_seed: int = POOL_SEED
    name: str = ""
    repeats: int = 1

    @property
    def sweep_id(self) -> str:
        return content_hash(
            [
                self.dataset_id, self.scorer, self.letters, self.model_id, [list(p) for p in self.prompts], self.pool,
                self.pool_seed, list(self.seeds), list(self.ks), dict(self.sampling),
                *([self.repeats] if self.repeats > 1 else []),
            ]
        )[:16]  # fmt: skip

    @property
    def options(self) -> tuple[str, ...]:
        """What requests ask the likelihoods of; () where replies are generated."""
        return tuple(self.letters) if self.scorer == "likelihood" else ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All (seed, k), by k and then by seed."""
        from stats.subsets import Condition  # numpy, which the app does not wait for at its start

        return tuple(Condition(seed, k) for k in self.ks for seed in self.seeds)

    @property
    def pool_items(self) -> list[int]:
        """Positions in the dataset of the items that conditions draw from, ascending; index i of a draw is the i-th of these."""
        from stats.subsets import draw

        return [int(position) for position in draw(self.pool_seed, self.dataset_items, self.pool)]

    @property
    def needed_items(self) -> list[int]:
        """Indices into the pool that some condition touches, ascending."""
        from stats.subsets import draw

        touched: set[int] = set()
        for condition in self.conditions:
            touched.update(int(index) for index in draw(condition.seed, self.pool, condition.k))
        return sorted(touched)

    @property
    def needed_cells(self) -> int:
        """How many (prompt, item, repeat) some condition touches; two that render the same request are two of them."""
        return len(self.needed_items) * len(self.prompts) * self.repeats


def default_ks(pool: int) -> tuple[int, ...]:
    """Subset sizes for a pool: the paper's 50, 100 and 200 where they are real subsets, else a third and two thirds of it."""
    ks = tuple(k for k in (50, 100, 200) if k < pool)
    return ks or tuple(sorted({max(pool // 3, 1), max(2 * pool // 3, 1)}))


def check_number(name: str, number: int, title: str) -> None:
    """Raises Refused for a number below 1, or above what makes sense; ``title`` is what the person who gave it calls it."""
    largest = LARGEST.get(name)
    if number < 1 or (largest is not None and number > largest):
        raise Refused(
            f"{title}: {number} does not lie {f'between 1 and {largest}' if largest else 'from 1 on'}",
            kept="Nothing was run.",
            remedy="Leave it out for the default.",
        )


def check(seeds: Sequence[int], ks: Sequence[int], pool: int, dataset_items: int) -> None:
    """Raises Refused where the conditions cannot be drawn from the items that there are."""
    if pool < 1 or pool > dataset_items:
        raise Refused(
            f"{pool} items cannot be drawn from {dataset_items}",
            kept="Nothing was run.",
            remedy=f"Draw from at most {dataset_items} items.",
        )
    too_large = [k for k in ks if k < 1 or k > pool]
    if too_large or not ks:
        raise Refused(
            f"k = {too_large[0] if too_large else 'nothing'} cannot be drawn from {pool} items",
            kept="Nothing was run.",
            remedy=f"Every k has to lie between 1 and {pool}.",
        )
    if len(seeds) > MAX_SEEDS:
        raise Refused(
            f"{len(seeds):,} seeds are more than anyone can read", kept="Nothing was run.",
            remedy=f"Give at most {MAX_SEEDS:,}; what any two seeds are expected to show needs none.",
        )  # fmt: skip
    for name, values in (("seed", seeds), ("k", ks)):
        if not values or len(set(values)) < len(values):
            raise Refused(
                f"each {name} is needed once, got {', '.join(map(str, values)) or 'none'}", kept="Nothing was run."
            )
