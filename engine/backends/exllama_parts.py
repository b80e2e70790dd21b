"""What exllamav2 and exllamav3 have in common under the adapter: tokens, memory, and letting go of a model."""

from __future__ import annotations

import gc
from typing import Any

import torch


class ExLlamaParts:
    """Base of the two answers to engine.backends.exllama_library.Library; ``tokenizer`` is there before the weights."""

    tokenizer: Any
    model: Any = None
    cache: Any = None
    generator: Any = None

    def unload(self) -> None:
        if hasattr(self.generator, "close"):
            self.generator.close()
        self.generator = self.cache = None
        if self.model is not None:
            self.model.unload()
            self.model = None
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def free_memory(self) -> int:
        return sum(torch.cuda.mem_get_info(number)[0] for number in range(torch.cuda.device_count()))

    def token_id(self, text: str) -> int | None:
        number: int | None = self.tokenizer.single_id(text)
        return number

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, encode_special_tokens=True)[0].tolist()
        return ids

    def decode(self, token_ids: Any) -> str:
        return str(self.tokenizer.decode(token_ids, decode_special_tokens=False)[0])
