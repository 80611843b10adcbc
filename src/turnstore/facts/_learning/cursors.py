"""Up to where a conversation was read for facts, and what came after that.

A cursor is a text among the owner's keys, ``<turn> <no> <turn id> <time_ms> <attempts> <tried_ms>
<most>``: the last element that was read, and when it was appended; how often what follows it could
not be read, when last, and how many turns are to be read at once then. It moves with the facts,
in one commit, or not at all.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from turnstore import _history
from turnstore._calls import Call, Flow
from turnstore._element import Element
from turnstore.errors import CorruptTurnError
from turnstore.results import EMPTY, Stat

from .._owner import OwnerPlace

if TYPE_CHECKING:
    from turnstore._keys import Keys

__all__ = ["START", "Cursor", "Unread", "cursor_call", "is_held", "read_cursor", "unread"]

_CURSOR = re.compile(
    r"(\d{1,15}) (\d{1,15}) (\S{1,64}) (\d{1,15}) (\d{1,9}) (\d{1,15}) (\d{1,9})", re.ASCII
)


class Cursor(NamedTuple):
    """Up to where a conversation was read.

    Attributes:
        turn: The number of the last turn that was read; 0 where none was.
        no: The ordinal of its last element.
        turn_id: Of that element.
        time_ms: When it was appended: a turn that was undone may come again under its id.
        attempts: How often what follows could not be read, one after the other.
        tried_ms: When last.
        most: So many turns are read at once then; 0 for as many as usual.
    """

    turn: int
    no: int
    turn_id: str
    time_ms: int
    attempts: int
    tried_ms: int
    most: int

    def __str__(self) -> str:
        """Give it as it is stored."""
        return " ".join(map(str, self))

    @staticmethod
    def of(text: str) -> Cursor:
        """Read one.

        Raises:
            CorruptTurnError: It is none of ours.
        """
        if not text:
            return START
        found = _CURSOR.fullmatch(text)
        if found is None:
            msg = f"the cursor of an extraction is not one of ours: {text[:80]!r}"
            raise CorruptTurnError(msg)
        turn, no, turn_id, *numbers = found.groups()
        return Cursor(int(turn), int(no), turn_id, *map(int, numbers))

    @staticmethod
    def after(element: Element) -> Cursor:
        """Give the one behind an element."""
        return Cursor(element.turn, element.no, element.turn_id, element.time_ms, 0, 0, 0)


START = Cursor(0, 0, "-", 0, 0, 0, 0)
"""Nothing was read."""


class Unread(NamedTuple):
    """What of a conversation is to be read.

    Attributes:
        elements: Those that follow the cursor, oldest first; not all where there are many.
        lag: How many turns follow it.
        is_gone: Whether what the cursor stands behind is not there any more, though not
            because it was the oldest: it was undone, cleared, or has expired. Where no turn is
            there at all, it is gone too.
    """

    elements: list[Element]
    lag: int
    is_gone: bool


def read_cursor(place: OwnerPlace, conversation: str) -> Flow[tuple[str, Cursor]]:
    """Read how far a conversation was read: one call.

    Args:
        place: The owner's.
        conversation: The digest of its id.

    Returns:
        The cursor as it is stored, empty where none is, and what it says.
    """
    text: str = yield cursor_call(place, conversation)
    return text, Cursor.of(text)


def cursor_call(place: OwnerPlace, conversation: str) -> Call:
    """Read a cursor as it is stored; see `read_cursor`."""
    return Call(
        "extract",
        (place.keys.cursors,),
        "hget",
        (conversation,),
        writes=False,
        read=lambda reply: reply.decode() if reply else "",
    )


def unread(keys: Keys, cursor: Cursor, most: int) -> Flow[Unread]:
    """Read what follows a cursor: one call, and two more where that is more than asked for.

    Args:
        keys: Of the conversation.
        cursor: Where to begin.
        most: How many turns at most.
    """
    found: _history.Found = yield _history.page_call(keys, 0, most + 1, "extract")
    if not found.elements:
        return Unread([], 0, is_gone=True)
    newest = found.elements[-1]
    is_gone = newest.no < cursor.no
    if not is_gone and found.elements[0].no > cursor.no + 1 and found.previous != EMPTY:
        stat: Stat = yield from _history.stat(keys)
        start = max(cursor.turn, newest.turn - stat.turns)
        found = yield _history.page_call(keys, start + most + 1, most + 1, "extract")
    is_gone = is_gone or not _agrees(cursor, found.elements)
    elements = [
        element
        for element in found.elements
        if element.no > cursor.no and element.turn <= max(cursor.turn, _first(found, cursor)) + most
    ]
    return Unread([] if is_gone else elements, max(newest.turn - cursor.turn, 0), is_gone)


def is_held(keys: Keys, cursor: Cursor) -> Flow[bool]:
    """Tell whether what a cursor stands behind is in its place, or was the oldest: one call."""
    found: _history.Found = yield _history.page_call(keys, cursor.turn + 1, 1, "extract")
    if not found.elements:  # all that is held is younger
        return found.revision != EMPTY
    return any(element.no == cursor.no for element in found.elements) and _agrees(
        cursor, found.elements
    )


def _agrees(cursor: Cursor, elements: list[Element]) -> bool:
    return all(
        (element.turn_id, element.time_ms) == (cursor.turn_id, cursor.time_ms)
        for element in elements
        if element.no == cursor.no
    )


def _first(found: _history.Found, cursor: Cursor) -> int:
    """Give the number of the turn before the first that is unread."""
    return next((element.turn - 1 for element in found.elements if element.no > cursor.no), 0)
