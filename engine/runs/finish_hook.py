"""What a user wants done when a run has ended: the program ``on-finish`` in the configuration folder, if there is one.

It is told by its environment, never by its command line, since titles come from files: EVALDESK_RUN, EVALDESK_STATUS (done,
failed or cancelled), EVALDESK_TITLE, EVALDESK_MESSAGE, EVALDESK_WORKSPACE, EVALDESK_REQUESTS_DONE and _FAILED.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from engine.models.settings import settings_file
from engine.runs.protocol import RunDir, RunState, RunStatus

NAME = "on-finish"
_ENDS = (RunStatus.DONE, RunStatus.FAILED, RunStatus.CANCELLED)


def hook_file() -> Path:
    """Where the program is looked for; it may not exist."""
    return settings_file().with_name(NAME)


def run_hook(run_dir: RunDir, state: RunState, *, title: str, workspace: str) -> str:
    """Start the program for a run that has ended, and do not wait for it; why it could not be started, "" otherwise.

    What it prints goes to the run's log. A paused or interrupted run has not ended.
    """
    program = hook_file()
    if state.status not in _ENDS or not program.is_file():
        return ""
    told = {
        "EVALDESK_RUN": run_dir.run_id,
        "EVALDESK_STATUS": str(state.status),
        "EVALDESK_TITLE": title,
        "EVALDESK_MESSAGE": state.message,
        "EVALDESK_WORKSPACE": workspace,
        "EVALDESK_REQUESTS_DONE": str(state.done),
        "EVALDESK_REQUESTS_FAILED": str(state.failed),
    }
    environment = os.environ | {name: _fit(text) for name, text in told.items()}
    try:
        with run_dir.log.open("ab") as log:
            subprocess.Popen(
                [program], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                start_new_session=True,
            )  # fmt: skip
    except OSError as error:
        return f"{program} could not be started: {error.strerror or error}"
    return ""


def _fit(text: str) -> str:
    # An environment holds no NUL, and no surrogate that stands for no byte.
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
