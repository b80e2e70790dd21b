"""Which text encoding a file is in, found from its bytes."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

from engine.importing.rows import CODEC_ERRORS

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Encoding:
    """A Python codec name and the length in bytes of the byte order mark to skip; ``sure`` = named by the bytes."""

    codec: str
    bom: int = 0
    sure: bool = False

    def label(self) -> str:
        """The name shown to the user."""
        return f"{self.codec} with BOM" if self.bom else self.codec


def from_head(head: bytes) -> Encoding:
    """Encoding by byte order mark, or by the pattern of zero bytes that UTF-16 text has; else UTF-8, not sure."""
    for bom, codec in _BOMS:
        if head.startswith(bom):
            return Encoding(codec, len(bom), sure=True)
    pairs = len(head) // 2
    if pairs:
        even, odd = head[: 2 * pairs : 2].count(0), head[1 : 2 * pairs : 2].count(0)
        if odd > 0.7 * pairs and even < 0.05 * pairs:
            return Encoding("utf-16-le", sure=True)
        if even > 0.7 * pairs and odd < 0.05 * pairs:
            return Encoding("utf-16-be", sure=True)
    return Encoding("utf-8")


def utf8_or_cp1252(path: Path) -> Encoding:
    """UTF-8, unless more byte sequences of the file break its rules than keep them: then cp1252."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    kept = broken = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            if chunk.isascii():
                continue
            text = decoder.decode(chunk)
            bad = text.count("\N{REPLACEMENT CHARACTER}")
            broken += bad
            kept += len(text) - len(text.encode("ascii", "ignore")) - bad
    broken += len(decoder.decode(b"", final=True))
    return Encoding("cp1252" if broken > kept else "utf-8")


@contextmanager
def open_text(path: Path, encoding: Encoding, newline: str | None) -> Iterator[TextIOWrapper]:
    """The file as text after its byte order mark, undecodable bytes marked (see `rows.UNDECODABLE`)."""
    with path.open("rb") as raw:
        raw.seek(encoding.bom)
        with TextIOWrapper(raw, encoding=encoding.codec, errors=CODEC_ERRORS, newline=newline) as text:
            yield text
