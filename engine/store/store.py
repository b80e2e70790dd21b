"""The store: one DuckDB file, one thread that reads and writes it.

Everybody else hands functions to that thread. Such a function takes a Transaction first; it is
committed when the function returns and rolled back when it raises.
"""

from __future__ import annotations

import itertools
import logging
import queue
import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from engine.errors import EvaldeskError, WorkspaceBusy
from engine.store import code_witness, codes, labels, witness
from engine.store.faults import disk_refused, has_stopped, translated
from engine.store.migrating import migrate
from engine.store.ownership import own
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace

if TYPE_CHECKING:
    import duckdb

_FOREGROUND, _BACKGROUND, _LAST = 0, 1, 2
CHECKPOINT_BYTES = 16 << 20
"""The write-ahead log is folded into the database when it is larger: DuckDB's own measure, taken between transactions."""

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")


class Store:
    """An open workspace. Use as a context manager, or call ``close``.

    Opening raises WorkspaceBusy with the holder's host and pid when another process owns it.
    """

    def __init__(self, workspace: Workspace, *, program: str = "evaldesk", create: bool = True) -> None:
        self.workspace = workspace
        self.surplus_labels: list[Mapping[str, Any]] = []
        """Lines of labels.jsonl that the database lacks: something was lost or restored from an older copy."""
        self.unusable_lines: tuple[str, ...] = ()
        """Lines of labels.jsonl and codes.jsonl that are no labels and codes of this workspace, each with its reason."""
        self.surplus_codes: list[Mapping[str, Any]] = []
        """The same of codes.jsonl."""
        self._trouble = ""
        self._witnessed: dict[str, int] = {}
        self._checkpoint_at = CHECKPOINT_BYTES
        self._stopped = False
        if not create and not workspace.database.exists():
            raise EvaldeskError(
                "there is no workspace here",
                where=str(workspace.path),
                remedy="evaldesk demo makes one, evaldesk import fills one.",
            )
        was_there = workspace.path.exists()
        self._ownership = own(workspace, program)
        self.is_unused = not was_there and not workspace.database.exists()
        """Whether closing removes the workspace: set it for one that was just made and got nothing; false once it is open."""
        self._queue: queue.PriorityQueue[tuple[int, int, Callable[[], None] | None]] = queue.PriorityQueue()
        self._order = itertools.count()
        self._opened: Future[None] = Future()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="store", daemon=True)
        self._thread.start()
        try:
            self._opened.result()
        except BaseException:
            self._give_free()
            raise
        self.is_unused = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(
        self, work: Callable[Concatenate[Transaction, P], R], *arguments: P.args, **named: P.kwargs
    ) -> Future[R]:
        """Run ``work(transaction, ...)`` in the store's thread, before anything in the background."""
        return self._put(_FOREGROUND, work, arguments, named)

    def submit_background(
        self, work: Callable[Concatenate[Transaction, P], R], *arguments: P.args, **named: P.kwargs
    ) -> Future[R]:
        """The same, after everything that a person is waiting for."""
        return self._put(_BACKGROUND, work, arguments, named)

    def call(self, work: Callable[Concatenate[Transaction, P], R], *arguments: P.args, **named: P.kwargs) -> R:
        """Run ``work`` and wait for its result."""
        result: R = self._put(_FOREGROUND, work, arguments, named).result()
        return result

    def take_trouble(self) -> str:
        """What went wrong beside the database since the last call, though everything asked for was done; "" for nothing."""
        trouble, self._trouble = self._trouble, ""
        return trouble

    def look_at_witness(self) -> None:
        """Compare labels.jsonl and codes.jsonl with the database again; see ``surplus_labels``, ``surplus_codes``, ``unusable_lines``."""
        self._take_looks(
            self.call(witness.look, self.workspace.labels), self.call(code_witness.look, self.workspace.codes)
        )

    def close(self) -> None:
        """Finish what was handed over, close the file and give the workspace free."""
        if self._closed:
            return
        self._closed = True
        self._queue.put((_LAST, next(self._order), None))
        self._thread.join()
        self._give_free()

    def _give_free(self) -> None:
        # Still owned: whoever comes a moment later must not lose what it puts into the same folder.
        if self.is_unused:
            self.workspace.remove_unused()
        self._ownership.release()

    def _put(self, priority: int, work: Callable[..., Any], arguments: Any, named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self._closed:
            future.set_exception(EvaldeskError("the workspace is closed", where=str(self.workspace.path)))
            return future

        def job() -> None:
            if future.set_running_or_notify_cancel():
                self._carry_out(future, work, arguments, named)

        self._queue.put((priority, next(self._order), job))
        return future

    def _carry_out(self, future: Future[Any], work: Callable[..., Any], arguments: Any, named: Any) -> None:
        try:
            if self._stopped:
                self._reopen()
            transaction = Transaction(self._connection)
            self._connection.begin()
            try:
                result = work(transaction, *arguments, **named)
                self._connection.commit()
            except BaseException:
                self._rollback()
                transaction.run_after_rollback()
                raise
            if "label" in transaction.touched:
                self._witness("label", witness.append_since, self.workspace.labels)
            if transaction.touched & {"code", "code_merge"}:
                self._witness("code", code_witness.append_since, self.workspace.codes)
            transaction.run_after_commit()
        except BaseException as error:  # noqa: BLE001  (whoever waits on the future gets it)
            self._stopped = self._stopped or has_stopped(error)
            future.set_exception(translated(error, self.workspace.database))
        else:
            future.set_result(result)

    def _take_looks(self, at_labels: witness.Look, at_codes: witness.Look) -> None:
        self.surplus_labels, self.surplus_codes = list(at_labels.surplus), list(at_codes.surplus)
        of_codes = (f"{self.workspace.codes.name}, {line}" for line in at_codes.passed_over)
        self.unusable_lines = (*at_labels.passed_over, *of_codes)

    def _witness(self, what: str, append_since: Callable[[Transaction, Path, int], int], path: Path) -> None:
        # It is committed: whatever the file says, whoever gave it is told that it is saved.
        try:
            self._witnessed[what] = append_since(Transaction(self._connection), path, self._witnessed[what])
        except Exception as fault:  # noqa: BLE001  (the disk, the file, or a database that is gone)
            error = translated(fault, self.workspace.database)
            log.warning("%s", error)
            self._trouble = f"The {what} is saved in the database, but {error} It is written at the next start."

    def _rollback(self) -> None:
        import duckdb

        try:
            self._connection.rollback()
        except duckdb.Error:  # a failed commit has already ended the transaction
            pass

    def _serve(self) -> None:
        try:
            self._connection = _connect(self.workspace.database)
            migrate(self._connection, self.workspace.database, self.workspace.backups)
            transaction = Transaction(self._connection)
            at_labels = witness.look(transaction, self.workspace.labels)
            at_codes = code_witness.look(transaction, self.workspace.codes)
            self._take_looks(at_labels, at_codes)
            self._witnessed = {"label": labels.newest_seq(transaction), "code": codes.newest_seq(transaction)}
            try:
                witness.append(self.workspace.labels, at_labels.missing)
                witness.append(self.workspace.codes, at_codes.missing)
            except EvaldeskError as error:
                self._trouble = str(error)
        except BaseException as error:  # noqa: BLE001  (the opener gets it)
            if hasattr(self, "_connection"):
                self._connection.close()  # or this process would keep the file from everyone
            self._opened.set_exception(translated(error, self.workspace.database))
            return
        self._opened.set_result(None)
        while (job := self._queue.get()[2]) is not None:
            job()
            self._fold_in_log()
        self._connection.close()

    def _fold_in_log(self) -> None:
        """Checkpoint between transactions: one that meets a full disk stops the database, and no transaction shall fail of it."""
        import duckdb

        log_file = self.workspace.database.with_name(f"{self.workspace.database.name}.wal")
        try:
            size = log_file.stat().st_size
        except OSError:
            return
        if self._stopped or size < self._checkpoint_at:
            return
        try:
            self._connection.execute("CHECKPOINT")
            self._checkpoint_at = CHECKPOINT_BYTES
        except duckdb.Error as error:
            log.warning("the database's log is kept for now: %s", error)
            self._checkpoint_at = size + CHECKPOINT_BYTES
            self._stopped = has_stopped(error)

    def _reopen(self) -> None:
        """Open the database again, which stopped after a fault of the disk: it comes back with all that was committed."""
        self._connection.close()
        self._connection = _connect(self.workspace.database)
        self._stopped = False


def _connect(database: Path) -> duckdb.DuckDBPyConnection:
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,  # the queries are small, and a model may need the other cores
        "memory_limit": "2GB",
        "wal_autocheckpoint": "1TB",  # see Store._fold_in_log
        "storage_compatibility_version": "v1.0.0",  # people open these files with other tools
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    try:
        connection = duckdb.connect(str(database), config=config)
        # A query of some seconds would paint its progress over the screen.
        connection.execute("SET enable_progress_bar = false")
        for file in (database, database.with_name(f"{database.name}.wal")):
            if file.exists():
                file.chmod(0o600)
        return connection
    except OSError as error:
        raise disk_refused(error, database, what="the database cannot be made private") from error
    except duckdb.IOException as error:
        holder = re.search(r"\(PID (\d+)\)", str(error))
        if holder:
            raise WorkspaceBusy(str(database), "this machine", int(holder[1]), "another program") from error
        raise EvaldeskError(
            f"the database cannot be opened: {str(error).splitlines()[0]}",
            where=str(database),
            kept="It was not changed; labels.jsonl beside it holds every label in plain text.",
            remedy="Check the disk and the permissions, or restore a copy from backups/.",
        ) from error
    except duckdb.Error as error:
        raise EvaldeskError(
            f"this file is not a readable DuckDB database: {str(error).splitlines()[0]}",
            where=str(database),
            kept="It was not changed; labels.jsonl beside it holds every label in plain text.",
            remedy="Restore a copy from backups/, or start in another workspace.",
        ) from error
