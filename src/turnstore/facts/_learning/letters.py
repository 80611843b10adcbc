"""What could not be read: failed attempts, and the answers of models that are of no use.

Of each conversation the newest is kept, of an owner the newest hundred. A letter goes with the
facts that are drawn at last, by hand, with its conversation, and with its owner.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from turnstore import _json
from turnstore._calls import Call, Flow, pairs_of

from .._owner import OwnerPlace, script_call
from .._storing.record import moment
from .cursors import Cursor

if TYPE_CHECKING:
    from .._storing.commit import Began

__all__ = [
    "DROP",
    "KEEP",
    "DeadLetter",
    "Reader",
    "letter_named",
    "letters",
    "note",
    "written",
]

DROP, KEEP = b"", b"="
"""What becomes of the letter that is there already, where no other takes its place."""

_LONGEST_ANSWER = 4000


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Turns that no facts could be drawn from, and what the model said.

    Attributes:
        id: Of the letter.
        conversation: The id of the conversation.
        first_turn: The number of the first turn that was read.
        last_turn: Of the last one.
        failed: When.
        attempts: How often it was tried.
        reason: What is wrong with the answer.
        answer: What the model said, up to 4,000 characters.
    """

    id: str
    conversation: str
    first_turn: int
    last_turn: int
    failed: datetime
    attempts: int
    reason: str
    answer: str


class Reader(NamedTuple):
    """Who reads a conversation, and may note what becomes of that.

    Attributes:
        place: The owner's.
        conversation: The digest of the conversation.
        began: What it began with.
        fence: The lease that it holds; empty where it needs none.
        ttl_ms: The time to live in milliseconds; 0 keeps it.
    """

    place: OwnerPlace
    conversation: str
    began: Began
    fence: str
    ttl_ms: int


def written(letter: DeadLetter, last: Cursor) -> bytes:
    """Write a letter down.

    Args:
        letter: What is noted; its id is given by the server.
        last: What the cursor is to be where the turns are skipped.
    """
    parts = [
        1,
        letter.conversation,
        letter.first_turn,
        letter.last_turn,
        letter.attempts,
        letter.reason,
        letter.answer[:_LONGEST_ANSWER],
        str(last),
    ]
    codec, data = _json.dumps(parts)
    return codec.encode() + data


def note(reader: Reader, stands: str, cursor: Cursor | None, letter: bytes) -> Flow[bool]:
    """Move a cursor without any facts, and put a letter in the place of the one before.

    Args:
        reader: Who has read.
        stands: Where the cursor stands, as it is stored.
        cursor: Where it is to stand; None drops it.
        letter: As from `written`, or what becomes of the one that is there.

    Returns:
        Whether the cursor stood where it was thought to; else nothing was written.
    """
    values = {
        "began": reader.began.number,
        "fence": reader.fence,
        "ttl_ms": reader.ttl_ms,
        "conversation": reader.conversation,
        "expected": stands,
        "cursor": "" if cursor is None else str(cursor),
        "letter": letter,
    }
    noted: int = yield script_call("memory_letter", reader.place, values, int, operation="extract")
    return bool(noted)


def letters(place: OwnerPlace) -> Flow[list[tuple[DeadLetter, Cursor]]]:
    """Read the letters of an owner, oldest first, with what skips each: one call."""
    found: list[tuple[DeadLetter, Cursor]] = yield Call(
        "letters", (place.keys.dead,), "xrange", ("-", "+"), writes=False, read=_read
    )
    return found


def letter_named(place: OwnerPlace, identifier: str) -> Flow[tuple[DeadLetter, Cursor]]:
    """Read one letter: one call.

    Raises:
        TypeError: The id is not text.
        LookupError: The owner has no such letter.
    """
    if not isinstance(identifier, str):
        msg = f"the id of a letter is text, not {type(identifier).__name__}"
        raise TypeError(msg)
    for letter, last in (yield from letters(place)):
        if letter.id == identifier:
            return letter, last
    msg = f"the owner has no dead letter {identifier[:40]!r}; it may be settled already"
    raise LookupError(msg)


def _read(reply: Any) -> list[tuple[DeadLetter, Cursor]]:
    found: list[tuple[DeadLetter, Cursor]] = []
    for raw_id, fields in reply:
        letter = pairs_of(fields)[b"letter"]
        _, conversation, first, last, attempts, reason, answer, cursor = _json.loads(letter)
        identifier = raw_id.decode()
        failed = moment(int(identifier.partition("-")[0]))
        found.append(
            (
                DeadLetter(identifier, conversation, first, last, failed, attempts, reason, answer),
                Cursor.of(cursor),
            )
        )
    return found
