"""The file that remembers forms: damaged, old or unwritable, it never stands in the way."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from engine.backends import remembered_forms
from engine.backends.remembered_forms import KEPT_S, forms_file, remember_form, remembered_form
from engine.backends.structured_output import Form


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALDESK_CONFIG_DIR", str(tmp_path / "config"))


def test_what_is_kept_is_known_of_that_server_until_it_is_forgotten() -> None:
    assert remembered_form("a") is None
    remember_form("a", Form.TOOL)
    remember_form("b", Form.SCHEMA)
    assert (remembered_form("a"), remembered_form("b"), remembered_form("c")) == (Form.TOOL, Form.SCHEMA, None)
    remember_form("a", None)
    assert (remembered_form("a"), remembered_form("b")) == (None, Form.SCHEMA)
    assert [path.name for path in forms_file().parent.iterdir()] == [forms_file().name], "no temporary file stays"


@pytest.mark.parametrize(
    "held",
    [b"", b"{", b"\xff", b"[1]", b"[" * 100_000, b'{"a": "tool call"}', b'{"a": {"form": ["tool call"], "at": 1}}',
     b'{"a": {"form": "by post", "at": 9e99}}', b'{"a": {"form": "tool call"}}', b'{"a": {"form": "tool call", "at": NaN}}'],
)  # fmt: skip
def test_a_damaged_file_is_as_none_and_the_next_word_replaces_it(held: bytes) -> None:
    forms_file().parent.mkdir()
    forms_file().write_bytes(held)
    assert remembered_form("a") is None
    remember_form("a", Form.PLAIN)
    assert remembered_form("a") is Form.PLAIN


def test_what_is_older_than_a_month_is_found_out_again() -> None:
    forms_file().parent.mkdir()
    now = time.time()
    ages = {"new": KEPT_S / 2, "old": KEPT_S + 60, "future": -KEPT_S - 60}
    forms_file().write_text(json.dumps({name: {"form": "tool call", "at": now - age} for name, age in ages.items()}))
    assert [remembered_form(name) for name in ages] == [Form.TOOL, None, None]


def test_where_nothing_can_be_written_nothing_is_kept_and_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(remembered_forms, "replace_file", full)
    remember_form("a", Form.TOOL)
    assert remembered_form("a") is None
