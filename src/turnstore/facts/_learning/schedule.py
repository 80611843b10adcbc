"""When a conversation is to be read for facts, and which ones wait for it.

What is decided rests on what lies in Redis: how many turns follow the cursor, how old the newest
is, and how often it failed. So it does not matter which process saved which turn, and a process
that dies forgets nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from turnstore import _history
from turnstore._calls import Flow

from .cursors import START, read_cursor
from .letters import KEEP, Reader, note

if TYPE_CHECKING:
    from turnstore._place import Place

    from .._storing.base import Base

__all__ = ["Pending", "Trigger", "due"]

_FIRST_BREAK, _LONGEST_BREAK = 30.0, 3600.0  # seconds after a failure; each doubles the one before


@dataclass(frozen=True, slots=True)
class Trigger:
    """When facts are drawn.

    Attributes:
        every: As soon as so many turns follow the cursor.
        idle: Or so many seconds after the newest turn.
    """

    every: int
    idle: float


def due(base: Base, place: Place, trigger: Trigger, now: float) -> Flow[float | None]:
    """Say in how many seconds a conversation is to be read; None where nothing follows.

    Two calls, and two more the first time: then it gets a cursor, by which one can see from
    outside that its turns wait.

    Args:
        base: The facts.
        place: The conversation's.
        trigger: When.
        now: Seconds since 1970.
    """
    owner = base.ground.owner_in(str(place.keys.owner).encode())
    stands, cursor = yield from read_cursor(owner, place.keys.member)
    # Begun before the turns are looked for: if they are erased after that, so is the note.
    began = None if stands else (yield from base.begin(owner, (), "extract"))
    found: _history.Found = yield _history.page_call(place.keys, 0, 1, "extract")
    newest = found.elements[-1] if found.elements else None
    if newest is None:
        return 0.0 if stands else None
    if began is not None:
        reader = Reader(owner, place.keys.member, began, "", base.settings.ttl_ms)
        yield from note(reader, stands, START, KEEP)
    stands_at = (newest.no, newest.turn_id, newest.time_ms)
    if stands_at == (cursor.no, cursor.turn_id, cursor.time_ms):
        return None
    if cursor.attempts:
        pause: float = min(_FIRST_BREAK * 2 ** min(cursor.attempts - 1, 20), _LONGEST_BREAK)
        return max(cursor.tried_ms / 1000 + pause - now, 0.0)
    if newest.no <= cursor.no or newest.turn - cursor.turn >= trigger.every:
        return 0.0
    return max(newest.time_ms / 1000 + trigger.idle - now, 0.0)


class _Waiting(NamedTuple):
    place: Place
    due: float


class Pending:
    """Conversations that wait, each once, and no more than a number of them.

    Args:
        most: How many.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: dict[str, _Waiting] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, place: Place, due: float) -> bool:
        """Let one wait until a time; the sooner one counts. False where all places are taken."""
        key = str(place.keys)
        there = self._waiting.get(key)
        if there is None and len(self._waiting) >= self._most:
            return False
        self._waiting[key] = _Waiting(place, due if there is None else min(due, there.due))
        return True

    def take(self, now: float) -> tuple[Place | None, float | None]:
        """Take one whose time has come; else say how long that takes, None where none waits."""
        if not self._waiting:
            return None, None
        key = min(self._waiting, key=lambda one: self._waiting[one].due)
        place, due_ = self._waiting[key]
        if due_ > now:
            return None, due_ - now
        del self._waiting[key]
        return place, 0.0

    def take_all(self) -> list[Place]:
        """Take all of them, whatever their time."""
        places = [waiting.place for waiting in self._waiting.values()]
        self._waiting.clear()
        return places
