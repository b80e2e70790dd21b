"""What is exllamav3's own: EXL3 and unquantised weights; batches without flash-attn, sampling on the GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import exllamav3
import torch
from exllamav3.cache import CacheLayer_fp16, CacheLayer_quant

from engine.backends.exllama_library import Job
from engine.backends.exllama_parts import ExLlamaParts
from engine.backends.json_schema import compact_schema
from engine.errors import EvaldeskError

_BITS = {"q8": 8, "q6": 6, "q4": 4}


class ExLlamaV3Library(ExLlamaParts):
    """engine.backends.exllama_library.Library of exllamav3."""

    serial_because = ""

    def __init__(self, directory: Path, context: int) -> None:
        # The length of a request is the adapter's to check: the library never does.
        self.config: Any = exllamav3.Config.from_directory(str(directory))
        self.tokenizer: Any = exllamav3.Tokenizer.from_config(self.config)

    def load(self, mode: str, tokens: int, parallel: int) -> None:
        if not torch.cuda.is_available():
            raise EvaldeskError("exllamav3 needs an NVIDIA GPU, and torch finds none", remedy="See evaldesk doctor.")
        self.model = exllamav3.Model.from_config(self.config)
        if mode == "fp16":
            self.cache = exllamav3.Cache(self.model, max_num_tokens=tokens, layer_type=CacheLayer_fp16)
        else:
            bits = _BITS[mode]
            self.cache = exllamav3.Cache(
                self.model, max_num_tokens=tokens, layer_type=CacheLayer_quant, k_bits=bits, v_bits=bits
            )
        # Splits over the GPUs by itself; the cache is allocated with the layers that it belongs to.
        self.model.load(progressbar=False)
        self.generator = exllamav3.Generator(
            model=self.model, cache=self.cache, tokenizer=self.tokenizer, max_batch_size=parallel, max_q_size=1
        )

    def job(self, job: Job) -> Any:
        return exllamav3.Job(
            input_ids=torch.tensor([job.ids], dtype=torch.long),
            max_new_tokens=job.limit,
            sampler=exllamav3.ComboSampler(**sampler_settings(job)),
            seed=job.sampling["seed"],
            stop_conditions=[*job.end_ids, *job.stop],
            return_logits=job.needs_logits,
            filters=[self._filter(job)] if job.schema is not None else None,
            identifier=job.key,
        )

    def forget(self) -> None:
        self.generator.pagetable.reset_page_table()
        if self.model.caps.get("recurrent_states"):
            self.cache.reset_states()

    def _filter(self, job: Job) -> Any:
        assert job.schema is not None
        # A filter that is through lets everything pass: the reply has to end there.
        return exllamav3.LLGuidanceFilter(
            self.tokenizer, json_schema=compact_schema(job.schema), eos_after_completed=True
        )


def sampler_settings(job: Job) -> dict[str, Any]:
    """The keywords of ComboSampler; those left out do nothing by default."""
    asked = job.sampling
    return {
        "rep_p": asked["repeat_penalty"],
        "pres_p": asked["presence_penalty"],
        "freq_p": asked["frequency_penalty"],
        "temperature": 0.0 if job.is_greedy else asked["temperature"],
        "top_k": asked["top_k"],
        "top_p": asked["top_p"],
        "min_p": asked["min_p"],
    }
