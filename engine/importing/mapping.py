"""Which fields of a file's rows hold what: stated by the user, or guessed from their usual names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as Fields
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from typing import Any, Final

from engine.errors import EvaldeskError
from engine.importing.conversation import is_chat
from engine.importing.pointer import MISSING, decoded, get, join, pointer, pointer_of
from engine.importing.verdicts import ValueReading, infer_reading

REST: Final = "*"
"""In ``metadata``: every field that nothing else is mapped to."""

SINGLE: Final = ("request", "response", "messages", "trace_id", "label", "critique", "expert", "facts", "origin")
SEVERAL: Final = ("context", "metadata")

ORIGINS: Final = ("real", "written")
"""What a field ``origin`` may hold: a request from use, or one written for a cell of the coverage grid."""


@dataclass(frozen=True)
class Mapping:
    """Paths (see `pointer.get`) of the fields. None = not stated, so it may be guessed; "" or () = none on purpose.

    ``messages`` is a list of chat messages; request, response and context come from it unless mapped themselves.
    ``metadata`` may hold `REST`.
    """

    request: str | None = None
    response: str | None = None
    context: tuple[str, ...] | None = None
    trace_id: str | None = None
    label: str | None = None
    critique: str | None = None
    expert: str | None = None
    metadata: tuple[str, ...] | None = None
    facts: str | None = None
    messages: str | None = None
    origin: str | None = None

    def over(self, guess: Mapping) -> Mapping:
        """This mapping, with what it does not state taken from another one."""
        stated = {field.name: getattr(self, field.name) for field in dataclass_fields(self)}
        return replace(guess, **{name: value for name, value in stated.items() if value is not None})

    def used(self) -> tuple[str, ...]:
        """All paths that are named, `REST` left out."""
        single = [getattr(self, name) for name in SINGLE]
        return tuple(path for path in (*single, *(self.context or ()), *(self.metadata or ())) if path and path != REST)

    def as_dict(self) -> dict[str, str | list[str] | None]:
        """{field: path, list of paths, or null}, for reports."""
        shown: dict[str, str | list[str] | None] = {name: getattr(self, name) or None for name in SINGLE}
        return shown | {name: list(getattr(self, name) or ()) for name in SEVERAL}


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NAMES: Final[Fields[str, tuple[str, ...]]] = {
    "trace_id": _words("id traceid exampleid uuid rowid caseid sampleid recordid"),
    "request": _words(
        "request question input prompt query user instruction userinput userquery userquestion usermessage userprompt "
        "inputtext customermessage requesttext questiontext inputs problem"
    ),
    "response": _words(
        "response answer output completion assistant actualoutput modelresponse modeloutput modelanswer "
        "assistantresponse assistantmessage llmresponse llmoutput botresponse generatedanswer generatedtext generation "
        "prediction reply outputtext responsetext answertext outputs"
    ),
    "context": _words(
        "context contexts documents docs retrieved retrievedcontexts retrievedcontext retrieveddocuments retrieveddocs "
        "retrievalcontext passages chunks sources toolcalls toolscalled toolresults history chathistory systemprompt"
    ),
    "label": _words(
        "human humanlabel humanverdict humanpassed humangrade humanjudgement humanjudgment expertlabel expertverdict "
        "label verdict grade pass passed"
    ),
    "critique": _words(
        "critique humancritique expertcritique notes note comment comments humancomment humannotes explanation "
        "labelnotes"
    ),
    "expert": _words("expert annotator labeler labeller labeledby labelledby reviewer annotatedby"),
    "facts": ("facts",),
    "metadata": ("metadata", "meta"),
    "messages": ("messages", "conversation", "conversations", "chat", "dialog", "dialogue", "turns"),
}
"""Usual names of the fields, in the order in which they are looked for; lower case, letters and digits only."""

WEAK_IDS: Final = ("itemid", "customid", "questionid", "conversationid", "threadid", "taskhash", "idx", "index")
"""Names that often, but not always, name one row."""

_MACHINE = frozenset({"judge", "judged", "model", "llm", "auto", "predicted", "gpt", "ai"})


def guess_mapping(
    sample_rows: Sequence[Fields[str, Any]], *, stated: Mapping | None = None, values: str | ValueReading | None = None
) -> Mapping:
    """The mapping that usual names suggest for rows like these.

    A field is used once; what ``stated`` names is not used again. A column counts as the label only where the
    sample's values can be read as verdicts (by ``values`` where given) or are all blank.
    """
    given = stated or Mapping()
    columns = _Columns(sample_rows, given.used())
    label = given.label if given.label is not None else columns.label(values)
    found: dict[str, Any] = {"label": label, "trace_id": columns.identity(), "facts": columns.pick("facts")}
    found["origin"] = columns.origin()
    if label:
        found |= {"critique": columns.pick("critique"), "expert": columns.pick("expert")}
    request = given.request if given.request is not None else columns.pick("request")
    response = given.response if given.response is not None else columns.pick("response")
    chat = given.messages if given.messages is not None else columns.chat((request, response))
    context: list[str] = list(columns.all("context"))
    if chat and given.messages is None and request and response and chat not in (request, response):
        # Where both texts stand by themselves the messages are what came before.
        context.append(chat)
        chat = None
    elif request and _plain(request) == "input" and (instruction := columns.pick("request", ("instruction",))):
        # Instruction data: the instruction is what was asked, the input what it is about.
        context.insert(0, request)
        request = instruction
    if request is None and not chat:
        request = columns.pick("request", ("text", "message", "task"))
    found |= {"messages": chat, "context": tuple(context)}
    found |= {"request": None if chat == request else request, "response": None if chat == response else response}
    return given.over(Mapping(**found, metadata=(*columns.all("metadata"), REST)))


def parse_map_options(options: Iterable[str]) -> Mapping:
    """The mapping that ["request=/a/b", "metadata=lang", ...] states; context and metadata may be named again.

    "field=" maps the field to nothing. EvaldeskError where a part is not understood.
    """
    single: dict[str, str] = {}
    several: dict[str, list[str]] = {}
    for option in options:
        name, sign, path = (part.strip() for part in option.partition("="))
        name = {"id": "trace_id"}.get(name, name)
        if not sign or name not in (*SINGLE, *SEVERAL):
            raise EvaldeskError(
                f"{option!r} does not say which field is where" if not sign else f"there is no field {name!r}",
                where="--map",
                remedy=f"Write FIELD=PATH, where FIELD is one of {', '.join((*SINGLE, *SEVERAL))}.",
            )
        if name in SEVERAL:
            several.setdefault(name, []).extend([path] if path else [])
        elif name in single and single[name] != path:
            raise EvaldeskError(f"{name} is mapped twice", where="--map", remedy="Give each field one path.")
        else:
            single[name] = path
    fields: dict[str, Any] = {**single, **{name: tuple(paths) for name, paths in several.items()}}
    return Mapping(**fields)


def check_paths(mapping: Mapping, sample_rows: Sequence[Fields[str, Any]], available: Sequence[str]) -> None:
    """EvaldeskError where a path that the user stated leads nowhere in every one of the sampled rows."""
    for name in (*SINGLE, *SEVERAL):
        stated = getattr(mapping, name)
        for path in (stated,) if isinstance(stated, str) else stated or ():
            if path and path != REST and all(get(row, path) is MISSING for row in sample_rows):
                shown = ", ".join(available[:20]) + (", ..." if len(available) > 20 else "")
                raise EvaldeskError(
                    f"no row has a field {path!r}, to which {name} is mapped",
                    kept="Nothing was read.",
                    remedy=f"Fields of this file: {shown}.",
                )


class _Columns:
    """The columns of sampled rows, each to be taken once."""

    def __init__(self, rows: Sequence[Fields[str, Any]], taken: Sequence[str]) -> None:
        self._rows = rows
        self._names = list(dict.fromkeys(name for row in rows for name in row))
        self._taken = {_column(rows, path) for path in taken}

    def pick(self, field: str, names: Sequence[str] | None = None) -> str | None:
        """Take the first free column of a usual name; for a text inside objects, the path of that text."""
        column = self._named(names or NAMES[field])
        if column is None:
            return None
        self._taken.add(column)
        return self._text_within(field, column) if field in ("request", "response") else column

    def all(self, field: str) -> Iterator[str]:
        """Take every free column of a usual name."""
        while (found := self.pick(field)) is not None:
            yield found

    def identity(self) -> str | None:
        """Take the column that names the rows; the less usual ones only where the sample has each value once."""
        column = self.pick("trace_id")
        if column is not None:
            return column
        column = self._named(WEAK_IDS)
        if column is None:
            return None
        values = [str(value).strip() for value in self._values(column)]
        if not all(values) or len(set(values)) < len(values):
            return None
        self._taken.add(column)
        return column

    def origin(self) -> str | None:
        """Take a column ``origin`` whose values all say where a request comes from; an airport's code is metadata."""
        column = self._named(("origin",))
        words = (
            {str(value).strip().casefold() for value in self._values(column) if not _blank(value)} if column else set()
        )
        if column is None or not words or not words <= set(ORIGINS):
            return None
        self._taken.add(column)
        return column

    def label(self, values: str | ValueReading | None) -> str | None:
        """Take the column whose values can be read as human verdicts (or are all blank)."""
        usual = [column for name in NAMES["label"] if (column := self._named((name,))) is not None]
        for column in (*usual, *self._only_human(usual), *self._accepting()):
            try:
                reading = infer_reading(column, self._values(column), values)
            except EvaldeskError:
                # The values are verdicts whose meaning the user has to state: reading the file says so.
                readable = True
            else:
                filled = [value for value in self._values(column) if not _blank(value)]
                readable = not filled or any(_readable(reading, value) for value in filled)
            if readable:
                self._taken.add(column)
                return column
        return None

    def chat(self, picked: Sequence[str | None]) -> str | None:
        """Take the column that holds lists of chat messages, or name the picked path that leads to one."""
        for path in picked:
            if path and any(is_chat(value) for value in self._values(path)):
                return path
        for name in NAMES["messages"]:
            column = self._named((name,))
            if column is not None and any(is_chat(value) for value in self._values(column)):
                self._taken.add(column)
                return column
        return None

    def _values(self, path: str) -> Iterator[Any]:
        return (value for row in self._rows if (value := get(row, path)) is not MISSING)

    def _named(self, names: Sequence[str]) -> str | None:
        free = {_plain(name): name for name in reversed(self._names) if name not in self._taken}
        return next((free[name] for name in names if name in free), None)

    def _text_within(self, field: str, column: str) -> str:
        steps: tuple[str, ...] = (column,)
        for _ in range(3):
            objects = [o for value in self._values(pointer_of(steps)) if isinstance(o := decoded(value), dict)]
            names = {_plain(name): name for inner in reversed(objects) for name in reversed(list(inner))}
            usual = ("messages", *NAMES[field], "text", "content", "value")
            step = next((names[name] for name in usual if name in names), None)
            if step is None:
                break
            steps = (*steps, step)
        return join(dict.fromkeys(self._names), steps)

    def _only_human(self, known: Sequence[str]) -> list[str]:
        """The column that names a human or expert in another way, if there is exactly one."""
        others = {*known, *self._taken}
        found = [name for name in self._names if name not in others and _human(name)]
        return found if len(found) == 1 else []

    def _accepting(self) -> list[str]:
        """An annotation tool's "answer" is accept, reject or ignore; a system's answer is a text."""
        column = self._named(("answer",))
        if column is None:
            return []
        words = {"" if _blank(value) else str(value).strip().casefold() for value in self._values(column)} - {""}
        return [column] if words & {"accept", "reject"} and words <= {"accept", "reject", "ignore"} else []


def _human(name: str) -> bool:
    words = set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold()))
    other = _plain(name) in (*NAMES["critique"], *NAMES["expert"])
    return bool(words & {"human", "expert"}) and not words & _MACHINE and not other


def _readable(reading: ValueReading, value: Any) -> bool:
    try:
        return reading.read(value) is not None
    except ValueError:
        return False


def _blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


def _column(rows: Sequence[Fields[str, Any]], path: str) -> str:
    """The column that a path begins in."""
    if any(path in row for row in rows):
        return path
    return pointer({}, path)[1:].partition("/")[0].replace("~1", "/").replace("~0", "~")
