"""Look at a conversation's list behind the store's back, and check that it agrees with itself.

Written from the description of the format, and shares no code with the product.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.servers.running import Client

IDS_KEPT = 32


@dataclass(frozen=True)
class Piece:
    """One element of the list."""

    no: int
    turn: int
    messages: int
    tokens: int
    count: int
    format: str
    id: str
    contents: tuple[Any, ...]


@dataclass(frozen=True)
class Head:
    """The list's first element."""

    no: int
    turn: int
    messages: int
    tokens: int
    first_no: int
    first_turn: int
    messages_before: int
    tokens_before: int
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Raw:
    """A conversation as it lies in Redis; without a head where there is none."""

    head: Head | None
    pieces: list[Piece]
    ttl_ms: int

    @property
    def contents(self) -> list[Any]:
        """The contents of all messages, oldest first."""
        return [content for piece in self.pieces for content in piece.contents]


def look(client: Client, key: str) -> Raw:
    """Read the list, and fail where the head and the elements contradict each other."""
    head_line, *elements = client.lrange(key, 0, -1) or [b""]
    ttl_ms = client.pttl(key)
    if not head_line:
        return Raw(None, [], ttl_ms)
    head, pieces = _head(head_line), [_piece(element) for element in elements]
    assert pieces, "a list holds a head alone"
    _check(head, pieces)
    return Raw(head, pieces, ttl_ms)


def _head(line: bytes) -> Head:
    word, version, *rest = line.decode("ascii").split(" ")
    assert (word, version) == ("head", "1"), line
    known, ids = int(rest[8]), tuple(rest[9:])
    assert known == len(ids), "the head miscounts its ids"
    totals: list[Any] = [*map(int, rest[:8]), ids]
    return Head(*totals)


def _piece(element: bytes) -> Piece:
    row = json.loads(element.removeprefix(b"w"))
    version, no, turn, messages, tokens, _, count, format_, id_, _counter, *rest = row
    stored = next(field for field in rest if isinstance(field, list))
    assert version == 1
    assert len(stored) == count, "the header's count is not that of the messages"
    contents = tuple(message["content"] for message in stored)
    return Piece(no, turn, messages, tokens, count, format_, id_, contents)


def _check(head: Head, pieces: list[Piece]) -> None:
    first, last = pieces[0], pieces[-1]
    assert [piece.no for piece in pieces] == list(range(head.first_no, head.no + 1))
    assert (head.turn, head.messages, head.tokens) == (last.turn, last.messages, last.tokens)
    assert head.first_turn == first.turn
    assert head.messages_before == first.messages - first.count
    assert head.tokens_before <= first.tokens
    messages, turn = head.messages_before, first.turn
    for piece in pieces:
        messages += piece.count
        assert piece.messages == messages, "the running total of messages jumps"
        assert piece.turn - turn in (0, 1), "the turns are not contiguous"
        turn = piece.turn
    known = [piece.id for piece in pieces][-IDS_KEPT:]
    assert 1 <= len(head.ids) <= IDS_KEPT
    assert list(head.ids[-len(known) :]) == known, "the head forgot an id that it has to know"
