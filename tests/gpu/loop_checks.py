"""What both libraries have to do under the adapter, whichever of them it is; and the model that they are given.

The model counts through the alphabet: after "a" comes "b", after "j" an end token.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from engine.backends.exllama import ExLlama
from engine.backends.protocol import Completion, ModelInfo, Request

LETTERS = "abcdefghij"
END = 2
# The prompt ends with the user's own last letter, from which the model counts on.
TEMPLATE = "{{ bos_token }}{% for m in messages %}<|start|>{{ m['content'] }}{% endfor %}"


class CountingModel:
    """``before`` is called with the token ids of each forward pass; ``noise`` makes random logits of its own."""

    def __init__(self, token_id: Callable[[str], int | None], vocabulary: int) -> None:
        ids = [number for letter in LETTERS if (number := token_id(letter)) is not None]
        self.first = ids[0]
        self.following = {**dict(itertools.pairwise(ids)), ids[-1]: END}
        self.vocabulary = vocabulary
        self.before: Callable[[Any], None] = lambda input_ids: None
        self.noise: Any = None
        self.widths: list[int] = []

    def logits(self, input_ids: Any) -> Any:
        self.widths.append(len(input_ids))
        if self.noise is not None:
            return torch.randn(*input_ids.shape, self.vocabulary, generator=self.noise)
        logits = torch.zeros(*input_ids.shape, self.vocabulary)
        for row, ids in enumerate(input_ids.tolist()):
            for column, token in enumerate(ids):
                logits[row, column, self.following.get(token, self.first)] = 5.0
        return logits


class Desk:
    """A backend with the library under it."""

    def __init__(self, backend: ExLlama, library: Any, info: ModelInfo) -> None:
        self.backend, self.library, self.info = backend, library, info

    def run(self, requests: Sequence[Request]) -> dict[str, Completion]:
        self.backend.submit(requests)
        done: dict[str, Completion] = {}
        while self.backend.in_flight:
            done.update({completion.key: completion for completion in self.backend.results(10.0)})
        return done


def ask(key: str, text: str, schema: Any = None, **sampling: Any) -> Request:
    return Request(key, [{"role": "user", "content": text}], sampling, schema)


Load = Callable[..., Desk]


class LoopChecks:
    """Each module has its own fixtures ``load`` and ``desk``."""

    def test_the_end_token_ends_a_reply_also_one_that_stands_in_one_file_only(self, desk: Desk) -> None:
        done = desk.run([ask("r", "x a", max_tokens=50)])["r"]
        assert (done.text, done.finish, done.error) == ("bcdefghij", "stop", "")
        assert done.completion_tokens == 10, "the end token counts"

    def test_the_prompt_has_one_bos_and_special_tokens_are_single_ones(self, desk: Desk) -> None:
        job = desk.backend._prompts.job(ask("r", "a"))
        assert job.ids == (0, 4, desk.library.token_id("a")) and job.end_ids == (1, 2)

    def test_stop_strings(self, desk: Desk) -> None:
        done = desk.run(
            [
                ask("crossing", "a", max_tokens=50, stop="de"),
                ask("held", "a", max_tokens=50, stop=["ijZZZ"]),
                ask("on the last token", "a", max_tokens=4, stop=["de"]),
                ask("begun on the last token", "a", max_tokens=3, stop=["de"]),
            ]
        )
        assert {key: (c.text, c.finish) for key, c in done.items()} == {
            "crossing": ("bc", "stop"),
            "held": ("bcdefghij", "stop"),
            "on the last token": ("bc", "stop"),
            "begun on the last token": ("bcd", "length"),
        }

    def test_a_character_of_several_tokens_is_whole_where_the_limit_cuts_after_it(self, desk: Desk) -> None:
        ids = desk.library.encode("é")
        assert len(ids) == 2
        desk.library.counting.following |= {desk.library.counting.first: ids[0], ids[0]: ids[1], ids[1]: END}
        done = desk.run(
            [ask("cut", "a", max_tokens=2), ask("whole", "a", max_tokens=9), ask("half", "a", max_tokens=1)]
        )
        assert (done["cut"].text, done["whole"].text, done["half"].text) == ("é", "é", "\ufffd")

    def test_log_probabilities_are_the_models_own_also_when_greedy(self, desk: Desk) -> None:
        done = desk.run([ask("r", "a", max_tokens=50, logprobs=True, stop=["ijZZ"]), ask("none", "a", max_tokens=2)])
        logprobs = done["r"].extra["logprobs"]
        # exllamav2 leaves out what the model has beyond the tokenizer's vocabulary.
        allowed = desk.library.tokenizer.get_vocab_size() if desk.backend.name == "exllamav2" else 1024
        assert len(logprobs) == done["r"].completion_tokens == 10
        assert logprobs == pytest.approx([5 - math.log(math.exp(5) + allowed - 1)] * 10, abs=1e-4)
        assert done["none"].extra == {}

    def test_options_are_weighed_by_their_first_token(self, desk: Desk) -> None:
        allowed = desk.library.tokenizer.get_vocab_size() if desk.backend.name == "exllamav2" else 1024
        asked = replace(ask("o", "a", max_tokens=9), options=("c", "b", "no such token"))
        done = desk.run([asked, ask("r", "a", max_tokens=2)])
        rest = math.log(math.exp(5) + allowed - 1)
        assert done["o"].likelihoods == pytest.approx({"c": -rest, "b": 5 - rest}, abs=1e-4)
        assert (done["o"].text, done["o"].finish, done["o"].completion_tokens) == ("b", "stop", 1)
        assert (done["r"].text, done["r"].likelihoods) == ("bc", {})

    def test_requests_share_a_batch_in_paged_mode_and_go_alone_in_serial_mode(self, desk: Desk) -> None:
        desk.run([ask(f"r{n}", "a", max_tokens=9) for n in range(6)])
        assert max(desk.library.counting.widths) == (4 if "batch" in desk.info.features else 1) == desk.info.parallel

    def test_a_batch_goes_on_after_an_exception_in_its_midst(self, desk: Desk) -> None:
        expected = {key: c.text for key, c in desk.run([ask(f"r{n}", "a", max_tokens=7) for n in range(5)]).items()}
        calls = []

        def fails_once(input_ids: Any) -> None:
            calls.append(input_ids)
            if len(calls) == 5:
                raise RuntimeError("something went wrong")

        desk.library.counting.before = fails_once
        done = desk.run([ask(f"r{n}", "a", max_tokens=7) for n in range(5)])
        # Alone at the time, a request has its error; in a batch all of them start anew.
        failed = [completion for completion in done.values() if completion.error]
        assert len(failed) == (0 if "batch" in desk.info.features else 1)
        assert all(c.text == expected[key] for key, c in done.items() if not c.error)
        # What lies in the cache is not known any more: the first to start anew finds nothing there.
        assert min(completion.cached_tokens for completion in done.values() if not completion.error) == 0
        generator = desk.library.generator
        assert not getattr(generator, "pagetable", generator).referenced_pages

    def test_a_request_that_always_fails_takes_no_other_with_it(self, desk: Desk) -> None:
        poison = desk.library.token_id("Q")

        def fails(input_ids: Any) -> None:
            if poison in input_ids.flatten().tolist():
                raise RuntimeError("cannot compute Q")

        desk.library.counting.before = fails
        done = desk.run([ask("bad", "aQa", max_tokens=5), *[ask(f"r{n}", "a", max_tokens=5) for n in range(5)]])
        assert done["bad"].error == f"{desk.backend.name} failed: RuntimeError: cannot compute Q"
        assert [done[f"r{n}"].text for n in range(5)] == ["bcdef"] * 5

    def test_a_request_longer_than_the_context_and_one_that_fills_it(self, load: Load) -> None:
        desk = load(context_length=300, options={"cache_tokens": 512})
        done = desk.run([ask("long", "x" * 300), ask("fills", "x" * 290 + "a")])
        assert "the context holds 300" in done["long"].error
        assert done["fills"].finish == "length" and done["fills"].prompt_tokens + done["fills"].completion_tokens == 300

    def test_a_common_beginning_is_computed_once(self, load: Load) -> None:
        desk = load(parallel=4)
        common = "The quick brown fox jumps over the lazy dog. " * 60
        done = desk.run([ask(f"r{n}", f"{common} {n} a", max_tokens=4) for n in range(4)])
        prompt = done["r0"].prompt_tokens
        cached = sorted(completion.cached_tokens for completion in done.values())
        assert prompt > 512 and cached[0] == 0 and all(count >= 512 for count in cached[1:]), (prompt, cached)
        again = desk.run([ask("later", f"{common} 9 a", max_tokens=4)])["later"]
        assert again.cached_tokens >= 512

    def test_memory_that_runs_out_makes_the_batch_smaller(self, load: Load) -> None:
        desk = load(parallel=4)

        def fails(input_ids: Any) -> None:
            if len(input_ids) > 2:
                raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")

        desk.library.counting.before = fails
        done = desk.run([ask(f"r{n}", "a", max_tokens=5) for n in range(6)])
        assert {completion.text for completion in done.values()} == {"bcdef"}
