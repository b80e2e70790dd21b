"""The metadata header of a GGUF file, read with bounded sizes and without loading a tensor.

Source: the GGUF specification (docs/gguf.md of the ggml project), versions 2 and 3, little endian.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from engine.errors import EvaldeskError

MAGIC = b"GGUF"
MAX_ENTRIES = 65_536
MAX_STRING = 16 * 2**20
MAX_ARRAY = 8_000_000
MAX_HEADER = 512 * 2**20

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING = 8
_ARRAY = 9
_MAX_DEPTH = 4

# The numbers of llama.cpp's enum llama_ftype.
FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
    21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16",
}  # fmt: skip


@dataclass(frozen=True)
class GgufHeader:
    """``metadata`` holds scalars and strings; arrays only by their length, under their own key."""

    version: int
    tensors: int
    metadata: Mapping[str, str | int | float | bool]
    metadata_end: int
    """Offset of the first byte behind the metadata."""

    @property
    def name(self) -> str:
        return str(self.metadata.get("general.name", ""))

    @property
    def architecture(self) -> str:
        return str(self.metadata.get("general.architecture", ""))

    @property
    def quantisation(self) -> str:
        """Name of the file's main quantisation, such as Q4_1; "" when the file does not say."""
        number = self.metadata.get("general.file_type")
        return "" if number is None else FILE_TYPES.get(int(number), f"file type {number}")

    @property
    def context_length(self) -> int:
        """Tokens that the model was trained for; 0 when the file does not say."""
        value = self.metadata.get(f"{self.architecture}.context_length", 0)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    @property
    def chat_template(self) -> str:
        return str(self.metadata.get("tokenizer.chat_template", ""))


def read_header(path: Path) -> GgufHeader:
    """Raises EvaldeskError when the file cannot be read, is no GGUF file, is cut short, or claims absurd sizes."""
    try:
        with path.open("rb") as file:
            return _Reader(file, path).header()
    except OSError as error:
        raise EvaldeskError(f"the model file cannot be read ({error.strerror or error})", where=str(path)) from error


class _Reader:
    def __init__(self, file: BinaryIO, path: Path) -> None:
        self.file = file
        self.path = path
        self.at = 0

    def header(self) -> GgufHeader:
        if self.take(4) != MAGIC:
            raise self.refusal("this is not a GGUF file")
        version = self.number("I")
        if version not in (2, 3):
            raise self.refusal(f"GGUF version {version} is not known here (2 and 3 are)")
        tensors, entries = self.number("Q"), self.number("Q")
        if entries > MAX_ENTRIES:
            raise self.refusal(f"the header claims {entries} entries")
        metadata: dict[str, str | int | float | bool] = {}
        for _ in range(entries):
            key = self.string()
            metadata[key] = self.value(self.number("I"), 0)
        return GgufHeader(version, tensors, metadata, self.at)

    def value(self, kind: int, depth: int) -> str | int | float | bool:
        if kind in _SCALARS:
            scalar: int | float | bool = struct.unpack(
                "<" + _SCALARS[kind], self.take(struct.calcsize(_SCALARS[kind]))
            )[0]
            return scalar
        if kind == _STRING:
            return self.string()
        if kind != _ARRAY or depth >= _MAX_DEPTH:
            raise self.refusal(f"the header holds a value of unknown type {kind}")
        inner, count = self.number("I"), self.number("Q")
        if count > MAX_ARRAY:
            raise self.refusal(f"the header claims an array of {count} values")
        if inner in _SCALARS:
            self.skip(count * struct.calcsize(_SCALARS[inner]))
        elif inner == _STRING:
            for _ in range(count):
                self.skip(self.length())
        else:
            for _ in range(count):
                self.value(inner, depth + 1)
        return int(count)

    def number(self, code: str) -> int:
        return int(struct.unpack("<" + code, self.take(struct.calcsize(code)))[0])

    def length(self) -> int:
        length = self.number("Q")
        if length > MAX_STRING:
            raise self.refusal(f"the header claims a text of {length} bytes")
        return length

    def string(self) -> str:
        return self.take(self.length()).decode("utf-8", "replace")

    def skip(self, count: int) -> None:
        while count:
            step = min(count, 2**20)
            self.take(step)
            count -= step

    def take(self, count: int) -> bytes:
        data = self.file.read(count)
        self.at += count
        if len(data) < count or self.at > MAX_HEADER:
            raise self.refusal("the header is cut short or damaged")
        return data

    def refusal(self, what: str) -> EvaldeskError:
        return EvaldeskError(what, where=str(self.path), remedy="Get the file again, or name another one.")
