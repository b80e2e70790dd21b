"""Replies of exllamav2 that follow a JSON schema: llguidance says which tokens may come next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from exllamav2.generator.filters import ExLlamaV2Filter
from llguidance import LLMatcher, LLTokenizer

from engine.backends.json_schema import compact_schema


class Grammars:
    """Filters for one loaded model. Setting up takes a second for a large vocabulary, a filter takes little."""

    def __init__(self, model: Any, tokenizer: Any, end_ids: Sequence[int]) -> None:
        self._model = model
        self._tokenizer = tokenizer
        padded = -(-model.config.vocab_size // 32) * 32
        described = tokenizer.tokenizer_model.hf_tokenizer.to_str()
        self._tokens = LLTokenizer(described, n_vocab=padded, eos_token=list(end_ids))
        self._checked: dict[str, str] = {}

    def filter(self, schema: Mapping[str, Any]) -> JsonFilter:
        """A new filter; raises ValueError, in llguidance's words, for a schema that it cannot follow."""
        text = compact_schema(schema)
        if text not in self._checked:
            grammar = LLMatcher.grammar_from_json_schema(text)
            if problem := LLMatcher.validate_grammar(grammar, self._tokens):
                raise ValueError(f"the schema cannot be followed: {problem}")
            self._checked[text] = grammar
        return JsonFilter(self._model, self._tokenizer, self._tokens, self._checked[text])


class JsonFilter(ExLlamaV2Filter):  # type: ignore[misc]  # the library has no types
    """Masks what the grammar does not allow; an end token is allowed where the object is complete."""

    def __init__(self, model: Any, tokenizer: Any, tokens: Any, grammar: str) -> None:
        super().__init__(model, tokenizer)
        self._tokens = tokens
        self._grammar = grammar
        # Made by ``begin``, which the generator calls before the first token.
        self._matcher: Any = None
        self._bits = np.zeros((tokens.vocab_size + 31) // 32, dtype=np.int32)

    def begin(self, prefix_str: str) -> None:
        self._matcher = LLMatcher(self._tokens, self._grammar)

    def feed(self, token: Any) -> None:
        self._matcher.consume_token(int(token.item()))

    def next(self) -> Any:
        raise NotImplementedError("this filter masks logits")

    def use_background_worker(self) -> bool:
        return True

    def can_mask_logits(self) -> bool:
        return True

    def prepare_logit_mask(self) -> bool:
        self._matcher.unsafe_compute_mask_ptr(self._bits.ctypes.data, self._bits.nbytes)
        if self._matcher.is_error():
            raise RuntimeError(f"llguidance: {self._matcher.get_error()}")
        return True

    def mask_logits(self, logits: Any) -> Any:
        allowed = np.unpackbits(self._bits.view(np.uint8), bitorder="little")[: logits.shape[-1]]
        logits[: len(allowed)].masked_fill_(torch.from_numpy(allowed == 0), float("-inf"))
        logits[len(allowed) :] = float("-inf")
        return logits
