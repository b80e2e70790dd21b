"""Makes a model directory of Llama's shape with random weights: ``python -m tests.gpu.tiny_model DIR [SIZE] [gptq]``.

exllamav2 loads it, and exllamav3 where it is not quantised. Random 4-bit GPTQ tensors (groups of 128, no reordering)
exercise the quantised kernels without a conversion. What it writes is noise, but its length, its tokens and its speed
are those of a model. Needs torch, safetensors and tokenizers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

# hidden size, MLP size, layers, heads, key-value heads, head size, vocabulary
SIZES = {
    "tiny": (256, 512, 2, 4, 2, 64, 1024),
    "small": (2048, 5632, 22, 32, 4, 64, 32000),
    "8b": (4096, 14336, 32, 32, 8, 128, 128256),
}
SPECIALS = ["<|bos|>", "<|eos|>", "<|eot|>", "<|pad|>", "<|start|>"]
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|start|>{{ m['role'] }}\n{{ m['content'] }}<|eot|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
_SHARD = 2 * 2**30


def make_model(directory: Path, size: str = "tiny", *, gptq: bool = False, template: str = TEMPLATE) -> Path:
    """Write the directory, the same for the same arguments; returns it."""
    directory.mkdir(parents=True, exist_ok=True)
    hidden, mlp, layers, heads, kv_heads, head_dim, vocabulary = SIZES[size]
    config: dict[str, Any] = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden, "intermediate_size": mlp,
        "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": head_dim,
        "vocab_size": vocabulary, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "max_position_embeddings": 8192,
        "tie_word_embeddings": False, "hidden_act": "silu", "torch_dtype": "float16", "bos_token_id": 0,
        "eos_token_id": 1, "pad_token_id": 3,
    }  # fmt: skip
    if gptq:
        config["quantization_config"] = {
            "quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True,
            "checkpoint_format": "gptq",
        }  # fmt: skip
    _write(directory / "config.json", config)
    # The second end token stands in one of the two files only, as it often does.
    _write(directory / "generation_config.json", {"eos_token_id": [1, 2], "bos_token_id": 0})
    weights = _Weights(directory, gptq=gptq)
    weights.put("model.embed_tokens.weight", weights.random(vocabulary, hidden))
    for number in range(layers):
        layer = f"model.layers.{number}"
        for norm in ("input_layernorm", "post_attention_layernorm"):
            weights.put(f"{layer}.{norm}.weight", torch.ones(hidden).half())
        for name, rows in (("q", heads * head_dim), ("k", kv_heads * head_dim), ("v", kv_heads * head_dim)):
            weights.linear(f"{layer}.self_attn.{name}_proj", rows, hidden)
        weights.linear(f"{layer}.self_attn.o_proj", hidden, heads * head_dim)
        weights.linear(f"{layer}.mlp.gate_proj", mlp, hidden)
        weights.linear(f"{layer}.mlp.up_proj", mlp, hidden)
        weights.linear(f"{layer}.mlp.down_proj", hidden, mlp)
    weights.put("model.norm.weight", torch.ones(hidden).half())
    weights.put("lm_head.weight", weights.random(vocabulary, hidden))
    weights.end()
    _tokenizer(vocabulary).save(str(directory / "tokenizer.json"))
    _write(
        directory / "tokenizer_config.json",
        {
            "bos_token": "<|bos|>", "eos_token": "<|eos|>", "pad_token": "<|pad|>", "chat_template": template,
            "model_max_length": 8192, "tokenizer_class": "PreTrainedTokenizerFast", "add_bos_token": True,
        },
    )  # fmt: skip
    return directory


class _Weights:
    def __init__(self, directory: Path, *, gptq: bool) -> None:
        self.directory = directory
        self.gptq = gptq
        self.generator = torch.Generator().manual_seed(0)
        self.shard: dict[str, torch.Tensor] = {}
        self.index: dict[str, str] = {}
        self.shards = 0

    def random(self, *shape: int) -> torch.Tensor:
        return (torch.randn(*shape, generator=self.generator) * 0.02).half()

    def put(self, name: str, tensor: torch.Tensor) -> None:
        self.shard[name] = tensor.contiguous()
        if sum(one.numel() * one.element_size() for one in self.shard.values()) > _SHARD:
            self.flush()

    def linear(self, name: str, rows: int, columns: int) -> None:
        if not self.gptq:
            self.put(f"{name}.weight", self.random(rows, columns))
            return
        words = torch.randint(-(2**31), 2**31 - 1, (columns // 8, rows), generator=self.generator, dtype=torch.int64)
        self.put(f"{name}.qweight", words.to(torch.int32))
        self.put(f"{name}.qzeros", torch.full((columns // 128, rows // 8), 0x77777777, dtype=torch.int32))
        self.put(f"{name}.scales", torch.full((columns // 128, rows), 0.02 / 4.6).half())

    def flush(self) -> None:
        file = f"model-{self.shards:05d}.safetensors"
        save_file(self.shard, self.directory / file, metadata={"format": "pt"})
        self.index |= dict.fromkeys(self.shard, file)
        self.shard, self.shards = {}, self.shards + 1

    def end(self) -> None:
        if self.shard:
            self.flush()
        _write(self.directory / "model.safetensors.index.json", {"metadata": {}, "weight_map": self.index})


def _tokenizer(vocabulary: int) -> Any:
    # Bytes and a few merges, so that any text has tokens; the special ones first, so that their ids are known.
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    corpus = ["The quick brown fox jumps over the lazy dog. " * 3, '{"answer": "yes", "score": 12}'] * 50
    trainer = trainers.BpeTrainer(
        vocab_size=min(vocabulary, 900), special_tokens=SPECIALS, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    tokenizer.train_from_iterator(corpus, trainer)
    return tokenizer


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


if __name__ == "__main__":
    print(make_model(Path(sys.argv[1]), *sys.argv[2:3], gptq="gptq" in sys.argv[3:]))
