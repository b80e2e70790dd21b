"""Writes sums_items.jsonl beside this file: python -m sample_data.make_sums

One-step sums whose answers are exact decimals. The same seed gives the same bytes on every machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from random import Random

SEED = 20
ROUNDS = 17
"""Each kind of sum comes once a round."""

NAMES = ("Aino", "Bram", "Celia", "Dilip", "Esi", "Farid", "Greta", "Hana", "Ivo", "Jonas", "Kemal", "Lotte")
THINGS = ("apples", "buttons", "candles", "envelopes", "marbles", "pencils", "shells", "stamps", "tickets", "walnuts")
PLACES = ("Tromsdalen", "Virrat", "Oulx", "Delemont", "Hawick", "Sopron", "Kaunas", "Elvas")
GOODS = ("a pot of glue", "a notebook", "a jar of honey", "a bus ticket", "a light bulb", "a bar of soap", "a map")

Kind = Callable[[Random], tuple[str, Decimal]]


def items() -> Iterator[dict[str, str]]:
    """The items in the order of the file; no question comes twice."""
    random = Random(SEED)
    seen: set[str] = set()
    for _ in range(ROUNDS):
        for kind in KINDS:
            question, answer = kind(random)
            while question in seen:
                question, answer = kind(random)
            seen.add(question)
            yield {"id": f"s{len(seen):03d}", "question": question, "answer": f"{answer:f}"}


def text() -> str:
    """The whole file."""
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items())


def _between(random: Random, low: int, high: int) -> int:
    # randrange's way to a number may change between versions of Python; that of random() is promised to stay.
    return low + int(random.random() * (high - low + 1))


def _one_of(random: Random, choices: tuple[str, ...]) -> str:
    return choices[_between(random, 0, len(choices) - 1)]


def _two_names(random: Random) -> tuple[str, str]:
    first = _between(random, 0, len(NAMES) - 1)
    step = _between(random, 1, len(NAMES) - 1)
    return NAMES[first], NAMES[(first + step) % len(NAMES)]


def _hundredths(random: Random, low: int, high: int) -> Decimal:
    """A price or length with two decimals, the last of them never 0."""
    return (Decimal(10 * _between(random, low // 10, high // 10) + _between(random, 1, 9)) / 100).quantize(
        Decimal("0.01")
    )


def _bare_addition(random: Random) -> tuple[str, Decimal]:
    a, b = _between(random, 11, 99), _between(random, 11, 99)
    return f"What is {a} + {b}?", Decimal(a + b)


def _easy_addition(random: Random) -> tuple[str, Decimal]:
    a, b = _between(random, 2, 19), _between(random, 2, 9)
    return f"How much is {a} plus {b}?", Decimal(a + b)


def _bare_subtraction(random: Random) -> tuple[str, Decimal]:
    a, b = _between(random, 3, 60), _between(random, 61, 99)
    return f"What is {a} - {b}?", Decimal(a - b)


def _three_numbers(random: Random) -> tuple[str, Decimal]:
    numbers = [_between(random, 2, 30) for _ in range(3)]
    return f"Add up {numbers[0]}, {numbers[1]} and {numbers[2]}.", Decimal(sum(numbers))


def _thousands(random: Random) -> tuple[str, Decimal]:
    a, b = _between(random, 1000, 8999), _between(random, 1000, 8999)
    return f"What is {a:,} + {b:,}?", Decimal(a + b)


def _visitors(random: Random) -> tuple[str, Decimal]:
    place, all_, left = _one_of(random, PLACES), _between(random, 2100, 9800), _between(random, 110, 1900)
    return (
        f"The fair in {place} sold {all_:,} tickets, and {left:,} of the buyers did not come. How many came?",
        Decimal(all_ - left),
    )


def _decimals(random: Random) -> tuple[str, Decimal]:
    a, b = Decimal(_between(random, 11, 99)) / 10, Decimal(_between(random, 11, 99)) / 10
    return f"What is {a} + {b}?", a + b


def _gets_more(random: Random) -> tuple[str, Decimal]:
    (who, giver), thing = _two_names(random), _one_of(random, THINGS)
    has, more = _between(random, 4, 48), _between(random, 3, 35)
    return (
        f"{who} has {has} {thing}. {giver} gives {who} {more} more. How many {thing} does {who} have now?",
        Decimal(has + more),
    )


def _gives_away(random: Random) -> tuple[str, Decimal]:
    (who, taker), thing = _two_names(random), _one_of(random, THINGS)
    has, given = _between(random, 30, 90), _between(random, 4, 28)
    return f"{who} had {has} {thing} and gave {given} of them to {taker}. How many are left?", Decimal(has - given)


def _boxes(random: Random) -> tuple[str, Decimal]:
    thing, boxes, each = _one_of(random, THINGS), _between(random, 3, 12), _between(random, 4, 15)
    return f"There are {boxes} boxes with {each} {thing} in each. How many {thing} is that?", Decimal(boxes * each)


def _shares(random: Random) -> tuple[str, Decimal]:
    thing, people, each = _one_of(random, THINGS), _between(random, 3, 9), _between(random, 3, 14)
    return (
        f"{people} children share {people * each} {thing} equally. How many {thing} does each child get?",
        Decimal(each),
    )


def _temperature(random: Random) -> tuple[str, Decimal]:
    place, warm, fall = _one_of(random, PLACES), _between(random, 1, 9), _between(random, 10, 24)
    return (
        f"In {place} it was {warm} degrees at noon. By night it had become {fall} degrees colder. "
        "What was the temperature at night?",
        Decimal(warm - fall),
    )


def _account(random: Random) -> tuple[str, Decimal]:
    (who, _), has, pays = _two_names(random), _between(random, 12, 95), _between(random, 100, 260)
    return (
        f"{who}'s account holds {has} euros. After a payment of {pays} euros, what is the balance?",
        Decimal(has - pays),
    )


def _change(random: Random) -> tuple[str, Decimal]:
    (who, _), good, price = _two_names(random), _one_of(random, GOODS), _hundredths(random, 110, 880)
    return (
        f"{who} buys {good} for {price} euros and pays with a ten-euro note. How many euros are given back?",
        Decimal(10) - price,
    )


def _two_prices(random: Random) -> tuple[str, Decimal]:
    good, first, second = _one_of(random, GOODS), _hundredths(random, 110, 980), _hundredths(random, 110, 980)
    return (
        f"A shop asks {first} euros for {good} and {second} euros to deliver it. What does that cost together?",
        first + second,
    )


def _plank(random: Random) -> tuple[str, Decimal]:
    (who, _), length, cut = _two_names(random), _between(random, 21, 49), _between(random, 3, 19)
    return (
        f"{who} saws {Decimal(cut) / 10} m off a plank of {Decimal(length) / 10} m. How many metres remain?",
        Decimal(length - cut) / 10,
    )


def _walk(random: Random) -> tuple[str, Decimal]:
    place, per_day, days = _one_of(random, PLACES), _between(random, 6, 24), _between(random, 3, 9)
    return (
        f"On the way to {place} we walk {per_day} km a day for {days} days. How many kilometres is that?",
        Decimal(per_day * days),
    )


def _older(random: Random) -> tuple[str, Decimal]:
    (young, old), age, years = _two_names(random), _between(random, 5, 40), _between(random, 2, 29)
    return f"{young} is {age} years old. {old} is {years} years older. How old is {old}?", Decimal(age + years)


def _stock(random: Random) -> tuple[str, Decimal]:
    thing, has, comes = _one_of(random, THINGS), _between(random, 1200, 7900), _between(random, 1050, 4900)
    return (
        f"A warehouse holds {has:,} {thing}. A lorry brings {comes:,} more. How many {thing} are there now?",
        Decimal(has + comes),
    )


KINDS: tuple[Kind, ...] = (
    _bare_addition, _easy_addition, _bare_subtraction, _three_numbers, _thousands, _visitors, _decimals, _gets_more,
    _gives_away, _boxes, _shares, _temperature, _account, _change, _two_prices, _plank, _walk, _older, _stock,
)  # fmt: skip


if __name__ == "__main__":
    Path(__file__).with_name("sums_items.jsonl").write_text(text(), encoding="utf-8", newline="\n")
