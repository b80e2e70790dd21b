"""What a user is told when something fails: what happened, where, what was kept, what to do."""

from __future__ import annotations


class EvaldeskError(Exception):
    """A failure that a user can cause or meet; its text is meant to be read as it stands.

    Parameters
    ----------
    what: one sentence, what happened.
    where: file, row, field, host or process, as far as known.
    kept: what was kept or not changed.
    remedy: what to do next.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", kept: str = "", remedy: str = "") -> None:
        self.what = what
        self.where = where
        self.kept = kept
        self.remedy = remedy
        parts = (f"{where}: {what}" if where else what, kept, remedy)
        super().__init__(" ".join(_sentence(part) for part in parts if part))


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."


class WorkspaceBusy(EvaldeskError):
    """Another process owns the workspace's database."""

    def __init__(self, path: str, host: str, pid: int, program: str) -> None:
        self.host = host
        self.pid = pid
        self.program = program
        holder = f"{program} (process {pid} on {host})" if pid else program
        super().__init__(
            f"the workspace is in use by {holder}",
            where=path,
            kept="Nothing was changed.",
            remedy="Close it there, or read a copy: evaldesk snapshot OUT.duckdb asks the owner for one.",
        )


class Refused(EvaldeskError):
    """A rule of the method or of the store forbids what was asked."""
