"""What the store answers: plain values that hold no connection."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from . import _element
from ._element import Element, Row

__all__ = [
    "EMPTY",
    "Appended",
    "ConversationInfo",
    "ConversationPage",
    "Cut",
    "Erasure",
    "History",
    "Stat",
    "Turn",
    "TurnPage",
    "time_of",
    "turns_of",
]

# Where these stand in a row.
_NO, _TURN, _FORMAT, _TURN_ID, _MESSAGES = map(
    Element._fields.index, ("no", "turn", "format", "turn_id", "messages")
)

EMPTY = "0"
"""The revision of a conversation that holds nothing."""


@dataclass(frozen=True, slots=True)
class Appended:
    """What an append did.

    Attributes:
        revision: The revision that this turn made (a duplicate: that it made then).
        duplicate: True when the turn id was stored before, and nothing was written.
        turns: Turns that the conversation holds now.
        messages: Messages that it holds now.
        tokens: Their tokens, as counted when they were appended.
        dropped: Turns dropped from the front to keep within `max_messages`.
        replaced_ids: The ids of the turns that this one has replaced, of all their pieces, oldest
            first. Where this turn was saved before its block began, only those that were named.
    """

    revision: str
    duplicate: bool
    turns: int
    messages: int
    tokens: int
    dropped: int
    replaced_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """One saved turn.

    Attributes:
        number: Its ordinal in the conversation, from 1; older turns have smaller ones.
        id: The turn id of its append (of its last piece, where it was saved in pieces).
        ids: The turn ids of all its pieces, oldest first; of one append, that one.
        messages: Its messages as they were saved, plain dicts.
        tokens: Their tokens, as counted when they were appended.
        time: When it was saved (its last piece), by the server's clock, in UTC.
        format: Whose JSON the messages are, such as `openai.chat`.
        meta: What was said of the turn: model, finish reason, usage, ….
        revision: The revision of the conversation after this turn.
    """

    number: int
    id: str
    ids: tuple[str, ...]
    messages: list[dict[str, Any]]
    tokens: int
    time: datetime
    format: str
    meta: dict[str, Any]
    revision: str


class Cut(NamedTuple):
    """What goes when a turn replaces another: that one, and all after it.

    Attributes:
        first: The revision of the first element that goes; empty where it went before.
        ids: The turn ids of all that goes, oldest first.
        turns: The turns that go, oldest first; none where they went before.
    """

    first: str
    ids: tuple[str, ...]
    turns: tuple[Turn, ...]


class History(list[dict[str, Any]]):
    """Messages, oldest first: a list of plain dicts that an SDK takes as it is.

    Attributes:
        revision: The revision of the conversation when it was read.
        has_older: Whether turns older than these are stored.
        tokens_before: The tokens of all turns before these, stored or not any more.
    """

    began = 0  # the number that its owner gave to the turn, where both are
    beside: Any = None  # what was read beside it
    cut: Cut | None = None  # the turns behind it, which go when the new turn is saved

    def __init__(self, rows: list[Row], tokens_before: int, *, has_older: bool) -> None:
        super().__init__(_element.messages_of(rows))
        self.revision = f"{rows[-1][_NO]}-{rows[-1][_TURN_ID]}" if rows else EMPTY
        self.has_older = has_older
        self._rows = rows
        self.tokens_before = tokens_before

    @property
    def elements(self) -> list[Element]:
        """The same messages as they are stored: by elements, with their headers."""
        return [_element.named(row) for row in self._rows]

    @property
    def piece_ids(self) -> tuple[str, ...]:
        """The turn ids of the elements: of a turn in several pieces, the id of each."""
        return tuple(row[_TURN_ID] for row in self._rows)

    @property
    def pieces(self) -> list[tuple[int, str, list[dict[str, Any]]]]:
        """The same messages by elements: the number of the turn, the format, the messages."""
        return [(row[_TURN], row[_FORMAT], row[_MESSAGES]) for row in self._rows]

    @property
    def first_turn(self) -> int:
        """The number of the oldest turn among them; there is one."""
        return int(self._rows[0][_TURN])

    @property
    def has_pieces(self) -> bool:
        """Whether a turn among them was saved in several pieces."""
        if not self._rows:
            return False
        first, last = self._rows[0], self._rows[-1]
        return bool(last[_NO] - first[_NO] != last[_TURN] - first[_TURN])

    @property
    def turns(self) -> list[Turn]:
        """The same messages by turns, oldest first."""
        return turns_of(self.elements, self.tokens_before)


class TurnPage(list[Turn]):
    """Turns, oldest first.

    Attributes:
        cursor: What to give as `before` to read the turns before these; None where
            there are none.
        revision: The revision of the conversation when it was read.
    """

    def __init__(self, turns: list[Turn], revision: str, *, has_older: bool) -> None:
        super().__init__(turns)
        self.revision = revision
        self.cursor = turns[0].number if turns and has_older else None


@dataclass(frozen=True, slots=True)
class Stat:
    """The measures of a conversation.

    Attributes:
        turns: Turns held.
        messages: Messages held.
        tokens: Their tokens, as counted when they were appended.
        bytes: Memory on the server, by its own account; None where it does not say.
        ttl: Time left to live; None where it is kept forever or does not exist.
        first_time: When the oldest turn held was saved, in UTC; None where none is.
        last_time: When the newest was.
        revision: The revision; "0" where there is no such conversation.
    """

    turns: int
    messages: int
    tokens: int
    bytes: int | None
    ttl: timedelta | None
    first_time: datetime | None
    last_time: datetime | None
    revision: str


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """One conversation in its owner's list.

    Attributes:
        id: Its id.
        title: What `set_title` called it; None where nothing did.
        last_activity: When it was last written to, by the server's clock, in UTC.
        turns: Turns held; None where what is stored cannot be read.
        messages: Messages held; None likewise.
    """

    id: str
    title: str | None
    last_activity: datetime
    turns: int | None
    messages: int | None


class ConversationPage(list[ConversationInfo]):
    """Conversations of an owner, those that were written to last first.

    Attributes:
        cursor: What to give as `before` to list those after these; None where there are
            none.
    """

    def __init__(self, conversations: list[ConversationInfo], cursor: int | None) -> None:
        super().__init__(conversations)
        self.cursor = cursor


@dataclass(frozen=True, slots=True)
class Erasure:
    """The receipt of an erasure: what was removed, and that nothing is left.

    It is true where anything was removed. It counts what was removed from the beginning of this
    erasure to its end; of an owner, the first four also count what an erasure before it had
    removed that was not finished.

    Attributes:
        conversations: Conversations removed.
        turns: Turns removed with them.
        messages: Messages removed with them.
        keys: Redis keys removed with them.
        verified: Whether all was looked at afterwards, every key of the server too, and nothing
            was left but the note of the erasure itself. False says that `verify=True` was not
            asked for, and not that something is left: what fails is an error.
        parts: What else was removed, by name, where there was any: `summaries`; and where
            `turnstore.facts` is imported, `facts`, `exchanges`, `memory` (blocks of it),
            `cursors` up to which conversations were read, `dead_letters`, `operations` of the
            log, `documents` of an index that no fact knew of, and `vectors` that a forgotten
            fact had left.
    """

    conversations: int
    turns: int
    messages: int
    keys: int
    verified: bool
    parts: dict[str, int] = field(default_factory=dict[str, int])

    def __bool__(self) -> bool:
        return bool(self.conversations or self.turns or self.messages or self.keys or self.parts)


def turns_of(elements: list[Element], tokens_before: int) -> list[Turn]:
    """Join elements to turns: pieces that share an ordinal become one."""
    turns: list[Turn] = []
    for element in elements:
        messages, meta = element.messages, dict(element.meta)
        tokens = element.total_tokens - tokens_before
        tokens_before = element.total_tokens
        ids: tuple[str, ...] = (element.turn_id,)
        if turns and turns[-1].number == element.turn:
            piece = turns.pop()
            messages, meta = piece.messages + messages, piece.meta | meta
            tokens += piece.tokens
            ids = piece.ids + ids
        turns.append(
            Turn(
                number=element.turn,
                id=element.turn_id,
                ids=ids,
                messages=messages,
                tokens=tokens,
                time=time_of(element.time_ms),
                format=element.format,
                meta=meta,
                revision=element.revision,
            )
        )
    return turns


def time_of(time_ms: int) -> datetime:
    """Turn the server's clock into a datetime in UTC."""
    return datetime.fromtimestamp(time_ms / 1000, UTC)
