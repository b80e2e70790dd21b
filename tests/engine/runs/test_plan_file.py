"""A plan comes back as it was written, whole or not at all, and grows at its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.backends.protocol import Request
from engine.errors import EvaldeskError
from engine.runs.plan_file import append_plan, read_plan, write_plan
from engine.runs.protocol import RunDir

pytestmark = pytest.mark.usefixtures("quick_disk")

texts = st.text(st.characters(codec=None), max_size=12)
requests = st.builds(
    Request,
    key=st.text("abc", min_size=1, max_size=3),
    messages=st.lists(st.fixed_dictionaries({"role": texts, "content": texts}), max_size=3).map(tuple),
    sampling=st.dictionaries(texts, st.floats(allow_nan=False, allow_infinity=False) | st.integers() | texts),
    schema=st.none() | st.dictionaries(texts, st.booleans()),
    options=st.lists(texts, max_size=3).map(tuple),
)


def simple(*keys: str) -> list[Request]:
    return [Request(key, ({"role": "user", "content": key},), {}) for key in keys]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(first=st.lists(requests, max_size=4), more=st.lists(requests, max_size=4))
def test_a_plan_comes_back_in_order_each_key_once(tmp_path: Path, first: list[Request], more: list[Request]) -> None:
    run_dir = RunDir(tmp_path)
    write_plan(run_dir, first)
    append_plan(run_dir, more)
    expected: dict[str, Request] = {}
    for request in (*first, *more):
        expected.setdefault(request.key, request)
    assert read_plan(run_dir) == list(expected.values())


def test_a_torn_last_line_is_no_part_of_the_plan_and_is_cut_before_it_grows(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    write_plan(run_dir, simple("a", "b"))
    whole = run_dir.plan.read_bytes()
    for end in range(whole.index(b"\n") + 1, len(whole)):
        run_dir.plan.write_bytes(whole[:end])
        assert read_plan(run_dir) == simple("a")
        append_plan(run_dir, simple("c"))
        assert read_plan(run_dir) == simple("a", "c")


def test_a_plan_that_cannot_be_written_whole_leaves_the_old_one(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    write_plan(run_dir, simple("a"))

    def breaks() -> Iterator[Request]:
        yield from simple("b")
        raise OSError(28, "No space left on device")

    with pytest.raises(EvaldeskError, match="No space left on device"):
        write_plan(run_dir, breaks())
    assert read_plan(run_dir) == simple("a")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.jsonl"]


@pytest.mark.parametrize("bad", [b"", b"{}", b"[]", b"\xff", b'{"key":"","messages":[],"sampling":{}}', b'{"key":1}'])
def test_a_line_that_is_no_request_is_named(tmp_path: Path, bad: bytes) -> None:
    run_dir = RunDir(tmp_path)
    write_plan(run_dir, simple("a"))
    run_dir.plan.write_bytes(run_dir.plan.read_bytes() + bad + b"\n")
    with pytest.raises(EvaldeskError, match=r"plan\.jsonl, line 2"):
        read_plan(run_dir)


def test_a_missing_plan_is_named(tmp_path: Path) -> None:
    with pytest.raises(EvaldeskError, match=r"plan\.jsonl"):
        read_plan(RunDir(tmp_path))
