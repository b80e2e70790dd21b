"""The workspace: one directory that holds everything of one piece of work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.errors import EvaldeskError

DEFAULT_DIRECTORY = "evaldesk.d"


@dataclass(frozen=True)
class Workspace:
    """Paths inside a workspace directory."""

    path: Path

    @property
    def database(self) -> Path:
        return self.path / "evaldesk.duckdb"

    @property
    def lock(self) -> Path:
        return self.path / "owner.lock"

    @property
    def runs(self) -> Path:
        return self.path / "runs"

    @property
    def inbox(self) -> Path:
        return self.path / "inbox"

    @property
    def labels(self) -> Path:
        """labels.jsonl, the plain witness of every label."""
        return self.path / "labels.jsonl"

    @property
    def codes(self) -> Path:
        """codes.jsonl, the plain witness of every code and merge."""
        return self.path / "codes.jsonl"

    @property
    def log(self) -> Path:
        return self.path / "evaldesk.log"

    @property
    def backups(self) -> Path:
        return self.path / "backups"

    def remove_unused(self) -> None:
        """Remove a workspace that was just made and holds nothing; stops at the first thing of anyone's.

        The caller holds the lock, which goes last: until then nobody else can own what is here.
        """
        try:
            for folder in (self.runs, self.inbox, self.backups):
                if folder.exists():
                    folder.rmdir()
            if any(file.exists() and file.stat().st_size for file in (self.labels, self.codes)):
                return
            for file in (
                self.labels,
                self.codes,
                self.database,
                self.database.with_name(self.database.name + ".wal"),
                self.lock,
            ):
                file.unlink(missing_ok=True)
            self.path.rmdir()
        except OSError:
            return

    def create(self) -> None:
        """Make the directory and its folders, readable by their owner only; harmless when they exist."""
        try:
            for folder in (self.path, self.runs, self.inbox):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise EvaldeskError(
                f"the workspace directory cannot be made: {error.strerror or error}",
                where=str(self.path),
                remedy="Choose another place with --workspace DIR.",
            ) from error
