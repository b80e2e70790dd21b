"""The measuring of key to last byte itself; its figures are a benchmark's (tests.bench terminal), not a test's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import HOME_SHOWN, Terminals
from tests.e2e.latency import measure_latency


@pytest.mark.slow
def test_every_key_that_shows_something_is_measured(terminals: Terminals, workspace: Path) -> None:
    app = terminals.pty(workspace)
    app.wait_for(HOME_SHOWN)
    app.send("1")
    app.wait_for("REQUEST")
    app.settle()
    found = measure_latency(app, ("j",), 8)
    assert found.count == 8
    assert 0 < found.p50_ms <= found.p95_ms
    assert found.bytes_per_key > 0
    app.send("q")
    assert app.wait_exit() == 0
