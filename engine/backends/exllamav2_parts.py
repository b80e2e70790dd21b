"""What is exllamav2's own: EXL2, GPTQ and unquantised weights; batches need flash-attn and an Ampere GPU or newer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import exllamav2
import torch
from exllamav2.attn import has_flash_attn_with_paged
from exllamav2.generator import ExLlamaV2DynamicGenerator, ExLlamaV2DynamicJob, ExLlamaV2Sampler

from engine.backends.exllama_library import Job
from engine.backends.exllama_parts import ExLlamaParts
from engine.errors import EvaldeskError

PAGED_CAPABILITY = 8
_CACHES = {
    "fp16": exllamav2.ExLlamaV2Cache,
    "q8": exllamav2.ExLlamaV2Cache_Q8,
    "q6": exllamav2.ExLlamaV2Cache_Q6,
    "q4": exllamav2.ExLlamaV2Cache_Q4,
}
# The library's own defaults reshape the distribution (temperature 0.8, top_k 50, repetition penalty 1.025 ...).
NEUTRAL_SETTINGS: dict[str, Any] = {
    "token_repetition_penalty": 1.0,
    "token_repetition_range": -1,
    "token_repetition_decay": 0,
    "token_frequency_penalty": 0.0,
    "token_presence_penalty": 0.0,
    "temperature": 1.0,
    "smoothing_factor": 0.0,
    "min_temp": 0.0,
    "max_temp": 0.0,
    "temp_exponent": 1.0,
    "top_k": 0,
    "top_p": 0.0,
    "top_a": 0.0,
    "min_p": 0.0,
    "tfs": 0.0,
    "typical": 0.0,
    "skew": 0.0,
    "temperature_last": False,
    "mirostat": False,
    "mirostat_tau": 1.5,
    "mirostat_eta": 0.1,
    "token_bias": None,
    "cfg_scale": None,
    "dry_multiplier": 0.0,
    "xtc_probability": 0.0,
}


class ExLlamaV2Library(ExLlamaParts):
    """engine.backends.exllama_library.Library of exllamav2."""

    def __init__(self, directory: Path, context: int) -> None:
        self.config: Any = exllamav2.ExLlamaV2Config(str(directory))
        self.config.arch_compat_overrides(quiet=True)
        self.config.max_seq_len = min(context, self.config.max_seq_len)
        # One row of logits a sequence: more would only take memory.
        self.config.max_output_len = 1
        self.serial_because = _serial_because(self.config)
        if self.serial_because:
            # Without flash-attn, 0.2.9 to 0.3.2 attend by SDPA without a causal mask: replies are silently wrong.
            self.config.no_flash_attn = True
            self.config.no_sdpa = True
        self.tokenizer: Any = exllamav2.ExLlamaV2Tokenizer(self.config)
        self._grammars: Any = None

    def load(self, mode: str, tokens: int, parallel: int) -> None:
        self.model = exllamav2.ExLlamaV2(self.config)
        self.cache = self.load_weights(mode, tokens)
        self.generator = ExLlamaV2DynamicGenerator(
            model=self.model,
            cache=self.cache,
            tokenizer=self.tokenizer,
            max_batch_size=parallel,
            max_q_size=1,
            paged=not self.serial_because,
        )

    def load_weights(self, mode: str, tokens: int) -> Any:
        """Weights and cache on the GPUs, as many as it takes; the cache."""
        if not torch.cuda.is_available():
            raise EvaldeskError("exllamav2 needs an NVIDIA GPU, and torch finds none", remedy="See evaldesk doctor.")
        cache = _CACHES[mode](self.model, max_seq_len=tokens, lazy=True)
        self.model.load_autosplit(cache)
        return cache

    def job(self, job: Job) -> Any:
        return ExLlamaV2DynamicJob(
            input_ids=torch.tensor([job.ids], dtype=torch.long),
            max_new_tokens=job.limit,
            gen_settings=ExLlamaV2Sampler.Settings(**settings(job)),
            seed=job.sampling["seed"],
            stop_conditions=[*job.end_ids, *job.stop],
            return_logits=job.needs_logits,
            filters=[self._filter(job)] if job.schema is not None else None,
            identifier=job.key,
        )

    def forget(self) -> None:
        self.generator.reset_page_table()

    def _filter(self, job: Job) -> Any:
        from engine.backends.exllamav2_filter import Grammars

        if self._grammars is None:
            self._grammars = Grammars(self.model, self.tokenizer, job.end_ids)
        return self._grammars.filter(job.schema)


def settings(job: Job) -> dict[str, Any]:
    """Every field of ExLlamaV2Sampler.Settings that is not the sampler's own memory."""
    asked = job.sampling
    penalties = {
        "token_repetition_penalty": asked["repeat_penalty"],
        "token_presence_penalty": asked["presence_penalty"],
        "token_frequency_penalty": asked["frequency_penalty"],
    }
    if job.is_greedy:
        return NEUTRAL_SETTINGS | penalties | {"top_k": 1}
    # To the library a top_p of 0 and of 1 both mean: all tokens.
    truncation = {"top_k": asked["top_k"], "top_p": max(asked["top_p"], 1e-6), "min_p": asked["min_p"]}
    return NEUTRAL_SETTINGS | penalties | truncation | {"temperature": asked["temperature"]}


def _serial_because(config: Any) -> str:
    if not has_flash_attn_with_paged:
        return "flash-attn 2.5.7 or newer is not installed"
    if config.no_flash_attn:
        return "this architecture cannot use the installed flash-attn"
    for number in range(torch.cuda.device_count()):
        capability = torch.cuda.get_device_capability(number)
        if capability[0] < PAGED_CAPABILITY:
            return f"GPU {number} has compute capability {capability[0]}.{capability[1]}, which is less than 8.0"
    return ""
