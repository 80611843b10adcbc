"""What becomes of facts whose turns are gone.

A turn that was undone was never said: what was drawn from it is undone too, extraction by
extraction, and the turns of those that are still there are read again. The same where the
conversation was cleared. Turns that were dropped as the oldest, or that have expired with their
conversation, were said: their facts stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnstore import _history
from turnstore._calls import Call, Flow
from turnstore.results import Stat

from .._storing.commit import CursorMove
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
    cleared_us: float = yield Call(
        "extract",
        (reader.place.keys.cleared,),
        "zscore",
        (reader.conversation,),
        writes=False,
        read=lambda reply: float(reply or 0),
    )
    undone = 0
    done = {entry.note.get("of") for entry in log if entry.name == UNDO}
    for entry in log:
        if entry.name != EXTRACT or entry.note.get("conversation") != reader.conversation:
            continue
        end, start = Cursor.of(entry.note["to"]), Cursor.of(entry.note["from"])
        was_cleared = cleared_us / 1e6 > entry.time.timestamp()
        if not was_cleared:
            if stat.first_time is None or stat.first_time > entry.time:
                break  # it expired; what there is now began later
            if (yield from is_held(keys, end)):
                yield from note(reader, stands, end, KEEP)
                return undone
        if entry.id in done:
            continue
        move = CursorMove(reader.conversation, stands, str(start))
        yield from undo(
            base, reader.place, log, entry, began=reader.began, cursor=move, fence=reader.fence
        )
        undone, stands = undone + 1, str(start)
    yield from note(reader, stands, START, KEEP)
    return undone
