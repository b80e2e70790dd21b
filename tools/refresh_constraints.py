"""Resolve every dependency afresh and write the exact versions into pyproject.toml: ``uv run python tools/refresh_constraints.py``.

Two lists under ``[tool.uv]`` are rewritten in place: ``constraint-dependencies`` (core, extras and development group,
for all Pythons and platforms at once) and ``build-constraint-dependencies`` (what builds the package). They hold names,
versions and environment markers only, never where a package comes from.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
LISTS = ("constraint-dependencies", "build-constraint-dependencies")
# hatchling asks for this one only when it builds an editable install, so no requirement of the project names it.
EDITABLE_BUILD = "editables"

_PIN = re.compile(r"[a-z0-9][a-z0-9.-]*==[^\s;\"\\]+( ; [^\"\\]+)?")


def main() -> None:
    """Rewrite both lists and print what changed."""
    before = PYPROJECT.read_text("utf-8")
    unpinned = before
    for name in LISTS:
        unpinned = replace_list(unpinned, name, [])
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "pyproject.toml").write_text(unpinned, "utf-8")
        after = replace_list(before, "constraint-dependencies", _resolve_project(directory))
        after = replace_list(after, "build-constraint-dependencies", _resolve_build(directory, unpinned))
    if after != before:
        PYPROJECT.write_text(after, "utf-8")
    old, new = _all_entries(before), _all_entries(after)
    for entry in sorted(old ^ new):
        print("-" if entry in old else "+", entry)
    print(f"{len(new)} exact versions stand in {PYPROJECT.name}, {len(new - old)} of them new.")


def replace_list(text: str, name: str, entries: list[str]) -> str:
    """``text`` of a pyproject.toml with the multi-line array ``name`` holding ``entries``; ValueError when it has none."""
    array = "".join([f"{name} = [\n", *(f'    "{entry}",\n' for entry in entries), "]"])
    replaced, count = re.subn(
        rf"^{re.escape(name)} = \[\n(?:[^\]\n].*\n)*\]", lambda _: array, text, flags=re.MULTILINE
    )
    if count != 1:
        raise ValueError(f"pyproject.toml holds {count} arrays {name} that open and close on lines of their own, not 1")
    return replaced


def pins(requirements: str) -> list[str]:
    """The lines of a requirements file; ValueError for one that is more than name, exact version and marker."""
    lines = requirements.splitlines()
    for line in lines:
        if not _PIN.fullmatch(line):
            raise ValueError(f"not an exact version: {line}")
    return lines


def _all_entries(pyproject: str) -> set[str]:
    tool = tomllib.loads(pyproject)["tool"]["uv"]
    return {entry for name in LISTS for entry in tool[name]}


def _resolve_project(directory: str) -> list[str]:
    plain = ["--no-header", "--no-annotate", "--no-hashes", "--no-emit-project", "--all-extras", "--all-groups"]
    return pins(_uv("export", *plain, directory=directory))


def _resolve_build(directory: str, pyproject: str) -> list[str]:
    document = tomllib.loads(pyproject)
    lowest = document["project"]["requires-python"].removeprefix(">=")
    plain = ["--no-header", "--no-annotate", "--universal", "--python-version", lowest, "-"]
    wanted = [*document["build-system"]["requires"], EDITABLE_BUILD]
    return pins(_uv("pip", "compile", *plain, directory=directory, text="\n".join(wanted)))


def _uv(*arguments: str, directory: str, text: str = "") -> str:
    # uv names itself in UV for what it runs; its own words about a failed resolution go to the terminal.
    command = [os.environ.get("UV", "uv"), "--quiet", *arguments]
    done = subprocess.run(command, cwd=directory, input=text, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command[1:3])} failed; pyproject.toml is as it was.")
    return done.stdout


if __name__ == "__main__":
    main()
