"""A wall clock that jumps, in this process and in all that it starts; the machine's own clock is left alone."""

from __future__ import annotations

import os
import textwrap
import time
from pathlib import Path

import pytest

_CUSTOM = textwrap.dedent("""
    import os, time
    def _shift():
        try:
            with open(os.environ["EVALDESK_TEST_CLOCK"]) as file:
                return int(file.read() or 0)
        except OSError:
            return 0
    _time, _time_ns = time.time, time.time_ns
    time.time = lambda: _time() + _shift()
    time.time_ns = lambda: _time_ns() + _shift() * 10**9
    import datetime
    class _Shifted(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.datetime.fromtimestamp(time.time(), tz)
    _real, datetime.datetime = datetime.datetime, _Shifted
    _Shifted.fromtimestamp = _real.fromtimestamp
""")


class Clock:
    """Seconds by which the wall clock is off; processes see a new value at once."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._file = folder / "clock"
        self._now, self._now_ns = time.time, time.time_ns
        self.shift_s = 0
        (folder / "clock-site").mkdir()
        (folder / "clock-site" / "sitecustomize.py").write_text(_CUSTOM)
        patch.setenv("EVALDESK_TEST_CLOCK", str(self._file))
        patch.setenv("PYTHONPATH", f"{folder / 'clock-site'}{os.pathsep}{os.environ['PYTHONPATH']}")
        patch.setattr(time, "time", lambda: self._now() + self.shift_s)
        patch.setattr(time, "time_ns", lambda: self._now_ns() + self.shift_s * 10**9)

    def jump(self, shift_s: int, *files: Path) -> None:
        """Be off by so much from now on; ``files`` get the time that their last write would have had by this clock."""
        self.shift_s = shift_s
        beside = self._file.with_suffix(".new")
        beside.write_text(str(shift_s))
        beside.replace(self._file)
        for file in files:
            if file.exists():
                os.utime(file, (self._now() + shift_s, self._now() + shift_s))
