"""Files as people have them on disk: each row is read right, or refused with its number and the reason."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engine.errors import EvaldeskError
from engine.importing.records import Refusal
from engine.importing.rows import Row
from engine.importing.tables import Table, open_table


def put(folder: Path, data: bytes | str, name: str = "input") -> Path:
    path = folder / name
    path.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
    return path


def split(table: Table) -> tuple[list[dict[str, Any]], list[Refusal]]:
    rows = list(table.rows)
    return [dict(r.fields) for r in rows if isinstance(r, Row)], [r for r in rows if isinstance(r, Refusal)]


TEXT = 'id,request\r\n1,"Größe – 5 €, ok?"\r\n2,"zwei\r\nZeilen"\r\n3,"er sagte ""ja"""\r\n'
WANTED = [
    {"id": "1", "request": "Größe – 5 €, ok?"},
    {"id": "2", "request": "zwei\r\nZeilen"},
    {"id": "3", "request": 'er sagte "ja"'},
]


@pytest.mark.parametrize(
    ("codec", "bom"),
    [("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"),
     ("utf-16-le", b""), ("utf-16-be", b""), ("utf-32-le", b"\xff\xfe\0\0"), ("cp1252", b"")],
)  # fmt: skip
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_in_every_encoding_and_delimiter(tmp_path: Path, codec: str, bom: bytes, delimiter: str) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerows([["id", "request"], *([row["id"], row["request"]] for row in WANTED)])
    table = open_table(put(tmp_path, bom + out.getvalue().encode(codec), "no-suffix"))
    assert table.format == "csv"
    assert table.encoding == codec + (" with BOM" if bom else "")
    assert split(table) == (WANTED, [])
    assert [row.number for row in table.rows if isinstance(row, Row)] == [1, 2, 3]


def test_quotes_newlines_and_crlf(tmp_path: Path) -> None:
    assert split(open_table(put(tmp_path, TEXT))) == (WANTED, [])
    assert split(open_table(put(tmp_path, "sep=;\r\na;b\r\n1,5;2\r\n"))) == ([{"a": "1,5", "b": "2"}], [])
    assert split(open_table(put(tmp_path, "a;b\n1;x, y, z\n2;u, v, w\n")))[0][1] == {"a": "2", "b": "u, v, w"}


def test_ragged_rows_are_refused_and_the_rest_comes_in(tmp_path: Path) -> None:
    rows, refused = split(open_table(put(tmp_path, "a,b\n1,2\n3\n\n4,5,6\n7,8\n")))
    assert rows == [{"a": "1", "b": "2"}, {"a": "7", "b": "8"}]
    assert [(r.row, r.reason) for r in refused] == [
        (2, "has 1 cell, the header has 2"),
        (3, "has 3 cells, the header has 2"),
    ]


def test_an_unclosed_quote_costs_one_row(tmp_path: Path) -> None:
    rows, refused = split(open_table(put(tmp_path, 'a,b\n1,x\n2,"y\n3,z\n4,w\n')))
    assert rows == [{"a": "1", "b": "x"}, {"a": "3", "b": "z"}, {"a": "4", "b": "w"}]
    assert [(r.row, "never closed" in r.reason) for r in refused] == [(2, True)]


def test_a_quote_too_many_does_not_swallow_the_next_row(tmp_path: Path) -> None:
    rows, refused = split(open_table(put(tmp_path, 'a,b\n1,"x\n2,"y"\n3,"z"\n')))
    assert rows == [{"a": "2", "b": "y"}, {"a": "3", "b": "z"}]
    assert [r.row for r in refused] == [1]


def test_numbers_of_any_length(tmp_path: Path) -> None:
    digits = "9" * 5000
    for data in (f'{{"a": {digits}, "b": 1}}\n{{"a": 2}}', f'[{{"a": {digits}, "b": 1}}, {{"a": 2}}]'):
        assert split(open_table(put(tmp_path, data))) == ([{"a": digits, "b": 1}, {"a": 2}], [])


def test_a_stray_quote_costs_one_row(tmp_path: Path) -> None:
    rows, refused = split(open_table(put(tmp_path, 'a,b\n1,"x" y\n2,5" disk\n')))
    assert rows == [{"a": "2", "b": '5" disk'}]
    assert [r.row for r in refused] == [1]


def test_bytes_that_are_not_text_cost_their_row(tmp_path: Path) -> None:
    data = "a,b\n1,größer\n2,".encode() + b"\xff\xfe" + b"\n3,ok\n4,n\0l\n"
    rows, refused = split(open_table(put(tmp_path, data)))
    assert [row["a"] for row in rows] == ["1", "3"]
    assert [(r.row, r.field) for r in refused] == [(2, "b"), (4, "b")]


