"""A model's name is made of its weights and of what decides how text becomes tokens and prompts."""

from __future__ import annotations

import shutil
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import EvaldeskError
from engine.models import fingerprint as module
from engine.models.fingerprint import block_offsets, fingerprint, full_hash
from engine.models.gguf import read_header
from engine.models.registry import default_model, find_models, model_by_name
from tests.engine.models.test_directory import directory


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def gguf(path: Path, weights: bytes, *, template: str = "{{ messages }}", name: str = "tiny") -> Path:
    """A file with a real GGUF header (version 3, no tensors listed) and some bytes of weights."""
    entries = {"general.name": name, "general.architecture": "llama", "tokenizer.chat_template": template}
    header = b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries))
    for key, value in entries.items():
        header += text(key) + struct.pack("<I", 8) + text(value)
    path.write_bytes(header + weights)
    return path


WEIGHTS = bytes(range(256)) * 4096 * 8  # 8 MiB


def test_two_fine_tunes_with_equal_headers_and_sizes_have_different_names(tmp_path: Path) -> None:
    one = gguf(tmp_path / "a.gguf", WEIGHTS)
    two = gguf(tmp_path / "b.gguf", WEIGHTS[::-1])
    assert one.stat().st_size == two.stat().st_size
    assert fingerprint(one).short != fingerprint(two).short


def test_two_fine_tunes_of_one_base_in_directories_have_different_names_and_so_have_their_templates(
    tmp_path: Path,
) -> None:
    def tune(name: str, weights: bytes, template: str = "{{ messages }}") -> str:
        folder = directory(tmp_path / name, {"quantization_config": {"quant_method": "exl2"}}, "a.q_weight")
        with (folder / "model.safetensors").open("ab") as file:
            file.write(weights)
        (folder / "chat_template.jinja").write_text(template)
        return fingerprint(folder).short

    base = tune("base", WEIGHTS)
    assert len({base, tune("tuned", WEIGHTS[::-1]), tune("template", WEIGHTS, "{{ bos_token }}")}) == 3
    assert tune("copy", WEIGHTS) == base


def test_a_copy_elsewhere_has_the_same_name(tmp_path: Path) -> None:
    one = gguf(tmp_path / "a.gguf", WEIGHTS)
    (tmp_path / "sub").mkdir()
    two = Path(shutil.copy(one, tmp_path / "sub" / "other-name.gguf"))
    assert fingerprint(one).sampled == fingerprint(two).sampled


@pytest.mark.parametrize("change", ["template", "name"])
def test_the_chat_template_and_the_metadata_count(tmp_path: Path, change: str) -> None:
    one = gguf(tmp_path / "a.gguf", WEIGHTS)
    two = gguf(tmp_path / "b.gguf", WEIGHTS, **{change: "another"})
    assert fingerprint(one).short != fingerprint(two).short


def test_a_changed_byte_in_any_sampled_block_changes_the_name(tmp_path: Path) -> None:
    path = gguf(tmp_path / "a.gguf", WEIGHTS)
    before = fingerprint(path).short
    size = path.stat().st_size
    for start, length in list(block_offsets(size))[1::9]:
        data = bytearray(path.read_bytes())
        data[start + length // 2] ^= 0xFF
        changed = tmp_path / "changed.gguf"
        changed.write_bytes(data)
        assert fingerprint(changed).short != before


@given(st.integers(0, 1 << 40))
@settings(max_examples=200)
def test_blocks_lie_inside_the_file_and_take_in_its_first_and_last_bytes(size: int) -> None:
    blocks = list(block_offsets(size))
    assert len(blocks) <= module.BLOCKS
    assert all(start >= 0 and length > 0 and start + length <= size for start, length in blocks)
    if size:
        assert blocks[0][0] == 0
        assert sum(blocks[-1]) == size


def test_the_full_hash_is_kept_beside_it_once_it_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALDESK_STATE_DIR", str(tmp_path / "state"))
    path = gguf(tmp_path / "a.gguf", WEIGHTS)
    assert fingerprint(path).full is None
    digest = full_hash(path)
    assert fingerprint(path).full == digest
    gguf(path, WEIGHTS + b"more")
    assert fingerprint(path).full is None


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF" + b"\xff" * 40, b"PK\x03\x04" * 9])
def test_a_damaged_header_is_refused_and_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)
    with pytest.raises(EvaldeskError, match=r"broken\.gguf"):
        read_header(path)


@given(st.binary(max_size=300))
@settings(max_examples=100)
def test_no_bytes_whatever_break_the_reading_of_a_header(data: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.gguf"
        path.write_bytes(b"GGUF" + data)
        with suppress(EvaldeskError):
            read_header(path)


def test_models_are_found_by_name_in_the_models_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALDESK_MODELS_DIR", str(tmp_path))
    gguf(tmp_path / "my-model.gguf", WEIGHTS)
    assert "my-model" in {model.name for model in find_models()}
    assert model_by_name("my-model").path == tmp_path / "my-model.gguf"
    with pytest.raises(EvaldeskError, match="my-model"):
        model_by_name("no-such-model")


def test_the_embedded_model_is_the_default() -> None:
    model = default_model()
    assert "SmolLM2" in model.name
    assert len(model.fingerprint.short) == 16
