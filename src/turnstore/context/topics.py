"""Find where a conversation turns to another topic, so that the old one is not sent."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

from turnstore._calls import Ask
from turnstore._element import Element
from turnstore.messages import format_named
from turnstore.results import History, Turn

from ._common import Asking, check_deadline, check_function, failed, said

__all__ = ["Boundary", "Embed", "Topics", "begins", "meta_of", "since_boundary", "without"]

Vectors: TypeAlias = Sequence[Iterable[float]]
Embed: TypeAlias = Callable[[list[str]], "Vectors | Awaitable[Vectors]"]
"""Makes a vector of each text: lists of numbers, or numpy arrays."""

_META = "boundary"

# In scripts without blanks, two characters are taken for a word.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORDS = rf"[{_UNSPACED}]{{1,2}}|[^\W{_UNSPACED}]+(?:['\u2019-][^\W{_UNSPACED}]+)*"


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where a topic ends, and the new message begins another.

    Attributes:
        turns: The numbers of the turns that made up the topic, as far as they were read,
            oldest first.
        similarity: How similar the new message is to the one before, from -1 to 1; None
            where it was not measured.
        reason: What parts them: `similarity`, or the time between (`idle`).
    """

    turns: tuple[int, ...]
    similarity: float | None
    reason: Literal["similarity", "idle"]


@dataclass(frozen=True, slots=True)
class Topics:
    """Starts a fresh window where the user turns to another topic.

    A new message whose cosine similarity with the user's message before it is below the
    threshold opens a topic. Its turn is marked in its `meta`, as
    `{"boundary": true, "similarity": 0.12}`, and from then on only turns from the newest
    mark on are sent; those before it stay stored. All workers find the same mark.

    Short messages ("and then?", "thanks") look like nothing before them, so one of less
    than `min_words` words neither opens a topic nor is compared with. Where vectors
    cannot be had or compared, the topic goes on; that is logged, and counted as `topics`.

    Args:
        embed: Takes a list of two texts and answers two vectors; on an async store it may
            be async. None finds boundaries by `idle` alone.
        threshold: A similarity below it opens a topic. It depends on the model that makes
            the vectors: measure it on your own conversations.
        min_words: How many words a message needs to be compared.
        idle: A message that comes so long after the turn before opens a topic too, short
            or not. The turn's time is the server's clock, and now is this machine's.
        on_boundary: Called with a `Boundary` before the model is, in place of the default,
            which is to close the topic with a summary where the context has one. If it
            answers False, the topic goes on. It is called again for a message that is
            sent again because its turn failed.
        deadline: Seconds that `embed` and `on_boundary` may take; None waits.
        clock: Tells the time, with a timezone; for tests.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: The threshold is not from -1 to 1, `min_words` or the deadline too
            small, `idle` not above 0, or nothing given that could find a boundary.
    """

    embed: Embed | None = None
    _: KW_ONLY
    threshold: float = 0.4
    min_words: int = 4
    idle: timedelta | None = None
    on_boundary: Callable[[Boundary], object] | None = None
    deadline: float | None = None
    clock: Callable[[], datetime] = _now

    def __post_init__(self) -> None:
        if self.embed is None and self.idle is None:
            msg = "Topics() finds no boundary: give it a function that embeds, idle=, or both"
            raise ValueError(msg)
        for name in ("embed", "on_boundary", "clock"):
            if getattr(self, name) is not None:
                check_function(f"Topics({name})", getattr(self, name))
        for name, kinds in (("threshold", int | float), ("min_words", int)):
            value = getattr(self, name)
            if not isinstance(value, kinds) or isinstance(value, bool):
                msg = f"Topics({name}={value!r}): give a number"
                raise TypeError(msg)
        if not -1 <= self.threshold <= 1:
            msg = f"Topics(threshold={self.threshold}): a similarity is from -1 to 1"
            raise ValueError(msg)
        if self.min_words < 1:
            msg = f"Topics(min_words={self.min_words}): a message has at least 1 word"
            raise ValueError(msg)
        if self.idle is not None and not isinstance(self.idle, timedelta):
            msg = f"Topics(idle={self.idle!r}): give a timedelta, or None"
            raise TypeError(msg)
        if self.idle is not None and self.idle <= timedelta(0):
            msg = f"Topics(idle={self.idle}): a time is above 0; None means any"
            raise ValueError(msg)
        check_deadline("Topics", self.deadline)