def test_cells_longer_than_the_csv_module_takes_by_default(tmp_path: Path) -> None:
    long = "x" * 20_000_000
    assert split(open_table(put(tmp_path, f"a,b\n1,{long}\n")))[0] == [{"a": "1", "b": long}]
    assert split(open_table(put(tmp_path, json.dumps({"a": long}) + "\n")))[0] == [{"a": long}]


def test_a_row_above_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.importing.jsonrows.MAX_ROW_CHARS", 50)
    monkeypatch.setattr("engine.importing.delimited.MAX_ROW_CHARS", 50)
    long = "x" * 500
    rows, refused = split(open_table(put(tmp_path, f'{{"a": 1}}\n{{"a": "{long}"}}\n{{"a": 2}}\n')))
    assert (rows, [r.row for r in refused]) == ([{"a": 1}, {"a": 2}], [2])
    rows, refused = split(open_table(put(tmp_path, f"a,b\n1,2\n{long},2\n3,4\n")))
    assert ([row["a"] for row in rows], [r.row for r in refused]) == (["1", "3"], [2])


def test_headers_become_distinct_names(tmp_path: Path) -> None:
    table = open_table(put(tmp_path, "text,text,,text\n1,2,3,4\n"))
    assert split(table)[0] == [{"text": "1", "text (2)": "2", "column 3": "3", "text (3)": "4"}]
    assert len(table.problems) == 2


def test_a_broken_line_in_the_middle_of_jsonl(tmp_path: Path) -> None:
    data = b'{"a": 1}\n{"a": \n\n[1]\n"x"\n{"a": "\xff"}\n{"a": 2}\r\n{"a": "n\0l"}\n{"a": 3}'
    table = open_table(put(tmp_path, data, "wrong.csv"))
    rows, refused = split(table)
    assert table.format == "jsonl"
    assert rows == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert [r.row for r in refused] == [2, 4, 5, 6, 8]
    assert "not JSON" in refused[0].reason
    assert "UTF-8" in refused[3].reason or "utf-8" in refused[3].reason


def test_a_broken_first_line_of_jsonl(tmp_path: Path) -> None:
    for first in ('{"a": ', "# exported", "[", '"x"'):
        table = open_table(put(tmp_path, f'{first}\n{{"a": 1}}\n{{"a": 2}}\n'))
        assert (table.format, split(table)[0]) == ("jsonl", [{"a": 1}, {"a": 2}])
        assert [r.row for r in split(table)[1]] == [1]


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16"])
def test_array_and_lines_are_told_apart_by_content(tmp_path: Path, codec: str) -> None:
    rows = [{"a": "é\u2028x"}, {"a": [1, {"b": None}]}]
    array = put(tmp_path, json.dumps(rows, ensure_ascii=False).encode(codec), "rows.jsonl")
    lines = put(tmp_path, "\n".join(json.dumps(r, ensure_ascii=False) for r in rows).encode(codec), "rows.json")
    assert (open_table(array).format, split(open_table(array))[0]) == ("json", rows)
    assert (open_table(lines).format, split(open_table(lines))[0]) == ("jsonl", rows)


def test_an_object_that_holds_the_rows(tmp_path: Path) -> None:
    for key in ("data", "rows", "traces", "examples"):
        table = open_table(put(tmp_path, json.dumps({"version": 1, key: [{"a": 1}, 5]}, indent=1)))
        assert (table.format, split(table)[0], split(table)[1][0].row) == ("json", [{"a": 1}], 2)
    one = open_table(put(tmp_path, '{"id": 1, "context": [{"kind": "text"}]}\n'))
    assert (one.format, len(split(one)[0])) == ("jsonl", 1)


def test_elements_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    deep = "[" * 150 + "]" * 150
    data = b'[{"a": 1}, null, {"a": "\xff"}, {"a": ' + deep.encode() + b'}, {"a": 2}]'
    rows, refused = split(open_table(put(tmp_path, data)))
    assert (rows, [r.row for r in refused]) == ([{"a": 1}, {"a": 2}], [2, 3, 4])


def test_lone_surrogates_and_numbers_without_end_can_be_stored(tmp_path: Path) -> None:
    rows, _ = split(open_table(put(tmp_path, '{"a": "x\\ud800y\\ud83d\\ude00", "\\udc00": NaN, "c": 1e999}\n{}\n')))
    assert rows[0] == {"a": "x\ufffdy\N{GRINNING FACE}", "\ufffd": "nan", "c": "inf"}
    json.dumps(rows, allow_nan=False, ensure_ascii=False).encode("utf-8")


