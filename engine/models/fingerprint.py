"""The identity of a model: one definition for all backends, equal for equal content wherever the files lie.

The fingerprint hashes the size and 64 blocks of 64 KiB of every weight file (the first and the last bytes
included), and in full what decides how text becomes tokens and prompts: a GGUF file's metadata header, or a model
directory's configuration, tokenizer and chat template. Headers and sizes alone are equal between fine-tunes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.errors import EvaldeskError
from engine.hashing import content_hash
from engine.models.directory import directory_details
from engine.models.gguf import MAGIC, read_header

BLOCKS = 64
BLOCK_BYTES = 64 * 1024
SCHEME = "evaldesk model fingerprint 1"

_WEIGHT_SUFFIXES = {".safetensors", ".gguf", ".bin", ".pt"}
_SMALL_NAMES = re.compile(r"(config|quantization_config|quantize_config|tokenizer.*|vocab|special_tokens_map|added_tokens)\.json|"
                          r"merges\.txt|tokenizer\.model|chat_template\.(jinja|json)")  # fmt: skip
_MAX_SMALL = 256 * 2**20
_SHARD = re.compile(r"(.*)-\d{5}-of-(\d{5})\.gguf")


@dataclass(frozen=True)
class Fingerprint:
    """``short`` is the name of the model in request keys; ``sampled`` the whole hash it is taken from (64 hex digits).

    ``full`` is the hash over every byte, or None while nobody asked for it (see ``full_hash``). ``details`` says what
    the files tell of themselves: name, architecture, quantisation, context_length, chat_template_hash, size.
    """

    short: str
    sampled: str
    full: str | None
    details: Mapping[str, str | int]


def fingerprint(path: Path) -> Fingerprint:
    """The fingerprint of a weight file or a model directory; raises EvaldeskError when it cannot be read."""
    path = Path(path)
    try:
        weights = weight_files(path)
        parts = [[name, file.stat().st_size, _sampled(file)] for name, file in weights]
        small = _small_parts(path, weights)
        details = _details(path, weights)
    except OSError as error:
        raise _unreadable(path, error) from error
    sampled = content_hash([SCHEME, parts, small])
    return Fingerprint(sampled[:16], sampled, _known_full_hash(path), details)


def full_hash(path: Path) -> str:
    """SHA-256 over every byte of every weight file (64 hex digits); kept by path, size and time of change."""
    path = Path(path)
    known = _known_full_hash(path)
    if known is not None:
        return known
    try:
        digest = hashlib.sha256()
        for _, file in weight_files(path):
            with file.open("rb") as stream:
                while block := stream.read(4 * 2**20):
                    digest.update(block)
    except OSError as error:
        raise _unreadable(path, error) from error
    note = _full_hash_note(path)
    note.parent.mkdir(parents=True, exist_ok=True)
    scratch = note.with_suffix(f".{os.getpid()}.tmp")
    scratch.write_text(json.dumps({"sha256": digest.hexdigest()}), encoding="utf-8")
    os.replace(scratch, note)
    return digest.hexdigest()


def weight_files(path: Path) -> list[tuple[str, Path]]:
    """(name inside the model, file) of every weight file, in order; a single file has the name ""."""
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in _WEIGHT_SUFFIXES and file.is_file())
        if not files:
            raise EvaldeskError("the directory holds no weight files", where=str(path))
        return [(file.name, file) for file in files]
    shard = _SHARD.fullmatch(path.name)
    if shard is None:
        return [("", path)]
    count = int(shard[2])
    names = [f"{shard[1]}-{number:05d}-of-{shard[2]}.gguf" for number in range(1, count + 1)]
    return [(str(number), path.with_name(name)) for number, name in enumerate(names)]


def block_offsets(size: int) -> Iterator[tuple[int, int]]:
    """(offset, length) of the sampled blocks of a file of ``size`` bytes; small files are covered without a gap."""
    if size <= BLOCKS * BLOCK_BYTES:
        for offset in range(0, size, BLOCK_BYTES):
            yield offset, min(BLOCK_BYTES, size - offset)
        return
    for number in range(BLOCKS):
        yield number * (size - BLOCK_BYTES) // (BLOCKS - 1), BLOCK_BYTES


def _sampled(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        for offset, length in block_offsets(os.fstat(stream.fileno()).st_size):
            stream.seek(offset)
            digest.update(stream.read(length))
    return digest.hexdigest()


def _small_parts(path: Path, weights: list[tuple[str, Path]]) -> list[list[str]]:
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if _SMALL_NAMES.fullmatch(file.name))
        return [[file.name, _head_hash(file, min(file.stat().st_size, _MAX_SMALL))] for file in files]
    return [[name, _head_hash(file, read_header(file).metadata_end)] for name, file in weights if _is_gguf(file)]


def _head_hash(file: Path, length: int) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while length and (block := stream.read(min(length, 2**20))):
            digest.update(block)
            length -= len(block)
    return digest.hexdigest()


def _details(path: Path, weights: list[tuple[str, Path]]) -> dict[str, str | int]:
    details: dict[str, str | int] = {"size": sum(file.stat().st_size for _, file in weights)}
    first = weights[0][1]
    if not path.is_dir() and _is_gguf(first):
        header = read_header(first)
        details |= {
            "name": header.name,
            "architecture": header.architecture,
            "quantisation": header.quantisation,
            "context_length": header.context_length,
            "chat_template_hash": content_hash(header.chat_template) if header.chat_template else "",
        }
    elif path.is_dir():
        details |= directory_details(path)
    return details


def _is_gguf(file: Path) -> bool:
    if file.suffix.lower() == ".gguf":
        return True
    with file.open("rb") as stream:
        return stream.read(4) == MAGIC


def _full_hash_note(path: Path) -> Path:
    from engine.runs.queue import state_home

    stats = [(str(file.resolve()), file.stat()) for _, file in weight_files(path)]
    return state_home() / "hashes" / f"{content_hash([[name, s.st_size, s.st_mtime_ns] for name, s in stats])}.json"


def _known_full_hash(path: Path) -> str | None:
    try:
        value = json.loads(_full_hash_note(path).read_text(encoding="utf-8"))["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return value if isinstance(value, str) else None


def _unreadable(path: Path, error: OSError) -> EvaldeskError:
    return EvaldeskError(f"the model cannot be read ({error.strerror or error})", where=str(path))
