"""Search the turns of one conversation by their words, newest pages first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from turnstore._calls import Flow
from turnstore.messages import format_named
from turnstore.results import TurnPage

from .._learning.wording import said_in
from .._scoring.text import bm25, terms

if TYPE_CHECKING:
    from turnstore._place import Place

__all__ = ["Said", "Wanted", "search"]

_PAGE = 200  # turns read at once
_PAGES = 10  # of which so many at most


class Said(NamedTuple):
    """What somebody said.

    Attributes:
        time: When its turn was saved.
        speaker: "user" or "assistant".
        text: What was said.
    """

    time: datetime
    speaker: str
    text: str


class Wanted(NamedTuple):
    """What is looked for.

    Attributes:
        query: The words.
        speaker: Who said it; empty for both.
        start: Nothing from before this time; None for no bound.
        end: Nothing from this time on, likewise.
        limit: How much is answered at most.
    """

    query: str
    speaker: str
    start: datetime | None
    end: datetime | None
    limit: int


def search(place: Place, wanted: Wanted) -> Flow[list[Said]]:
    """Find what was said, the best first: one call for each 200 turns, of the newest 2,000.

    What tools answered is left out, and so is what this search found before.
    """
    said: list[Said] = []
    before: int | None = None
    for _ in range(_PAGES):
        page: TurnPage = yield from place.turns(_PAGE, before)
        for turn in page:
            if (wanted.start and turn.time < wanted.start) or (
                wanted.end and turn.time >= wanted.end
            ):
                continue
            spoken = said_in(turn.messages, format_named(turn.format))
            said += [
                Said(turn.time, speaker, text)
                for speaker, text in spoken
                if wanted.speaker in ("", speaker)
            ]
        before = page.cursor
        if before is None or (wanted.start and page and page[0].time < wanted.start):
            break
    return _best(said, wanted)


def _best(said: Sequence[Said], wanted: Wanted) -> list[Said]:
    postings: dict[str, list[tuple[str, int, int]]] = {}
    words = terms(wanted.query)
    total = 0
    for number, one in enumerate(said):
        counted: Counter[str] = terms(one.text)
        length = counted.total()
        total += length
        for word in counted.keys() & words.keys():
            postings.setdefault(word, []).append((str(number), counted[word], length))
    scores = bm25(words, postings, len(said), total)

    def place(number: str) -> tuple[float, float]:
        return -round(scores[number], 9), -said[int(number)].time.timestamp()

    return [said[int(number)] for number in sorted(scores, key=place)[: wanted.limit]]
