"""evaldesk models add, and a sweep over it: command line, plan, worker process, server, spool, store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.runs.protocol import RunDir
from engine.runs.spool import read_results
from engine.store.store import Store
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace
from tests.engine.backends.odd_server import MODEL, Answer, Call, OddServer, completion, refusal
from tests.engine.measuring.conftest import private_state
from tests.engine.sweeping.conftest import skilled, sums
from tui.cli.main import run

pytest.importorskip("aiohttp")
__all__ = ["private_state"]

KEY = "sk-test-9fQ27hZkLw3T"


def adds(call: Call) -> Answer:
    """A server that can add, and repeats the key that it was sent."""
    question = call.body["messages"][-1]["content"].partition(": ")[2]
    total = sum(int(part) for part in question.split(" + "))
    return Answer(completion(f"The answer is {total}.", model=f"{MODEL}-2025-01-01", key=call.headers["authorization"]))


@pytest.fixture
def server(private_state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OddServer]:
    monkeypatch.setenv("EVALDESK_CONFIG_DIR", str(private_state / "config"))
    monkeypatch.setenv("EVALDESK_MODELS_DIR", str(private_state / "models"))
    monkeypatch.setenv("ODD_KEY", KEY)
    with OddServer(adds) as server:
        yield server


@pytest.fixture
def sweep(private_state: Path) -> list[str]:
    """The arguments of a small sweep on the server called odd."""
    prompts, dataset = private_state / "prompts.jsonl", private_state / "items.jsonl"
    prompts.write_text("\n".join(json.dumps({"name": p.name, "template": p.template}) for p in skilled(2, 8)), "utf-8")
    dataset.write_text(
        "\n".join(json.dumps({"id": i.item_id, **i.fields, "sum": i.answer}) for i in sums(12).items), "utf-8"
    )
    return [
        "sweep", "--json", "--model", "odd", "--prompts", str(prompts), "--dataset", str(dataset), "--answer", "sum",
        "--scorer", "number", "--k", "6", "--seeds", "2", "--workspace", str(private_state / "ws"),
    ]  # fmt: skip


def ask(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    assert run(list(arguments)) == code
    captured = capsys.readouterr()
    return json.loads(captured.out) if code == 0 and "--json" in arguments else captured.out + captured.err


def add(capsys: pytest.CaptureFixture[str], server: OddServer, *more: str) -> Any:
    return ask(
        capsys, "models", "add", "odd", "--url", server.url, "--model", MODEL, "--key-env", "ODD_KEY", "--json", *more
    )


def files_that_hold(folder: Path, text: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


@pytest.mark.slow
def test_a_sweep_on_a_server_end_to_end_and_the_key_is_nowhere(
    server: OddServer, sweep: list[str], private_state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    added = add(capsys, server, "--parallel", "8", "--price-in", "1", "--price-out", "3")
    assert added["added"]["problem"] == "" and added["warning"] == ""
    done = ask(capsys, *sweep)
    assert done["complete"] and {prompt["mean"] for prompt in done["prompts"]} == {1.0}
    assert {call.headers["authorization"] for call in server.calls} == {f"Bearer {KEY}"}
    run_dir = RunDir(private_state / "ws" / "runs" / done["run"])
    lines, _ = read_results(run_dir.results)
    assert {line["served_by"] for line in lines} == {f"{MODEL}-2025-01-01"}
    assert {line["cost"] for line in lines} == {(10 * 1 + 2 * 3) / 1e6}
    assert len(server.calls) == len(lines) == done["needed"]

    def stored(tx: Transaction) -> list[tuple[Any, ...]]:
        return tx.rows("SELECT DISTINCT backend, backend_version FROM completion")

    with Store(Workspace(private_state / "ws")) as store:
        assert store.call(stored) == [("openai_api", f"{MODEL}-2025-01-01")]
    assert files_that_hold(private_state, MODEL), "the search sees what lies in the files"
    assert files_that_hold(private_state, KEY) == [] == files_that_hold(private_state, KEY[:12])
    assert ask(capsys, *sweep)["complete"] and len(server.calls) == done["needed"], "a second time nothing is asked"


@pytest.mark.slow
def test_a_key_that_the_server_refuses_fails_the_run_at_once_and_is_not_shown(
    server: OddServer, sweep: list[str], private_state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(capsys, server)
    server.models = refusal(f"Incorrect API key provided: {KEY}", 401)
    ask(capsys, *sweep, code=1)
    [run_dir] = (private_state / "ws" / "runs").iterdir()
    message = json.loads((run_dir / "state.json").read_text())["message"]
    assert "refuses the key in ODD_KEY" in message and "Incorrect API key provided" in message
    assert not server.calls and files_that_hold(private_state, KEY[:8]) == []


def test_servers_are_listed_set_and_removed(server: OddServer, capsys: pytest.CaptureFixture[str]) -> None:
    add(capsys, server, "--requests-per-minute", "90", "--timeout", "5")
    assert "key" not in ask(capsys, "models", "set", "odd", "--parallel", "3", "--context", "100")
    listed = {model["name"]: model for model in ask(capsys, "models", "--json")["models"]}["odd"]
    assert (listed["backend"], listed["path"], listed["source"]) == ("openai_api", server.url, "server")
    assert (listed["parallel"], listed["context_length"], len(listed["fingerprint"])) == (3, 100, 16)
    assert listed["options"] == {"requests_per_minute": 90, "timeout": 5} and listed["details"]["model"] == MODEL
    assert f"odd  {MODEL}  server  openai_api  {server.url}" in ask(capsys, "models")
    assert ask(capsys, "models", "remove", "ODD", "--json") == {"removed": "odd"}
    assert "no model called" in ask(capsys, "models", "set", "odd", "--parallel", "3", code=2)
    assert not server.listed and not server.calls, "no command asks the server"


def test_what_keeps_a_server_from_being_used_is_listed(
    server: OddServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    add(capsys, server)
    monkeypatch.delenv("ODD_KEY")
    assert "ODD_KEY is not set" in ask(capsys, "models")
    found = ask(capsys, "doctor", "--json")
    assert any("ODD_KEY is not set" in finding for finding in found["findings"]) and not server.listed


def test_a_key_in_clear_is_warned_of_and_a_pasted_one_refused(
    server: OddServer, capsys: pytest.CaptureFixture[str]
) -> None:
    there = ("--url", "http://192.0.2.1:8000", "--model", MODEL)
    said = ask(capsys, "models", "add", "far", *there, "--key-env", "ODD_KEY")
    assert "not encrypted" in said and "try it with --model far" in said
    said = ask(capsys, "models", "add", "farther", *there, "--key-env", KEY, code=2)
    assert KEY not in said and "not the key itself" in said


@pytest.mark.parametrize(
    "wrong", [("--parallel", "-1"), ("--parallel", "9999"), ("--price-in", "nan"), ("--timeout", "x")]
)
def test_numbers_that_make_no_sense_are_wrong_use(
    server: OddServer, capsys: pytest.CaptureFixture[str], wrong: tuple[str, str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        run(["models", "add", "odd", "--url", server.url, "--model", MODEL, *wrong])
    assert refused.value.code == 2 and wrong[1] in capsys.readouterr().err
