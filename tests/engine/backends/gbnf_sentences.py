"""Random sentences of the small part of GBNF that engine.backends.json_grammar writes."""

from __future__ import annotations

import re
from collections.abc import Callable

from hypothesis import strategies as st

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|\{\d+,\d*\}|[()|]|[a-z]+')
_ESCAPES = {"n": "\n", "t": "\t"}
Draw = Callable[[st.SearchStrategy[int]], int]
CHARACTERS = [*'aZ 0"\\/ntu{}:,', "é", "☃", "🙂", "\u202e", "\u2028", "\x00", "\x1f", "\n", "\x7f", "\x85", "\u0301"]


def sentence(grammar: str, draw: Draw) -> str:
    """One sentence of ``grammar`` from its rule ``root``; ``draw`` makes the choices."""
    rules = {name.strip(): _TOKEN.findall(body) for name, body in (r.split("::=") for r in grammar.strip().split("\n"))}
    return _alternatives(rules["root"], rules, draw)


def _alternatives(tokens: list[str], rules: dict[str, list[str]], draw: Draw) -> str:
    options: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token == "(") - (token == ")")
        if token == "|" and depth == 0:
            options.append([])
        else:
            options[-1].append(token)
    return _sequence(options[draw(st.integers(0, len(options) - 1))], rules, draw)


def _sequence(tokens: list[str], rules: dict[str, list[str]], draw: Draw) -> str:
    out, at = "", 0
    while at < len(tokens):
        end = at + 1
        if tokens[at] == "(":
            end = at + tokens[at:].index(")") + 1
        atom, times = tokens[at:end], 1
        if end < len(tokens) and tokens[end].startswith("{"):
            low, high = tokens[end].strip("{}").split(",")
            times = draw(st.integers(int(low), int(high) if high else int(low) + 5))
            end += 1
        for _ in range(times):
            out += _atom(atom, rules, draw)
        at = end
    return out


def _atom(atom: list[str], rules: dict[str, list[str]], draw: Draw) -> str:
    first = atom[0]
    if first == "(":
        return _alternatives(atom[1:-1], rules, draw)
    if first[0] == '"':
        return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), first[1:-1])
    if first[0] == "[":
        # Python reads the classes written here as GBNF does: ranges, \xNN, escapes, a leading caret.
        allowed = [c for c in CHARACTERS if re.fullmatch(first, c)]
        return allowed[draw(st.integers(0, len(allowed) - 1))]
    return _alternatives(rules[first], rules, draw)
