"""When a conversation is to be read for facts, and which ones wait for it.

What is decided rests on what lies in Redis: how many turns follow the cursor, how old the newest
is by the clock there, and how often it failed. So it does not matter which process saved which
turn, nor what time it has, and a process that dies forgets nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from turnstore import _history
from turnstore._calls import Flow, Together

from .._owner import clock_call
from .cursors import START, Cursor, cursor_call
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


def due(base: Base, place: Place, trigger: Trigger) -> Flow[float | None]:
    """Say in how many seconds a conversation is to be read; None where nothing follows.

    Two round trips, and two more the first time: then it gets a cursor, by which one can see from
    outside that its turns wait. On a Cluster there is one more, for the clock.

    Args:
        base: The facts.
        place: The conversation's.
        trigger: When.
    """
    owner = base.ground.owner_in(place.keys.turns)
    stands: str
    now_ms: int
    stands, now_ms = yield Together(
        (cursor_call(owner, place.keys.member), clock_call(owner, "extract"))
    )
    cursor = Cursor.of(stands)
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
        return _left(pause, cursor.tried_ms, now_ms)
    if newest.no <= cursor.no or newest.turn - cursor.turn >= trigger.every:
        return 0.0
    return _left(trigger.idle, newest.time_ms, now_ms)


def _left(seconds: float, since_ms: int, now_ms: int) -> float:
    """Say how much is left of a time; nothing where the clock has been set back meanwhile."""
    left = seconds - (now_ms - since_ms) / 1000
    return left if 0 < left < 2 * seconds else 0.0


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
