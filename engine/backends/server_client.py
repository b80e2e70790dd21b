"""One model behind an OpenAI-compatible server: requests in, completions out, in the dialect that this server takes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.backends import option_likelihoods
from engine.backends.chat_reply import ChatReply
from engine.backends.protocol import Completion, Request
from engine.backends.remembered_forms import remember_form, remembered_form
from engine.backends.schema_check import json_inside
from engine.backends.scrubbing import one_line, without_key
from engine.backends.served_model import is_same_model
from engine.backends.server_failure import Failure, Meaning
from engine.backends.server_link import ServerLink
from engine.backends.server_options import ServerOptions
from engine.backends.structured_output import Form, asking, forms
from engine.errors import EvaldeskError
from engine.models.server_address import ServerAddress

_SAMPLING = frozenset(
    ("temperature", "top_p", "top_k", "min_p", "max_tokens", "stop", "seed", "presence_penalty", "frequency_penalty",
     "repetition_penalty")
)  # fmt: skip
_PROBE = {"messages": [{"role": "user", "content": "Say yes."}]}
_PROBE_SAMPLING = {"max_tokens": 16}
_BYTES_A_TOKEN = 3.5
_REPLY_TOKENS = 256
"""What a reply without max_tokens is taken to need, before its usage is known."""
_SHOWN = 8
_encode = json.JSONEncoder(ensure_ascii=False, default=dict).encode
_LISTED_TOKENS = (20, 5)
"""How many of the likeliest tokens are asked for; few servers give more than 20, and some no more than 5."""
_NO_LIKELIHOODS = "the server gives no log-probabilities, and without them the likelihood of options is not to be had"
_FORM_REFUSED = (400, 404, 415, 422, 501)


class ServerClient:
    """Every method runs on one event loop. What the server takes is found out once; the form for JSON is kept for later runs.

    ``open`` and ``complete`` raise EvaldeskError when no request can succeed; ``complete`` also
    engine.backends.server_link.Dropped.
    """

    def __init__(self, address: ServerAddress, key: str, options: ServerOptions, link: ServerLink) -> None:
        self._address = address
        self._key = key
        self._options = options
        self._link = link
        self._form = remembered_form(address.fingerprint.short)
        self._is_proven = False
        """Whether the form was good since the model was loaded: a remembered one may be what the server takes no more."""
        self._finding_form = asyncio.Lock()
        self._tokens_field = "max_tokens"
        self._listed_tokens = _LISTED_TOKENS[0]
        self._right_names: dict[str, str] = {}
        self._offered: list[str] = []

    async def open(self) -> int:
        """Make sure that server, key and model are there; returns the context length the server states, or 0.

        The list of models costs nothing; a few tokens are asked for only where the model is not in it.
        """
        try:
            offered = await self._link.models()
            self._offered = list(offered)
            for name, context in offered.items():
                if name in (self._address.model, self._address.snapshot):
                    return context
            reply, _ = await self._ask(_PROBE, _PROBE_SAMPLING)
            self._check_name(reply.served)
        except Failure as failure:
            # A request that is refused, but not for its model or key, says that the model is there.
            if failure.meaning is Meaning.RUN:
                raise self._stopped(failure) from None
        return 0

    async def complete(self, request: Request) -> Completion:
        """The completion of one request, or its error."""
        if not request.sampling.keys() <= _SAMPLING:
            text = f"servers know no sampling field {', '.join(sorted(set(request.sampling) - _SAMPLING))}"
            return Completion(request.key, error=one_line(text, self._key), is_final=True)
        try:
            if request.schema is not None:
                return await self._structured(request, request.schema)
            if request.options:
                return await self._likelihoods(request)
            reply, seconds = await self._ask({"messages": request.messages}, request.sampling)
            return self._completion(request.key, reply, reply.text, seconds, {})
        except Failure as failure:
            if failure.meaning is Meaning.RUN:
                raise self._stopped(failure) from None
            return Completion(request.key, error=failure.text, is_final=failure.meaning is Meaning.REQUEST)

    async def _likelihoods(self, request: Request) -> Completion:
        fields = {"messages": request.messages, "logprobs": True, "top_logprobs": self._listed_tokens}
        try:
            reply, seconds = await self._ask(fields, {**request.sampling, "max_tokens": 1})
        except Failure as failure:
            fewer = _LISTED_TOKENS[-1]
            if failure.status not in _FORM_REFUSED or "logprobs" not in failure.text or fields["top_logprobs"] == fewer:
                raise
            self._listed_tokens = fewer
            return await self._likelihoods(request)
        completion = self._completion(request.key, reply, "", seconds, {})
        if not reply.listed:
            return replace(completion, error=_NO_LIKELIHOODS, finish="", is_final=True)
        return option_likelihoods.decided(completion, option_likelihoods.of_listed(request.options, reply.listed))

    async def _structured(self, request: Request, schema: Mapping[str, Any]) -> Completion:
        form = self._form
        if form is not None:
            try:
                completion = await self._in_form(request, schema, form)
            except Failure as failure:
                # One that is proven is refused for the request's own sake.
                if failure.status not in _FORM_REFUSED or (self._is_proven and self._form is form):
                    raise
            else:
                follows = completion.extra["follows_schema"]
                if follows or self._is_proven or completion.finish == "length":
                    self._is_proven |= follows
                    return completion
        async with self._finding_form:
            # Whoever waited here goes on with what the first one found.
            if not self._is_proven and self._form is form:
                return await self._find_form(request, schema)
        assert self._form is not None
        return await self._in_form(request, schema, self._form)

    async def _find_form(self, request: Request, schema: Mapping[str, Any]) -> Completion:
        """Ask in one form after the other, until the server takes one and its reply follows the schema."""
        taken: tuple[Form, Completion] | None = None
        for form in (found := forms(schema)):
            try:
                completion = await self._in_form(request, schema, form)
            except Failure as failure:
                for_its_form = failure.status in _FORM_REFUSED
                if taken is not None and not for_its_form:
                    break
                # Where the last form is refused as well, it was not for the form.
                if taken is None and (not for_its_form or form is found[-1]):
                    raise
                continue
            follows = completion.extra["follows_schema"]
            if taken is None or follows:
                taken = form, completion
            if follows or completion.finish == "length":
                break
        assert taken is not None
        self._form, completion = taken
        self._is_proven = True
        # One that brought no JSON of the schema is good enough for this run, and no more.
        kept = self._form if completion.extra["follows_schema"] else None
        await asyncio.to_thread(remember_form, self._address.fingerprint.short, kept)
        return completion

    async def _in_form(self, request: Request, schema: Mapping[str, Any], form: Form) -> Completion:
        reply, seconds = await self._ask(asking(request.messages, schema, form), request.sampling)
        inside = json_inside(reply.text, schema)
        extra = {"schema": str(form), "follows_schema": inside is not None}
        return self._completion(request.key, reply, reply.text if inside is None else inside, seconds, extra)

    async def _ask(self, fields: Mapping[str, Any], sampling: Mapping[str, Any]) -> tuple[ChatReply, float]:
        field = self._tokens_field
        try:
            return await self._link.chat(*self._body(fields, sampling, field))
        except Failure as failure:
            # Newer models want this field under another name, and say so.
            if field != "max_tokens" or failure.status != 400 or "max_completion_tokens" not in failure.text:
                raise
        self._tokens_field = "max_completion_tokens"
        return await self._link.chat(*self._body(fields, sampling, self._tokens_field))

    def _body(self, fields: Mapping[str, Any], sampling: Mapping[str, Any], field: str) -> tuple[bytes, int]:
        """The request's body, and how many tokens it is taken to need. Without a temperature it is greedy."""
        body = {"model": self._address.model, "temperature": 0, **sampling, **fields}
        if field != "max_tokens" and "max_tokens" in body:
            body[field] = body.pop("max_tokens")
        # A lone surrogate has no UTF-8 form, and becomes a question mark.
        data = _encode(body).encode("utf-8", "replace")
        return data, int(len(data) / _BYTES_A_TOKEN) + int(sampling.get("max_tokens") or _REPLY_TOKENS)

    def _completion(self, key: str, reply: ChatReply, text: str, seconds: float, extra: dict[str, Any]) -> Completion:
        served, options = self._check_name(reply.served), self._options
        if options.price_in or options.price_out:
            spent = reply.prompt_tokens * options.price_in + reply.completion_tokens * options.price_out
            extra["cost"] = spent / 1e6
        return Completion(
            key,
            text=without_key(text, self._key) if self._key and self._key[:8] in text else text,
            finish=reply.finish,
            prompt_tokens=reply.prompt_tokens,
            cached_tokens=min(reply.cached_tokens, reply.prompt_tokens),
            completion_tokens=reply.completion_tokens,
            seconds=seconds,
            served_by=served,
            extra=extra,
        )

    def _check_name(self, served: str) -> str:
        """The name of the model that answered, fit to be kept; raises Failure when it is another one than was asked for."""
        if (known := self._right_names.get(served)) is not None:
            return known
        wanted, named = self._address.snapshot or self._address.model, one_line(served, self._key)
        if is_same_model(self._address.model, served, self._address.snapshot):
            self._right_names[served] = named
            return named
        raise Failure(
            Meaning.RUN, f"the server answers with the model {named!r} where {wanted!r} is asked for",
            remedy=f"If that is meant, remove the server and add it again with --snapshot {named}.",
        )  # fmt: skip

    def _stopped(self, failure: Failure) -> EvaldeskError:
        shown = ", ".join(one_line(name, self._key, longest=80) for name in self._offered[:_SHOWN])
        more = ", ..." if len(self._offered) > _SHOWN else ""
        offers = f" It offers: {shown}{more}." if shown and failure.status in (404, 405) else ""
        return EvaldeskError(
            failure.text, where=self._address.url, kept="Every result so far is kept.", remedy=failure.remedy + offers
        )
