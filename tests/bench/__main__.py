"""Benchmarks: ``python -m tests.bench SUITE [--json]`` prints {figure: {value, unit, reference}}; they fail no test run."""

from __future__ import annotations

import argparse
import importlib
import json

SUITES = ("desk", "engine", "stats", "terminal")


def main() -> None:
    """Run one suite and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = importlib.import_module(f"tests.bench.{arguments.suite}").run()
    if arguments.json:
        print(json.dumps(figures, indent=2))
        return
    for name, figure in figures.items():
        print(f"{name:<28} {figure['value']:>10.2f} {figure['unit']:<8} reference {figure['reference']}")


if __name__ == "__main__":
    main()
