"""A library of the exllama adapter without a model: it answers with the prompt's tokens, backwards, and fails on demand.

Its generator has the interface that both real ones have (enqueue, iterate, clear_queue, the keys of a result); that
they have it is checked in tests/gpu and in test_exllama_signatures.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.backends.exllama_library import Job

END = 1
PAGE = 4
TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"


def model_directory(folder: Path, *, template: str | None = TEMPLATE, **config: Any) -> Path:
    """A directory that looks like a model's: configuration, tokenizer configuration, a file of weights."""
    folder.mkdir(parents=True, exist_ok=True)
    shape = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 64, "max_position_embeddings": 4096}
    (folder / "config.json").write_text(json.dumps({**shape, "eos_token_id": END, **config}))
    tokens: dict[str, Any] = {"bos_token": "^", "eos_token": "$"}
    (folder / "tokenizer_config.json").write_text(
        json.dumps(tokens | ({"chat_template": template} if template else {}))
    )
    header = b'{"w": {}}'
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 64)
    return folder


@dataclass
class ScriptedGenerator:
    """Gives each active job one token an iteration, then its end token. ``started`` lists jobs as they were enqueued."""

    before_iterate: Callable[[ScriptedGenerator], None]
    pending_jobs: list[Any] = field(default_factory=list)
    active_jobs: list[Any] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    widest: int = 0

    def enqueue(self, job: Any) -> None:
        self.started.append(job.identifier)
        self.pending_jobs.append(job)

    def clear_queue(self) -> None:
        self.pending_jobs.clear()
        self.active_jobs.clear()

    def iterate(self) -> list[dict[str, Any]]:
        self.active_jobs += self.pending_jobs
        self.pending_jobs.clear()
        self.widest = max(self.widest, len(self.active_jobs))
        self.before_iterate(self)
        results = [{"job": job, "stage": "prefill", "eos": False} for job in self.active_jobs if not job.made]
        for job in list(self.active_jobs):
            results.append(job.step())
            if results[-1]["eos"]:
                self.active_jobs.remove(job)
        return results


class ScriptedJob:
    """See the module."""

    def __init__(self, job: Job) -> None:
        self.identifier = job.key
        self.job = job
        self.made = ""
        self.left = "".join(chr(number) for number in reversed(job.ids[1:]))

    def step(self) -> dict[str, Any]:
        result: dict[str, Any] = {"job": self, "identifier": self.identifier, "stage": "streaming", "eos": False}
        end: dict[str, Any] = {
            "eos": True,
            "cached_tokens": 0,
            "full_completion": self.made,
            "new_tokens": len(self.made),
        }
        if not self.left:
            return result | end | {"eos_reason": "stop_token", "eos_triggering_token_str": "$"}
        self.made, self.left = self.made + self.left[0], self.left[1:]
        if len(self.made) == self.job.limit:
            whole = {"full_completion": self.made, "new_tokens": len(self.made)}
            return result | end | whole | {"eos_reason": "max_new_tokens", "text": self.made[-1]}
        return result


class ScriptedLibrary:
    """See the module. ``room`` is how many tokens of cache the GPU has memory for."""

    def __init__(self) -> None:
        self.serial_because = ""
        self.room = 1 << 30
        self.free = 0
        self.generator: Any = None
        self.loads: list[tuple[str, int, int]] = []
        self.calls: list[str] = []
        self.before_iterate: Callable[[ScriptedGenerator], None] = lambda generator: None
        self.refuse: Callable[[Job], None] = lambda job: None
        self.context = 0

    def opened(self, directory: Path, context: int) -> ScriptedLibrary:
        self.context = context
        return self

    def load(self, mode: str, tokens: int, parallel: int) -> None:
        self.loads.append((mode, tokens, parallel))
        if tokens > self.room:
            raise RuntimeError("Insufficient VRAM for model and cache")
        before = self.generator
        self.generator = ScriptedGenerator(lambda generator: self.before_iterate(generator))
        if before is not None:
            self.generator.started, self.generator.widest = before.started, before.widest

    def unload(self) -> None:
        self.calls.append("unload")

    def free_memory(self) -> int:
        return self.free

    def token_id(self, text: str) -> int | None:
        return {"^": ord("^"), "$": ord("$")}.get(text)

    def encode(self, text: str) -> list[int]:
        return [ord(sign) for sign in text]

    def decode(self, token_ids: Any) -> str:
        return str(token_ids)

    def job(self, job: Job) -> ScriptedJob:
        self.refuse(job)
        return ScriptedJob(job)

    def forget(self) -> None:
        self.calls.append("forget")
