"""What a model is told: the turns of a conversation, and the facts that are known."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import NamedTuple

from turnstore._element import Element
from turnstore.context._common import fill
from turnstore.messages import format_named
from turnstore.results import time_of

from .._model import Fact
from .consolidation import Shown
from .wording import fact_line, said_in, shortened

__all__ = ["Told", "prompt", "tell"]

_LONGEST_MESSAGE, _LONGEST_BATCH = 4000, 24_000  # characters


class Told(NamedTuple):
    """Turns as the model is told of them.

    Attributes:
        shown: The turns.
        texts: What was said in each; empty where nothing was.
        first: The first element of them.
        last: The last one.
    """

    shown: list[Shown]
    texts: list[str]
    first: Element
    last: Element


def tell(elements: Sequence[Element]) -> Told:
    """Write down the first turns of some elements, as many as a model reads at once.

    Instructions and tool traffic are left out, and the middle of long messages. There is at
    least one element.
    """
    shown: list[Shown] = []
    texts: list[str] = []
    number, length, last = 0, 0, elements[0]
    for element in elements:
        rules = format_named(element.format)
        lines = [
            f"{speaker}: {shortened(text, _LONGEST_MESSAGE)}"
            for speaker, text in said_in(element.messages, rules)
        ]
        text = "\n".join(lines)
        length += len(text)
        if shown and length > _LONGEST_BATCH and element.turn != number:
            break
        if element.turn == number:  # another piece of the same turn
            ids, _ = shown.pop()
            text = "\n".join(filter(None, (texts.pop(), text)))
        else:
            ids = ()
        shown.append(Shown((*ids, element.turn_id), time_of(element.time_ms)))
        texts.append(text)
        number, last = element.turn, element
    return Told(shown, texts, elements[0], last)


def prompt(template: str, told: Told, known: Sequence[Fact], zone: tzinfo) -> str:
    """Make the prompt: known facts are numbered from 0, turns from 1."""
    facts = [f"{number}. {fact_line(fact, zone)}" for number, fact in enumerate(known)]
    turns = [
        f"Turn {number}, {shown.time.astimezone(zone):%A %Y-%m-%d %H:%M}:\n{text or '(nothing)'}"
        for number, (shown, text) in enumerate(zip(told.shown, told.texts, strict=True), start=1)
    ]
    return fill(template, facts="\n".join(facts) or "(nothing)", transcript="\n\n".join(turns))
