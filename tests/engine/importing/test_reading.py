"""What a file brings in, what it does not and why; every row is the one or the other."""

from __future__ import annotations

import csv
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import EvaldeskError
from engine.importing.mapping import Mapping
from engine.importing.reading import preview, read_records
from engine.importing.records import LabelRecord, Refusal, TraceRecord
from engine.importing.row_records import context_items

NATIVE = {
    "id": "t-1",
    "request": "Where is my parcel?",
    "context": [
        {"kind": "tool", "name": "track", "arguments": {"id": 7}, "result": {"state": "sent"}},
        {"kind": "passage", "id": "p1", "title": "Shipping", "text": "Two days."},
    ],
    "facts": {"plan": "basic"},
    "response": "It is on its way.",
    "metadata": {"persona": "new", "turns": 2, "tags": ["a", "b"], "language": "en"},
}


def lines(folder: Path, *rows: dict[str, Any] | str, name: str = "in.jsonl") -> Path:
    path = folder / name
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows), encoding="utf-8")
    return path


def row(number: int, **more: Any) -> dict[str, Any]:
    return {"id": f"t{number}", "request": f"q{number}", "response": f"a{number}", **more}


def refusals(path: Path, **options: Any) -> list[tuple[int, str, str]]:
    return [(r.row, r.field, r.reason) for r in preview(path, **options).refused]


def test_the_native_format_comes_in_without_loss(tmp_path: Path) -> None:
    (record,) = read_records(lines(tmp_path, NATIVE))
    assert record == TraceRecord(
        trace_id="t-1",
        request="Where is my parcel?",
        response="It is on its way.",
        context=tuple(NATIVE["context"]),  # type: ignore[arg-type]
        facts=NATIVE["facts"],  # type: ignore[arg-type]
        metadata=NATIVE["metadata"],  # type: ignore[arg-type]
        row=1,
    )


def test_the_object_that_a_dry_run_prints(tmp_path: Path) -> None:
    path = lines(tmp_path, NATIVE | {"human": "fail", "critique": "Says nothing."}, "{broken", row(2, human=""))
    shown = preview(path).to_json()
    assert set(shown) == {"format", "kind", "accepted", "refused", "sample", "encoding", "mapping", "fields"}
    assert (shown["format"], shown["kind"], shown["accepted"], shown["encoding"]) == ("jsonl", "traces", 2, "utf-8")
    assert [set(r) for r in shown["refused"]] == [{"row", "field", "reason"}]
    assert shown["refused"][0]["row"] == 2
    assert shown["sample"][0] == {
        "request": NATIVE["request"],
        "context": NATIVE["context"],
        "response": NATIVE["response"],
        "label": "FAIL",
        "critique": "Says nothing.",
        "metadata": NATIVE["metadata"],
    }
    assert shown["sample"][1]["label"] is None
    assert {"path": "facts.plan", "example": "basic"} in shown["fields"]
    json.dumps(shown)


def test_a_trace_is_followed_by_its_label(tmp_path: Path) -> None:
    path = lines(
        tmp_path, row(1, human="PASS", critique="c", annotator="Ada"), row(2, human=None), row(3, human="maybe")
    )
    first, label, second, refused = read_records(path)
    assert isinstance(first, TraceRecord)
    assert label == LabelRecord("t1", "PASS", "c", "Ada", 1)
    assert isinstance(second, TraceRecord)
    assert second.trace_id == "t2"
    assert isinstance(refused, Refusal)
    assert (refused.row, refused.field) == (3, "human")
    assert "'maybe'" in refused.reason


