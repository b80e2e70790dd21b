"""The spool keeps every complete line, cuts torn ones, and one bad line never holds up the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import EvaldeskError
from engine.runs.spool import Spool, count_lines, read_results, stream_results

pytestmark = pytest.mark.usefixtures("quick_disk")

any_text = st.text(st.characters(codec=None), max_size=20)


def result(key: str, **others: Any) -> dict[str, Any]:
    line: dict[str, Any] = {"key": key, "text": "yes", "finish": "stop", "error": "", "backend": "b"}
    line |= {"prompt_tokens": 3, "cached_tokens": 1, "completion_tokens": 2, "seconds": 0.5, "at": 10.0}
    return line | {"backend_version": "1", "served_by": "", "cost": 0.25, "likelihoods": {"A": -0.5}} | others


def write(path: Path, *keys: str) -> None:
    spool = Spool(path)
    spool.append([result(key) for key in keys])
    spool.close()


def test_what_is_appended_is_read_back_from_the_offset_that_was_given(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    assert read_results(path, 0) == ([], 0)
    write(path, "a", "b")
    first, offset = read_results(path, 0)
    assert first == [result("a"), result("b")]
    assert offset == path.stat().st_size
    write(path, "c")
    assert [line["key"] for line in read_results(path, offset)[0]] == ["c"]
    assert count_lines(path) == 3


def test_a_batch_is_synced_once(tmp_path: Path, quick_disk: list[int]) -> None:
    spool = Spool(tmp_path / "results.jsonl")
    quick_disk.clear()
    spool.append([result(str(number)) for number in range(50)])
    assert len(quick_disk) == 1
    spool.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(texts=st.lists(any_text, max_size=6))
def test_any_text_survives_lone_surrogates_and_line_separators_included(tmp_path: Path, texts: list[str]) -> None:
    path = tmp_path / "results.jsonl"
    path.unlink(missing_ok=True)
    spool = Spool(path)
    spool.append([result(f"k{number}", text=text) for number, text in enumerate(texts)])
    spool.close()
    assert [line["text"] for line in read_results(path, 0)[0]] == texts


def test_a_line_torn_at_any_byte_is_skipped_by_readers_and_cut_by_the_next_writer(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    write(path, "a")
    kept = path.stat().st_size
    write(path, "b")
    whole = path.read_bytes()
    for end in range(kept, len(whole)):
        path.write_bytes(whole[:end])
        lines, offset = read_results(path, 0)
        assert ([line["key"] for line in lines], offset) == (["a"], kept)
        write(path, "c")
        lines, after = read_results(path, offset)
        assert ([line["key"] for line in lines], after) == (["c"], path.stat().st_size)


def test_a_torn_line_longer_than_a_block_is_cut_too(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    write(path, "a")
    kept = path.read_bytes()
    path.write_bytes(kept + b"x" * (3 << 20))
    Spool(path).close()
    assert path.read_bytes() == kept


BAD = [
    b"",
    b"{",
    b"[]",
    b"\xff\xfe",
    b"\0\0\0",
    b"[" * 100_000,
    b'{"key": 1}',
    b'{"key": ""}',
    b'{"key": "k", "text": null}',
    b'{"key": "k", "prompt_tokens": "3"}',
    b'{"key": "k", "prompt_tokens": 1e999}',
    b'{"key": "k", "seconds": NaN}',
    b'{"key": "k", "at": ' + b"9" * 5000 + b"}",
]


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_a_complete_line_that_is_no_result_is_refused_in_its_place_and_the_rest_comes(
    tmp_path: Path, bad: bytes
) -> None:
    path = tmp_path / "results.jsonl"
    write(path, "a")
    at = path.stat().st_size
    path.write_bytes(path.read_bytes() + bad + b"\n")
    write(path, "b")
    lines, offset = read_results(path, 0)
    assert offset == path.stat().st_size
    refused = [line for line in lines if line.get("refused")]
    assert [line["key"] for line in lines if not line.get("refused")] == ["a", "b"]
    assert [line["offset"] for line in refused] == ([at] if bad else [])
    assert all(line.keys() >= result("a").keys() for line in refused)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(content=st.binary(max_size=80).map(lambda data: data.replace(b"!", b"\n")), limit=st.integers(1, 30))
def test_any_bytes_are_read_to_the_last_newline_in_pieces_as_at_once(
    tmp_path: Path, content: bytes, limit: int
) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(content)
    lines, end = read_results(path, 0)
    assert end == content.rfind(b"\n") + 1
    pieces: list[dict[str, Any]] = []
    offset = 0
    while (step := read_results(path, offset, limit=limit))[1] > offset:
        pieces += step[0]
        offset = step[1]
    assert (pieces, offset) == (lines, end)
    assert list(stream_results(path)) == lines


def test_a_spool_that_became_shorter_than_what_was_read_is_read_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    write(path, "a", "b")
    offset = path.stat().st_size
    path.write_bytes(path.read_bytes()[: offset // 2])
    write(path, "c")
    assert [line["key"] for line in read_results(path, offset + 5)[0]] == ["a", "c"]
    assert [line["key"] for line in read_results(path, 7)[0]] == ["a", "c"]


def test_numbers_that_json_has_no_word_for_do_not_spoil_a_line(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    spool = Spool(path)
    spool.append([result("a", seconds=float("nan"))])
    spool.close()
    assert json.loads(path.read_text("ascii"))["seconds"] == 0.0


def test_a_spool_that_cannot_be_written_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EvaldeskError, match=r"results\.jsonl: cannot write"):
        Spool(tmp_path / "missing" / "results.jsonl")
