"""Requests as jobs in tokens: the chat template, exactly one BOS, every end token, and no more tokens than there is room for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.backends.chat_template import ChatTemplate, one_bos, read_chat_template, wants_bos
from engine.backends.exllama_library import NEUTRAL, Job
from engine.backends.faults import in_one_line
from engine.backends.protocol import Request
from engine.errors import EvaldeskError
from engine.models.directory import end_token_ids

_SAMPLING = frozenset(NEUTRAL) | {"max_tokens", "stop", "logprobs"}


@dataclass(frozen=True)
class Prompts:
    """How one model is spoken to. ``encode`` takes special tokens in a text for what they stand for, and adds none."""

    template: ChatTemplate
    encode: Callable[[str], list[int]]
    token_id: Callable[[str], int | None]
    bos: int | None
    wants_bos: bool
    end_ids: tuple[int, ...]
    context: int
    """Tokens of a request, prompt and reply together; neither library looks at that."""

    def job(self, request: Request) -> Job:
        """The request in tokens; raises EvaldeskError, meant as the request's own error, where that cannot be."""
        unknown = sorted(set(request.sampling) - _SAMPLING)
        if unknown:
            raise EvaldeskError(f"exllama knows no sampling field {', '.join(unknown)}")
        ids = one_bos(self.encode(self.template.render(request.messages)), self.bos, wanted=self.wants_bos)
        room = self.context - len(ids)
        if room < 1 or not ids:
            raise EvaldeskError(
                f"the request has {len(ids)} tokens, the context holds {self.context}",
                remedy="Shorten the prompt or the case, or use a model with a longer context.",
            )
        sampling = {**NEUTRAL, **request.sampling}
        stop = sampling.get("stop") or ()
        try:
            return Job(
                key=request.key,
                ids=tuple(ids),
                # Room for all of it is reserved when a job starts: a tight limit lets more go at once.
                limit=1 if request.options else max(1, min(room, int(sampling.get("max_tokens") or room))),
                sampling={name: type(default)(sampling[name]) for name, default in NEUTRAL.items()},
                end_ids=self.end_ids,
                stop=(stop,) if isinstance(stop, str) else tuple(str(string) for string in stop),
                schema=request.schema,
                logprobs=bool(sampling.get("logprobs")),
                options={option: self.tokens_of(option) for option in request.options},
            )
        except (TypeError, ValueError) as error:
            raise EvaldeskError(f"the sampling is not understood: {in_one_line(error)}") from error

    def tokens_of(self, option: str) -> tuple[int, ...]:
        """The single tokens that are this text, alone or behind a blank."""
        whole = [ids[0] for text in (option, f" {option}") if len(ids := self.encode(text)) == 1]
        alone = self.token_id(option)
        return tuple(dict.fromkeys([*whole, *([] if alone is None else [alone])]))


def read_prompts(
    directory: Path, encode: Callable[[str], list[int]], token_id: Callable[[str], int | None], context: int
) -> Prompts:
    """The prompts of a model directory; raises EvaldeskError, naming the file, for one that has no chat template."""
    template = read_chat_template(directory)
    bos = template.special_tokens.get("bos_token", "")
    return Prompts(
        template,
        encode,
        token_id,
        token_id(bos) if bos else None,
        wants_bos(directory),
        end_token_ids(directory, token_id),
        context,
    )
