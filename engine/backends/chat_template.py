"""Chat messages as the text that a model was trained on, by the Jinja template that lies in its directory.

exllamav2 and exllamav3 render none themselves. A template is a program from somebody else: it runs in Jinja's
immutable sandbox, and its clock stands still, so that a request has the same prompt on every day.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.errors import EvaldeskError
from engine.models.directory import read_json

Messages = Sequence[Mapping[str, str]]

PINNED_NOW = datetime.datetime(2025, 1, 1)
"""What strftime_now tells a template."""

_SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token")
_PROBE = "evaldesk-asks-whether-a-system-message-is-shown"


@dataclass(frozen=True)
class ChatTemplate:
    """One model's template. Make it with ``read_chat_template``."""

    template: jinja2.Template
    special_tokens: Mapping[str, str]
    """bos_token, eos_token ... as text, as far as the model has them."""
    takes_system: bool
    """Whether a system message reaches the prompt; templates without that role refuse it or leave it out."""

    def render(self, messages: Messages) -> str:
        """The prompt up to where the reply begins; raises EvaldeskError with the template's own words where it refuses.

        Where the template has no system role, a leading system message is put before the first user message, with a
        blank line between them. Lone surrogates, which no tokenizer takes, become question marks.
        """
        readable = [{name: _encodable(text) for name, text in message.items()} for message in messages]
        try:
            return _rendered(
                self.template, readable if self.takes_system else merge_system(readable), self.special_tokens
            )
        except Exception as error:
            raise EvaldeskError(f"the model's chat template does not take these messages: {_words(error)}") from error


def merge_system(messages: Messages) -> list[dict[str, str]]:
    """``messages`` with a leading system message put before the first user message, a blank line between them.

    One that no user message follows becomes a user message itself.
    """
    copies = [dict(message) for message in messages]
    if not copies or copies[0].get("role") != "system":
        return copies
    system, *rest = copies
    for message in rest:
        if message.get("role") == "user":
            message["content"] = f"{system['content']}\n\n{message['content']}"
            return rest
    return [{**system, "role": "user"}, *rest]


def read_chat_template(directory: Path) -> ChatTemplate:
    """The template of a model directory; raises EvaldeskError, naming the file, where there is none that can be used.

    Looked for in chat_template.jinja, chat_template.json and tokenizer_config.json, in this order. Where a file holds
    several by name, the one called "default" is taken.
    """
    settings = read_json(directory / "tokenizer_config.json")
    source, where = _source(directory, settings)
    tokens = {name: text for name in _SPECIAL_TOKENS if (text := token_text(settings.get(name)))}
    try:
        template = _environment().from_string(source)
    except jinja2.TemplateError as error:
        raise EvaldeskError(f"the chat template cannot be read: {_words(error)}", where=str(where)) from error
    return ChatTemplate(template, tokens, _shows_system(template, tokens))


def token_text(entry: Any) -> str:
    """A special token of tokenizer_config.json as text; "" where the model has none."""
    if isinstance(entry, Mapping):
        entry = entry.get("content")
    return entry if isinstance(entry, str) else ""


def one_bos(ids: Sequence[int], bos: int | None, *, wanted: bool) -> list[int]:
    """The prompt's tokens with at most one beginning-of-sequence token in front.

    It is put there only where the model wants it and the rendered text had none; a second one, as of a template and a
    tokenizer that both add it, is taken away.
    """
    rest = list(ids)
    if bos is None:
        return rest
    had = rest[:1] == [bos]
    while rest[:1] == [bos]:
        del rest[0]
    return [bos, *rest] if had or wanted else rest


def wants_bos(directory: Path) -> bool:
    """Whether prompts of this model begin with the BOS token even if its template does not write it.

    Said by add_bos_token in tokenizer_config.json, or else by the post-processor in tokenizer.json that would add it.
    """
    settings = read_json(directory / "tokenizer_config.json")
    said = settings.get("add_bos_token")
    if isinstance(said, bool):
        return said
    bos = token_text(settings.get("bos_token"))
    after = read_json(directory / "tokenizer.json").get("post_processor")
    return bool(bos) and after is not None and json.dumps(bos) in json.dumps(after)


def _source(directory: Path, settings: Mapping[str, Any]) -> tuple[str, Path]:
    plain = directory / "chat_template.jinja"
    if plain.is_file():
        try:
            return plain.read_text(encoding="utf-8"), plain
        except (OSError, ValueError) as error:
            raise EvaldeskError(f"the chat template cannot be read: {error}", where=str(plain)) from error
    for path, entry in (
        (directory / "chat_template.json", read_json(directory / "chat_template.json").get("chat_template")),
        (directory / "tokenizer_config.json", settings.get("chat_template")),
    ):
        if (source := _default(entry)) is not None:
            return source, path
    raise EvaldeskError(
        "the model has no chat template, so chat messages cannot be put to it",
        where=str(directory),
        remedy="Put the chat_template.jinja of the model it was made from beside its weights, or use an instruct model.",
    )


def _default(entry: Any) -> str | None:
    if isinstance(entry, str):
        return entry
    if not isinstance(entry, list):
        return None
    named = {item.get("name"): item.get("template") for item in entry if isinstance(item, Mapping)}
    source = named.get("default")
    return source if isinstance(source, str) else None


def _environment() -> jinja2.Environment:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = PINNED_NOW.strftime
    return environment


def _rendered(template: jinja2.Template, messages: Messages, tokens: Mapping[str, str]) -> str:
    return template.render(messages=messages, add_generation_prompt=True, **tokens)


def _shows_system(template: jinja2.Template, tokens: Mapping[str, str]) -> bool:
    messages = [{"role": "system", "content": _PROBE}, {"role": "user", "content": "?"}]
    try:
        return _PROBE in _rendered(template, messages, tokens)
    except Exception:  # noqa: BLE001  (a template may fail in any way at what it does not know)
        return False


def _tojson(value: Any, indent: int | None = None) -> str:
    # Jinja's own writes <, > and & as escapes, for HTML; models were trained without them.
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