def since_boundary(history: History) -> History:
    """Leave out the turns before the newest one that opened a topic."""
    elements = history.elements
    newest = next((e.turn for e in reversed(elements) if e.meta.get(_META)), None)
    first = next((at for at, e in enumerate(elements) if e.turn == newest), 0)
    return _from(history, elements, first)


def without(history: History) -> History:
    """Leave out all turns: the window of a topic that begins now."""
    elements = history.elements
    return _from(history, elements, len(elements))


def begins(
    topics: Topics, turns: Sequence[Turn], question: str, counts: Counter[str]
) -> Asking[Boundary | None]:
    """Find out whether a new message begins a topic.

    Args:
        topics: How.
        turns: The turns of the topic so far, oldest first.
        question: What the user says now; empty where that has no text.
        counts: Where failures are counted, as `topics` and `on_boundary`.

    Returns:
        The boundary before the message; None where the topic goes on.
    """
    if not turns:
        return None
    numbers = tuple(turn.number for turn in turns)
    boundary: Boundary | None = None
    if topics.idle is not None and _idle(topics, turns[-1], counts) >= topics.idle:
        boundary = Boundary(numbers, None, "idle")
    else:
        similarity = yield from _similarity(topics, turns, question, counts)
        if similarity is not None and similarity < topics.threshold:
            boundary = Boundary(numbers, similarity, "similarity")
    if boundary is None or topics.on_boundary is None:
        return boundary
    try:
        answer = yield Ask(topics.on_boundary, (boundary,), topics.deadline)
    except Exception as error:  # noqa: BLE001 - whatever it is, the boundary is there
        failed(counts, "on_boundary", error, "the topic is closed without it")
        return boundary
    return None if answer is False else boundary


def cosine(one: Iterable[float], other: Iterable[float]) -> float:
    """Compare two vectors: 1 for the same direction, 0 for nothing in common.

    Raises:
        TypeError: They are no vectors of numbers.
        ValueError: They differ in length, or have no direction.
    """
    first, second = _unit(one), _unit(other)
    if len(first) != len(second):
        msg = f"the vectors have {len(first)} and {len(second)} numbers"
        raise ValueError(msg)
    return max(-1.0, min(1.0, math.fsum(a * b for a, b in zip(first, second, strict=True))))


def meta_of(boundary: Boundary) -> dict[str, Any]:
    """Say in the meta of a turn that a topic begins with it."""
    if boundary.similarity is None:
        return {_META: True}
    return {_META: True, "similarity": round(boundary.similarity, 4)}


def _similarity(
    topics: Topics, turns: Sequence[Turn], question: str, counts: Counter[str]
) -> Asking[float | None]:
    """Compare with the newest message of the user that says enough to be compared with."""
    if topics.embed is None or _words(question) < topics.min_words:
        return None
    before = (said(turn.messages, format_named(turn.format)) for turn in reversed(turns))
    earlier = next((text for text in before if _words(text) >= topics.min_words), None)
    if earlier is None:
        return None
    try:
        vectors = yield Ask(topics.embed, ([earlier, question],), topics.deadline)
        one, other = vectors
        return cosine(one, other)
    except Exception as error:  # noqa: BLE001 - whatever it is, the topic goes on
        failed(counts, "topics", error, "the topic goes on")
        return None


def _idle(topics: Topics, newest: Turn, counts: Counter[str]) -> timedelta:
    try:
        return topics.clock() - newest.time
    except Exception as error:  # noqa: BLE001 - whatever it is, the topic goes on
        failed(counts, "topics", error, "the topic goes on")
        return timedelta(0)


def _words(text: str) -> int:
    return len(re.findall(_WORDS, text))


def _unit(vector: Iterable[float]) -> list[float]:
    numbers = [float(number) for number in vector]
    length = math.hypot(*numbers)
    if not math.isfinite(length) or length == 0:
        msg = f"a vector of {len(numbers)} numbers has the length {length}, and so no direction"
        raise ValueError(msg)
    return [number / length for number in numbers]


def _from(history: History, elements: list[Element], first: int) -> History:
    """Begin a history at an element; its revision stays that of the conversation."""
    if not first:
        return history
    rows = [list(element) for element in elements[first:]]
    cut = History(rows, elements[first - 1].total_tokens, has_older=True)
    cut.revision = history.revision
    return cut
