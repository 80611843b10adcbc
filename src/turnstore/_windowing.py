"""Find where a window begins: by the running totals that are stored with each element."""

from __future__ import annotations

import logging
from bisect import bisect_left
from typing import Protocol

from ._element import Element, Row
from .messages import Message
from .window import Window

__all__ = ["Counter", "Density", "start_of"]

log = logging.getLogger("turnstore")

# Where these stand in a row; the search looks at rows alone, some of them many times.
_TURN, _TOTAL_MESSAGES, _TOTAL_TOKENS, _COUNT, _COUNTER, _MESSAGES = map(
    Element._fields.index,
    ("turn", "total_messages", "total_tokens", "message_count", "counter", "messages"),
)

# More elements than any list has, and less than LRANGE takes.
_ALL = 1 << 40

# What a message is taken for until one was read; smaller ones cost a second call.
_TOKENS_GUESSED = 50.0

# Turns differ in tokens more than in messages: an estimate without a margin is short for every
# other read.
_TOKENS_MARGIN = 1.05

# By how much what a store is thought to hold rises with a read. Slow, for conversations differ: a
# faster one forgets the small turns of one before they come again, and a read takes two commands.
# The price is a reply that is some 15 % larger.
_RISE = 1.005

# A window of one or two turns says little about the next one.
_LEARNT_FROM = 4


class Counter(Protocol):
    """Counts tokens, under a name that is stored with what it counted."""

    @property
    def name(self) -> str:
        """The name of the count."""
        ...

    def __call__(self, message: Message) -> int:
        """Count one message."""
        ...


def start_of(
    rows: list[Row], tokens_before: int | None, window: Window, counter: Counter | None
) -> int:
    """Find the index at which a window begins.

    Args:
        rows: Elements, of which the last is the newest.
        tokens_before: The running total before the first of them; None where elements
            before it were not read.
        window: The limits, all of which hold.
        counter: Counts what another counter counted; needed for a limit of tokens.

    Returns:
        The index. At 0, where elements before were not read, the window may begin among
        those.
    """
    if not rows or (window.turns is None and window.messages is None and window.tokens is None):
        return 0
    newest = rows[-1]
    first_turn = window.dropped(newest[_TURN], window.turns) + 1
    messages_before = window.dropped(newest[_TOTAL_MESSAGES], window.messages)
    totals_before = window.dropped(newest[_TOTAL_TOKENS], window.tokens)

    def fits(index: int) -> bool:
        row = rows[index]
        if row[_TURN] < first_turn or row[_TOTAL_MESSAGES] - row[_COUNT] < messages_before:
            return False
        before = rows[index - 1][_TOTAL_TOKENS] if index else tokens_before
        return bool(window.tokens is None or before is None or before >= totals_before)

    # All limits are monotonous along the list, so that a bisection finds the element.
    start = bisect_left(range(len(rows)), x=True, key=fits)
    if window.tokens is None or counter is None:
        return _whole_turns(rows, start)
    counted = {row[_COUNTER] for row in rows[max(start - 1, 0) :]} == {counter.name}
    if not counted:
        start = _recounted(rows, tokens_before, window, window.tokens, counter)
    start = _whole_turns(rows, start)
    before: int | None = rows[start - 1][_TOTAL_TOKENS] if start else tokens_before
    if before is not None:  # otherwise more is read, and the start is looked for again
        _warn(rows[start:], before, window.tokens, counter, counted=counted)
    return start


def _whole_turns(rows: list[Row], start: int) -> int:
    """Move a start that lies inside a turn to the beginning of one."""
    newest = rows[-1][_TURN]
    if start == len(rows) or rows[start][_TURN] == newest:
        # The newest turn stays whole, however large it is.
        start = min(start, len(rows) - 1)
        while start > 0 and rows[start - 1][_TURN] == newest:
            start -= 1
    elif start > 0:
        # The rest of this turn does not fit: on to the next one.
        while rows[start - 1][_TURN] == rows[start][_TURN]:
            start += 1
    return start


def _recounted(
    rows: list[Row], tokens_before: int | None, window: Window, tokens: int, counter: Counter
) -> int:
    """Find the start by counting, where elements in or just before it were counted otherwise."""
    by_count = Window(window.turns, window.messages, step=window.step)
    start = start_of(rows, tokens_before, by_count, None)
    spent = 0
    for index in range(len(rows) - 1, start - 1, -1):
        spent += sum(map(counter, rows[index][_MESSAGES]))
        if spent > tokens:
            return index + 1
    return start


def _warn(rows: list[Row], before: int, limit: int, counter: Counter, *, counted: bool) -> None:
    """Say in the log what a window had to do beside what was asked for."""
    if not counted:
        log.warning(
            "tokens are counted on reading: the messages were stored with another counter than "
            "%s, or with none. Give the store count_tokens=%r, so that they are counted once",
            counter.name,
            counter.name,
        )
    if rows[0][_TURN] != rows[-1][_TURN]:
        return
    tokens = rows[-1][_TOTAL_TOKENS] - before
    if not counted:
        tokens = sum(counter(message) for row in rows for message in row[_MESSAGES])
    if tokens > limit:
        log.warning(
            "the newest turn alone has %d tokens, more than the window's %d; it is kept whole",
            tokens,
            limit,
        )


class Density:
    """How much an element holds, at the least, as lately seen.

    Shared by the conversations of a store. It only spares bytes on the wire: a wrong
    value costs a second call or a larger reply, never a wrong answer, so that threads
    may change it at the same time.

    Attributes:
        outgrown: Whether a turn needed the summary of what is before its window: from then on,
            each turn that has one reads it together with its history.
    """

    __slots__ = ("_messages", "_tokens", "outgrown")

    def __init__(self) -> None:
        self._messages = 0.0  # nothing seen
        self._tokens = 0.0
        self.outgrown = False

    def elements(self, window: Window) -> int:
        """Estimate how many elements hold a window and one more; 0 means all."""
        counts: list[float] = []
        if window.turns is not None:
            counts.append(window.turns)
        if window.messages is not None:
            counts.append(window.messages / max(1.0, self._messages) + 1)
        if window.tokens is not None:
            held = window.tokens / (self._tokens or _TOKENS_GUESSED)
            counts.append(held * _TOKENS_MARGIN + 1)
        return min(int(min(counts)) + 1, _ALL) if counts else 0

    def learn(self, rows: list[Row], start: int) -> None:
        """Take note of what was read, and where the window began; falls at once, rises slowly."""
        if not rows:
            return
        oldest = min(start, max(len(rows) - _LEARNT_FROM, 0))
        held = len(rows) - oldest
        first, last = rows[oldest], rows[-1]
        messages = last[_TOTAL_MESSAGES] - first[_TOTAL_MESSAGES] + first[_COUNT]
        self._messages = _lower(self._messages, messages / held)
        if held > 1:
            tokens = last[_TOTAL_TOKENS] - first[_TOTAL_TOKENS]
            self._tokens = _lower(self._tokens, tokens / (held - 1))


def _lower(known: float, seen: float) -> float:
    return min(seen, known * _RISE) or seen
