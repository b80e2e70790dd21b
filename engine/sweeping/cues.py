"""The words with which a model announces its answer: "the answer is", "Answer:", and the same in other languages."""

from __future__ import annotations

_ASIDE = r"(?:\s{1,3}(?:to|for|in|of|on)(?:\s{1,2}[^\s.:=]{1,30}+){1,14}?)?"
_SAYS = r"[*_]{0,4}\s{0,3}(?:(?:is|was|would\ be|should\ be|must\ be|equals)\b|[:：=])"
_ELSEWHERE = "Antwort|Lösung|R[ée]ponse|Respuesta|Resposta|Risposta|Antwoord|Ответ|答案|答え|정답"


def _cue(nouns: str) -> str:
    return (
        rf"(?:\b(?:{nouns}){_ASIDE}{_SAYS}[*_]{{0,4}}"
        rf"|<answer>"
        rf"|(?:{_ELSEWHERE})[*_]{{0,4}}\s{{0,3}}(?:(?:ist|est|es|é|è)\b|[是为は:：=])[*_]{{0,4}})"
    )


ANSWER_CUE = _cue("answer")
"""A declaration up to where the answer begins. To be compiled without regard to case; bounded, so that it is linear in the text."""

CHOICE_CUE = _cue("answer|choice|option")
"""The same for a letter, which a model may also call its choice or option."""
