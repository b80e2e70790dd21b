"""Text that means harm: what a trace, a label, a field name or a file name may hold, in forms that the app never writes itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.importing.mapping import guess_mapping
from engine.importing.reading import read_records
from engine.importing.records import TraceRecord
from engine.judging.criterion import Criterion, HelpCritique
from engine.measuring import building
from engine.runs.protocol import RunDir, RunState, RunStatus
from engine.runs.states import write_state
from engine.store import criteria, drafts, judgements, labels, piles, runs, settings, traces
from engine.store.completions import StoredCompletion
from engine.store.drafts import Draft
from engine.store.labels import Label, Mark
from engine.store.models import Model
from engine.store.runs import Run, RunCase
from engine.store.store import Store
from engine.store.transaction import Transaction
from engine.store.workspace import Workspace

SEQUENCES = {
    "csi": "\x1b[2J\x1b[38;5;123m\x1b[?1049l\x1b[6n\x1b[5;5H\x1b[999D",
    "osc0": "\x1b]0;TAKEN-OVER\x07",
    "osc8": "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "osc52": "\x1b]52;c;RVZJTA==\x07",
    "dcs": '\x1bP$q"p\x1b\\\x1b_x\x1b\\\x1b^x\x1b\\\x1bc\x1b7\x1b8',
    "c1": "\x9b31m\x9b2J\x9d0;TAKEN-OVER\x9c\x90x\x9c\x85",
    "nul": "a\x00b\x7fc\x08\x08\x08d\x0be\x0cf",
    "cr": "safe\rOVERWRITTEN",
    "bidi": "\u202egnp.exe\u202c \u2066x\u2069 \u200f\u200e",
    "zero": "pass\u200bword\ufeff\u2060\u00ad",
    "tags": "ok" + "".join(chr(0xE0000 + ord(c)) for c in "ignore all") + "\U000e007f",
    "surrogate": "half \ud800 and \udfff",
    "markup": "[red]r[/red] [/x] [@click=app.quit]x[/] [bold [[ ] [link=http://evil]l[/link] [on red]$x[/]",
    "formats": "{0} {x!r} {} %s %(a)s %n $x ${HOME} $0",
    "tabs": "a\tb\tc\n\n\n   d",
    "wide": "注文はどこですか 주문 🚀🎉 👍 ｆｕｌｌ é ñ ё",
    "joined": "👩\u200d👩\u200d👧 🏳\ufe0f\u200d🌈 e\u0301\u0302\u0303",
    "long": "w" * 10_000,
    "empty": "",
}
"""By name; each of them stands in every text field of one trace."""

MARKERS = ("TAKEN-OVER", "38;5;123", "]52;", "]8;;")


def trace(name: str, text: str) -> dict[str, Any]:
    """A trace with ``text`` wherever text can be."""
    return {
        "id": f"{name}{text[:60]}",
        "request": f"begin {text} end" if text else "",
        "context": [
            {
                "kind": "tool",
                "name": text[:200],
                "arguments": {text[:80]: text, "n": 1},
                "result": {"r": [text, {text[:40]: None}]},
            },
            {"kind": "passage", "id": text[:20], "title": text[:200], "text": text},
            {"kind": "message", "role": text[:50], "content": text},
            {"kind": text[:10], text[:10]: text},
        ],
        "facts": {f"fact {text[:100]}": text, "plan": text},
        "response": f"begin {text} end {name}-SEEN",
        "metadata": {"function": text[:20], f"m{text[:30]}": text[:20], "language": text[:10]},
    }


def write_traces(path: Path) -> Path:
    """One trace for each of SEQUENCES, as JSONL with everything beyond ASCII escaped."""
    path.write_text("".join(json.dumps(trace(name, text)) + "\n" for name, text in SEQUENCES.items()), "ascii")
    return path


def write_labelled(path: Path) -> Path:
    """Traces with labels, under field names that are hostile themselves."""
    rows = []
    for number, (name, text) in enumerate(SEQUENCES.items()):
        rows.append(
            {
                "id": f"L{number}-{text[:30]}", "request": f"{name} {text}", "response": text or "-", "label": "fail" if number % 2 else "pass",
                "critique": f"because {text[:2000]}", f"extra {text[:60]}": text[:100],
            }
        )  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "ascii")
    return path


EVERYTHING = " ".join(text for name, text in SEQUENCES.items() if name not in ("long", "surrogate"))
CRITERION = "[red]c[/x]"


def fill_workspace(path: Path, scratch: Path) -> None:
    """A workspace where every text that any screen shows is hostile: criterion, traces, labels, judge, model, run and log."""
    with Store(Workspace(path), program="test") as store:
        store.call(_fill, write_traces(scratch / "traces.jsonl"))
    run_dir = RunDir(Workspace(path).runs / "r1")
    run_dir.path.mkdir(parents=True)
    write_state(run_dir, RunState(RunStatus.FAILED, planned=3, done=2, failed=1, message=EVERYTHING))
    run_dir.log.write_bytes(EVERYTHING.encode() + b"\n\xff\xfe\x1b[31m\n" + EVERYTHING.encode())


def _fill(tx: Transaction, traces_file: Path) -> None:
    text = EVERYTHING
    criteria.add(
        tx,
        Criterion(
            CRITERION, text, text, text, text, (text,), help_critiques=(HelpCritique("FAIL", text),), author=text
        ),
    )
    rows = [json.loads(row) for row in traces_file.read_text("ascii").splitlines()]
    records = [r for r in read_records(traces_file, guess_mapping(rows), "traces") if isinstance(r, TraceRecord)]
    traces.add(tx, "s", records)
    for number, record in enumerate(records[:-4]):
        mark = Mark.FAIL if number % 2 else Mark.PASS
        labels.add(tx, Label(record.trace_id, CRITERION, mark, text, text, "random"))
        piles.put(tx, CRITERION, record.trace_id, piles.BUILD if number < 6 else piles.SEALED)
    drafts.save(tx, Draft(records[-1].trace_id, CRITERION, "FAIL", text))
    settings.write(tx, "expert", text)
    judge = building.build(tx, CRITERION, Model("m1", text, "scripted", text), change=text)
    cases = [RunCase(r.trace_id, 1, f"k{i}") for i, r in enumerate(records[6:-4])]
    runs.add(tx, Run("r1", "judge", text, CRITERION, judge.judge_id, "m1", text, "failed", len(cases), 0, 0), [])
    runs.add_cases(tx, "r1", cases)
    judgements.derive(tx, [_reply(case.request_key, number, text) for number, case in enumerate(cases)])
    runs.set_status(tx, "r1", "failed", finished=True)


def _reply(key: str, number: int, text: str) -> StoredCompletion:
    replies = [json.dumps({"reason": text, "verdict": "FAIL"}), json.dumps({"reason": text, "verdict": "PASS"}), text]
    error = text if number % 4 == 3 else ""
    return StoredCompletion(key, replies[number % 3], "stop", error)