def test_labels_only(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(
        b"id;verdict;comment\r\na;True;gut\r\nb;False;\r\nc; ;\r\nd;perhaps;\r\n;True;\r\na;True;gut\r\na;False;\r\n"
    )
    shown = preview(path)
    assert (shown.format, shown.kind, shown.accepted, shown.n_labels) == ("csv", "labels", 3, 2)
    assert shown.label_values == {"true": 3, "false": 2, "": 1, "perhaps": 1}
    assert [r.row for r in shown.refused] == [4, 5, 6, 7]
    assert shown.refused[2].reason == "same as row 1"
    records = [r for r in read_records(path) if isinstance(r, LabelRecord)]
    assert [(r.trace_id, r.verdict, r.critique) for r in records] == [
        ("a", "PASS", "gut"),
        ("b", "FAIL", ""),
        ("c", "", ""),
    ]


def test_a_column_that_names_a_failure_asks_for_its_meaning(tmp_path: Path) -> None:
    path = lines(tmp_path, row(1, hallucination=1), row(2, hallucination=0))
    mapping = Mapping(label="hallucination")
    with pytest.raises(EvaldeskError) as caught:
        preview(path, mapping=mapping)
    assert "--values" in caught.value.remedy
    shown = preview(path, mapping=mapping, values="1=FAIL,0=PASS")
    assert [case["label"] for case in shown.sample] == ["FAIL", "PASS"]
    assert shown.values == {"1": "FAIL", "0": "PASS"}
    assert preview(path).n_labels == 0


def test_rows_that_are_not_whole_are_refused_by_field(tmp_path: Path) -> None:
    path = lines(tmp_path, {"id": 1, "prompt": "q", "output": " "}, {"id": 2, "prompt": None, "output": "a"}, {"id": 3})
    assert refusals(path) == [
        (1, "output", "no response; answering requests comes later"),
        (2, "prompt", "no request"),
        (3, "prompt", "neither request nor response"),
    ]


def test_repeated_rows(tmp_path: Path) -> None:
    unnamed = {"request": "x", "response": "y", "lang": "en"}
    path = lines(tmp_path, row(1), row(2), row(1), row(1, response="other"), unnamed, unnamed, unnamed | {"lang": "de"})
    assert refusals(path) == [
        (3, "id", "same as row 1"),
        (4, "id", "id 't1' stands for another trace in row 1"),
        (6, "id", "same as row 5"),
        (7, "id", "same request, context and response as row 5"),
    ]


def test_a_trace_without_id_is_named_by_its_content(tmp_path: Path) -> None:
    path = lines(tmp_path, {"request": "x", "response": "y"}, {"request": "x", "response": "z"})
    names = [r.trace_id for r in read_records(path) if isinstance(r, TraceRecord)]
    assert all(len(name) == 13 and name[0] == "r" and int(name[1:], 16) >= 0 for name in names)
    again = lines(tmp_path, {"output": "y", "input": "x"}, name="again.jsonl")
    assert [r.trace_id for r in read_records(again) if isinstance(r, TraceRecord)] == names[:1]


def test_numbers_are_ids(tmp_path: Path) -> None:
    path = lines(tmp_path, row(1, id=7), row(2, id=8.0), row(3, id=" 9 "), row(4, id=["x"]))
    assert [r.trace_id for r in read_records(path) if isinstance(r, TraceRecord)] == ["7", "8", "9"]
    assert refusals(path)[0][:2] == (4, "id")


def test_what_is_not_mapped_becomes_metadata(tmp_path: Path) -> None:
    judged = row(
        1, meta={"lang": "en", "n": {"k": [1]}}, judges={"j": {"verdict": "pass"}}, lang="de", tags=["a"], no=None
    )
    (first,) = read_records(lines(tmp_path, judged))
    assert isinstance(first, TraceRecord)
    assert first.metadata == {
        "lang": "en",
        "n": {"k": [1]},
        "judges.j.verdict": "pass",
        "column.lang": "de",
        "tags": '["a"]',
    }
    encoded = json.dumps({"question": "q", "plan": {"name": "pro"}})
    (second,) = read_records(lines(tmp_path, {"id": "t2", "input": encoded, "response": "a"}))
    assert isinstance(second, TraceRecord)
    assert (second.request, second.metadata) == ("q", {"input.plan.name": "pro"})


def test_stated_paths(tmp_path: Path) -> None:
    path = lines(tmp_path, {"a": {"b": "q"}, "out.text": "r", "lang": "en", "x": {"id": 5}})
    mapping = Mapping(request="/a/b", response="out.text", trace_id="x.id", metadata=("lang",))
    (record,) = read_records(path, mapping)
    assert record == TraceRecord("5", "q", "r", metadata={"lang": "en"}, row=1)
    with pytest.raises(EvaldeskError) as caught:
        preview(path, mapping=Mapping(request="/a/c"))
    assert "'/a/c'" in caught.value.what
    assert "a.b" in caught.value.remedy


def test_a_preview_mapping_reads_the_same(tmp_path: Path) -> None:
    for rows in ([row(1, human="pass"), row(2, human="")], [{"id": 1, "label": "fail"}]):
        path = lines(tmp_path, *rows)
        shown = preview(path)
        assert preview(path, mapping=shown.mapping) == shown
        assert list(read_records(path, shown.mapping)) == list(read_records(path))


def test_labels_out_of_a_file_that_has_texts_too(tmp_path: Path) -> None:
    path = lines(tmp_path, row(1, human="pass", response=""))
    assert list(read_records(path, kind="labels")) == [LabelRecord("t1", "PASS", row=1)]
    with pytest.raises(EvaldeskError, match="verdict"):
        preview(lines(tmp_path, row(1)), kind="labels")


def test_a_quick_look_reads_only_the_first_rows(tmp_path: Path) -> None:
    path = lines(tmp_path, *(row(i) for i in range(30)))
    assert (preview(path, limit=10).accepted, preview(path, limit=10).complete) == (10, False)
    assert (preview(path, limit=30).complete, preview(path).complete) == (True, True)


def test_context_in_its_usual_forms() -> None:
    assert list(context_items("plain")) == [{"kind": "text", "text": "plain"}]
    assert list(context_items('["a", "", "b"]')) == [
        {"kind": "passage", "id": "1", "title": "", "text": "a"},
        {"kind": "passage", "id": "3", "title": "", "text": "b"},
    ]
    (document,) = context_items([{"page_content": "x", "id": "d7", "score": 0.5}])
    assert document == {"kind": "passage", "id": "d7", "title": "", "score": 0.5, "text": "x"}
    (call,) = context_items([{"name": "f", "args": {"x": 1}, "output": "done", "ms": 3}])
    assert call == {"kind": "tool", "name": "f", "arguments": {"x": 1}, "result": "done", "ms": 3}
    assert list(context_items([{"role": "user", "content": "hi"}])) == [
        {"kind": "message", "role": "user", "content": "hi"}
    ]
    blanks: list[Any] = [None, "", [], {}, [None, ""]]
    for blank in blanks:
        assert list(context_items(blank)) == []


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6) | st.sampled_from(["", "x", "pass", "1"])
NAMES = st.sampled_from(["id", "request", "input", "response", "label", "human", "context", "meta", "messages", "z"])
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=6,
)
SETTINGS = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SETTINGS
@given(st.lists(st.dictionaries(NAMES, ANY, max_size=5) | st.integers(), min_size=1, max_size=6))
def test_rows_in_are_accepted_plus_refused(rows: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in"
        path.write_text(json.dumps(rows), encoding="utf-8")
        if isinstance(rows[0], int) and not any(isinstance(row, dict) for row in rows):
            return
        shown = preview(path)
        records = list(read_records(path))
    assert shown.accepted + len(shown.refused) == len(rows)
    assert [r for r in records if isinstance(r, Refusal)] == list(shown.refused)
    accepted = {r.row for r in records if not isinstance(r, Refusal)}
    assert len(accepted) == shown.accepted
    assert accepted | {r.row for r in shown.refused} == set(range(1, len(rows) + 1))
    json.dumps(shown.to_json(), allow_nan=False, ensure_ascii=False).encode("utf-8")


@SETTINGS
@given(st.lists(st.lists(TEXTS, min_size=1, max_size=5), min_size=1, max_size=6), st.sampled_from([",", ";", "\t"]))
def test_ragged_tables_lose_no_row(rows: list[list[str]], delimiter: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL)
            writer.writerows([["id", "request", "response", "human"], *rows])
        shown = preview(path)
    assert shown.accepted + len(shown.refused) == len(rows)


def test_real_files_with_labels_and_critiques(shared_data: Path) -> None:
    ragas = preview(shared_data / "audit/ragas/ragas-annotated.jsonl")
    assert (ragas.kind, ragas.accepted, ragas.refused, ragas.n_labels) == ("traces", 21, (), 21)
    assert ragas.label_values == {"fail": 11, "pass": 10}
    assert ragas.sample[0]["critique"].startswith("The response is helpful because")
    graded = preview(shared_data / "audit/evalsbench_fewshot/evalsbench-fewshot.jsonl")
    assert (graded.accepted, graded.n_labels) == (24, 24)
    assert graded.sample[0]["context"][0]["text"].startswith("*Local regs*")
    support = preview(shared_data / "audit/truescore/support_eval.csv")
    assert (support.kind, support.accepted, support.n_labels) == ("labels", 4000, 600)
    assert support.label_values == {"": 3400, "1": 431, "0": 169}


def test_real_files_of_annotation_tools(shared_data: Path) -> None:
    doccano = preview(shared_data / "traces/doccano_utf16.csv", mapping=Mapping(response="text", request="label"))
    assert (doccano.format, doccano.encoding, doccano.accepted) == ("csv", "utf-16-le with BOM", 3)
    assert [case["response"] for case in doccano.sample] == ["AAA", "BBB", "CCC"]
    prodigy = preview(shared_data / "traces/prodigy_textcat.jsonl", kind="labels")
    assert (prodigy.mapping.trace_id, prodigy.mapping.label) == ("_task_hash", "answer")
    # 90 accepted and 352 rejected, one of these twice; what was ignored is no verdict.
    assert prodigy.accepted == 441
    assert sum("'ignore'" in refusal.reason for refusal in prodigy.refused) == 58
    assert [r.reason for r in prodigy.refused if "ignore" not in r.reason] == ["same as row 238"]


def test_real_conversations(shared_data: Path) -> None:
    chat = preview(shared_data / "traces/openai_chat.jsonl")
    assert (chat.accepted, [(r.row, r.field) for r in chat.refused]) == (3, [(4, "messages")])
    assert (chat.sample[1]["request"], chat.sample[1]["response"]) == (
        "I don't even know how to play golf.",
        "It's easy to learn!",
    )
    assert len(chat.sample[1]["context"]) == 7
    shared = preview(shared_data / "traces/sharegpt.json")
    assert (shared.format, shared.accepted, shared.sample[0]["response"]) == ("json", 500, "You too!")


def test_real_files_of_formats_that_come_later_say_so(shared_data: Path) -> None:
    for name in ("popularity_scored.eval", "log_formats.json", "langfuse_pydantic-ai-tools.json"):
        with pytest.raises(EvaldeskError) as caught:
            preview(shared_data / "traces" / name)
        assert caught.value.remedy