def test_parquet(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "it's [a] *.data"
    with duckdb.connect(":memory:") as connection:
        connection.execute(
            "COPY (SELECT i AS id, 'x' || i AS request, [{'k': i}] AS context, 1.50::DECIMAL(5,2) AS cost,"
            " TIMESTAMPTZ '2024-05-01 10:00:00+00' AS at, {'at': TIMESTAMPTZ '2024-05-01 10:00:00+00'} AS s,"
            " DATE '2024-05-01' AS day, 'NaN'::DOUBLE AS nothing,"
            " CASE WHEN i = 1 THEN '\\xFF'::BLOB ELSE 'ab'::BLOB END AS \"raw\"\"x\""
            f" FROM range(3) t(i)) TO '{tmp_path / 'plain.parquet'!s}' (FORMAT parquet)"
        )
    (tmp_path / "plain.parquet").rename(path)
    table = open_table(path)
    rows, refused = split(table)
    assert table.format == "parquet"
    assert [row["id"] for row in rows] == [0, 2]
    assert refused == [Refusal(2, 'raw"x', "holds bytes that are not text")]
    first = rows[0]
    assert (first["request"], first["context"], first["cost"]) == ("x0", [{"k": 0}], 1.5)
    assert (first["day"], first["nothing"], first['raw"x']) == ("2024-05-01", None, "ab")
    assert "2024-05-01" in first["at"]
    assert "2024-05-01" in first["s"]
    json.dumps(rows)


@pytest.mark.parametrize(
    ("data", "says"),
    [(b"", "empty"), (b" \n\n", "empty"), (b"\xef\xbb\xbf", "empty"), (b"\x1f\x8b\x08rest", "gzip"),
     (b"PK\x03\x04rest", "ZIP"), (bytes(range(256)) * 40, "not text"), (b"PAR1 but not really PAR1", "Parquet"),
     (b'{"a": 1,\n "b": 2}', "without a list of rows"), (b'[{"a": 1}, {"a"', "cannot be read"),
     (b'{\n "eval": {"task": "x"},\n "samples": [{"id": 1}]}', "Inspect"), (b'"a,b\n1,2\n', "header")],
)  # fmt: skip
def test_what_is_no_table_is_said_to_be_none(tmp_path: Path, data: bytes, says: str) -> None:
    with pytest.raises(EvaldeskError, match=says) as caught:
        list(open_table(put(tmp_path, data)).rows)
    assert caught.value.remedy


def test_no_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "nul\0"):
        with pytest.raises(EvaldeskError) as caught:
            open_table(path)
        assert str(path) in caught.value.where


def test_rows_can_be_read_again(tmp_path: Path) -> None:
    table = open_table(put(tmp_path, TEXT))
    assert next(table.rows) == next(table.rows)


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SETTINGS
@given(
    st.integers(2, 4).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=6)),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["utf-8-sig", "utf-16"]),
)
def test_round_trip_of_csv(rows: list[list[str]], delimiter: str, codec: str) -> None:
    names = [f"name{i}" for i in range(len(rows[0]))]
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([names, *rows])
    with tempfile.TemporaryDirectory() as folder:
        path = put(Path(folder), out.getvalue().encode(codec))
        assume_text(path)
        read, refused = split(open_table(path))
    assert (read, refused) == ([dict(zip(names, row, strict=True)) for row in rows], [])


def assume_text(path: Path) -> None:
    """Cells full of control characters make a file look binary, which is refused as a whole."""
    try:
        open_table(path)
    except EvaldeskError as error:
        assume("not text" not in error.what)


VALUES = st.none() | st.booleans() | st.integers() | CELLS | st.lists(CELLS, max_size=2)


@SETTINGS
@given(st.lists(st.dictionaries(CELLS, VALUES, max_size=3), min_size=1, max_size=6), st.booleans())
def test_round_trip_of_jsonl_and_json(rows: list[dict[str, Any]], escaped: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = put(Path(folder), "\n".join(json.dumps(row, ensure_ascii=escaped) for row in rows))
        assert split(open_table(lines)) == (rows, [])
        array = put(Path(folder), json.dumps(rows, ensure_ascii=escaped))
        assert split(open_table(array)) == (rows, [])


@SETTINGS
@given(st.lists(st.binary(max_size=12) | st.sampled_from([b'{"a":1}', b"[", b'"', b"a,b", b"1;2", b"\xff", b"\0"])))
def test_any_bytes_are_read_refused_or_said_to_be_no_table(parts: list[bytes]) -> None:
    data = b"\n".join(parts)
    with tempfile.TemporaryDirectory() as folder:
        try:
            table = open_table(put(Path(folder), data))
            rows = list(table.rows)
        except EvaldeskError:
            return
    assert [row.number if isinstance(row, Row) else row.row for row in rows] == sorted(
        {row.number if isinstance(row, Row) else row.row for row in rows}
    )
    if table.format == "jsonl":
        text = data.decode(table.encoding.split()[0], "replace").removeprefix("\ufeff")
        assert len(rows) == sum(bool(line.strip()) for line in text.split("\n"))
    for row in rows:
        if isinstance(row, Row):
            json.dumps(dict(row.fields), allow_nan=False, ensure_ascii=False).encode("utf-8")
