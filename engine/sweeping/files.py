"""Prompts and datasets as people have them on disk: JSONL, CSV, JSON, Parquet, and plain text for a prompt."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from engine.errors import EvaldeskError, Refused
from engine.importing.encoding import from_head, open_text, utf8_or_cp1252
from engine.importing.records import Refusal
from engine.importing.rows import Row, unreadable_text
from engine.importing.tables import open_table
from engine.sweeping.dataset import Dataset, Item
from engine.sweeping.prompt import Prompt

TEXT_SUFFIXES = (".txt", ".md", ".prompt")
TEMPLATE_COLUMNS = ("template", "prompt", "text")
NAME_COLUMNS = ("name", "id", "title")
ANSWER_COLUMNS = ("answer", "target", "label", "reference", "expected", "output")
ID_COLUMNS = ("id", "item_id", "item", "uid")
_SHOWN = 5


def read_prompts(paths: Sequence[Path]) -> list[Prompt]:
    """All prompts of these files, in order; a folder stands for the text files in it.

    A text file is one prompt called like the file. In a table the columns template (or prompt, or text), name and system
    count. Raises Refused for a name or a text that stands twice, EvaldeskError naming file and row for anything else.
    """
    prompts = [prompt for path in paths for prompt in _prompts_of(path)]
    if not prompts:
        raise EvaldeskError("there is no prompt", where=", ".join(map(str, paths)), remedy="Name a file with prompts.")
    for kind, values in (("name", [p.name for p in prompts]), ("text", [p.prompt_id for p in prompts])):
        twice = next((value for value, count in Counter(values).items() if count > 1), None)
        if twice is not None:
            names = [p.name for p, value in zip(prompts, values, strict=True) if value == twice]
            raise Refused(
                f"two prompts have the same {kind}: {names[0]!r} and {names[1]!r}",
                kept="Nothing was run.",
                remedy="Name each prompt differently, and give each text once.",
            )
    return prompts


def read_dataset(path: Path, answer_column: str = "") -> Dataset:
    """The items of a table. Every row has to have a reference answer: an incomplete dataset would shift every score.

    The answer is the column of that name, else the first of answer, target, label, reference, expected, output. An id
    column is used where ids are unique, the row number otherwise.
    """
    rows = list(_rows(path))
    names = list(dict.fromkeys(name for row in rows for name in row.fields))
    answer = _column(names, (answer_column,) if answer_column else ANSWER_COLUMNS)
    if not answer:
        wanted = f"no column {answer_column!r}" if answer_column else "no column with the reference answer"
        raise EvaldeskError(
            f"has {wanted}",
            where=str(path),
            kept="Nothing was run.",
            remedy=f"Name the answer column (--answer on the command line); there are: {', '.join(names)}.",
        )
    blank = [row.number for row in rows if not _text(row.fields.get(answer)).strip()]
    if blank:
        raise EvaldeskError(
            f"{len(blank)} of {len(rows)} rows have no reference answer",
            where=f"{path}, row {', '.join(map(str, blank[:_SHOWN]))}{' …' if len(blank) > _SHOWN else ''}, field {answer}",
            kept="Nothing was run.",
            remedy="Fill them in or take the rows out: the score would be of another dataset than the file says.",
        )
    id_column = _column(names, ID_COLUMNS)
    ids = [_text(row.fields.get(id_column)) if id_column else "" for row in rows]
    if len(set(ids)) < len(ids) or "" in ids:
        id_column, ids = "", [str(row.number) for row in rows]
    hidden = {answer, id_column} - {""}
    items = tuple(
        Item(
            item_id,
            {name: _text(value) for name, value in row.fields.items() if name not in hidden and value is not None},
            _text(row.fields[answer]).strip(),
        )
        for item_id, row in zip(ids, rows, strict=True)
    )
    return Dataset(path.stem.removesuffix("_items"), items)


def _prompts_of(path: Path) -> Iterator[Prompt]:
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in TEXT_SUFFIXES)
        if not files:
            raise EvaldeskError(
                f"this folder holds no prompt ({', '.join(TEXT_SUFFIXES)})", where=str(path), remedy="Name a file."
            )
        for file in files:
            yield from _prompts_of(file)
        return
    if path.suffix.lower() in TEXT_SUFFIXES:
        text = _text_file(path).rstrip("\n")
        if not text.strip():
            raise EvaldeskError("this prompt is empty", where=str(path), remedy="Write the template with its {fields}.")
        yield Prompt(path.stem, text)
        return
    rows = list(_rows(path))
    names = list(dict.fromkeys(name for row in rows for name in row.fields))
    template = _column(names, TEMPLATE_COLUMNS)
    if not template:
        raise EvaldeskError(
            "has no column called template, prompt or text",
            where=str(path),
            kept="Nothing was run.",
            remedy=f"There are: {', '.join(names)}.",
        )
    name_column, system = _column(names, NAME_COLUMNS), _column(names, ("system",))
    for row in rows:
        text = _text(row.fields.get(template))
        if not text.strip():
            raise EvaldeskError(
                "this prompt is empty", where=f"{path}, row {row.number}, field {template}", kept="Nothing was run."
            )
        name = _text(row.fields.get(name_column)).strip() if name_column else ""
        yield Prompt(name or f"prompt-{row.number}", text, _text(row.fields.get(system)) if system else "")


def _text_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            encoding = from_head(file.read(1 << 16))
        with open_text(path, encoding if encoding.sure else utf8_or_cp1252(path), newline=None) as text_file:
            text = text_file.read()
    except OSError as error:
        raise EvaldeskError(
            f"cannot be read: {error.strerror}", where=str(path), remedy="Check its name and rights."
        ) from None
    fault = unreadable_text(text)
    if fault:
        raise EvaldeskError(fault, where=str(path), remedy="Save it as UTF-8.")
    return text


def _rows(path: Path) -> Iterator[Row]:
    empty = True
    for row in open_table(path).rows:
        if isinstance(row, Refusal):
            raise EvaldeskError(
                row.reason,
                where=f"{path}, row {row.row}" + (f", field {row.field}" if row.field else ""),
                kept="Nothing was run.",
                remedy="Mend the row: the whole file is needed.",
            )
        empty = False
        yield row
    if empty:
        raise EvaldeskError("has no rows", where=str(path), remedy="Export the file again.")


def _column(names: Sequence[str], wanted: Sequence[str]) -> str:
    """The first wanted name that is there, letter case aside; "" when none is."""
    by_folded = {name.casefold(): name for name in reversed(names)}
    return next((by_folded[name.casefold()] for name in wanted if name.casefold() in by_folded), "")


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
