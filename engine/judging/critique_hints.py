"""Hints on a critique while it is written: what would teach a judge nothing. Never a refusal.

Three rules, the first that holds is the hint:

1. *Only the verdict*: every word is one that says good or bad, names the thing judged, or joins words ("The answer is correct").
   One word of anything else and the rule is silent: it shall not nag. English and German; other languages are not known here.
2. *Copy*: the same words in the same order as the critique of another case; capitals, blanks and punctuation do not count.
3. *Too short*: fewer than `MIN_WORDS` words. A Chinese or Japanese character counts as one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

MIN_WORDS = 4
"""Fewer words than this hardly name what was wanted, whether it was reached, and what decided."""

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_APOSTROPHES = str.maketrans("", "", "'’ʼ`´")

_ENGLISH = """
good bad great nice fine ok okay excellent perfect poor awful terrible weak solid decent better best worse worst well badly perfectly
correct correctly incorrect incorrectly right rightly wrong wrongly true false accurate accurately inaccurate valid invalid acceptable
unacceptable adequate inadequate appropriate inappropriate sufficient insufficient satisfactory unsatisfactory helpful unhelpful useful
useless pass passes passed passing fail fails failed failing failure success successful works worked meets met fulfils fulfills fulfilled
satisfies satisfied violates violated answer answers answered response responses reply replies output result results model assistant bot
agent system llm ai criterion criteria requirement requirements expectation expectations expected job work case verdict quality
like likes liked love dislike agree agreed disagree looks look seems seem sounds sound feels did does do done doing didnt doesnt dont
nothing everything all none something problem problems issue issues error errors mistake mistakes lgtm yes no not never nope yep
isnt wasnt arent cant cannot couldnt shouldnt
i me my we it its this that these those here there he she they them the a an is was are were be been has have had give gives gave given
very really quite totally completely absolutely fully simply just so too rather pretty much more most less at of for to by with in on as
and or but also again still overall clearly obviously unfortunately definitely basically generally only any
"""
_GERMAN = """
gut gute guter gutes guten schlecht schlechte schlechter schlechtes schlechten super toll prima klasse perfekt perfekte perfektes
hervorragend ausgezeichnet mangelhaft schwach schwache besser beste schlechter richtig richtige richtiger richtiges falsch falsche falscher
falsches korrekt korrekte korrektes inkorrekt unkorrekt zutreffend unzutreffend fehlerhaft fehlerfrei akzeptabel inakzeptabel angemessen
unangemessen ausreichend unzureichend brauchbar unbrauchbar hilfreich nutzlos bestanden besteht durchgefallen erfüllt erfuellt verfehlt
gelöst geloest stimmt stimmen passt passend geht klappt funktioniert ordnung einwandfrei zufriedenstellend antwort antworten antwortet
beantwortet ausgabe ergebnis modell assistent kriterium anforderung anforderungen erwartet wie gefällt gefaellt mir fehler problem
probleme alles nichts etwas ja nein nicht nie kein keine keinen keiner
ich es das dies diese dieser dieses der die den dem ein eine einen einer ist war sind waren wird wurde hat haben sein
sehr ganz völlig voellig total absolut vollkommen ziemlich einfach nur so zu recht eher mehr und oder aber auch noch wieder leider hier da
klar eindeutig insgesamt in im an auf für fuer von mit als
"""
_EMPTY_WORDS = frozenset(f"{_ENGLISH} {_GERMAN}".split())


class HintKind(StrEnum):
    """What is weak about a critique."""

    ONLY_VERDICT = "only verdict"
    COPY = "copy"
    TOO_SHORT = "too short"


@dataclass(frozen=True)
class Hint:
    """What is weak, and the same in words; ``copy_of`` names the other case of a copy."""

    kind: HintKind
    text: str
    copy_of: str = ""


def words_of(critique: str) -> tuple[str, ...]:
    """The words of a critique as the rules see them: without capitals, punctuation and apostrophes, ligatures taken apart."""
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", critique).casefold().translate(_APOSTROPHES)))


class KnownCritiques:
    """The critiques of a criterion by their words, to find copies."""

    def __init__(self, critiques: Iterable[tuple[str, str]] = ()) -> None:
        self._words: dict[str, tuple[str, ...]] = {}
        self._cases: dict[tuple[str, ...], dict[str, None]] = {}
        self.take(critiques)

    def take(self, critiques: Iterable[tuple[str, str]]) -> None:
        """Know the critiques of these cases, (trace id, critique), in place of earlier ones; an empty one is forgotten."""
        for trace_id, critique in critiques:
            before = self._words.pop(trace_id, None)
            if before is not None:
                self._cases[before].pop(trace_id)
            if words := words_of(critique):
                self._words[trace_id] = words
                self._cases.setdefault(words, {})[trace_id] = None

    def copied_from(self, words: tuple[str, ...], trace_id: str) -> str:
        """The case, another than ``trace_id``, that has had these words longest; "" for none."""
        return next((case for case in self._cases.get(words, ()) if case != trace_id), "")


def critique_hint(critique: str, known: KnownCritiques | None = None, trace_id: str = "") -> Hint | None:
    """What is weak about the critique of the case ``trace_id``, or None. An empty one gets no hint: it is not written yet."""
    words = words_of(critique)
    if not words:
        return None
    if all(word in _EMPTY_WORDS for word in words):
        return Hint(HintKind.ONLY_VERDICT, "only the verdict: what decided?")
    if known is not None and (other := known.copied_from(words, trace_id)):
        return Hint(HintKind.COPY, f"the same words as {other}", other)
    if len(words) < MIN_WORDS:
        return Hint(HintKind.TOO_SHORT, "short: what decided, and why?")
    return None
