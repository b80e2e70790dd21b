"""Processes that do the same thing in the same moment: each waits, with everything loaded, for a time that all know.

``python -m tests.engine.racing`` reads lines ``[moment, MODULE:FUNCTION, arguments]`` and answers each with a line of JSON.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Self

from engine.errors import EvaldeskError

_AHEAD_S = 0.01


class Racers:
    """So many processes; use as a context manager."""

    def __init__(self, count: int) -> None:
        command = [sys.executable, "-m", "tests.engine.racing"]
        self._processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(count)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            assert process.stdin and process.stdout
            process.stdin.close()
            process.wait()
            process.stdout.close()

    def race(self, work: Callable[..., Any], starts: Sequence[tuple[float, Sequence[Any]]]) -> list[Any]:
        """``work(*arguments)`` in each process, ``offset`` seconds after a common moment; what each returned.

        An EvaldeskError comes back as {"error": its text}, anything else that is raised as {"fault": what}.
        """
        begin = time.monotonic() + _AHEAD_S
        for process, (offset, arguments) in zip(self._processes, starts, strict=True):
            assert process.stdin
            name = f"{work.__module__}:{work.__name__}"
            process.stdin.write(json.dumps([begin + offset, name, list(arguments)]) + "\n")
            process.stdin.flush()
        answers = []
        for process in self._processes:
            assert process.stdout
            answers.append(json.loads(process.stdout.readline()))
        return answers


def _answer(line: str) -> Any:
    moment, name, arguments = json.loads(line)
    module, _, function = name.partition(":")
    work = getattr(importlib.import_module(module), function)
    time.sleep(max(0.0, moment - time.monotonic()))
    try:
        return work(*arguments)
    except EvaldeskError as error:
        return {"error": str(error)}
    except Exception as error:  # noqa: BLE001
        return {"fault": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    for asked in sys.stdin:
        print(json.dumps(_answer(asked)), flush=True)
