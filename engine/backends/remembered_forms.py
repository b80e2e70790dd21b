"""In which form each server was last seen to give JSON of a schema: a small file beside models.json, without any secret.

It only spares the first requests of a run; what cannot be read is found out again, and what cannot be written is not kept.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.backends.structured_output import Form
from engine.models.settings import settings_file
from engine.plain_files import read_plain
from engine.runs.durable import replace_file

KEPT_S = 30 * 86400.0
"""Then it is found out again: a server that was renewed may take a firmer form."""


def forms_file() -> Path:
    """server-forms.json in the configuration folder; may not exist."""
    return settings_file().with_name("server-forms.json")


def remembered_form(server: str) -> Form | None:
    """The form that works with the server of this fingerprint; None where none is known, or not lately."""
    entry = _entries().get(server)
    return Form(entry["form"]) if entry is not None else None


def remember_form(server: str, form: Form | None) -> None:
    """Keep the form for the server of this fingerprint, or forget it (None).

    Two who write at the same moment may lose one of their words, which costs a few requests later.
    """
    entries = _entries()
    entries.pop(server, None)
    if form is not None:
        entries[server] = {"form": str(form), "at": time.time()}
    path = forms_file()
    temporary = f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, [json.dumps(entries, indent=2).encode(), b"\n"], temporary=temporary)


def _entries() -> dict[str, dict[str, Any]]:
    """What the file holds that is sound and not too old."""
    try:
        held = json.loads(read_plain(forms_file()))
    except (OSError, ValueError, RecursionError):
        return {}
    return {name: entry for name, entry in held.items() if _is_sound(entry)} if isinstance(held, dict) else {}


def _is_sound(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("form"), str) or entry["form"] not in list(Form):
        return False
    at = entry.get("at")
    # A clock that was set back makes an entry of the future: as old as any other.
    return isinstance(at, int | float) and not isinstance(at, bool) and abs(time.time() - at) < KEPT_S
