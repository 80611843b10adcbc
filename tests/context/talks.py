"""Random conversations, and what a window of one holds: written down slowly, on purpose."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.unit.histories import Json, asks, assistant, result, user
from turnstore import Window, _history, _keys
from turnstore._windowing import Density
from turnstore.context import TokenCounter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from turnstore import History

KEYS = _keys.key_names("test", "s", "c")


def size(message: Json) -> int:
    """Count the tokens of a message, after a fashion; some have none."""
    return len(json.dumps(message)) // 7 - 4 if len(json.dumps(message)) > 40 else 0


SIZES = TokenCounter("sizes", size)


def turn(random: Random, number: int) -> list[list[Json]]:
    """Make a turn of one to several pieces: plain, with tool loops, with an image, giant."""
    kind = random.choice(["plain", "plain", "plain", "short", "tools", "image", "giant", "many"])
    question = user(f"{number}: {'word ' * random.randint(0, 40)}")
    answer = assistant(f"{number}! {'answer ' * random.randint(0, 60)}")
    if kind == "short":
        return [[user("")]]
    if kind == "tools":
        pieces, last = [[question]], random.randint(1, 4)
        for loop in range(last):
            name = f"c{number}.{loop}"
            pieces[-1].append(asks(name))
            pieces.append([result(name)])
        return [*pieces[:-1], [*pieces[-1], answer]]
    if kind == "image":
        part = {"type": "image_url", "image_url": {"url": "data:" + "A" * random.randint(9, 900)}}
        return [[user([{"type": "text", "text": str(number)}, part]), answer]]
    if kind == "giant":
        return [[user(f"{number} " * random.randint(500, 2000)), answer]]
    if kind == "many":
        return [[user(f"{number}.{n}") for n in range(random.randint(3, 30))]]
    return [[question, answer]]


def talk(random: Random, most: int) -> list[list[list[Json]]]:
    return [turn(random, number) for number in range(1, random.randint(1, most) + 1)]


@dataclass
class Talk:
    """All turns of a conversation, of which the first may have been trimmed."""

    turns: list[list[list[Json]]]
    trimmed: int = 0
    counter: str = SIZES.name

    def stored(self) -> list[bytes]:
        """Write the list as Redis would hold it, head first."""
        raws: list[bytes] = []
        totals, before = [0, 0, 0, 0], [1, self.trimmed + 1, 0, 0]
        for number, pieces in enumerate(self.turns, start=1):
            for piece in pieces:
                totals[0] += 1
                totals[1] = number
                totals[2] += len(piece)
                totals[3] += sum(map(size, piece))
                row = [*totals, 1, len(piece), "openai.chat", f"t{totals[0]}", self.counter, piece]
                if number > self.trimmed:
                    raws.append(json.dumps([1, *row]).encode())
            if number == self.trimmed:
                before = [totals[0] + 1, number + 1, *totals[2:]]
        head = " ".join(map(str, ["head", 1, *totals, *before, f"t{totals[0]}"]))
        return [head.encode(), *raws]

    def window(self, window: Window) -> list[int]:
        """Find the numbers of the turns in a window: slowly, and without the code under test."""
        numbers = range(1, len(self.turns) + 1)
        messages = {n: sum(map(len, self.turns[n - 1])) for n in numbers}
        tokens = {n: sum(size(m) for piece in self.turns[n - 1] for m in piece) for n in numbers}
        kept = set(numbers)
        for limit, of in (
            (window.turns, dict.fromkeys(numbers, 1)),
            (window.messages, messages),
            (window.tokens, tokens),
        ):
            if limit is None:
                continue
            block = 1 if window.step is None else max(1, int(limit * window.step))
            gone = 0
            while sum(of.values()) - gone > limit:
                gone += block
            kept &= {n for n in numbers if sum(of[m] for m in numbers if m < n) >= gone}
        return [n for n in numbers if n > self.trimmed and n in kept] or [len(self.turns)]

    def messages(self, numbers: list[int]) -> list[Json]:
        return [m for n in numbers for piece in self.turns[n - 1] for m in piece]


def read(
    raws: list[bytes],
    window: Window,
    density: Density | None = None,
    counter: TokenCounter | None = SIZES,
) -> tuple[History, int]:
    """Read a window of a list without a server; give also how many commands that took."""
    flow = _history.read(KEYS, window, density or Density(), counter)
    commands = 0
    call: Any = next(flow)
    while True:
        commands += 1
        start, stop = call.arguments
        assert (call.command, stop) == ("lrange", -1)
        try:
            call = flow.send(list(raws[start:] if start else raws))
        except StopIteration as end:
            return end.value, commands


def windows(random: Random, count: int) -> Iterator[Window]:
    """Draw windows with every combination of limits, with and without a step."""
    for number in range(count):
        yield Window(
            turns=random.randint(1, 12) if number & 1 else None,
            messages=random.randint(1, 40) if number & 2 else None,
            tokens=random.choice([1, 50, 300, 1000, 5000]) if number & 4 else None,
            step=random.choice([0.01, 0.25, 0.5, 1]) if number & 8 else None,
        )
