"""Stands in for the compiled extensions where there is no GPU.

Of exllamav2 it does what config, tokenizer, sampler and dynamic generator touch, so that these run as they are, in CPU
torch, against a scripted model. Of exllamav3 it does what the generator touches, but no sampling.
``install`` and ``install_v3`` must be called before the packages are imported.
"""

from __future__ import annotations

import itertools
import sys
import types
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from typing import Any

import numpy as np
import torch

NO_MATCH, PARTLY = -1, -2


def install() -> None:
    """Put the stand-in where ``import exllamav2_ext`` finds it."""
    module = types.ModuleType("exllamav2_ext")
    module.__spec__ = ModuleSpec("exllamav2_ext", None)
    for function in (
        partial_strings_match,
        count_match,
        sample_basic,
        fast_fill_cpu_ones_bool,
        logit_filter_exclusive,
        fast_fadd_cpu,
        cache_rotate,
        apply_rep_penalty,
    ):
        setattr(module, function.__name__, function)
    sys.modules["exllamav2_ext"] = module


def install_v3() -> None:
    """Put an extension where exllamav3 looks for a compiled one; functions that are not here do nothing."""
    module = types.ModuleType("exllamav3_ext")
    module.__spec__ = ModuleSpec("exllamav3_ext", _Loader(), origin=f"exllamav3_ext{EXTENSION_SUFFIXES[0]}")
    module.__getattr__ = _nothing  # type: ignore[method-assign]
    module.partial_strings_match = partial_strings_match  # type: ignore[attr-defined]
    module.count_match_tensor = count_match  # type: ignore[attr-defined]
    module.generator_stage_decode = generator_stage_decode  # type: ignore[attr-defined]
    sys.modules["exllamav3_ext"] = module


class _Loader:
    """Only has to be there."""


def _nothing(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *_, **__: None


def partial_strings_match(match: Any, offsets: Any, strings: Any) -> int:
    """Where one of the strings begins in ``match``; PARTLY where one may begin at its end. All as UTF-32."""
    text = np.frombuffer(match, dtype=np.uint32).tolist()
    bounds = np.frombuffer(offsets, dtype=np.int32).tolist()
    signs = np.frombuffer(strings, dtype=np.uint32)
    for start, end in itertools.pairwise(bounds):
        wanted = signs[start // 4 : end // 4].tolist()
        for at in range(len(text)):
            length = min(len(wanted), len(text) - at)
            if text[at : at + length] == wanted[:length]:
                return at if length == len(wanted) else PARTLY
    return NO_MATCH


def count_match(first: torch.Tensor, second: torch.Tensor, most: int) -> int:
    """Tokens that both begin with."""
    length = min(most, second.size(1))
    different = (first[0, :length] != second[0, :length]).nonzero()
    return int(different[0]) if len(different) else length


def sample_basic(
    logits: torch.Tensor, temperature: float, top_k: int, top_p: float, top_a: float, min_p: float, tfs: float,
    typical: float, random: float, out_tokens: torch.Tensor, out_probs: torch.Tensor, out_k_probs: torch.Tensor,
    out_k_tokens: torch.Tensor, logit_filter: torch.Tensor, mirostat: bool, mirostat_mu: Any, *rest: Any,
) -> Any:  # fmt: skip
    """Temperature, top-k, top-p and a draw with the random number that is given; the rest must be neutral."""
    assert not (top_a or min_p or tfs or typical or mirostat)
    for row in range(logits.shape[0]):
        scores = logits[row, 0].clone()
        if not logit_filter.is_meta:
            scores[~logit_filter[row]] = float("-inf")
        probs, ids = torch.softmax(scores / temperature, -1).sort(descending=True)
        if 0 < top_k < len(probs):
            probs, ids = probs[:top_k] / probs[:top_k].sum(), ids[:top_k]
        if len(probs) > 1 and 0 < top_p < 1:
            kept = int((probs.cumsum(0) < top_p).sum()) + 1
            probs, ids = probs[:kept] / probs[:kept].sum(), ids[:kept]
        if not out_k_probs.is_meta:
            count = min(out_k_probs.shape[2], len(probs))
            out_k_probs[row, 0] = 0
            out_k_probs[row, 0, :count], out_k_tokens[row, 0, :count] = probs[:count], ids[:count]
        drawn = min(int((probs.cumsum(0) < random * 0.9998).sum()), len(probs) - 1)
        out_tokens[row, 0], out_probs[row, 0] = ids[drawn], probs[drawn]
    return mirostat_mu


def fast_fill_cpu_ones_bool(tensor: torch.Tensor) -> None:
    tensor.fill_(True)


def logit_filter_exclusive(logit_filter: torch.Tensor, allowed: Sequence[Any]) -> None:
    """Leave only the listed tokens of each row."""
    for row, ids in enumerate(allowed):
        kept = torch.zeros_like(logit_filter[row])
        kept[torch.tensor(list(ids))] = True
        logit_filter[row] &= kept


def fast_fadd_cpu(first: torch.Tensor, second: torch.Tensor) -> None:
    first.add_(second)


def cache_rotate(*_: Any) -> None:
    """Moves pages of the cache, which holds nothing here."""


def apply_rep_penalty(
    ids: torch.Tensor, penalty: float, sustain: int, decay: int, frequency: float, presence: float, logits: torch.Tensor
) -> None:
    """Repetition penalty over the whole sequence; the additive ones must be 0."""
    assert not (frequency or presence)
    for token in set(ids[0].tolist()):
        score = logits[0, 0, token]
        logits[0, 0, token] = score * penalty if score < 0 else score / penalty


def generator_stage_decode(
    arena: torch.Tensor, width: int, tables: Sequence[torch.Tensor], positions: Sequence[int], offsets: Sequence[int],
    batch_ids: torch.Tensor | None, ids: Sequence[torch.Tensor], pages: Sequence[torch.Tensor], places: Sequence[int],
) -> None:  # fmt: skip
    """Fill one step's tables (pages of each row, then lengths), and gather each row's next token into ``batch_ids``."""
    assert not offsets
    arena.zero_()
    for row, (table, position) in enumerate(zip(tables, positions, strict=True)):
        listed = table.flatten()[:width]
        arena[row * width : row * width + len(listed)] = listed.int()
        arena[len(tables) * width + row] = position
        if batch_ids is not None:
            token = ids[row].flatten()[position]
            batch_ids[row, 0] = token
            pages[row].flatten()[places[row]] = token
