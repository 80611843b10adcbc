"""What becomes of facts whose turns are gone.

A turn that was undone was never said: what was drawn from it is undone too, extraction by
extraction, and the turns of those that are still there are read again. The same where all turns
were undone, or the conversation was cleared, within a day. Turns that were dropped as the oldest,
or that have expired with their conversation, were said: their facts stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnstore import _history
from turnstore._calls import Call, Flow, Together
from turnstore.results import Stat

from .._storing.commit import CursorMove
from .._storing.record import stamp
from .cursors import START, Cursor, is_held
from .letters import KEEP, Reader, note
from .operations import UNDO, entries, undo

if TYPE_CHECKING:
    from turnstore._keys import Keys

    from .._storing.base import Base

__all__ = ["EXTRACT", "go_back"]

EXTRACT = "extract"
"""What an extraction is called in the log."""


def go_back(base: Base, keys: Keys, reader: Reader, stands: str) -> Flow[int]:
    """Move the cursor back to turns that are there, and undo what was drawn from others.

    Where no turn is there, the cursor goes.

    Args:
        base: The facts.
        keys: Of the conversation.
        reader: Who reads it.
        stands: Where its cursor stands, as it is stored.

    Returns:
        Extractions that were undone.

    Raises:
        Blocked: The cursor stands elsewhere by now.
    """
    log = yield from entries(reader.place)
    stat: Stat = yield from _history.stat(keys)
    ended_ms = yield from _ended_ms(reader)
    undone = 0
    done = {entry.note.get("of") for entry in log if entry.name == UNDO}
    for entry in log:
        if entry.name != EXTRACT or entry.note.get("conversation") != reader.conversation:
            continue
        end, start = Cursor.of(entry.note["to"]), Cursor.of(entry.note["from"])
        if end.time_ms > ended_ms:
            if stat.first_time is None or stamp(stat.first_time) > end.time_ms:
                break  # it expired; what there is now began later
            if (yield from is_held(keys, end)):
                yield from note(reader, stands, end, KEEP)
                return undone
        if entry.id in done:
            continue
        move = CursorMove(reader.conversation, stands, str(start))
        since = reader.began.number
        yield from undo(
            base, reader.place, log, entry, since=since, cursor=move, fence=reader.fence
        )
        undone, stands = undone + 1, str(start)
    # Of a conversation that is gone nothing stays: cursors would outlive what they are of.
    yield from note(reader, stands, None if stat.first_time is None else START, KEEP)
    return undone


def _ended_ms(reader: Reader) -> Flow[int]:
    """Say when all turns of a conversation were last taken away, in milliseconds; 0 for never."""

    def when(member: str) -> Call:
        return Call(
            "extract",
            (reader.place.keys.cleared,),
            "zscore",
            (member,),
            writes=False,
            read=lambda reply: int(float(reply or 0)) // 1000,
        )

    names = reader.conversation, f"{reader.conversation}:undone"
    ended: list[int] = yield Together(tuple(map(when, names)))
    return max(ended)
