"""`evaldesk audit FILE [FILE2 --on ID]`: a judge against an expert, from any file that holds both verdicts."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from engine.auditing.audit_file import FileAudit, audit_file
from engine.auditing.figures import POSITIVE
from engine.auditing.sentence import gate_sentence, percent, percent_of
from stats.confusion import no_verdict_bounds, rates
from stats.gates import default_gate
from stats.intervals import Estimate, Proportion
from tui.cli.output import plain_console
from tui.widgets.literal import one_line

if TYPE_CHECKING:
    from rich.table import Table

_DESCRIPTION = """\
Confusion table, TPR and TNR of a judge against one expert, from a CSV, JSONL, JSON or Parquet file that holds both
verdicts, or from two files joined by an id. No workspace is needed. Positive = the judge reports a failure.

Verdicts are read as pass/fail, accept/reject, true/false and 1/0 (1 and true mean PASS). In a column named like fail,
error or defect, 1/0 and true/false need --values. A blank human value is an unlabelled case; an unknown one is
refused. A blank or unknown judge value beside a human label is "no verdict": in no rate, and counted.

Exit code: 0 when the gate is reached, 1 when it is missed or there are too few failures to tell, 2 for wrong input.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `audit` and its options."""
    parser = subparsers.add_parser(
        "audit",
        help="measure a judge against an expert, from any file",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="CSV, JSONL, JSON or Parquet file")
    parser.add_argument("file2", type=Path, metavar="FILE2", nargs="?", help="second file, joined by --on")
    parser.add_argument("--on", metavar="ID", help="the field that names a case in both files")
    parser.add_argument("--human", metavar="FIELD", help="the human verdict: a column name or a JSON Pointer")
    parser.add_argument("--judge", metavar="FIELD", help="the judge's verdict: a column name or a JSON Pointer")
    parser.add_argument("--values", metavar="V=PASS,W=FAIL", help="what the values mean, for example 1=FAIL,0=PASS")
    parser.add_argument("--values-judge", metavar="V=PASS,W=FAIL", help="the same for the judge's column alone")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the audit; 0 when the gate is reached, 1 when it is missed or not decided.

    Raises EvaldeskError (exit code 2) on input that cannot be read.
    """
    audit = audit_file(
        args.file,
        args.file2,
        on=args.on,
        human=args.human,
        judge=args.judge,
        values=args.values,
        values_judge=args.values_judge,
    )
    if args.json:
        json.dump(audit.as_json(), sys.stdout, ensure_ascii=True, allow_nan=False)
        sys.stdout.write("\n")
    else:
        _print(audit)
    return 0 if default_gate(audit.confusion).reached else 1


def _print(audit: FileAudit) -> None:
    from rich.padding import Padding
    from rich.text import Text

    console = plain_console()
    confusion = audit.confusion
    console.print(Text(audit.sentence, style="bold"))
    console.print()
    console.print(_confusion_table(audit))
    console.print(Padding(Text(f"positive = {POSITIVE}"), (0, 0, 1, 1), expand=False))
    console.print(_figures_table(audit))
    gate = default_gate(confusion)
    bar = f"TPR >= {percent_of(gate.target)} on >= {gate.needed} failures"
    lines = [f"gate: {bar}: {gate_sentence(gate)}"]
    if confusion.no_verdict:
        lines.append(_bounds_line(audit))
    lines += [
        *(
            f"{role}: {one_line(column.path)} in {one_line(column.file)} ({one_line(column.reading_text)})"
            for role, column in (("expert", audit.human), ("judge", audit.judge))
        ),
        *(one_line(note) for note in audit.notes),
        "The figures hold for a judge that never saw these cases while it was built.",
    ]
    console.print()
    for line in lines:
        console.print(Padding(Text(line), (0, 0, 0, 1), expand=False))


def _confusion_table(audit: FileAudit) -> Table:
    confusion = audit.confusion
    table = _grid()
    table.add_column("")
    for name in ("judge FAIL", "judge PASS", "no verdict", "all"):
        table.add_column(name, justify="right")
    fail = (confusion.tp, confusion.fn, confusion.no_verdict_fail)
    passed = (confusion.fp, confusion.tn, confusion.no_verdict_pass)
    table.add_row("expert FAIL", *(f"{count:,}" for count in (*fail, sum(fail))))
    table.add_row("expert PASS", *(f"{count:,}" for count in (*passed, sum(passed))))
    if confusion.unlabelled:
        table.add_row("not labelled", "", "", "", f"{confusion.unlabelled:,}")
    return table


def _figures_table(audit: FileAudit) -> Table:
    figures = rates(audit.confusion)
    table = _grid()
    table.add_column("")
    for _ in range(3):
        table.add_column("", justify="right")
    table.add_column("")
    table.show_header = False
    rows: list[tuple[str, Proportion, str]] = [
        ("TPR", figures.tpr, "failures caught (recall)"),
        ("TNR", figures.tnr, "good answers passed"),
        ("precision", figures.precision, "alarms that are failures"),
        ("agreement", figures.agreement, "both verdicts the same"),
        ("always-PASS", figures.baseline_agreement, "agreement it would reach"),
    ]
    for name, figure, meaning in rows:
        table.add_row(name, f"{figure.k:,} of {figure.n:,}", _percent(figure), _interval(figure, 100.0, 0), meaning)
    kappa = figures.kappa
    table.add_row("kappa", "", _decimal(kappa.value), _interval(kappa, 1.0, 2), "agreement beyond chance")
    return table


def _bounds_line(audit: FileAudit) -> str:
    bounds = no_verdict_bounds(audit.confusion)
    return (
        f"{audit.confusion.no_verdict:,} without a verdict: all as PASS: TPR {_percent(bounds.tpr_as_pass)}, "
        f"TNR {_percent(bounds.tnr_as_pass)}; all as FAIL: TPR {_percent(bounds.tpr_as_fail)}, "
        f"TNR {_percent(bounds.tnr_as_fail)}"
    )


def _grid() -> Table:
    from rich.table import Table

    return Table(box=None, pad_edge=True, padding=(0, 2, 0, 1), header_style="", collapse_padding=True)


def _percent(figure: Proportion) -> str:
    return percent(figure.k, figure.n) if figure.n else "-"


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _interval(figure: Proportion | Estimate, scale: float, digits: int) -> str:
    if figure.low is None or figure.high is None:
        return ""
    return f"[{figure.low * scale:.{digits}f}, {figure.high * scale:.{digits}f}]"
