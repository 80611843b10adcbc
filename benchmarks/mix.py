"""The messages that every case stores: deterministic, of the sizes that chats have.

A user writes about 200 characters, an assistant about 800, and one turn in ten holds a tool call,
its result and the answer drawn from it. The mean is about 610 bytes of JSON a message; `describe`
says what it is, and every result file records it.
"""

from __future__ import annotations

import json
import random
from typing import Any

Message = dict[str, Any]
Turn = list[Message]

SEED = 20_261_101
TOOL_EVERY = 10

_TEXT = """
account address again agent amount answer apply arrive attach balance battery before billing box
branch browser button cable calendar cancel card carrier change charge check choose clean click
close code color company compare confirm connect contract copy correct country coupon courier
credit customer damage date day deliver deposit desk detail device discount document door download
draft driver email empty enable error evening exchange expect expire export fee field file filter
final find finish firmware fix folder form forward friend garden gift group guest handle heavy
help history holiday hotel hour image import include increase inform install invoice issue item
journey kettle keyboard kitchen label language later letter level license light limit line link
list local lock login machine manager manual meeting member menu message meter method minute
missing mobile model monday money month morning move name network night note notice number offer
office open option order original other package page paper parcel partner password past payment
permit person phone photo picture place plan point policy portal postcode power present press
price print private problem process product profile project promise provider quarter question
queue quick quote reach read reason receipt record refund region remind remove renew repair repeat
replace report request reserve reset return review room route rule safe sale sample save schedule
screen search seat second section secure select send serial service session setting share ship
shop shorter side signal simple single size slow small sound source space spare special standard
start statement station status step stock stop store street subject submit summer supplier support
switch system table tariff task team ticket time title today token total track train transfer
travel trial turn type understand unit update upgrade urgent user value version video visit
voucher wait warehouse warranty week weight window winter wire work write year yesterday
"""
_SMALL_TEXT = """
a an and are as at be but by can do for from has have if in is it its my no not of on or so that
the their there they this to was we were when which will with would you your
"""
_WORDS = _TEXT.split()
_SMALL = _SMALL_TEXT.split()
_RARE = ("café", "Zürich", "naïve", "5 °C", "€49.90", "“as agreed”", "—", "東京", "👍")


def _sentence(rng: random.Random) -> str:
    words: list[str] = []
    for _ in range(rng.randint(7, 16)):
        pick = rng.random()
        words.append(
            rng.choice(_RARE)
            if pick < 0.01
            else str(rng.randint(2, 9_999))
            if pick < 0.03
            else rng.choice(_SMALL)
            if pick < 0.45
            else rng.choice(_WORDS)
        )
    text = " ".join(words)
    return text[0].upper() + text[1:] + rng.choice((".", ".", ".", "?", "!"))


def _text(rng: random.Random, length: int, *, paragraphs: bool) -> str:
    """Prose of about `length` characters; an assistant's has paragraphs, points and code."""
    goal = int(length * rng.uniform(0.6, 1.4))
    parts: list[str] = []
    size = 0
    while size < goal:
        sentence = _sentence(rng)
        pick = rng.random()
        if paragraphs and pick < 0.10:
            sentence = "\n\n- **" + rng.choice(_WORDS) + "**: " + sentence
        elif paragraphs and pick < 0.13:
            sentence = (
                '\n\n```python\nclient.get("'
                + rng.choice(_WORDS)
                + '", limit='
                + str(rng.randint(1, 99))
                + ")\n```\n"
            )
        elif parts:
            sentence = (" " if not paragraphs or pick < 0.8 else "\n\n") + sentence
        parts.append(sentence)
        size += len(sentence)
    return "".join(parts)


def _identifier(rng: random.Random) -> str:
    return "call_" + "".join(
        rng.choices("abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", k=24)
    )


def _rows(rng: random.Random, count: int) -> str:
    rows = [
        {
            "id": rng.randint(10_000, 99_999),
            "name": " ".join(rng.sample(_WORDS, 3)),
            "status": rng.choice(_WORDS),
            "total": round(rng.uniform(1, 900), 2),
            "updated": f"2026-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}T00:00:00.000Z",
        }
        for _ in range(count)
    ]
    return json.dumps({"rows": rows, "more": rng.random() < 0.5})


def plain_turn(rng: random.Random) -> Turn:
    """A question and its answer."""
    return [
        {"role": "user", "content": _text(rng, 168, paragraphs=False)},
        {"role": "assistant", "content": _text(rng, 770, paragraphs=True)},
    ]


def tool_turn(rng: random.Random) -> Turn:
    """A question, a tool call, its result, the answer."""
    ask, answer = plain_turn(rng)
    call = _identifier(rng)
    arguments = json.dumps({"query": " ".join(rng.sample(_WORDS, 3)), "limit": rng.randint(1, 20)})
    function = {"name": f"search_{rng.choice(_WORDS)}s", "arguments": arguments}
    return [
        ask,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call, "content": _rows(rng, rng.randint(10, 24))},
        answer,
    ]


def conversation(messages: int, *, seed: int = SEED) -> list[Turn]:
    """Turns, oldest first, with exactly `messages` messages in all.

    Counted from the newest, every tenth turn is one with a tool, so the newest 50 and the newest
    100 begin at a turn: a reader of whole turns and a reader of messages get the same ones.
    """
    rng = random.Random(seed)
    turns: list[Turn] = []
    left = messages
    while left > 0:
        tool = len(turns) % TOOL_EVERY == TOOL_EVERY - 1 and left >= 4
        turn = tool_turn(rng) if tool else plain_turn(rng)[:left]
        turns.append(turn)
        left -= len(turn)
    turns.reverse()
    return turns


def fresh_turns(count: int, *, seed: int = SEED + 1) -> list[Turn]:
    """Turns of two messages to append while the clock runs."""
    rng = random.Random(seed)
    return [plain_turn(rng) for _ in range(count)]


def flat(turns: list[Turn]) -> list[Message]:
    """The messages of some turns, in order."""
    return [message for turn in turns for message in turn]


def describe(messages: int = 10_000) -> dict[str, float]:
    """What the mix is like, for the record."""
    every = flat(conversation(messages))
    sizes = [len(json.dumps(m, ensure_ascii=False, separators=(",", ":")).encode()) for m in every]
    users = [len(m["content"]) for m in every if m["role"] == "user"]
    answers = [len(m["content"]) for m in every if m["role"] == "assistant" and m["content"]]
    return {
        "messages": len(every),
        "bytes_per_message": round(sum(sizes) / len(sizes), 1),
        "user_characters": round(sum(users) / len(users), 1),
        "assistant_characters": round(sum(answers) / len(answers), 1),
        "smallest_bytes": min(sizes),
        "largest_bytes": max(sizes),
    }
