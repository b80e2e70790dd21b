"""How likely a model finds each of some options as the first token of its reply, and which one it finds likeliest.

Nothing is read out of a text: a model that would begin with "The answer is" is asked all the same. It is how MMLU and
the like are scored where log-probabilities are to be had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from engine.backends.protocol import Completion


def of_listed(options: Sequence[str], listed: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The natural log-probability of each option among the likeliest tokens that a backend lists; those not listed are missing.

    A token is an option when it is its text but for blanks around it; of several the likeliest counts. Since whatever is
    not listed is less likely than all that is, the likeliest option is right as soon as one is listed.

    >>> of_listed("AB", [("The", -0.4), (" A", -1.6), ("A", -2.0), ("AB", -2.1)])
    {'A': -1.6}
    """
    found: dict[str, float] = {}
    for token, logprob in listed:
        text = token.strip()
        if text in options and logprob > found.get(text, float("-inf")):
            found[text] = logprob
    return {option: found[option] for option in options if option in found}


def likeliest(likelihoods: Mapping[str, float]) -> str:
    """The option of the greatest likelihood; "" where there is none, and where two are equal: then nothing decides."""
    best = max(likelihoods.values(), default=None)
    at_best = [option for option, likelihood in likelihoods.items() if likelihood == best]
    return at_best[0] if len(at_best) == 1 else ""


def decided(completion: Completion, likelihoods: Mapping[str, float]) -> Completion:
    """The completion with the likelihoods, and the likeliest option as its text."""
    return replace(completion, text=likeliest(likelihoods), finish="stop", likelihoods=likelihoods)
